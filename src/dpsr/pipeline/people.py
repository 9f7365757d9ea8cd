"""The pipelines that protect people: the order of questions, and the item side they end with.

    1. levels, activity      how many people, their levels and spread, by number of ratings
    2. scores                every cell's weighted count and sum of residuals
    3. coefficients          how widely people's slopes on effect and popularity lie, if that is cheap to know so early
    4. second moments        of the most popular cells, if taste is expected to stand out of the noise: factors
    5. scores, coefficients  again at the estimate so far, factors included; weights chosen by the expected error
    6. names                 items that may be named, if the list of items was not declared

Each question is a pass over blocks of people and depends on earlier answers alone. What is released is the item side;
a person's own side is computed from their own ratings when they are there (`personalise`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify.one_rating import CLIP, SHRINK, WIDTH
from dpsr.errors import ParameterError
from dpsr.people import budget
from dpsr.people.budget import (
    best_round,
    best_shrink,
    cells_to_name,
    expected_taste,
    factors_pay,
    levels_left,
    moments_larger,
    rating_weights,
)
from dpsr.people.cells import MOST_CELLS, TASTE, Factors, choose_cells, read_moments
from dpsr.people.learning import PeopleState
from dpsr.people.levels import Asked, PeopleLevels, Totals, Weights, read_levels
from dpsr.people.rounds import Saturation
from dpsr.pipeline.estimator import announce
from dpsr.privacy.vault.people import PeopleVault, RatingVault
from dpsr.privacy.vault.people.contributions import coefficients_reach
from dpsr.types.catalogue import Catalogue
from dpsr.types.coordinates import Census, Ids, codes_of
from dpsr.types.item_side import ItemIndex, ItemSide

_TOO_FEW = 60.0
"""People times mu below which not even an item that one in twenty rated stands out: then levels alone are asked for."""

_EDGE_SEED = 0
"""The edge of noise is simulated with a fixed seed: it reads nothing and is the same everywhere."""

_TASTE = "Asking for directions of taste"
"""Announced where second moments are asked, which is not always."""


def learn_people(vault: PeopleVault) -> tuple[ItemSide, ItemIndex]:
    """All questions in order, at the unit `user`; the whole budget is spent."""
    announce("Asking how many people there are, and how they rate")
    state = PeopleState.start(vault.scale, vault.n_cells, ask_levels(vault))
    calibrated = _worth_calibrating(vault, state.population)
    later = budget.COEFFICIENTS if calibrated else 0.0
    announce("Asking for scores of items")
    _ask_scores(vault, state, min(budget.FIRST, 0.5 * vault.left), first=True)
    if calibrated and _coefficients_share(vault, state) < budget.COEFFICIENTS:
        _ask_coefficients(vault, state)
    if _ask_factors(vault, state) and calibrated:
        for _ in range(2):
            _ask_coefficients(vault, state)
    rounds = 2 if state.factors is not None else 1
    announce("Asking again, knowing more")
    for left in range(rounds, 0, -1):
        _ask_scores(vault, state, (vault.left - _for_names(vault) - later * left) / left)
        if calibrated:
            _ask_coefficients(vault, state)
    return state.side, ask_names(vault, state)


def learn_ratings(vault: RatingVault) -> tuple[ItemSide, ItemIndex]:
    """All questions in order, at the unit `rating`; the whole budget is spent.

    Scores are added up rating by rating, so that somebody with many ratings counts fully. Second moments and products
    with people's coefficients tie all ratings of a person together: they are asked as of people, at their higher price.
    """
    announce("Asking how many people there are, and how they rate")
    levels = ask_levels(vault, Totals.of_ratings)
    state = PeopleState.start(vault.scale, vault.n_cells, levels, rating_weights(levels, 0.0, WIDTH))
    calibrated = _worth_calibrating(vault, state.population)
    later = budget.COEFFICIENTS if calibrated else 0.0
    announce("Asking for scores of items")
    _ask_rating_scores(vault, state, min(budget.FIRST, 0.5 * vault.left))
    if calibrated:
        _ask_coefficients(vault, state)
    if _ask_rating_factors(vault, state):
        for _ in range(2 if calibrated else 0):
            _ask_coefficients(vault, state)
        if _products_pay(vault, state, vault.left - _for_names(vault) - 2 * later):
            _ask_scores(vault, state, (vault.left - _for_names(vault) - 2 * later) / 2)
            if calibrated:
                _ask_coefficients(vault, state)
    announce("Asking again, knowing more")
    _ask_rating_scores(vault, state, vault.left - _for_names(vault) - later)
    if calibrated:
        _ask_coefficients(vault, state)
    return state.side, ask_names(vault, state)


def _ask_rating_factors(vault: RatingVault, state: PeopleState) -> bool:
    """Second moments at the unit `rating`, if what they may reveal is worth more than it takes from the effects."""
    if vault.left < 2 * budget.MOMENTS or state.cells is None:
        return False
    levels, share, lam = state.population, budget.MOMENTS, np.maximum(state.cells.lam, 1e-12)
    order = np.argsort(-lam, kind="stable")
    ratings = lam[order[:MOST_CELLS]] / state.unit.mean
    larger = moments_larger(levels, state.unit)
    revealed = choose_cells(ratings, levels.people, vault.moments_noise(share, MOST_CELLS) / larger)
    if len(revealed) == 0:
        return False
    seen = float((ratings[: len(revealed)] * revealed).sum() / (lam.sum() / state.unit.mean))
    gain = budget.EXPECTED_FACTORS * TASTE * expected_taste(levels, seen, TASTE)[0] * seen
    if gain < _effects_error(vault, state, vault.left - share) - _effects_error(vault, state, vault.left):
        return False
    announce(_TASTE)
    answer = vault.rating_moments(share, state.side, order[: len(revealed)], level=levels.mean_level)
    return _read_factors(state, answer.values / larger, answer.noise / larger, order, ratings[: len(revealed)])


def _effects_error(vault: RatingVault, state: PeopleState, share: float) -> float:
    """What a round of rating scores with this share would leave of the effects' error."""
    assert state.cells is not None
    noise = 1 / (vault.mu * np.sqrt(share))
    return best_shrink(noise, state.population, state.cells, state.unit, CLIP, WIDTH, SHRINK)[1]


