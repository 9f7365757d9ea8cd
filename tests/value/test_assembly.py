"""What people's own ratings will meet: chances of effects, and how well items are known."""

import numpy as np
import pytest
from scipy.stats import norm

from dpsr.value.assembly import effect_chances
from dpsr.value.effects import EffectObservation
from dpsr.value.priors import EFFECT
from dpsr.value.side import Prior, Rows, posterior_covariances


def test_chances_of_the_effects_variance_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.01, 0.2, 50)
    value = rng.normal(size=50) * np.sqrt(0.02 + variance)
    logs, chances = effect_chances(EffectObservation(value, variance), 0.15)
    plain = [
        sum(norm.logpdf(v, scale=np.sqrt(np.exp(t) + s)) for v, s in zip(value, variance, strict=True))
        - 0.5 * ((t - np.log(EFFECT * 0.15)) / 2.5) ** 2
        for t in logs
    ]
    np.testing.assert_allclose(chances - chances[0], np.array(plain) - plain[0], atol=1e-9)
    assert chances.max() == 0
    assert chances.min() > -5


@pytest.mark.parametrize("truth", [0.001, 0.05])
def test_many_people_find_the_variance_of_their_effects(truth):
    rng = np.random.default_rng(1)
    variance = np.full(20_000, 0.01)
    value = rng.normal(size=20_000) * np.sqrt(truth + variance)
    logs, chances = effect_chances(EffectObservation(value, variance), 0.15)
    assert np.exp(logs[np.argmax(chances)]) == pytest.approx(truth, rel=0.4)


def test_sums_nobody_asked_for_leave_the_typical_variance():
    logs, chances = effect_chances(EffectObservation(np.zeros(5), np.full(5, 1e12)), 0.15)
    assert logs[np.argmax(chances)] == pytest.approx(np.log(EFFECT * 0.15), abs=0.3)


def test_covariances_of_rows_are_the_inverses_of_their_normal_equations():
    rng = np.random.default_rng(2)
    n, d = 5, 4
    i, j = np.tril_indices(d)
    roots = rng.normal(size=(n, d, d))
    A = roots @ roots.transpose(0, 2, 1)
    L = np.diag(rng.uniform(0.1, 1, d))
    root = np.triu(rng.normal(size=(d, d)))  # of the prior before it learned
    within = np.ascontiguousarray((root.T @ A @ root)[:, i, j])  # rows lie together, as in fits
    nothing = np.zeros(n), np.full(n, 0.5), np.ones((n, 1)), np.ones(n, dtype=bool)
    rows = Rows(root, within, np.zeros((n, d)), *nothing)
    prior = Prior.of(np.ones((n, 1)), np.zeros((1, 1), dtype=np.int64), np.ones(1), np.ones(1), L)
    A[:, 0, 0] += 1 / 0.5
    expected = np.linalg.inv(A + np.linalg.inv(L))[:, i, j]
    np.testing.assert_allclose(posterior_covariances(rows, prior), expected, rtol=1e-4, atol=1e-6)
