"""The pipelines that protect people who do not rate: the order of questions, and the side they end with.

    1. numbers of interactions       how many people there are, and how much they did
    2. weighted counts, in rounds    which cells are popular; fewer cells each time, until it is clear
    3. names, with their weights     items that may be named, if the list of items was not declared
    4. numbers of interactions       again, among the frequent cells
    5. second moments of presence    of the frequent cells, with a part of what is left: does taste show?
    6. the same again, or counts     all that is left goes where it helps

Each question is a pass over blocks of people and depends on earlier answers alone. Popularity is what everything falls
back to: an axis of taste that does not show in moments that were not learned from is not used.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.amounts import check_delta, check_epsilon
from dpsr.certify.normal_price import affordable_squared_mu
from dpsr.certify.people import NAMES_DELTA
from dpsr.errors import ParameterError, PrivacyError
from dpsr.likes import plan
from dpsr.likes.activity import Activity
from dpsr.likes.evidence import TasteEvidence, taste_evidence
from dpsr.likes.forecast import PairTasteForecast, TasteForecast, favour_of
from dpsr.likes.naming import Naming
from dpsr.likes.plan import Loss, Outlook, Prospect
from dpsr.likes.popularity import Popularity
from dpsr.likes.scores import by_factors, by_items, mean_of, weighed
from dpsr.likes.taste import Moments, learn_taste, moments_of_pairs, moments_of_rows
from dpsr.pipeline.estimator import announce
from dpsr.privacy.vault.people.likes_vault import LikesVault
from dpsr.synthesis import plausible_activity
from dpsr.types.item_side import SIZES, Crowd, ItemIndex
from dpsr.types.likes_side import LikesSide

_LEAST = 1e-5
"""Of mu^2: with less, not even an item that everybody of thousands has stands out of the noise."""

_LEAST_ROUND = 1e-3
"""Of mu^2: a round of counts with less tells nothing."""

_JUST_BELOW = 1 - 1e-9
"""Of what is left: shares are floats, and the vault, which counts exactly, would refuse the last bit of one."""


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
    if delta is not None and affordable_squared_mu(asked, (1 - NAMES_DELTA) * check_delta(delta)) < _LEAST:
        raise PrivacyError(
            f"epsilon = {epsilon:g} and delta = {delta:g} are so small together that nothing would be learned. Use a "
            "larger epsilon or a larger delta."
        )


def learn_likes(vault: LikesVault) -> tuple[LikesSide, ItemIndex]:
    """All questions in order; the whole budget is spent."""
    announce("Asking how many people there are, and how much they did")
    activity = ask_activity(vault)
    announce("Asking what is popular")
    popularity, prospect = ask_popularity(vault, activity)
    popularity, index = ask_names(vault, activity, popularity, prospect)
    frequent = _frequent(popularity, index, prospect.n_frequent)
    if len(frequent) > 2:
        announce("Asking for directions of taste")
        popularity, side = _ask_taste(vault, popularity, activity, frequent)
    else:
        announce("Asking again what is popular")
        popularity = ask_counts(vault, popularity, vault.left, activity)
        side = LikesSide.of_popularity(relative_popularity(popularity))
    return replace(side, crowd=crowd_of(activity, popularity, vault.unit)), index


def ask_activity(vault: LikesVault) -> Activity:
    """How many people did how much, over all cells."""
    answer = vault.numbers(plan.NUMBERS, np.arange(vault.n_cells))
    return Activity.of(answer.values, answer.noise, vault.n_cells)


def forecast_taste(activity: Activity, popularity: Popularity, unit: str) -> TasteForecast:
    """What second moments would bring.

    At the unit `user` somebody with n interactions adds sqrt n to all counts together, so that the sum of roots is what
    is believed of all cells. How many interactions tell about taste is people times the square of their mean root, less
    those of people who have one alone: where nobody has two, no moments are worth asking for.
    """
    believed = np.sort(popularity.believed)[::-1]
    if unit != "user":
        return PairTasteForecast(believed, activity, activity.in_company * activity.interactions)
    telling = max(float(believed.sum()) ** 2 / activity.people, 1.0)
    return TasteForecast(believed, activity, activity.in_company * telling)


def crowd_of(activity: Activity, popularity: Popularity, unit: str) -> Crowd:
    """What made-up people follow from, in counts of the most popular cell.

    An interaction of somebody with n of them was counted as 1 / sqrt n at the unit `user`, and whole at `rating`.
    """
    weights = 1 / np.sqrt(SIZES) if unit == "user" else np.ones(len(SIZES))
    counts = plausible_activity(activity.counts) if activity.counts.any() else np.ones(len(SIZES)) / len(SIZES)
    return Crowd(activity.people, counts, relative_popularity(popularity), weights / popularity.shown.max())


def ask_popularity(vault: LikesVault, activity: Activity) -> tuple[Popularity, Prospect]:
    """Rounds of counts as long as they pay, and what is to be asked then."""
    popularity, spent = Popularity.none(vault.n_cells), 0.0
    cells = popularity.asked
    while True:
        answer = vault.counts(plan.ROUND, cells)
        popularity = popularity.add(cells, answer.values, answer.noise)
        if not spent and vault.unit == "user":
            popularity = popularity.with_total(activity.roots)
        spent += plan.ROUND
        left = vault.left - plan.NUMBERS
        if left <= _LEAST_ROUND:
            return popularity, Prospect(1.0, 0)
        forecast = forecast_taste(activity, popularity, vault.unit)
        n_frequent = forecast.best(vault.moments_noise(left))[1]
        by_taste, by_counts = prospects(vault, forecast, popularity, left, n_frequent)
        cells = next_cells(vault, popularity, activity)
        loss = Loss.of(popularity, vault.n_cells, popularity.order[: by_counts.n_named], cells)
        best = (
            by_taste if by_taste.worth(loss, spent) >= _all_counts(vault, by_counts, loss, spent, left) else by_counts
        )
        after = left - plan.ROUND
        if after <= _LEAST_ROUND:
            return popularity, best
        later = prospects(vault, forecast, popularity, after, best.n_frequent)[0]
        if later.worth_later(loss, spent) <= best.worth(loss, spent):
            return popularity, best


def next_cells(vault: LikesVault, popularity: Popularity, activity: Activity) -> Ints:
    """What the next round of counts asks about."""
    outlook = Outlook(activity, vault.unit, vault.left, vault.counts_noise(1.0) ** -2)
    return plan.next_cells(popularity, vault.n_cells, outlook)


def prospects(
    vault: LikesVault, forecast: TasteForecast, popularity: Popularity, left: float, n_frequent: int
) -> tuple[Prospect, Prospect]:
    """The best use of what is left, with second moments of so many cells and without."""
    if vault.declared is not None:
        gain = forecast.gain(n_frequent, vault.moments_noise(left)) if n_frequent else 1.0
        return Prospect(gain, n_frequent), Prospect(1.0, 0)
    naming, wanted = naming_of(vault, forecast.activity, popularity.possible), max(plan.RANK, n_frequent)

    def named(share: float) -> tuple[Floats, int]:
        chances, asked = naming.best(partial(vault.naming_threshold, share), vault.naming_noise(share), wanted)
        return chances, asked.n_cells

    nameable, n_named = named(left)
    by_counts = Prospect(forecast.plain(nameable), 0, left, n_named)
    if not n_frequent:
        return by_counts, by_counts
    found = []
    for part in plan.NAMES:
        nameable, n_named = named(part * left)
        gain = forecast.gain(n_frequent, vault.moments_noise((1 - part) * left), nameable)
        found.append(Prospect(gain, n_frequent, part * left, n_named))
    return max(found, key=lambda one: one.gain), by_counts


def _all_counts(vault: LikesVault, by_counts: Prospect, loss: Loss, spent: float, left: float) -> float:
    """What lists are worth if all that is left goes into counts: more rounds of them, or those of named items."""
    if vault.declared is None:
        return by_counts.worth(loss, spent)
    return by_counts.worth(loss.after_round(spent, left), spent)


def naming_of(vault: LikesVault, activity: Activity, popularity: Floats) -> Naming:
    """What is known of cells, in falling order of their popularity, and of people, before names are asked.

    Without people whom noise alone puts at thousands of interactions: of them much would seem to be cut.
    """
    return Naming(popularity, Activity(plausible_activity(activity.counts)) if vault.unit == "user" else None)


def ask_names(
    vault: LikesVault, activity: Activity, popularity: Popularity, prospect: Prospect
) -> tuple[Popularity, ItemIndex]:
    """The declared list, or the items that pass the threshold: their weights tell popularity once more."""
    if vault.declared is not None:
        return popularity, ItemIndex(vault.declared, vault.declared)
    announce("Asking which items may be named")
    share = _JUST_BELOW * (prospect.names if prospect.n_frequent else vault.left)
    naming = naming_of(vault, activity, popularity.believed[popularity.order])
    wanted = max(plan.RANK, prospect.n_frequent)
    asked = naming.best(partial(vault.naming_threshold, share), vault.naming_noise(share), wanted)[1]
    found = vault.named(share, popularity.order[: asked.n_cells], asked.most)
    index = ItemIndex(None, found.names)
    cells, place = np.unique(index.named_cells, return_inverse=True)
    weights = np.bincount(place, found.values, len(cells)).astype(np.float64)
    return popularity.add(cells, weights, found.noise) if len(cells) else popularity, index


def _frequent(popularity: Popularity, index: ItemIndex, n_frequent: int) -> Ints:
    """The most popular cells, of those in which something may be named."""
    able = (
        popularity.order[np.isin(popularity.order, index.named_cells)] if index.declared is None else popularity.order
    )
    return able[:n_frequent]


def _ask_taste(
    vault: LikesVault, popularity: Popularity, activity: Activity, frequent: Ints
) -> tuple[Popularity, LikesSide]:
    """Second moments of the frequent cells: some of the budget first, and all of it if taste shows."""
    answer = vault.numbers(plan.NUMBERS, frequent)
    there = Activity.of(answer.values, answer.noise, len(frequent))
    centre = popularity.shown[frequent] / popularity.shown[frequent].sum()
    left, part = vault.left, plan.first_moments(popularity, vault.n_cells)
    first = _ask_moments(vault, _JUST_BELOW * part * left, frequent, centre, there)
    evidence = taste_evidence(first)
    if part < 1.0 and evidence.weight < 1.0:
        popularity = ask_counts(vault, popularity, vault.left, activity)
    elif part < 1.0:
        first = pooled(first, _ask_moments(vault, _JUST_BELOW * vault.left, frequent, centre, there))
        evidence = taste_evidence(first)
    return popularity, read_taste(relative_popularity(popularity), frequent, first, evidence)


def relative_popularity(popularity: Popularity) -> Floats:
    """Popularity next to that of the most popular cell."""
    return np.asarray(popularity.shown / popularity.shown.max())


def read_taste(popularity: Floats, frequent: Ints, moments: Moments, evidence: TasteEvidence) -> LikesSide:
    """Scores by what the evidence is for: taste of some strength, or popularity alone."""
    if evidence.strength is None:
        return LikesSide.of_popularity(popularity)
    taste = learn_taste(moments, evidence.strength)
    factors = by_factors(popularity, frequent, moments, taste)
    if evidence.plenty:
        return mean_of(factors, by_items(popularity, frequent, moments, taste))
    return weighed(factors, evidence.weight)


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
    return moments_of_rows(values, answer.noise, centre, favour, activity)


def ask_counts(vault: LikesVault, popularity: Popularity, share: float, activity: Activity) -> Popularity:
    """One more round with a large share, over the cells that lists are made of, if that is worth asking."""
    if share <= _LEAST_ROUND:
        return popularity
    cells = next_cells(vault, popularity, activity)
    answer = vault.counts(_JUST_BELOW * share, cells)
    return popularity.add(cells, answer.values, answer.noise)
