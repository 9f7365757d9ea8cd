"""Cuts of low rank plus sparse by products with A'A, against LAPACK on the matrix written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dpsr.linalg.lanczos import leading_pairs, leading_right

TOL = 1e-11


def low_rank_plus_sparse(
    seed: int, m: int, n: int, p: int, density: float, *, scale: float = 1.0
) -> tuple[Products, np.ndarray]:
    rng = np.random.default_rng(seed)
    P, Q = scale * rng.normal(size=(m, p)), rng.normal(size=(n, p))
    mask = rng.random((m, n)) < density
    S = np.where(mask, rng.normal(size=(m, n)), 0.0)
    return Products(P, Q, S), P @ Q.T + S


@dataclass(frozen=True, eq=False)
class Products:
    """A matrix by its products; low rank and sparse parts are multiplied one after the other, as a pass does."""

    P: np.ndarray
    Q: np.ndarray
    S: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.P), len(self.Q)

    def times(self, X: np.ndarray) -> np.ndarray:
        return self.P @ (self.Q.T @ X) + self.S @ X

    def gram(self, X: np.ndarray) -> np.ndarray:
        Y = self.times(X)
        return self.S.T @ Y + self.Q @ (self.P.T @ Y)


def sparse_only(S: np.ndarray) -> Products:
    return Products(np.zeros((S.shape[0], 1)), np.zeros((S.shape[1], 1)), S)


def cut(
    A: Products, rank: int, *, start: np.ndarray | None = None, tol: float = TOL
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A V, the singular values, and V."""
    s, V = leading_right(A.gram, A.shape[1], min(rank, *A.shape), start=start, tol=tol)
    return A.times(V), s, V


def assert_is_truncation(A: np.ndarray, rank: int, AV: np.ndarray, s: np.ndarray, V: np.ndarray, atol: float) -> None:
    """As close as the best, with its singular values; those that are zero may be anything below 1e-7 of the first."""
    d = min(rank, *A.shape)
    assert (AV.shape, s.shape, V.shape) == ((A.shape[0], d), (d,), (A.shape[1], d))
    full = np.linalg.svd(A, full_matrices=False)[1]
    scale = max(full[0], 1.0)
    np.testing.assert_allclose(s, full[:d], rtol=0, atol=2e-7 * scale)
    large = full[:d] > 1e-4 * scale
    np.testing.assert_allclose(s[large], full[:d][large], rtol=0, atol=atol * scale)
    np.testing.assert_allclose(V.T @ V, np.eye(d), atol=1e-10)
    assert np.linalg.norm(A - AV @ V.T) <= np.sqrt(np.sum(full[d:] ** 2)) + atol * scale


@pytest.mark.parametrize("shape", [(300, 200), (90, 400), (700, 80), (1, 50), (50, 1), (1, 1), (3, 500)], ids=str)
@pytest.mark.parametrize("rank", [1, 5, 8])
def test_any_shape_and_rank(shape: tuple[int, int], rank: int) -> None:
    A, dense = low_rank_plus_sparse(0, *shape, 3, 0.1)
    assert_is_truncation(dense, rank, *cut(A, rank), atol=1e-9)


@pytest.mark.parametrize("rank", [40, 99, 100, 250])
def test_rank_up_to_and_beyond_the_smaller_side(rank: int) -> None:
    A, dense = low_rank_plus_sparse(1, 130, 100, 2, 0.2)
    assert_is_truncation(dense, rank, *cut(A, rank), atol=1e-9)


def test_zero_matrix_gives_zeros_with_orthonormal_vectors() -> None:
    AV, s, V = cut(sparse_only(np.zeros((120, 90))), 6)
    assert (s == 0).all()
    assert (AV == 0).all()
    np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("rank", [8, 25])
def test_a_basis_larger_than_the_rank_stays_orthonormal(rank: int) -> None:
    """Thirty rows, and a basis of forty-eight and more: whatever comes after the thirtieth is made up, not rounding."""
    A, dense = low_rank_plus_sparse(13, 30, 260, 1, 0.15, scale=3.0)
    assert_is_truncation(dense, rank, *cut(A, rank), atol=1e-9)


@pytest.mark.parametrize("true_rank", [1, 3, 7])
def test_rank_deficient_matrices(true_rank: int) -> None:
    rng = np.random.default_rng(3)
    P, Q = rng.normal(size=(150, true_rank)), rng.normal(size=(110, true_rank))
    A = Products(P, Q, np.zeros((150, 110)))
    assert_is_truncation(P @ Q.T, 8, *cut(A, 8), atol=1e-10)


def test_empty_rows_and_columns() -> None:
    S = np.where(np.random.default_rng(4).random((140, 100)) < 0.1, 1.5, 0.0)
    S[20:60], S[:, 30:70] = 0.0, 0.0
    assert_is_truncation(S, 5, *cut(sparse_only(S), 5), atol=1e-9)


