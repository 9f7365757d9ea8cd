"""Orthonormal blocks of vectors that grow a basis.

A block inside the span of what came before leaves only rounding behind; its columns are replaced by random directions,
so that zero matrices, and ranks beyond the true one, are ordinary cases.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

Floats = npt.NDArray[np.float64]

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


def _without(Q: Floats, lost: npt.NDArray[np.bool_], basis: Floats, rng: np.random.Generator) -> Floats:
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
