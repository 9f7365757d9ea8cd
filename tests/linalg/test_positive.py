"""Inverses by Cholesky's factors, against numpy's."""

import numpy as np
import pytest

from dpsr.linalg.positive import inverse


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_the_inverse_is_numpys_and_symmetric_to_the_bit(n):
    X = np.random.default_rng(n).normal(size=(3 * n, n))
    A = X.T @ X + np.eye(n)
    found = inverse(A)
    np.testing.assert_allclose(found, np.linalg.inv(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)


def test_a_matrix_that_rounding_left_with_a_negative_direction_is_inverted_all_the_same():
    np.testing.assert_allclose(inverse(np.diag([1.0, -1e-9])), np.diag([1.0, -1e9]))
