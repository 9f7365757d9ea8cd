"""A person's own regression against dense algebra; nobody else's rows and no block has a part in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.linalg.own_regression import predict_pairs, regress

CELLS, K = 30, 4
_rng = np.random.default_rng(1)
EFFECTS, FEATURES, UNCERTAINTY = _rng.normal(size=CELLS), _rng.normal(size=(CELLS, K - 1)), _rng.uniform(0, 2, CELLS)
RESIDUAL, MEAN = 0.7, np.array([0.1, -0.2, 0.3, 0.0])
_root = _rng.normal(size=(K, K))
PRIOR = _root @ _root.T / K + 0.1 * np.eye(K)


def person(n, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(CELLS, n, replace=False)), rng.normal(size=n), float(rng.normal())


def fitted(people):
    """Coefficients, covariances, residuals and leverages of some people together."""
    indptr = np.concatenate([[0], np.cumsum([len(cells) for cells, _, _ in people])]).astype(np.int64)
    cells = np.concatenate([cells for cells, _, _ in people]).astype(np.int64)
    y, level = np.concatenate([y for _, y, _ in people]), np.array([level for _, _, level in people])
    return indptr, regress(indptr, cells, y, level, EFFECTS, FEATURES, UNCERTAINTY, RESIDUAL, MEAN, PRIOR)


def dense(cells, y, level):
    """The joint normal law of coefficients and ratings, conditioned on the ratings: no information matrix in sight."""
    X = np.column_stack([np.ones(len(cells)), FEATURES[cells]])
    S = X @ PRIOR @ X.T + np.diag(RESIDUAL + UNCERTAINTY[cells])
    gain = PRIOR @ X.T @ np.linalg.inv(S)
    w = MEAN + gain @ (y - level - EFFECTS[cells] - X @ MEAN)
    V = PRIOR - gain @ X @ PRIOR
    z = y - level - EFFECTS[cells] - X @ w
    return w, V, z, np.einsum("ia,ab,ib->i", X, V, X) / (RESIDUAL + UNCERTAINTY[cells])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, CELLS), st.integers(0, 1_000))
def test_a_single_person_is_regressed_as_dense_bayes_does(n, seed):
    one = person(n, seed)
    _, (W, V, z, h) = fitted([one])
    w, v, e, leverage = dense(*one)
    np.testing.assert_allclose(W[0], w, atol=1e-9)
    np.testing.assert_allclose(V[0], v, atol=1e-9)
    np.testing.assert_allclose(z, e, atol=1e-9)
    np.testing.assert_allclose(h, leverage, atol=1e-9)


def test_somebody_without_ratings_has_the_prior():
    _, (W, V, z, h) = fitted([person(0, 0)])
    np.testing.assert_allclose(W[0], MEAN)
    np.testing.assert_allclose(V[0], PRIOR)
    assert len(z) == len(h) == 0


def test_nobody_elses_rows_and_no_block_change_a_single_bit():
    people = [person(n, seed) for seed, n in enumerate([5, 0, 30, 1, 12, 7])]
    indptr, together = fitted(people)
    for u, one in enumerate(people):
        rows = slice(indptr[u], indptr[u + 1])
        _, alone = fitted([one])
        among_others = (together[0][u : u + 1], together[1][u : u + 1], together[2][rows], together[3][rows])
        for found, expected in zip(among_others, alone, strict=True):
            np.testing.assert_array_equal(found, expected)
    _, backwards = fitted(people[::-1])
    np.testing.assert_array_equal(backwards[0][::-1], together[0])


def test_somebody_with_absurd_ratings_does_not_reach_the_others():
    people = [person(6, 0), person(9, 1), person(4, 2)]
    _, before = fitted(people)
    people[1] = (people[1][0], np.full(9, np.nan), 1e300)
    _, after = fitted(people)
    for u in (0, 2):
        np.testing.assert_array_equal(after[0][u], before[0][u])


def test_the_leverage_is_how_far_the_fit_follows_a_shift_of_a_rating():
    """Measured: move one rating by a step, and see which share of it the residual does not show."""
    cells, y, level = person(12, 3)
    _, (_, _, z, h) = fitted([(cells, y, level)])
    for i in (0, 5, 11):
        shifted = y.copy()
        shifted[i] += 0.5
        _, (_, _, moved, _) = fitted([(cells, shifted, level)])
        assert 1 - (moved[i] - z[i]) / 0.5 == pytest.approx(h[i])


def test_an_uncertain_cell_counts_less():
    """The planted error would be to forget the uncertainty: then both would move alike."""
    sure, unsure = int(UNCERTAINTY.argmin()), int(UNCERTAINTY.argmax())

    def pull(cell):
        _, (W, _, _, _) = fitted([(np.array([cell]), np.array([EFFECTS[cell] + 3.0]), 0.0)])
        x = np.concatenate([[1.0], FEATURES[cell]])
        return (x @ (W[0] - MEAN)) / (x @ PRIOR @ x) / (3.0 - x @ MEAN)

    assert pull(sure) > 1.2 * pull(unsure)


def test_pairs_are_predicted_from_level_effect_and_features_and_unknown_items_from_the_level():
    W, level = _rng.normal(size=(3, K)), _rng.normal(size=3)
    people, cells = np.array([0, 2, 1, 2]), np.array([4, 29, -1, -1])
    found = predict_pairs(people, cells, level, EFFECTS, FEATURES, W)
    for t, (u, c) in enumerate(zip(people, cells, strict=True)):
        known = 0.0 if c < 0 else EFFECTS[c] + FEATURES[c] @ W[u, 1:]
        assert found[t] == pytest.approx(level[u] + W[u, 0] + known)
