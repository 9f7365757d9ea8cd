"""A person's own side: what people's own ratings make of the item side, with and without what they added to it."""

from dataclasses import replace

import numpy as np
import pytest

from dpsr import Scale
from dpsr.linalg.own_regression import PeopleRows
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, Crowd, ItemSide

CELLS, PEOPLE, RATED, PRIOR = 40, 12, 16, 2.5
"""Each of these people rated so many cells; effects are means that a prior of some pretended ratings shrinks."""


def world(seed=0):
    """People's rows, and residuals beside their levels (zero) that are all there is to learn from."""
    rng = np.random.default_rng(seed)
    cells = np.concatenate([np.sort(rng.choice(CELLS, RATED, replace=False)) for _ in range(PEOPLE)])
    values = 0.4 * rng.normal(size=len(cells))
    return PeopleRows(np.arange(0, RATED * PEOPLE + 1, RATED), cells, values)


def learned(rows, weight=1.0, left_out=None):
    """An item side whose effects are sums of weighted residuals over (count + prior); `left_out` is a rating."""
    keep = np.arange(len(rows.y)) != (-1 if left_out is None else left_out)
    count = weight * np.bincount(rows.cells[keep], minlength=CELLS)
    effects = weight * np.bincount(rows.cells[keep], rows.y[keep] / 0.4, CELLS) / (count + PRIOR)
    crowd = Crowd(PEOPLE, np.zeros(ACTIVITY_BINS), count, np.full(ACTIVITY_BINS, weight))
    features = np.column_stack([effects, np.zeros(CELLS)])
    covariance = np.diag([1e-9, 0.3, 1e-9])  # people differ in nothing but how far they follow the effects
    return ItemSide(
        Scale(1, 5), effects, np.zeros(CELLS), features, 1.0, 0.4, np.zeros(ACTIVITY_BINS), np.zeros(3), covariance,
        crowd, 1 / (count + PRIOR),
    )  # fmt: skip


def followed(side, rows, person):
    """Oracle: the person's slope, each of their ratings predicted by effects learned again without it."""
    mine = np.arange(rows.indptr[person], rows.indptr[person + 1])
    others = np.array([learned(rows, left_out=t).effects[rows.cells[t]] for t in mine])
    rest = rows.y[mine] / side.spread - others
    return float((others * rest).sum() / ((others**2).sum() + 1 / 0.3))


def test_what_somebody_added_to_the_effects_is_taken_out_before_their_slope_is_found():
    """Where the slope is near zero, the residual of a rating is what it added; twice the pull fails."""
    rows = world()
    side = learned(rows)
    expected = np.array([followed(side, rows, person) for person in range(PEOPLE)])
    blind, found = side.own_side(rows).coefficients[:, 1], side.own_side_of_fitted(rows).coefficients[:, 1]
    assert np.abs(found - expected).max() < 0.25 * np.abs(blind - expected).max()
    doubled = replace(side, pull=2 * side.pull).own_side_of_fitted(rows).coefficients[:, 1]
    assert np.abs(doubled - expected).max() > 2 * np.abs(found - expected).max()


def test_own_ratings_that_were_never_weighed_are_not_taken_out():
    rows = world(1)
    side = learned(rows)
    for same in (replace(side, pull=np.zeros(CELLS)), replace(side, pull=None), replace(side, crowd=None)):
        np.testing.assert_allclose(same.own_side_of_fitted(rows).coefficients, side.own_side(rows).coefficients)


def test_an_effect_made_of_one_rating_alone_tells_its_person_next_to_nothing():
    """Extremal: nobody else rated these cells, so without the own rating nothing is known of them."""
    rows = PeopleRows(np.array([0, 20]), np.arange(20), np.where(np.arange(20) % 2, 0.8, -0.8))
    side = learned(rows)
    assert side.own_side(rows).coefficients[0, 1] > 0.5
    assert side.own_side_of_fitted(rows).coefficients[0, 1] == pytest.approx(0, abs=0.06)


def test_counts_that_noise_fills_up_lose_one_level_until_they_add_up_to_what_people_did():
    """Ten cells that people meet, and a floor of noise under 60,000: the ten keep their lead and nearly all of it."""
    activity, weights = np.zeros(ACTIVITY_BINS), np.full(ACTIVITY_BINS, 0.01)
    activity[3] = 100.0
    did = float(activity @ (weights * SIZES))
    real = did * 0.1 * np.arange(10, 0, -1) / 5.5
    noise = np.abs(np.random.default_rng(0).normal(0, 0.02 * real.max(), 60_000))
    crowd = Crowd(100.0, activity, np.concatenate([real, noise]), weights)
    assert crowd.counts.sum() > 50 * did
    assert crowd.met.sum() == pytest.approx(1.1 * did, rel=1e-6)
    assert crowd.met[:10].sum() > 0.7 * crowd.met.sum()
    lost = (crowd.counts - crowd.met)[:10]
    np.testing.assert_allclose(lost, lost[0])


def test_counts_that_are_no_more_than_people_did_stay_as_they_are():
    activity = np.full(ACTIVITY_BINS, 10.0)
    crowd = Crowd(140.0, activity, np.array([3.0, 2.0, 1.0]), np.ones(ACTIVITY_BINS))
    np.testing.assert_array_equal(crowd.met, crowd.counts)
    nobody = Crowd(1.0, np.zeros(ACTIVITY_BINS), np.array([3.0, 2.0]), np.ones(ACTIVITY_BINS))
    np.testing.assert_array_equal(nobody.met, nobody.counts)