def _products_pay(vault: RatingVault, state: PeopleState, share: float) -> bool:
    """Whether half of what is left, spent on scores of people, saves more error of taste than it costs of effects."""
    assert state.cells is not None
    noise, taste, lam = vault.replaced / (vault.mu * np.sqrt(share / 2)), state.taste, state.cells.lam
    chosen = best_round(noise, state.population, state.cells, state.unit, state.popularity_slope, taste)
    known = np.array([state.population.known_per_rating(float(one)) for one in taste.known])
    today = float((taste.variances * known * (lam @ taste.uncertainty)).sum() / lam.sum())
    costs = _effects_error(vault, state, share / 2) - _effects_error(vault, state, share)
    return chosen.taste + costs < today


def _for_names(vault: PeopleVault) -> float:
    """What is kept for names; little where little is left, and nothing for a declared list."""
    return min(budget.NAMES, vault.left / 4) if vault.declared is None else 0.0


def _ask_rating_scores(vault: RatingVault, state: PeopleState, share: float) -> None:
    """A round of scores with or without own levels, whichever leaves less error in the effects."""
    shrink, noise = 0.0, 1 / (vault.mu * np.sqrt(share))
    if state.cells is not None:
        shrink, _ = best_shrink(noise, state.population, state.cells, state.unit, CLIP, WIDTH, SHRINK)
    answer = vault.rating_scores(share, state.side, level=state.population.mean_level, shrink=shrink)
    weights = rating_weights(state.population, shrink, WIDTH)
    saturation = Saturation(WIDTH, levels_left(state.population, shrink), state.unit.mean)
    state.add_scores(answer.values, answer.noise, WIDTH, 0.0, weights, saturation)


def ask_levels(vault: PeopleVault, read: Callable[[list[Asked]], Totals] = Totals.of_people) -> PeopleLevels:
    """How many people, at which level; asked again while too little is known. `read` follows from the unit."""
    answers = [vault.totals(budget.LEVELS)]
    totals = read([(one.values, one.noise) for one in answers])
    wanted = budget.LEVELS * ((totals.level_error / budget.ENOUGH_LEVEL) ** 2 - 1)
    more = min(wanted, 0.9 if totals.weight * vault.mu < _TOO_FEW else 0.15)
    if more > 0.2 * budget.LEVELS:
        answers.append(vault.totals(more))
        totals = read([(one.values, one.noise) for one in answers])
    table = vault.activity(min(budget.ACTIVITY, vault.left / 2))
    return read_levels(totals, table.values, table.noise)


def ask_names(vault: PeopleVault, state: PeopleState) -> ItemIndex:
    """The declared list, or the items that pass the threshold; all that is left of the budget goes there."""
    if vault.declared is not None:
        return ItemIndex(vault.declared, vault.declared)
    announce("Asking which items may be named")
    share, lam = vault.left, np.zeros(vault.n_cells) if state.cells is None else state.cells.lam
    if vault.unit != "user":  # every rating counts whole: nothing is gained by fewer cells
        return ItemIndex(None, vault.names(share, np.arange(vault.n_cells)))
    cells, most = cells_to_name(lam, state.unit, state.population, partial(vault.naming_threshold, share))
    return ItemIndex(None, vault.names(share, cells, most))


