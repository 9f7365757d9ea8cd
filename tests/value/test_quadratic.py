"""Products of a row's own features: against plain loops, and its transpose."""

import numpy as np
import pytest

from dpsr.value.quadratic import Quadratic


@pytest.fixture
def some():
    rng = np.random.default_rng(0)
    features, counts = rng.normal(size=(30, 4)), rng.integers(0, 9, 30).astype(float)
    return Quadratic.of(features, counts), features, counts, rng.normal(size=(4, 4)), rng.normal(size=30)


def products_by_hand(features, counts):
    """Oracle: f x f of every row, less their average over ratings."""
    rows = np.array([np.kron(f, f) for f in features])
    return rows - sum(c * row for c, row in zip(counts, rows, strict=True)) / counts.sum()


def test_values_are_products_less_their_average_over_ratings(some):
    quadratic, features, counts, Q, _ = some
    values = quadratic.at(Q)
    np.testing.assert_allclose(values, products_by_hand(features, counts) @ Q.ravel())
    assert counts @ values == pytest.approx(0, abs=1e-10)
    np.testing.assert_allclose(quadratic.at(Q.T), values)


def test_the_transpose_is_the_transpose(some):
    quadratic, features, counts, Q, rows = some
    assert np.sum(quadratic.back(rows) * Q) == pytest.approx(rows @ quadratic.at(Q))
    np.testing.assert_allclose(quadratic.back(rows).ravel(), products_by_hand(features, counts).T @ rows)


def test_the_precision_is_a_weighted_gram_matrix(some):
    quadratic, features, counts, _, rows = some
    precision, products = rows**2, products_by_hand(features, counts)
    np.testing.assert_allclose(
        quadratic.gram(precision), products.T @ (precision[:, None] * products), rtol=1e-4, atol=1e-3
    )


def test_rows_without_ratings_move_no_average():
    plain = Quadratic.of(np.array([[1.0], [2.0]]), np.array([3.0, 1.0]))
    more = Quadratic.of(np.array([[1.0], [2.0], [50.0]]), np.array([3.0, 1.0, 0.0]))
    assert plain.centre == more.centre
    assert Quadratic.of(np.ones((2, 1)), np.zeros(2)).centre == 0
