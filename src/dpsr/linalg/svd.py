"""The leading singular triplets of a matrix known only by its products with blocks.

Block Golub-Kahan-Lanczos with full reorthogonalisation and thick restarts. With orthonormal V (n x k) and U (m x k) the
iteration keeps

    A V = U B,        A' U = V B' + X S E',        E' = the last rows of the identity,

so the singular values of the small B approximate those of A from below and B = P diag(theta) Q' gives the triplets
(U P, theta, V Q) whose only error is r_i = || S (last rows of P)_i ||, the exact length of A' u_i - theta_i v_i. When
the basis is full, the best triplets are kept and the iteration goes on from X: nothing is lost but the memory.

When to stop. Cutting A at rank d errs, to first order, by r_i max(1, theta_{d+1} / (theta_i - theta_{d+1})) per
triplet: a residual hurts more where the gap behind d is narrow. The largest of these must fall below tol * theta_1.
Where sigma_d = sigma_{d+1} the best rank-d matrix is not unique and no iteration can settle the choice; then it
stops once every r_i is below tol * NARROW * theta_1, or after MAX_BLOCKS products, with orthonormal factors and exact
A V = U B.

Assumption: the start is not orthogonal to a wanted triplet. It is random from a fixed seed, or a guess shaken a little,
so that what the guess has missed shows up as a residual. Directions that collapse, as they do when A has low rank,
are replaced by random ones, so that zero matrices and ranks beyond the true one are ordinary cases.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from dpsr.linalg.compiled import one_blas_thread

Floats = npt.NDArray[np.float64]

MAX_BLOCKS = 400
"""Products with A (and as many with A') after which the iteration stops as it stands."""

NARROW = 1e-4
"""The relative gap behind the last triplet below which it is taken for a tie."""

_SHAKE = 1e-4
"""The length of the random part added to each column of a guess."""

_BLOCKS_HELD = 6
"""The basis before a restart, in blocks: more saves products, fewer saves orthogonalisation."""

_BLOCKS_KEPT = 3
"""The basis after a restart."""

_SEED = 20_011


class Operator(Protocol):
    """A matrix given by its products."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def times(self, X: Floats) -> Floats:
        """A X."""

    def transposed_times(self, Y: Floats) -> Floats:
        """A' Y."""


def truncated_svd(
    operator: Operator, rank: int, *, start: Floats | None = None, tol: float = 1e-9
) -> tuple[Floats, Floats, Floats]:
    """The `rank` largest singular triplets (U, s, V') of `operator`; min(m, n) of them if that is fewer.

    `start` is a guess of the right factors (n x any width), such as those of a nearby matrix.
    """
    with one_blas_thread():
        return _leading(operator, min(rank, *operator.shape), start, tol)


def _leading(operator: Operator, d: int, start: Floats | None, tol: float) -> tuple[Floats, Floats, Floats]:
    """The body of `truncated_svd` for 1 <= d <= min(m, n)."""
    m, n = operator.shape
    width = 4 * -(-d // 4)  # whole vector registers
    if min(m, n) <= (_BLOCKS_HELD + 1) * width:  # a basis would span the space: the thin matrix itself is no larger
        return _direct(operator, d)
    rng = np.random.default_rng(_SEED)
    basis = _Basis(operator, first_block(n, width, start, rng), _BLOCKS_HELD * width, rng)
    while True:
        basis.fill()
        P, theta, Qt, residuals = basis.triplets()
        if basis.products >= MAX_BLOCKS or settled(theta, residuals, d, tol):
            break
        basis.restart(P, theta, Qt, keep=_BLOCKS_KEPT * width)
    return basis.left @ P[:, :d], theta[:d], Qt[:d] @ basis.right.T


def _direct(operator: Operator, d: int) -> tuple[Floats, Floats, Floats]:
    """All of a matrix with one short side, by products with the identity of that side."""
    m, n = operator.shape
    A = operator.times(np.eye(n)) if n <= m else operator.transposed_times(np.eye(m)).T
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return U[:, :d], s[:d], Vt[:d]


def first_block(n: int, width: int, start: Floats | None, rng: np.random.Generator) -> Floats:
    """Random orthonormal columns, the first of them near a guess if there is one."""
    X = rng.standard_normal((n, width)) / np.sqrt(n)
    if start is not None:
        guess = start[:, :width]
        X[:, : guess.shape[1]] = guess + _SHAKE * X[:, : guess.shape[1]]
    return _qr(X)[0]


def settled(theta: Floats, residuals: Floats, d: int, tol: float) -> bool:
    """Whether the rank-d cut is as accurate as asked; see the head of this module."""
    if len(theta) <= d:
        return False
    behind = theta[d]
    gap = np.maximum(theta[:d] - behind, NARROW * theta[:d])
    error = residuals[:d] * np.maximum(1.0, behind / np.maximum(gap, np.finfo(float).tiny))
    return bool(error.max() <= tol * theta[0])


class _Basis:
    """U, V and B of the recurrence, and the block X to go on from."""

    def __init__(self, operator: Operator, X: Floats, capacity: int, rng: np.random.Generator) -> None:
        m, n = operator.shape
        self._operator, self._rng = operator, rng
        self._U = np.empty((m, capacity), order="F")
        self._V = np.empty((n, capacity), order="F")
        self._B = np.zeros((capacity, capacity))
        self._X = X
        self._S = np.zeros((X.shape[1], X.shape[1]))
        self._k = 0
        self.products = 0

    @property
    def left(self) -> Floats:
        return self._U[:, : self._k]

    @property
    def right(self) -> Floats:
        return self._V[:, : self._k]

    def fill(self) -> None:
        """Grow to capacity. The small SVD that tells how good the basis is costs as much as a block, so not before."""
        while self._k + self._X.shape[1] <= self._U.shape[1]:
            self._grow()

    def _grow(self) -> None:
        """One block further: X joins V, its image joins U, and the rest of A' U becomes the next X."""
        k, b = self._k, self._X.shape[1]
        self._V[:, k : k + b] = self._X
        Y, H, R = orthonormal(self._operator.times(self._X), self.left, self._rng)
        self._U[:, k : k + b] = Y
        self._B[:k, k : k + b], self._B[k : k + b, k : k + b] = H, R
        self._k = k + b
        self.products += 1
        self._X, _, self._S = orthonormal(self._operator.transposed_times(Y), self.right, self._rng)

    def triplets(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The SVD of B and the residual of each triplet."""
        P, theta, Qt = np.linalg.svd(self._B[: self._k, : self._k])
        residuals = np.linalg.norm(self._S @ P[self._k - len(self._S) :], axis=0)
        return P, theta, Qt, residuals

    def restart(self, P: Floats, theta: Floats, Qt: Floats, *, keep: int) -> None:
        """Keep the best triplets as the whole basis."""
        U, V = self.left @ P[:, :keep], self.right @ Qt[:keep].T
        self._U[:, :keep], self._V[:, :keep] = U, V
        self._B[:] = 0.0
        self._B[:keep, :keep] = np.diag(theta[:keep])
        self._k = keep


def orthonormal(Y: Floats, basis: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Y = basis H + Q R with Q orthonormal and orthogonal to the basis.

    A column of Y inside the span of what came before leaves only rounding behind. It gets a random direction in Q and
    a zero in R: the identity still holds, and Q stays what it must be.
    """
    size = np.linalg.norm(Y, axis=0).max(initial=0.0)
    H = basis.T @ Y
    Y = Y - basis @ H
    again = basis.T @ Y
    Y -= basis @ again
    Q, R = _qr(Y)
    lost = np.abs(np.diag(R)) <= 1e-13 * size
    if lost.any():
        Q, R = _replace_lost(Q, R, lost, basis, rng)
    return Q, H + again, R


def _qr(Y: Floats) -> tuple[Floats, Floats]:
    """Q and R of a tall block, straight from LAPACK: numpy's wrapper copies more than it computes."""
    packed, tau, _, _ = lapack.dgeqrf(Y)
    R = np.triu(packed[: Y.shape[1]])
    Q, _, _ = lapack.dorgqr(packed, tau, overwrite_a=1)
    return Q, R


def _replace_lost(
    Q: Floats, R: Floats, lost: npt.NDArray[np.bool_], basis: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Random directions, orthogonal to the basis and to the columns that are kept, in place of the lost ones."""
    kept = Q[:, ~lost]
    fresh = rng.standard_normal((len(Q), int(lost.sum())))
    for _ in range(2):
        fresh -= basis @ (basis.T @ fresh)
        fresh -= kept @ (kept.T @ fresh)
        fresh = _qr(fresh)[0]
    Q, R = Q.copy(), R.copy()
    Q[:, lost] = fresh
    R[lost] = 0.0
    return Q, R
