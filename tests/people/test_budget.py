"""How a round of scores is weighed, and whether products with people's coefficients are worth half of what is left."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpsr.people.budget import Taste, best_round
from dpsr.people.levels import PeopleLevels, Weights
from dpsr.pipeline.people import _products_pay
from dpsr.types.item_side import ACTIVITY_BINS

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
