"""Scores that saturate: curves against samples, strong effects against their truth, near rounds against far ones."""

import numpy as np
import pytest

from dpsr.people.cells import read_cells
from dpsr.people.rounds import Round, Saturation, sufficient_statistics

UNIT, WIDTH, LEVELS, EFFECTS = 0.5, 0.8, 0.1, 0.6


def asked_of(theta, ratings, at, noise, rng):
    """A round of scores of so many ratings of each cell, whose residuals are normal."""
    S, C = np.zeros(len(theta)), np.zeros(len(theta))
    for j, n in enumerate(ratings):
        z = theta[j] - at[j] + np.sqrt(1 - EFFECTS + LEVELS) * rng.normal(size=n)
        root = np.sqrt(z * z + WIDTH**2)
        S[j], C[j] = (z / root).sum(), (WIDTH**2 / root**3).sum()
    S, C = S + noise * rng.normal(size=len(S)), C + noise / WIDTH * rng.normal(size=len(S))
    return Round(S, C, at, noise, noise / WIDTH, 1.0, Saturation(WIDTH, LEVELS, UNIT))


def read(rounds, ratings, start):
    return read_cells(rounds, start, UNIT * float(ratings.sum()), UNIT * float(ratings.max()), 1.0)


@pytest.mark.parametrize("shift", [-1.7, 0.0, 0.4, 2.5])
def test_curves_are_what_scores_and_counts_of_many_ratings_are(shift):
    theta, n = np.array([shift]), 400_000
    asked = asked_of(theta, [n], np.array([0.0]), 1e-6, np.random.default_rng(0))
    G, H, curvature = asked.curve(theta, EFFECTS)
    assert asked.S[0] == pytest.approx(n * UNIT * G[0], abs=0.005 * n)
    assert asked.C[0] == pytest.approx(n * UNIT * H[0], abs=0.005 * n)
    (low, *_), (high, *_) = asked.curve(theta - 0.05, EFFECTS), asked.curve(theta + 0.05, EFFECTS)
    assert (high - low)[0] / 0.1 == pytest.approx(H[0], abs=0.01)
    (_, low, _), (_, high, _) = asked.curve(theta - 0.05, EFFECTS), asked.curve(theta + 0.05, EFFECTS)
    assert (high - low)[0] / 0.1 == pytest.approx(curvature[0], abs=0.02)


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_strong_effects_are_found_by_one_round_that_was_asked_far_from_them(noise):
    """A Newton step, scores over counts, is three spreads and more beside the truth."""
    rng, n = np.random.default_rng(1), 200
    theta, ratings = np.sqrt(EFFECTS) * rng.normal(size=n), rng.integers(50, 400, n)
    asked = asked_of(theta, ratings, np.zeros(n), noise, rng)
    found = read([asked], ratings, asked.first_effects(3.0))
    assert np.abs(asked.S / asked.C - theta).max() > 3
    assert np.abs(found.effect - theta).max() < 0.6
    assert np.sqrt(np.mean((found.effect - theta) ** 2)) < 0.15


def test_without_noise_the_round_near_the_effect_decides_and_with_noise_both_count():
    """What rounds are believed to tell of an effect: sums of squared slopes over their errors."""
    rng, n = np.random.default_rng(2), 100
    theta, ratings = rng.choice([-1.5, 1.5], n), np.full(n, 200)
    near = theta + 0.1 * rng.normal(size=n)
    rounds = [asked_of(theta, ratings, at, 0.01, rng) for at in (np.zeros(n), near)]
    loud = [asked_of(theta, ratings, at, 100.0, rng) for at in (np.zeros(n), near)]
    one, two = (sufficient_statistics(some, near, UNIT * ratings, EFFECTS)[4] for some in (loud[1:], loud))
    assert (two > 1.01 * one).all()
    one, two = (sufficient_statistics(some, near, UNIT * ratings, EFFECTS)[4] for some in (rounds[1:], rounds))
    assert (two < 1.00001 * one).all()


def test_cells_that_noise_drowns_begin_where_they_were_asked():
    rng, n = np.random.default_rng(3), 500
    asked = asked_of(np.zeros(n), np.zeros(n, dtype=int), np.full(n, 0.2), 5.0, rng)
    assert (asked.first_effects(3.0) == 0.2).mean() > 0.9
