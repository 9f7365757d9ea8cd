"""The leading right singular vectors of a matrix known only by the products A'A X.

A pass over blocks of users gives A'A X in one go, user side and all, so the iteration keeps item-side bases only: block
Lanczos on G = A'A with full reorthogonalisation and thick restarts. With orthonormal V it keeps

    G V = V T + X R E',        E' = the last rows of the identity,

so the eigenpairs (theta^2, q) of the small T give triplets with right vectors v = V q, and || R (last rows of q) || /
theta is the length of r = A'u - theta v for u = A v / theta. When the basis is full, the best pairs are kept and the
iteration goes on from X: nothing is lost but the memory.

When to stop. Cutting A at rank d errs, to first order, by r_i max(1, theta_{d+1} / (theta_i - theta_{d+1})) per
triplet: a residual hurts more where the gap behind d is narrow. The largest of these must fall below tol * theta_1.
Where sigma_d = sigma_{d+1} the best rank-d matrix is not unique and no iteration can decide; then it stops once every
r_i is below tol * NARROW * theta_1, or after MAX_BLOCKS products.

Squaring A squares its condition: singular values below 1e-7 of the largest are noise. They are as small in the cut. A
block inside the span of what came before leaves only rounding behind; its columns are replaced by random directions, so
that zero matrices, and ranks beyond the true one, are ordinary cases.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from dpsr.arrays import Bools, Floats
from dpsr.linalg.compiled import one_blas_thread

_SHAKE = 1e-4
"""The length of the random part added to each column of a guess: what the guess has missed must show."""

_LOST = 1e-13
"""A column this short, against the longest it came from, is rounding."""


def first_block(n: int, width: int, start: Floats | None, rng: np.random.Generator) -> Floats:
    """Random orthonormal columns, the first of them near a guess if there is one."""
    X = rng.standard_normal((n, width)) / np.sqrt(n)
    if start is not None:
        guess = start[:, :width]
        X[:, : guess.shape[1]] = guess + _SHAKE * X[:, : guess.shape[1]]
    return _qr(X)[0]


def orthonormal(Y: Floats, basis: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Y = basis H + Q R with Q orthonormal and orthogonal to the basis; returns Q, H, R.

    Twice is enough, but the second time on columns of length one: what is short after the first is magnified, and its
    rounding with it. A column that the second pass shortens was rounding: it gets a random direction in Q and a zero in
    R.
    """
    size = np.linalg.norm(Y, axis=0).max(initial=0.0)
    H = basis.T @ Y
    Q, R = _qr(Y - basis @ H)
    Q, again = _qr(Q - basis @ (basis.T @ Q))
    lost = (np.abs(np.diag(R)) <= _LOST * size) | (np.abs(np.diag(again)) < 0.5)
    R = again @ R
    if lost.any():
        R[lost] = 0.0
        Q = _without(Q, lost, basis, rng)
    return Q, H, R


def _qr(Y: Floats) -> tuple[Floats, Floats]:
    """Q and R of a tall block, straight from LAPACK: numpy's wrapper copies more than it computes."""
    packed, tau, _, _ = lapack.dgeqrf(Y)
    R = np.triu(packed[: Y.shape[1]])
    Q, _, _ = lapack.dorgqr(packed, tau, overwrite_a=1)
    return Q, R


def _without(Q: Floats, lost: Bools, basis: Floats, rng: np.random.Generator) -> Floats:
    """Random directions, orthogonal to the basis and to the columns that are kept, in place of the lost ones."""
    kept = Q[:, ~lost]
    fresh = rng.standard_normal((len(Q), int(lost.sum())))
    for _ in range(2):
        fresh -= basis @ (basis.T @ fresh)
        fresh -= kept @ (kept.T @ fresh)
        fresh = _qr(fresh)[0]
    Q = Q.copy()
    Q[:, lost] = fresh
    return Q


Gram = Callable[[Floats], Floats]
"""X to A'A X."""


def restricted(gram: Gram, rows: Bools) -> Gram:
    """The same map on some rows alone; the others are zero. Items nobody rated have no part in any vector."""
    return lambda X: gram(scattered(X, rows))[rows]


def scattered(X: Floats, rows: Bools) -> Floats:
    """One line for each of `rows`: those of X where it is true, zeros elsewhere."""
    full = np.zeros((len(rows), X.shape[1]))
    full[rows] = X
    return full


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
        s, V = _leading(gram, n, min(rank, n), start, tol, products)
    return s[:rank], V[:, :rank]


def leading_pairs(gram: Gram, n: int, number: int, *, width: int, products: int) -> tuple[Floats, Floats]:
    """The best that a basis of so many `products` of this `width` has to offer, up to `number` pairs.

    The first ones are nearly exact, the others the less so the further behind: narrow products, many of them, tell more
    than the same number of columns in a few wide ones.
    """
    with one_blas_thread():
        if n <= (products + 1) * width:
            s, V = _all_pairs(gram, n)
            return s[:number], V[:, :number]
        rng = np.random.default_rng(_SEED)
        V, T = np.empty((n, products * width), order="F"), np.zeros((products * width, products * width))
        X = first_block(n, width, None, rng)
        for k in range(0, products * width, width):
            V[:, k : k + width] = X
            X, H, _ = orthonormal(gram(X), V[:, : k + width], rng)
            T[: k + width, k : k + width], T[k : k + width, : k + width] = H, H.T
        values, Q = np.linalg.eigh(_symmetric(T))
        return np.sqrt(np.maximum(values[::-1][:number], 0)), V @ Q[:, ::-1][:, :number]


def _all_pairs(gram: Gram, n: int) -> tuple[Floats, Floats]:
    """Where a basis would span the space: G itself is no larger."""
    values, vectors = np.linalg.eigh(_symmetric(gram(np.eye(n))))
    return np.sqrt(np.maximum(values[::-1], 0)), vectors[:, ::-1]


def _leading(gram: Gram, n: int, d: int, start: Floats | None, tol: float, most: int) -> tuple[Floats, Floats]:
    """All pairs of the last basis."""
    width = 4 * -(-d // 4)
    if n <= (_HELD + 1) * width:
        return _all_pairs(gram, n)
    rng = np.random.default_rng(_SEED)
    V, T = np.empty((n, _HELD * width), order="F"), np.zeros((_HELD * width, _HELD * width))
    X, k = first_block(n, width, start, rng), 0
    for products in range(1, most + 1):
        V[:, k : k + width], new, k = X, slice(k, k + width), k + width
        X, H, R = orthonormal(gram(X), V[:, :k], rng)
        T[:k, new], T[new, :k] = H, H.T
        values, Q = np.linalg.eigh(_symmetric(T[:k, :k]))
        values, Q = np.maximum(values[::-1], 0), Q[:, ::-1]
        if products == most or cut_is_accurate(np.sqrt(values), _residuals(R @ Q[new], values)[:d], d, tol):
            break
        if k == _HELD * width:
            k = _KEPT * width
            V[:, :k], T[:] = V @ Q[:, :k], 0.0
            T[:k, :k] = np.diag(values[:k])
    return np.sqrt(values), V[:, : len(Q)] @ Q


def cut_is_accurate(theta: Floats, residuals: Floats, d: int, tol: float) -> bool:
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
