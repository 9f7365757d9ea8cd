"""How a round of scores is weighed, and whether products with people's coefficients are worth half of what is left."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dpsr.certify.people import MOST_NAMED, NAMED_TRIED, near_threshold
from dpsr.people.budget import Taste, best_round, cells_to_name
from dpsr.people.levels import PeopleLevels, Weights
from dpsr.pipeline.people import _products_pay
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, left_for_names

N = 200


def levels():
    counts = np.zeros(ACTIVITY_BINS)
    counts[5] = 5_000.0
    return PeopleLevels(5_000.0, counts, np.full(ACTIVITY_BINS, 0.3), 0.4, 0.3)


def cells(uncertainty):
    lam = np.full(N, 500.0)
    return SimpleNamespace(
        lam=lam, reach=lam, uncertainty=np.full(N, uncertainty), popularity_uncertainty=np.full(N, 0.01)
    )


def taste(uncertainty):
    return Taste(np.array([0.3]), np.array([0.8]), np.full((N, 1), uncertainty))


def test_the_error_of_a_round_is_that_of_effects_and_popularity_and_that_of_taste():
    """Oracle: the same round without taste at the same weights costs what is not taste's."""
    unit = Weights.of(levels(), 1.5, 0.0)
    found = best_round(0.5, levels(), cells(0.2), unit, 0.1, taste(1.0))
    known = levels().known_per_rating(0.8)
    size = 1 + found.alpha**2 + found.gamma**2 * 0.8
    reach = 500.0 * Weights.of(levels(), size, 0.0).mean / unit.mean
    told = 0.5 / (found.gamma * np.sqrt(0.3) * 0.8)
    assert found.taste == pytest.approx(0.3 * known / (1 + (reach / told) ** 2))
    assert 0 < found.taste < found.error
    assert best_round(0.5, levels(), cells(0.2), unit, 0.1, Taste.none(N)).taste == 0


@pytest.mark.parametrize(
    ("unknown_taste", "unknown_effects", "pays"),
    [(1.0, 1e-4, True), (0.02, 0.1, False), (1e-4, 1.0, False), (0.0, 1e-4, False)],
)
def test_products_are_bought_where_taste_is_unknown_and_effects_are_not(unknown_taste, unknown_effects, pays):
    vault = SimpleNamespace(replaced=2.0, mu=0.05)
    state = SimpleNamespace(
        cells=cells(unknown_effects),
        population=levels(),
        unit=Weights.of(levels(), 1.5, 0.0),
        popularity_slope=0.0,
        taste=taste(unknown_taste),
    )
    assert _products_pay(vault, state, 0.5) == pays


def crowd_to_name(octave, n=5_000.0):
    """People with as many ratings each, of items that fall off: their levels, weights and the weighted counts."""
    people = PeopleLevels(n, n * np.eye(ACTIVITY_BINS)[octave], np.full(ACTIVITY_BINS, 0.3), 0.4, 0.3)
    unit, popularity = Weights.of(people, 1.5, 0.0), 1 / (10.0 + np.arange(2_000))
    ratings = n * SIZES[octave] * popularity / popularity.sum()
    shuffled = np.random.default_rng(0).permutation(2_000)
    return people, unit, (ratings * unit.mean)[shuffled], ratings[shuffled]


@pytest.mark.parametrize("octave", [1, 3, 6])
@pytest.mark.parametrize("noise", [0.2, 5.0, 30.0])
def test_cells_to_name_and_items_of_a_person_are_those_that_give_the_most_names(octave, noise):
    """Oracle: all sizes with all numbers of items; the most popular cells, and no fewer names than if all counted."""
    people, unit, lam, ratings = crowd_to_name(octave)
    threshold = partial(near_threshold, noise, 1e-6)
    found, most = cells_to_name(lam, unit, people, threshold)
    falling = np.sort(ratings)[::-1]

    def named(T, most):
        share, k = falling[:T].sum() / falling.sum(), max(falling[:T].sum() / people.people, 1.0)
        left = left_for_names(people.counts, share, T, most)
        return int((falling[:T] * left / np.sqrt(k) > threshold(most)).sum())

    best = max(named(T, one) for T in range(1, 2_001, 7) for one in NAMED_TRIED)
    assert named(len(found), most) >= 0.85 * best, "sizes are tried in steps of a quarter"
    assert named(len(found), most) >= 0.85 * max(named(T, MOST_NAMED) for T in range(1, 2_001, 7))
    assert ratings[found].min() >= np.delete(ratings, found).max(initial=0.0)
    assert most < 2 * len(found)


def test_fewer_items_of_a_person_count_where_that_names_more():
    people, unit, lam, _ = crowd_to_name(3)
    _, most = cells_to_name(lam, unit, people, partial(near_threshold, 10.0, 1e-6))
    assert most <= 16
    _, same = cells_to_name(lam, unit, people, lambda most: 60.0)
    assert same > 16, "nothing is cut where that lowers no threshold"


def test_where_nothing_is_known_of_cells_one_is_asked_about():
    people, unit, lam, _ = crowd_to_name(3)
    found, most = cells_to_name(np.zeros_like(lam), unit, people, partial(near_threshold, 10.0, 1e-6))
    assert (len(found), most) == (1, 1)
