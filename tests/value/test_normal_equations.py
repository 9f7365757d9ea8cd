"""Inverses by Cholesky's factors, against numpy's; Gram matrices of products, against the products themselves."""

import numpy as np
import pytest

from dpsr.value.side import inverse, outer_gram


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_the_inverse_is_numpys_and_symmetric_to_the_bit(n):
    X = np.random.default_rng(n).normal(size=(3 * n, n))
    A = X.T @ X + np.eye(n)
    found = inverse(A)
    np.testing.assert_allclose(found, np.linalg.inv(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)


def test_a_matrix_that_rounding_left_with_a_negative_direction_is_inverted_all_the_same():
    np.testing.assert_allclose(inverse(np.diag([1.0, -1e-9])), np.diag([1.0, -1e9]))


def test_the_gram_matrix_is_that_of_the_kronecker_products_of_rows():
    rng = np.random.default_rng(0)
    left, right, precision = rng.normal(size=(5000, 3)), rng.normal(size=(5000, 4)), rng.uniform(0.5, 2, 5000)
    left[::7] = 0.0  # who rated nothing
    rows = np.einsum("gi,gj->gij", left, right).reshape(5000, 12)
    found = outer_gram(left, right, precision)
    np.testing.assert_allclose(found, rows.T @ (precision[:, None] * rows), rtol=1e-4, atol=1e-3 * len(rows) ** 0.5)
    np.testing.assert_array_equal(found, found.T)
