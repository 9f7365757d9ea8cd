"""The leading right singular vectors of a matrix known only by the products A'A X.

A pass over blocks of users gives A'A X in one go, user side and all, so the iteration keeps item-side bases only: block
Lanczos on G = A'A with full reorthogonalisation and thick restarts. With orthonormal V and W = G V, the Ritz pairs of
V'W are (theta^2, V q) and || W q - theta^2 V q || / theta is the length of A'u - theta v for u = A v / theta.

Squaring A squares its condition: singular values below 1e-7 of the largest are noise. Cuts of rank ten do not look
that far.

When to stop is decided as in `svd.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpsr.linalg.compiled import one_blas_thread
from dpsr.linalg.svd import MAX_BLOCKS, first_block, orthonormal, settled

Floats = npt.NDArray[np.float64]
Gram = Callable[[Floats], Floats]

_SEED = 20_011
_HELD, _KEPT = 6, 3
"""The basis in blocks, before and after a restart."""


def leading_right(gram: Gram, n: int, rank: int, *, start: Floats | None = None, tol: float) -> tuple[Floats, Floats]:
    """The `rank` largest singular values of A (m x n) and their right vectors; `start` is a guess of these."""
    with one_blas_thread():
        return _leading(gram, n, min(rank, n), start, tol)


def _leading(gram: Gram, n: int, d: int, start: Floats | None, tol: float) -> tuple[Floats, Floats]:
    width = 4 * -(-d // 4)
    if n <= (_HELD + 1) * width:
        values, vectors = np.linalg.eigh(_symmetric(gram(np.eye(n))))
        return np.sqrt(np.maximum(values[::-1][:d], 0)), vectors[:, ::-1][:, :d]
    rng = np.random.default_rng(_SEED)
    X, V, W = first_block(n, width, start, rng), np.empty((n, 0)), np.empty((n, 0))
    for products in range(1, MAX_BLOCKS + 1):
        V, W = np.hstack([V, X]), np.hstack([W, gram(X)])
        X, _, _ = orthonormal(W[:, -width:], V, rng)
        if V.shape[1] <= d and products < MAX_BLOCKS:
            continue
        values, Q = np.linalg.eigh(_symmetric(V.T @ W))
        values, Q = np.maximum(values[::-1], 0), Q[:, ::-1]
        theta = np.sqrt(values)
        rest = np.linalg.norm(W @ Q[:, :d] - V @ Q[:, :d] * values[:d], axis=0) / np.maximum(theta[:d], 1e-300)
        if products == MAX_BLOCKS or settled(theta, rest, d, tol):
            break
        if V.shape[1] >= _HELD * width:
            V, W = V @ Q[:, : _KEPT * width], W @ Q[:, : _KEPT * width]
    return theta[:d], V @ Q[:, :d]


def _symmetric(G: Floats) -> Floats:
    return (G + G.T) / 2