def test_one_giant_value_and_a_flat_rest() -> None:
    """The shape of a mean-filled rating matrix: sigma_1 hundreds of times the others."""
    A, dense = low_rank_plus_sparse(5, 250, 180, 1, 0.08, scale=100.0)
    assert_is_truncation(dense, 8, *cut(A, 8), atol=1e-10)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-12, 0.0])
def test_narrow_gaps_stop_and_are_as_good_as_the_best(gap: float) -> None:
    """Behind a tie there is no single best matrix; any answer must still be as close as the best."""
    rng = np.random.default_rng(6)
    U, V = np.linalg.qr(rng.normal(size=(120, 90)))[0], np.linalg.qr(rng.normal(size=(90, 90)))[0]
    s = np.concatenate([[10, 9, 8, 7 + gap, 7, 6.9], np.linspace(6.5, 0.1, 84)])
    A = (U * s) @ V.T
    assert_is_truncation(A, 4, *cut(sparse_only(A), 4), atol=1e-8)


def test_all_singular_values_equal_stops_at_the_limit() -> None:
    Q = np.linalg.qr(np.random.default_rng(7).normal(size=(100, 100)))[0]
    calls: list[int] = []
    s, V = leading_right(lambda X: (calls.append(1), Q.T @ (Q @ X))[1], 100, 5, tol=-1.0, products=30)
    assert len(calls) == 30
    np.testing.assert_allclose(s, 1.0, atol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("true_rank", [1, 3])
def test_ranks_beyond_the_true_one_do_not_iterate_for_ever(true_rank: int) -> None:
    """All ratings equal is such a matrix. Residuals of zero values are rounding, and rounding is not fought."""
    rng = np.random.default_rng(12)
    F = rng.normal(size=(200, true_rank)) @ rng.normal(size=(true_rank, 150))
    calls: list[int] = []
    leading_right(lambda X: (calls.append(1), F.T @ (F @ X))[1], 150, 8, tol=1e-9)
    assert len(calls) < 20


def test_a_guess_that_misses_a_triplet_does_not_hide_it() -> None:
    """The start spans singular vectors 2 to 5 exactly: an unshaken iteration would never see the first."""
    rng = np.random.default_rng(8)
    U, V = np.linalg.qr(rng.normal(size=(130, 100)))[0], np.linalg.qr(rng.normal(size=(100, 100)))[0]
    s = np.linspace(50, 1, 100)
    A = (U * s) @ V.T
    assert_is_truncation(A, 4, *cut(sparse_only(A), 4, start=V[:, 1:5]), atol=1e-9)


def test_a_good_guess_saves_products() -> None:
    A, _ = low_rank_plus_sparse(9, 400, 300, 2, 0.1)
    V, counts = cut(A, 8)[2], []
    for start in (None, V):
        calls: list[int] = []
        leading_right(lambda X, c=calls: (c.append(1), A.gram(X))[1], 300, 8, start=start, tol=TOL)
        counts.append(len(calls))
    assert counts[1] < counts[0]


def test_same_bits_twice() -> None:
    A, _ = low_rank_plus_sparse(10, 300, 200, 2, 0.1)
    first, second = cut(A, 8), cut(A, 8)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_a_looser_tolerance_is_looser_and_a_tighter_one_tighter() -> None:
    A, dense = low_rank_plus_sparse(11, 300, 200, 1, 0.1)
    U, s, Vt = np.linalg.svd(dense)
    best = (U[:, :8] * s[:8]) @ Vt[:8]
    errors = []
    for tol in (1e-2, 1e-12):
        AV, _, V = cut(A, 8, tol=tol)
        errors.append(np.linalg.norm(AV @ V.T - best) / s[0])
    assert errors[1] < 1e-11 < errors[0] < 0.1


def test_pairs_are_the_best_of_their_basis_and_the_first_ones_are_exact() -> None:
    """Ritz pairs: orthonormal, never above the true values, the first ones close to them; ten products, no fewer."""
    products, A = low_rank_plus_sparse(3, 300, 400, 6, 0.1, scale=3.0)
    calls = []

    def gram(X: np.ndarray) -> np.ndarray:
        calls.append(X.shape[1])
        return products.gram(X)

    s, V = leading_pairs(gram, 400, 26, width=4, products=10)
    true = np.linalg.svd(A, compute_uv=False)
    assert calls == [4] * 10
    assert s.shape == (26,)
    np.testing.assert_allclose(s[:6], true[:6], rtol=1e-6)
    assert (s <= true[:26] * (1 + 1e-9)).all()
    np.testing.assert_allclose(V.T @ V, np.eye(26), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(A @ V, axis=0), s, rtol=1e-6)


def test_a_basis_that_would_span_the_space_is_not_needed() -> None:
    """Thirty columns: all pairs exactly, by one product with the identity."""
    _, A = low_rank_plus_sparse(4, 50, 30, 3, 0.2)
    s, V = leading_pairs(lambda X: A.T @ (A @ X), 30, 7, width=4, products=10)
    np.testing.assert_allclose(s, np.linalg.svd(A, compute_uv=False)[:7], rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(A @ V, axis=0), s, rtol=1e-9)
