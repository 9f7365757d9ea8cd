"""Second moments of centred rows: what popularity and activity explain is known, and is no evidence of taste."""

from dataclasses import replace

import numpy as np
import pytest

from dpsr.likes.activity import Activity
from dpsr.likes.evidence import BAR, taste_evidence
from dpsr.likes.forecast import favour_of
from dpsr.likes.taste import moments_of_rows
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, activity_of

T = 60


def people(n_people, sizes, *, everybody=False, seed=0, loading=0.0):
    """Rows of zeros and ones, cells drawn by popularity; the first cell for everybody."""
    rng = np.random.default_rng(seed)
    p = 1 / (4.0 + np.arange(T))
    x = np.zeros((n_people, T))
    for row in x:
        own = p * np.exp(loading * rng.normal() * np.where(np.arange(T) % 2, 1.0, -1.0))
        row[np.argsort(rng.exponential(size=T) / own)[: rng.choice(sizes)]] = 1
        row[0] = max(row[0], everybody)
    return x


def moments(x, noise=0.15, seed=0):
    """As the vault adds them up, with normal noise, read with the numbers of people by octave."""
    n = x.sum(axis=1)
    centre = x.sum(axis=0) / x.sum()
    favour = favour_of(centre)
    r = favour * (x - n[:, None] * centre)
    c = ((r**2).sum(axis=1) ** 2 - (r**4).sum(axis=1)) ** -0.25
    sums = (c[:, None] * r).T @ (c[:, None] * r)
    E = np.triu(np.random.default_rng(100 + seed).normal(size=(T, T)) * noise, 1)
    values = np.triu(sums, 1) + np.triu(sums, 1).T + E + E.T
    activity = Activity(np.bincount(activity_of(n.astype(int)), minlength=ACTIVITY_BINS).astype(float))
    return moments_of_rows(values, noise, centre, favour, activity), sums.diagonal()


def test_chance_is_what_drawn_people_without_taste_have():
    """Oracle: people with n of T cells, drawn by popularity."""
    found, _ = moments(people(6_000, [int(SIZES[3]), int(SIZES[3]) + 1], everybody=True), noise=0.01)
    off = ~np.eye(T, dtype=bool)
    left = (found.values - found.chance)[off]
    assert (left**2).sum() < 0.3 * (found.values[off] ** 2).sum()
    assert not found.chance.diagonal().any()


def test_rows_spread_as_drawn_ones_do():
    """A cell that everybody has differs in nobody: its share is far from p g^2."""
    found, diagonal = moments(people(4_000, [3, 5, 9], everybody=True))
    plain = found.centre * found.favour**2
    plain, exact = plain / plain.sum(), diagonal / diagonal.sum()
    assert np.abs(found.spread - exact).sum() < 0.5 * np.abs(plain - exact).sum()


@pytest.mark.parametrize(("sizes", "everybody"), [([2], False), ([3, 5, 9], True), (range(4, 17), False)])
def test_without_taste_no_evidence_stands_out_of_the_noise(sizes, everybody):
    x = people(1_500, list(sizes), everybody=everybody)
    found = taste_evidence(moments(x, noise=0.5)[0])
    assert -4.0 < max(found.deviations) < BAR, found.deviations


def test_chance_that_is_not_there_is_not_taken_out():
    """People at the lower ends of octaves do less than is believed; values are less as much of chance as they have."""
    found, _ = moments(people(1_500, [4, 16, 32]), noise=0.5)
    left, whole = (np.linalg.norm(one) for one in (found.unexplained, found.values - found.chance))
    assert left <= min(whole, np.linalg.norm(found.values))
    assert moments(people(50, [3]))[0].with_values(-found.values, 0.5, 1.0).unexplained.shape == (T, T)


def test_beside_a_cell_that_everybody_has_taste_is_found():
    """Left in, what popularity explains hid it: the fit was far below zero."""
    found, _ = moments(people(2_500, [3, 5, 9], everybody=True, loading=0.6), noise=2.0)
    assert taste_evidence(found).weight == 1.0
    assert max(taste_evidence(replace(found, chance=None)).deviations) < max(taste_evidence(found).deviations)
