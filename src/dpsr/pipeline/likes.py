"""The pipelines that protect people who do not rate: the order of questions, and the side they end with.

    1. numbers of interactions       how many people there are, and how much they did
    2. weighted counts, in rounds    which cells are popular; fewer cells each time, until it is clear
    3. numbers of interactions       again, among the frequent cells
    4. second moments of presence    of the frequent cells, with a part of what is left: does taste show?
    5. the same again, or counts     all that is left goes where it helps
    6. names                         items that may be named, if the list of items was not declared

Each question is a pass over blocks of people and depends on earlier answers alone. Popularity is what everything falls
back to: an axis of taste that does not show in moments that were not learned from is not used.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.amounts import check_delta, check_epsilon
from dpsr.certify.normal_price import affordable_squared_mu
from dpsr.errors import ParameterError, PrivacyError
from dpsr.likes import plan
from dpsr.likes.activity import Activity
from dpsr.likes.evidence import Evidence, weigh
from dpsr.likes.foresight import Foresight, PairForesight, favour_of
from dpsr.likes.pair_moments import moments_of_pairs
from dpsr.likes.popularity import Popularity
from dpsr.likes.scores import by_factors, by_items, mean_of
from dpsr.likes.taste import Moments, learn_taste
from dpsr.pipeline.progress import announce
from dpsr.privacy.vault.people.asking import DELTA_FOR_NAMES
from dpsr.privacy.vault.people.likes_vault import LikesVault
from dpsr.types.item_side import SIZES, Crowd, ItemIndex
from dpsr.types.likes_side import LikesSide

_LEAST = 1e-5
"""Of mu^2: with less, not even an item that everybody of thousands has stands out of the noise."""

_LEAST_ROUND = 1e-3
"""Of mu^2: a round of counts with less tells nothing."""

_SHY = 1 - 1e-9
"""Shares are floats and the vault counts exactly."""


NO_VALUES = (
    "who did what is the secret of interactions, and unit='value' protects values alone: it would publish every row. "
    "Use unit='user' to protect whole people, or unit='rating' to protect single interactions, each with a delta "
    "(--unit user --delta 1e-6)."
)


def check_likes(unit: str, epsilon: float, delta: float | None) -> None:
    """Refuse the unit at which who did what is public, and budgets with which nothing is learned."""
    if unit == "value":
        raise ParameterError(NO_VALUES)
    asked = check_epsilon(epsilon)
    if delta is not None and affordable_squared_mu(asked, (1 - DELTA_FOR_NAMES) * check_delta(delta)) < _LEAST:
        raise PrivacyError(
            f"epsilon = {epsilon:g} and delta = {delta:g} are so small together that nothing would be learned. Use a "
            "larger epsilon or a larger delta."
        )


def learn_likes(vault: LikesVault) -> tuple[LikesSide, ItemIndex]:
    """All questions in order; the whole budget is spent."""
    announce("Asking how many people there are, and how much they did")
    everything = np.arange(vault.n_cells)
    answer = vault.numbers(plan.NUMBERS, everything)
    activity = Activity.of(answer.values, answer.noise, vault.n_cells)
    announce("Asking what is popular")
    popularity, n_frequent = ask_popularity(vault, activity)
    announce("Asking for directions of taste")
    frequent = popularity.order[:n_frequent]
    side = _ask_taste(vault, popularity, frequent) if len(frequent) > 2 else None
    if side is None:
        announce("Asking again what is popular")
        left = vault.left - _for_names(vault)
        popularity = _ask_counts(vault, popularity, left) if left > _LEAST_ROUND else popularity
        side = LikesSide.of_popularity(shown(popularity))
    announce("Asking which items may be named")
    return replace(side, crowd=crowd_of(activity, side.popularity, vault.unit)), ask_names(vault, popularity)


def foresee(activity: Activity, popularity: Popularity, unit: str) -> Foresight:
    """What second moments would bring.

    At the unit `user` somebody with n interactions adds sqrt n to all counts together, so that the sum of roots is what
    is believed of all cells: there is far less noise in it than in the few people of the highest octaves. How many
    interactions tell about taste is people times the square of their mean root.
    """
    believed = np.sort(popularity.believed)[::-1]
    if unit != "user":
        return PairForesight(believed, activity, activity.interactions)
    return Foresight(believed, activity, max(float(believed.sum()) ** 2 / activity.people, 1.0))


def crowd_of(activity: Activity, popularity: Floats, unit: str) -> Crowd:
    """What made-up people follow from: an interaction of somebody with n of them was counted as 1 / sqrt n at the unit
    `user`, and whole at the unit `rating`."""
    weights = 1 / np.sqrt(SIZES) if unit == "user" else np.ones(len(SIZES))
    counts = activity.counts if activity.counts.any() else np.ones(len(SIZES)) / len(SIZES)
    return Crowd(activity.people, counts, popularity, weights)


def ask_popularity(vault: LikesVault, activity: Activity) -> tuple[Popularity, int]:
    """Rounds of counts as long as they pay, and how many cells are frequent enough for second moments."""
    popularity, rank, spent = Popularity.none(vault.n_cells), plan.rank_of(vault.n_cells), 0.0
    while True:
        cells = plan.next_cells(popularity, vault.n_cells) if spent else popularity.asked
        answer = vault.counts(plan.ROUND, cells)
        popularity, spent = popularity.add(cells, answer.values, answer.noise), spent + plan.ROUND
        left = vault.left - plan.NUMBERS - _for_names(vault)
        if left <= _LEAST_ROUND:
            return popularity, 0
        ahead = foresee(activity, popularity, vault.unit)
        gain, n_frequent = ahead.best(vault.moments_noise(left))
        losses = popularity.loss(rank), popularity.loss(rank, plan.next_cells(popularity, vault.n_cells))
        if plan.pays(left, spent, losses, gain, 1.0):
            n_frequent = 0
        after = left - plan.ROUND
        if after <= _LEAST_ROUND:
            return popularity, n_frequent
        later = ahead.gain(n_frequent, vault.moments_noise(after)) if n_frequent else 1.0
        if not plan.pays(plan.ROUND, spent, losses, gain if n_frequent else 1.0, later):
            return popularity, n_frequent


def ask_names(vault: LikesVault, popularity: Popularity) -> ItemIndex:
    """The declared list, or the items that pass the threshold; all that is left of the budget goes there."""
    if vault.declared is not None:
        return ItemIndex(vault.declared, vault.declared)
    share = _SHY * vault.left
    cells = plan.cells_to_name(popularity, vault.naming_threshold(share), by_person=vault.unit == "user")
    return ItemIndex(None, vault.names(share, cells))


def _ask_taste(vault: LikesVault, popularity: Popularity, frequent: Ints) -> LikesSide | None:
    """Second moments of the frequent cells: some of the budget first, and all of it if taste shows."""
    answer = vault.numbers(plan.NUMBERS, frequent)
    activity = Activity.of(answer.values, answer.noise, len(frequent))
    centre = popularity.shown[frequent] / popularity.shown[frequent].sum()
    left, part = vault.left - _for_names(vault), plan.first_moments(popularity, vault.n_cells)
    first = _ask_moments(vault, _SHY * part * left, frequent, centre, activity)
    evidence = weigh(first)
    if evidence.strength is None:
        return None
    if part == 1.0:
        return read_taste(shown(popularity), frequent, first, evidence)
    second = _ask_moments(vault, _SHY * (vault.left - _for_names(vault)), frequent, centre, activity)
    moments = pooled(first, second)
    return read_taste(shown(popularity), frequent, moments, weigh(moments))


def shown(popularity: Popularity) -> Floats:
    """Popularity next to that of the most popular cell."""
    return np.asarray(popularity.shown / popularity.shown.max())


def read_taste(popularity: Floats, frequent: Ints, moments: Moments, evidence: Evidence) -> LikesSide:
    """Scores by what the evidence is for: taste of some strength, or popularity alone."""
    if evidence.strength is None:
        return LikesSide.of_popularity(popularity)
    taste = learn_taste(moments, evidence.strength)
    factors = by_factors(popularity, frequent, moments, taste)
    return mean_of(factors, by_items(popularity, frequent, moments, taste)) if evidence.plenty else factors


def pooled(first: Moments, second: Moments) -> Moments:
    """Two answers to the same question, weighted by their precision."""
    a, b = first.noise**-2, second.noise**-2
    return first.with_values((a * first.values + b * second.values) / (a + b), float((a + b) ** -0.5), first.people)


def _ask_moments(vault: LikesVault, share: float, frequent: Ints, centre: Floats, activity: Activity) -> Moments:
    favour = favour_of(centre)
    answer = vault.presence_moments(share, frequent, centre, favour)
    values = answer.values + answer.values.T
    if vault.unit != "user":
        return moments_of_pairs(values, answer.noise, centre, activity)
    squares = activity.squares(centre, favour)
    return Moments(values, answer.noise, activity.pairs, squares, centre, favour)


def _ask_counts(vault: LikesVault, popularity: Popularity, share: float) -> Popularity:
    """One more round with a large share, over the cells that lists are made of."""
    cells = plan.next_cells(popularity, vault.n_cells)
    answer = vault.counts(_SHY * share, cells)
    return popularity.add(cells, answer.values, answer.noise)


def _for_names(vault: LikesVault) -> float:
    return plan.NAMES if vault.declared is None else 0.0
