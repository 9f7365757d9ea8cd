"""A person's own curve against dense algebra; where the order tells nothing, it stays away."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.linalg.own_curve import AMPLITUDES, COMMON_RATINGS, LENGTHS, NO_CURVE, OwnCurves


def curves(people):
    """Of people (places, residuals, variances), all together."""
    indptr = np.concatenate([[0], np.cumsum([len(places) for places, _, _ in people])]).astype(np.int64)
    places, z, v = (np.concatenate([one[i] for one in people]) for i in range(3))
    return OwnCurves.of(indptr, places.astype(np.int64), z, v)


def dense(z, v):
    """Gap values of one person, items in order: joint normal laws of residuals and gaps, weighed by their densities."""
    n = len(z)
    noise = (COMMON_RATINGS + (z**2 / v).sum()) / (COMMON_RATINGS + n - 1) * v
    items, gaps = np.arange(n), np.arange(n + 1) - 0.5
    found, densities = [np.zeros(n + 1)], [-0.5 * (z**2 / noise + np.log(noise)).sum()]
    for a in AMPLITUDES:
        for length in LENGTHS:
            S = a * np.exp(-np.abs(items[:, None] - items) / (length * n)) + np.diag(noise)
            found.append(a * np.exp(-np.abs(gaps[:, None] - items) / (length * n)) @ np.linalg.solve(S, z))
            densities.append(-0.5 * (z @ np.linalg.solve(S, z) + np.linalg.slogdet(S)[1]))
    k = len(found) - 1
    beliefs = np.array([NO_CURVE, *[(1 - NO_CURVE) / k] * k]) * np.exp(np.array(densities) - max(densities))
    return beliefs @ np.array(found) / beliefs.sum()


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4), seed=st.integers(0, 2**20), wave=st.floats(0, 2))
def test_gap_values_are_the_mean_of_all_posteriors_weighed_by_their_densities(sizes, seed, wave):
    rng = np.random.default_rng(seed)
    people = []
    for n in sizes:
        places = rng.permutation(3 * n)[:n]
        people.append((places, wave * np.sin(places / (n + 1)) + rng.normal(size=n), rng.uniform(0.5, 2, n)))
    found = curves(people)
    for u, (places, z, v) in enumerate(people):
        order, first = np.argsort(places), found.indptr[u] + u
        expected = dense(z[order], v[order]) if len(z) else np.zeros(1)
        np.testing.assert_allclose(found.gaps[first : first + len(z) + 1], expected, atol=1e-9)


def test_a_curve_is_read_in_the_gap_where_an_item_lies_and_at_an_own_item_between_both_gaps():
    found = curves([(np.array([9, 3, 5]), np.array([1.0, -1.0, 0.5]), np.ones(3))])
    np.testing.assert_array_equal(found.places, [3, 5, 9])
    people = np.zeros(5, dtype=np.int64)
    before, between, after, outside, own = found.at(people, np.array([2, 4, 7, 11, 5]))
    np.testing.assert_array_equal([before, between, after, outside], found.gaps)
    assert own == pytest.approx((between + after) / 2)


def test_what_follows_the_order_is_found_and_what_does_not_is_left_alone():
    """Two hundred people: residuals of deviation one half along the order, or the same dealt out at random."""
    rng, n = np.random.default_rng(3), 120
    along, dealt, truth = [], [], []
    for _ in range(200):
        wave = np.sqrt(0.5) * np.sin(2 * np.pi * (np.arange(n) / n + rng.random()))
        z = wave + np.sqrt(0.75) * rng.normal(size=n)
        along.append((np.arange(n), z, np.ones(n)))
        dealt.append((rng.permutation(n), z, np.ones(n)))
        truth.append(np.interp(np.arange(n + 1) - 0.5, np.arange(n), wave))
    found, lost = curves(along).gaps, curves(dealt).gaps
    wave = np.concatenate(truth)
    assert np.mean((found - wave) ** 2) < 0.25 * np.mean(wave**2)
    assert np.mean(lost**2) < 0.01, "a hundredth of the variance, where the order tells nothing"


def test_nobody_else_has_a_part_in_somebodys_curve():
    rng = np.random.default_rng(0)
    one, other = ((rng.permutation(50), rng.normal(size=50), np.ones(50)) for _ in range(2))
    alone, together = curves([one]), curves([other, one])
    np.testing.assert_array_equal(together.gaps[51:], alone.gaps)


def test_whoever_rated_nothing_or_one_item_has_next_to_no_curve():
    """Extremal: one rating, however far off, moves its neighbours by less than a tenth of itself."""
    found = curves([(np.zeros(0), np.zeros(0), np.zeros(0)), (np.array([7]), np.array([4.0]), np.ones(1))])
    assert found.gaps[0] == 0
    assert np.abs(found.gaps[1:]).max() < 0.4
    np.testing.assert_array_equal(found.at(np.array([0, 0]), np.array([0, 9])), 0.0)
