"""The leading right singular vectors of a matrix known only by the products A'A X.

A pass over blocks of users gives A'A X in one go, user side and all, so the iteration keeps item-side bases only: block
Lanczos on G = A'A with full reorthogonalisation and thick restarts. With orthonormal V it keeps

    G V = V T + X R E',        E' = the last rows of the identity,

so the eigenpairs (theta^2, q) of the small T give triplets with right vectors v = V q, and || R (last rows of q) || /
theta is the length of r = A'u - theta v for u = A v / theta. When the basis is full, the best pairs are kept and the
iteration goes on from X: nothing is lost but the memory.

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
    V, T = np.empty((n, _HELD * width), order="F"), np.zeros((_HELD * width, _HELD * width))
    X, k = first_block(n, width, start, rng), 0
    for products in range(1, most + 1):
        V[:, k : k + width], new, k = X, slice(k, k + width), k + width
        X, H, R = orthonormal(gram(X), V[:, :k], rng)
        T[:k, new], T[new, :k] = H, H.T
        values, Q = np.linalg.eigh(_symmetric(T[:k, :k]))
        values, Q = np.maximum(values[::-1], 0), Q[:, ::-1]
        if products == most or settled(np.sqrt(values), _residuals(R @ Q[new], values)[:d], d, tol):
            break
        if k == _HELD * width:
            k = _KEPT * width
            V[:, :k], T[:] = V @ Q[:, :k], 0.0
            T[:k, :k] = np.diag(values[:k])
    return np.sqrt(values[:d]), V[:, : len(Q)] @ Q[:, :d]


def settled(theta: Floats, residuals: Floats, d: int, tol: float) -> bool:
    """Whether the rank-d cut is as accurate as asked; see the head of this module."""
    if len(theta) <= d:
        return False
    behind = theta[d]
    gap = np.maximum(theta[:d] - behind, NARROW * theta[:d])
    error = residuals[:d] * np.maximum(1.0, behind / np.maximum(gap, np.finfo(float).tiny))
    return bool(error.max() <= tol * theta[0])


def _residuals(rest: Floats, values: Floats) -> Floats:
    """|| A'u - theta v || of every pair; 0 where only rounding is left."""
    lengths = np.linalg.norm(rest, axis=0)
    real = lengths > _ROUNDING * values[0]
    return np.where(real, lengths / np.sqrt(np.maximum(values, np.finfo(float).tiny)), 0.0)


def _symmetric(G: Floats) -> Floats:
    return (G + G.T) / 2
