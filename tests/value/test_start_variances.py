"""Variances of effects from pairs of ratings: against all pairs one by one, unbiased, moved as far as evidence goes."""

from dataclasses import replace

import numpy as np
import pytest
from value_states import Y, clear_symbols, design_of, effects_of

from dpsr.value.evidence import EvidenceState
from dpsr.value.levels import with_variance
from dpsr.value.priors import ridge
from dpsr.value.start import Belief, effect_variances, moved, pair_variance
from dpsr.value.sweep import Reader

TYPICAL = 0.12


def drawn(t, seed, rows=400, n=12, noise=1.0):
    """Rows of ratings with an effect of variance t and unequal weights: w, and x = effect + noise / sqrt(w)."""
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.2, 2.0, size=(rows, n))
    return w, np.sqrt(t) * rng.normal(size=(rows, 1)) + noise * rng.normal(size=w.shape) / np.sqrt(w)


def sums_of(w, x):
    return np.array([(w * x).sum(axis=1), w.sum(axis=1), ((w * x) ** 2).sum(axis=1), (w**2).sum(axis=1)])


def one_by_one(w, x):
    """The same, written as it is defined."""
    top = bottom = 0.0
    for weights, values in zip(w, x, strict=True):
        share = 1 / (1 + TYPICAL * weights.sum()) ** 2
        for e in range(len(weights)):
            for f in range(len(weights)):
                if e != f:
                    top += share * weights[e] * values[e] * weights[f] * values[f]
                    bottom += share * weights[e] * weights[f]
    return top / bottom


def test_it_is_the_mean_product_of_two_ratings_of_a_row():
    w, x = drawn(0.2, 0, rows=20, n=5)
    assert pair_variance(sums_of(w, x), TYPICAL)[0] == pytest.approx(one_by_one(w, x), rel=1e-12)


@pytest.mark.parametrize("t", [0.0, 0.03, 0.12, 0.5])
@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
def test_it_is_unbiased_whatever_the_noise(t, noise):
    """Noise that the weights do not know of makes it less certain and not larger; with e = f it would be larger."""
    found = np.array([pair_variance(sums_of(*drawn(t, seed, noise=noise)), TYPICAL)[0] for seed in range(200)])
    assert found.mean() == pytest.approx(t, abs=4 * found.std() / np.sqrt(200))


@pytest.mark.parametrize("t", [0.0, 0.12, 0.5])
def test_its_error_is_what_estimates_scatter_by(t):
    runs = np.array([pair_variance(sums_of(*drawn(t, seed)), TYPICAL) for seed in range(300)])
    assert np.mean(runs[:, 1]) == pytest.approx(runs[:, 0].var(), rel=0.35)


def test_single_ratings_make_no_pairs():
    w, x = drawn(0.2, 0, n=1)
    assert pair_variance(sums_of(w, x), TYPICAL) == (0.0, np.inf)


def test_a_belief_moves_as_far_as_it_is_uncertain_and_never_below_nothing():
    assert moved(Belief(0.02, 0.0), 0.1, np.inf, TYPICAL) == 0.02
    assert moved(Belief(0.02, 0.0), 0.1, 0.0, TYPICAL) == pytest.approx(0.1)
    assert moved(Belief(0.02, 0.0), 0.1, TYPICAL**2, TYPICAL) == pytest.approx(0.06)
    assert moved(Belief(0.02, 1e9), 0.1, 1e-4, TYPICAL) == pytest.approx(0.02, abs=1e-6)
    assert moved(Belief(0.0, 0.0), -0.1, 1e-4, TYPICAL) == 0.0


@pytest.mark.parametrize(("item", "user"), [(0.0, 0.03), (0.03, 0.0), (0.02, 0.01)])
def test_items_and_users_are_told_apart(item, user):
    """On a whole design, with symbols without noise: each side's own variance, and not the other's."""
    design = design_of(400, 300, 0.1, 3)
    mask, rng = design.table.mask, np.random.default_rng(5)
    eta = np.sqrt(item) * rng.normal(size=300)[mask.items] + np.sqrt(user) * rng.normal(size=400)[mask.users]
    levels = np.rint((eta + 0.25 * rng.normal(size=len(eta)) + 1) / 2 * 40).clip(0, 40).astype(np.int64)
    variance = float(Y[levels].var())
    state = EvidenceState(design, effects_of(design), ridge(variance, 1e-4), mean=0.0, variance=variance, k=0)
    reader = Reader.of(clear_symbols(design, levels), with_variance(Y, np.zeros(len(Y)), variance, np.zeros(1)))
    beliefs = Belief(0.012, 0.0), Belief(0.012, 0.0)
    shared = design.x, state.shared
    found = effect_variances(
        design.table, (state.left, state.right), shared, reader, variance, beliefs, TYPICAL * variance
    )
    assert found[0] == pytest.approx(item, abs=0.004)
    assert found[1] == pytest.approx(user, abs=0.004)


def test_effects_start_from_pairs_where_sums_said_nothing():
    design = design_of(200, 150, 0.2, 3)
    mask, rng = design.table.mask, np.random.default_rng(6)
    eta = 0.2 * rng.normal(size=150)[mask.items]
    levels = np.rint((eta + 0.2 * rng.normal(size=len(eta)) + 1) / 2 * 40).clip(0, 40).astype(np.int64)
    silent = replace(
        effects_of(design), item_posterior_variance=np.full(150, 0.012), user_posterior_variance=np.full(200, 0.012)
    )
    assert silent.known == (0.0, 0.0)
    state = EvidenceState(design, silent, ridge(0.08, 1e-4), mean=0.0, variance=0.08, k=0)
    family = with_variance(Y, np.zeros(len(Y)), 0.06, np.zeros(1))
    state.find_effects(Reader.of(clear_symbols(design, levels), family))
    assert state.item_prior.covariance[0, 0] == state.item_prior.start[0, 0] == pytest.approx(0.04, rel=0.4)
    assert 0 < state.user_prior.covariance[0, 0] < 0.004
