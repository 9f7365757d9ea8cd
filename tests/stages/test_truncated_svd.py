"""The truncated SVD of low rank plus sparse, against LAPACK on the matrix written out."""

import numpy as np
import pytest

from dpsr.linalg import LowRankPlusSparse, Pattern, svd, truncated_svd


def low_rank_plus_sparse(
    seed: int, m: int, n: int, p: int, density: float, *, scale: float = 1.0
) -> tuple[LowRankPlusSparse, np.ndarray]:
    rng = np.random.default_rng(seed)
    P, Q = scale * rng.normal(size=(m, p)), rng.normal(size=(n, p))
    mask = rng.random((m, n)) < density
    S = np.where(mask, rng.normal(size=(m, n)), 0.0)
    return operator(P, Q, S, mask), P @ Q.T + S


def operator(P: np.ndarray, Q: np.ndarray, S: np.ndarray, mask: np.ndarray) -> LowRankPlusSparse:
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
    pattern = Pattern.from_rows(indptr, np.nonzero(mask)[1].astype(np.int32), mask.shape[1])
    return LowRankPlusSparse(P, Q, pattern, S[mask])


def sparse_only(S: np.ndarray) -> LowRankPlusSparse:
    return operator(np.zeros((S.shape[0], 1)), np.zeros((S.shape[1], 1)), S, S != 0)


def assert_is_truncation(A: np.ndarray, rank: int, U: np.ndarray, s: np.ndarray, Vt: np.ndarray, atol: float) -> None:
    d = min(rank, *A.shape)
    assert (U.shape, s.shape, Vt.shape) == ((A.shape[0], d), (d,), (d, A.shape[1]))
    full = np.linalg.svd(A, full_matrices=False)
    scale = max(full[1][0], 1.0)
    np.testing.assert_allclose(s, full[1][:d], rtol=0, atol=atol * scale)
    np.testing.assert_allclose(U.T @ U, np.eye(d), atol=1e-10)
    np.testing.assert_allclose(Vt @ Vt.T, np.eye(d), atol=1e-10)
    best = np.sqrt(np.sum(full[1][d:] ** 2))
    assert np.linalg.norm(A - (U * s) @ Vt) <= best + atol * scale


@pytest.mark.parametrize("shape", [(300, 200), (90, 400), (700, 80), (1, 50), (50, 1), (1, 1), (3, 500)], ids=str)
@pytest.mark.parametrize("rank", [1, 5, 8])
def test_any_shape_and_rank(shape: tuple[int, int], rank: int) -> None:
    A, dense = low_rank_plus_sparse(0, *shape, 3, 0.1)
    assert_is_truncation(dense, rank, *truncated_svd(A, rank), atol=1e-9)


@pytest.mark.parametrize("rank", [40, 99, 100, 250])
def test_rank_up_to_and_beyond_the_smaller_side(rank: int) -> None:
    A, dense = low_rank_plus_sparse(1, 130, 100, 2, 0.2)
    assert_is_truncation(dense, rank, *truncated_svd(A, rank), atol=1e-9)


def test_products_are_those_of_the_matrix() -> None:
    A, dense = low_rank_plus_sparse(2, 40, 31, 3, 0.2)
    X, Y = np.random.default_rng(0).normal(size=(31, 5)), np.random.default_rng(1).normal(size=(40, 6))
    np.testing.assert_allclose(A.times(X), dense @ X, atol=1e-12)
    np.testing.assert_allclose(A.transposed_times(Y), dense.T @ Y, atol=1e-12)
    np.testing.assert_allclose(A.transposed_times(np.asfortranarray(Y)), dense.T @ Y, atol=1e-12)


