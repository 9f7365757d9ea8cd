"""The leading right singular vectors of a matrix known only by the products A'A X.

A pass over blocks of users gives A'A X in one go, user side and all, so the iteration keeps item-side bases only: block
Lanczos on G = A'A with full reorthogonalisation and thick restarts. With orthonormal V and W = G V, the Ritz pairs of
V'W are (theta^2, V q) and || W q - theta^2 V q || / theta is the length of r = A'u - theta v for u = A v / theta. When
the basis is full, the best pairs are kept and the iteration goes on: nothing is lost but the memory.

When to stop. Cutting A at rank d errs, to first order, by r_i max(1, theta_{d+1} / (theta_i - theta_{d+1})) per
triplet: a residual hurts more where the gap behind d is narrow. The largest of these must fall below tol * theta_1.
Where sigma_d = sigma_{d+1} the best rank-d matrix is not unique and no iteration can settle the choice; then it
stops once every r_i is below tol * NARROW * theta_1, or after MAX_BLOCKS products.

Squaring A squares its condition: singular values below 1e-7 of the largest are noise. They are as small in the cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpsr.linalg.basis import first_block, orthonormal
from dpsr.linalg.compiled import one_blas_thread

Floats = npt.NDArray[np.float64]
Gram = Callable[[Floats], Floats]

MAX_BLOCKS = 400
"""Products after which the iteration stops as it stands."""

NARROW = 1e-4
"""The relative gap behind the last vector below which it is taken for a tie."""

_ROUNDING = 1e-14
"""What rounding leaves of a residual of G, as a share of its largest eigenvalue: no iteration gets below it."""

_HELD, _KEPT = 6, 3
"""The basis in blocks, before and after a restart: more saves products, fewer saves orthogonalisation."""

_SEED = 20_011


def leading_right(
    gram: Gram, n: int, rank: int, *, start: Floats | None = None, tol: float, products: int = MAX_BLOCKS
) -> tuple[Floats, Floats]:
    """The `rank` largest singular values of A (m x n) and their right vectors; `start` is a guess of these.

    After so many `products` the iteration stops as it stands.
    """
    with one_blas_thread():
        return _leading(gram, n, min(rank, n), start, tol, products)


def _leading(gram: Gram, n: int, d: int, start: Floats | None, tol: float, most: int) -> tuple[Floats, Floats]:
    width = 4 * -(-d // 4)
    if n <= (_HELD + 1) * width:  # a basis would span the space: G itself is no larger
        values, vectors = np.linalg.eigh(_symmetric(gram(np.eye(n))))
        return np.sqrt(np.maximum(values[::-1][:d], 0)), vectors[:, ::-1][:, :d]
    rng = np.random.default_rng(_SEED)
    X, V, W = first_block(n, width, start, rng), np.empty((n, 0)), np.empty((n, 0))
    for products in range(1, most + 1):
        V, W = np.hstack([V, X]), np.hstack([W, gram(X)])
        values, Q = np.linalg.eigh(_symmetric(V.T @ W))
        values, Q = np.maximum(values[::-1], 0), Q[:, ::-1]
        if products == most or settled(np.sqrt(values), _residuals(V, W, values, Q, d), d, tol):
            break
        X = orthonormal(W[:, -width:], V, rng)
        if V.shape[1] >= _HELD * width:
            V, W = V @ Q[:, : _KEPT * width], W @ Q[:, : _KEPT * width]
    return np.sqrt(values[:d]), V @ Q[:, :d]


def settled(theta: Floats, residuals: Floats, d: int, tol: float) -> bool:
    """Whether the rank-d cut is as accurate as asked; see the head of this module."""
    if len(theta) <= d:
        return False
    behind = theta[d]
    gap = np.maximum(theta[:d] - behind, NARROW * theta[:d])
    error = residuals[:d] * np.maximum(1.0, behind / np.maximum(gap, np.finfo(float).tiny))
    return bool(error.max() <= tol * theta[0])


def _residuals(V: Floats, W: Floats, values: Floats, Q: Floats, d: int) -> Floats:
    """|| A'u - theta v || of the first d; 0 where only rounding is left."""
    rest = np.linalg.norm(W @ Q[:, :d] - V @ Q[:, :d] * values[:d], axis=0)
    lengths = rest / np.sqrt(np.maximum(values[:d], np.finfo(float).tiny))
    return np.where(rest > _ROUNDING * values[0], lengths, 0.0)


def _symmetric(G: Floats) -> Floats:
    return (G + G.T) / 2