def _ask_scores(vault: PeopleVault, state: PeopleState, share: float, *, first: bool = False) -> None:
    alpha, gamma, floor = budget.ALPHA, 0.0, 0.0
    if not first:
        assert state.cells is not None
        noise = vault.replaced / (vault.mu * np.sqrt(share))
        chosen = best_round(noise, state.population, state.cells, state.unit, state.popularity_slope, state.taste)
        alpha, gamma, floor = chosen.alpha, chosen.gamma, chosen.floor
    answer = vault.scores(share, state.side, alpha=alpha, gamma=gamma, floor=floor)
    size = 1 + alpha**2 + gamma**2 * float(state.prior.known[3:].sum())
    state.add_scores(answer.values, answer.noise, alpha, gamma, Weights.of(state.population, size, floor))


def _worth_calibrating(vault: PeopleVault, levels: PeopleLevels) -> bool:
    """Whether the noise on coefficients would be less than half of what a person adds, on average."""
    noise = vault.replaced * coefficients_reach(3) / (vault.mu * np.sqrt(budget.COEFFICIENTS))
    return bool(noise / levels.people < 0.5)


def _coefficients_share(vault: PeopleVault, state: PeopleState) -> float:
    """The share of the budget at which coefficients would be known well enough."""
    enough = vault.replaced * coefficients_reach(len(state.prior.mean)) / budget.ENOUGH_COEFFICIENTS
    return float((enough / (vault.mu * state.population.people)) ** 2)


def _ask_coefficients(vault: PeopleVault, state: PeopleState) -> None:
    side = state.side
    answer = vault.coefficients(min(budget.COEFFICIENTS, _coefficients_share(vault, state)), side)
    state.add_coefficients(answer.values, answer.noise)


def _ask_factors(vault: PeopleVault, state: PeopleState) -> bool:
    """Second moments of popular cells, if what they may reveal is worth more than it takes from the effects."""
    if vault.left < 2 * budget.MOMENTS or state.cells is None:
        return False
    lam = np.maximum(state.cells.lam, 1e-12)
    order = np.argsort(-lam, kind="stable")
    ratings = lam[order[:MOST_CELLS]] / state.unit.mean
    people, share = state.population.people, budget.MOMENTS
    revealed = choose_cells(ratings, people, vault.moments_bound / (vault.mu * np.sqrt(share)))
    if len(revealed) == 0 or not _factors_pay(vault, state, order, revealed):
        return False
    cells = order[: len(revealed)]
    announce(_TASTE)
    answer = vault.second_moments(share, state.side, cells, budget.FLOOR)
    return _read_factors(state, answer.values, answer.noise, order, ratings[: len(cells)])


def _read_factors(state: PeopleState, moments: Floats, noise: float, order: Ints, ratings: Floats) -> bool:
    """Directions of taste in noisy second moments (above the diagonal) of the first cells of `order`, if any."""
    rng, cells = np.random.default_rng(_EDGE_SEED), order[: len(ratings)]
    found = read_moments(moments + moments.T, noise, ratings, state.population.people, rng)
    factors, uncertainty, variances = found
    if len(variances) == 0:
        return False
    prior, variance = np.zeros((state.n_cells, len(variances))), np.ones((state.n_cells, len(variances)))
    prior[cells], variance[cells] = factors, uncertainty
    state.add_factors(Factors.of(prior, variance), np.maximum(variances, 0.005))
    return True


def _factors_pay(vault: PeopleVault, state: PeopleState, order: Ints, revealed: Floats) -> bool:
    """Whether a round of scores with factors would leave less error than one with all of the budget and none."""
    assert state.cells is not None
    mu = vault.mu / vault.replaced
    facts = (state.population, state.cells, state.unit, state.popularity_slope)
    return factors_pay(mu, vault.left, *facts, order, revealed)


def declared_items(items: Ids | Catalogue | None) -> pa.Array | None:
    """A declared list of items as a vocabulary: ascending, each once."""
    if items is None:
        return None
    if isinstance(items, str | bytes | PathLike) or hasattr(items, "columns"):  # its letters, or the names of columns
        raise ParameterError(
            f"a declared list of items is a list of ids, found {type(items).__name__}. Pass the ids themselves, such "
            'as the column of a frame: pandas.read_csv("items.csv")["item"].'
        )
    found = items.ids.tolist() if isinstance(items, Catalogue) else items
    try:
        ids = found if isinstance(found, pa.Array) else pa.array(list(found))
        kind = pa.int64() if pa.types.is_integer(ids.type) else pa.string()
        unique = pa.array(sorted(set(ids.drop_null().to_pylist())), type=kind)
    except (pa.ArrowException, TypeError):
        raise ParameterError(
            "a declared list of items has ids of one kind, all whole numbers or all text. Write them as in the ratings."
        ) from None
    if len(unique) == 0 or ids.null_count:
        raise ParameterError("a declared list of items names at least one item, and every item has an id.")
    return unique


def ratings_outside(census: Census, items: Ids | Catalogue | None) -> int:
    """How many ratings are of items outside a declared list. Raw: for the curator's eyes only."""
    declared = declared_items(items)
    return 0 if declared is None else int(census.item_counts[codes_of(census.item_ids, declared) < 0].sum())