def test_zero_matrix_gives_zeros_with_orthonormal_factors() -> None:
    U, s, Vt = truncated_svd(sparse_only(np.zeros((120, 90))), 6)
    assert (s == 0).all()
    np.testing.assert_allclose(U.T @ U, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(Vt @ Vt.T, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("true_rank", [1, 3, 7])
def test_rank_deficient_matrices(true_rank: int) -> None:
    rng = np.random.default_rng(3)
    P, Q = rng.normal(size=(150, true_rank)), rng.normal(size=(110, true_rank))
    A = operator(P, Q, np.zeros((150, 110)), np.zeros((150, 110), bool))
    assert_is_truncation(P @ Q.T, 8, *truncated_svd(A, 8), atol=1e-10)


def test_empty_rows_and_columns() -> None:
    S = np.where(np.random.default_rng(4).random((140, 100)) < 0.1, 1.5, 0.0)
    S[20:60], S[:, 30:70] = 0.0, 0.0
    assert_is_truncation(S, 5, *truncated_svd(sparse_only(S), 5), atol=1e-9)


def test_one_giant_value_and_a_flat_rest() -> None:
    """The shape of a mean-filled rating matrix: sigma_1 hundreds of times the others."""
    A, dense = low_rank_plus_sparse(5, 250, 180, 1, 0.08, scale=100.0)
    assert_is_truncation(dense, 8, *truncated_svd(A, 8), atol=1e-10)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-12, 0.0])
def test_narrow_gaps_stop_and_are_as_good_as_the_best(gap: float) -> None:
    """Behind a tie there is no single best matrix; any answer must still be as close as the best."""
    rng = np.random.default_rng(6)
    U, V = np.linalg.qr(rng.normal(size=(120, 90)))[0], np.linalg.qr(rng.normal(size=(90, 90)))[0]
    s = np.concatenate([[10, 9, 8, 7 + gap, 7, 6.9], np.linspace(6.5, 0.1, 84)])
    A = (U * s) @ V.T
    assert_is_truncation(A, 4, *truncated_svd(sparse_only(A), 4), atol=1e-8)


def test_all_singular_values_equal_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svd, "MAX_BLOCKS", 30)
    Q = np.linalg.qr(np.random.default_rng(7).normal(size=(100, 100)))[0]
    U, s, Vt = truncated_svd(sparse_only(Q), 5)
    np.testing.assert_allclose(s, 1.0, atol=1e-9)
    np.testing.assert_allclose(Q @ Vt.T, U * s, atol=1e-9)


def test_a_guess_that_misses_a_triplet_does_not_hide_it() -> None:
    """The start spans singular vectors 2 to 5 exactly: an unshaken iteration would never see the first."""
    rng = np.random.default_rng(8)
    U, V = np.linalg.qr(rng.normal(size=(130, 100)))[0], np.linalg.qr(rng.normal(size=(100, 100)))[0]
    s = np.linspace(50, 1, 100)
    A = (U * s) @ V.T
    assert_is_truncation(A, 4, *truncated_svd(sparse_only(A), 4, start=V[:, 1:5]), atol=1e-9)


def test_a_good_guess_saves_products(monkeypatch: pytest.MonkeyPatch) -> None:
    A, _ = low_rank_plus_sparse(9, 400, 300, 2, 0.1)
    _, _, Vt = truncated_svd(A, 8)
    counts = []
    for start in (None, Vt.T):
        calls: list[int] = []
        times = LowRankPlusSparse.times
        monkeypatch.setattr(LowRankPlusSparse, "times", lambda self, X, c=calls, f=times: (c.append(1), f(self, X))[1])
        truncated_svd(A, 8, start=start)
        monkeypatch.undo()
        counts.append(len(calls))
    assert counts[1] < counts[0]


def test_same_bits_twice() -> None:
    A, _ = low_rank_plus_sparse(10, 300, 200, 2, 0.1)
    first, second = truncated_svd(A, 8), truncated_svd(A, 8)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_a_looser_tolerance_is_looser_and_a_tighter_one_tighter() -> None:
    A, dense = low_rank_plus_sparse(11, 300, 200, 1, 0.1)
    U, s, Vt = np.linalg.svd(dense)
    best = (U[:, :8] * s[:8]) @ Vt[:8]
    errors = []
    for tol in (1e-2, 1e-12):
        u, t, vt = truncated_svd(A, 8, tol=tol)
        errors.append(np.linalg.norm((u * t) @ vt - best) / s[0])
    assert errors[1] < 1e-11 < errors[0] < 0.1
