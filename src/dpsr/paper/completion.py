"""Low-rank completion by alternating projections (Algorithm 1, lines 24 to 37), without a dense matrix.

    R(0)    = Pi_d( r on the observed cells Omega, their mean elsewhere )
    R(t+1)  = lam R(t) + (1 - lam) r   on Omega,   R(t) elsewhere;       then Pi_d after every T-th step

Pi_d cuts the SVD at rank d. Between two cuts R starts from a rank-d matrix L and only the cells of Omega move, towards
the fixed r; T steps therefore have the closed form

    R = L + (1 - lam^T) P_Omega(r - L)  =  low rank + sparse.

The initial filling is of that kind too: mean 1 1' + P_Omega(r - mean). So N iterations are 1 + N // T truncated SVDs of
low rank plus sparse, and the result is exactly L, but for the N mod T steps after the last cut, which move Omega alone.

A = P Q' + S falls apart into the rows of each block of users, A_b = P_b Q' + S_b, and A'A is the sum of A_b' A_b. So a
product with A'A is one pass that adds up item-side sums, A V one that makes user rows, and the sparse part
share (r - P Q') one that writes a column. ColumnStack a block, what is held grows with users and items alone.

Where sigma_d = sigma_{d+1} the cut is not unique, and near it a small change of r can move L by much: that is a
property of the paper's method, not of this code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import add_by_item, at_ratings, by_user
from dpsr.engine.table import zeros
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import one_blas_thread
from dpsr.linalg.lanczos import leading_right
from dpsr.types import Model, Scale

EXACT, ENOUGH = 1e-9, 1e-7
"""How far a cut may be from the exact one, as a share of its largest singular value: where it costs nothing, and on
large tables, whose predictions it moves by less than 1e-5 of the scale's width."""

_LARGE = 200_000
"""Ratings from which a product with the table takes time."""

_STEP = "step"
"""The column by which the observed cells differ from the low rank."""


@dataclass(frozen=True)
class Completion:
    """The columns a completion ends with: predictions inside the scale, and cells that were moved off the factors.

    `observed` is written only where iterations follow the last cut.
    """

    released: str
    observed: str


def complete_by_projections(
    table: Table,
    ratings: str,
    scale: Scale,
    ends_with: Completion,
    *,
    rank: int,
    lam: float,
    n_iter: int,
    period: int,
) -> Model:
    """Complete the matrix at the given rank: relax the observed cells `n_iter` times, cut after every `period`-th.

    The model's user factors are U diag(s) and its item factors V, orthonormal. They have min(rank, m, n) columns.
    """
    _check_settings(rank, lam, n_iter, period)
    census = table.census
    sums = _sums(table, ratings)
    overall = float(sums[1].sum()) / census.n_ratings if census.n_ratings else scale.midpoint
    P, Q = np.full((census.n_users, 1), overall), np.ones((census.n_items, 1))
    with one_blas_thread():
        P, Q = _cut(table, ratings, P, Q, rank, share=1.0, start=None)
        for _ in range(n_iter // period if lam < 1 else 0):
            P, Q = _cut(table, ratings, P, Q, rank, share=1 - lam**period, start=Q)
    table.drop(_STEP)
    kept = lam ** (n_iter % period) if n_iter % period else None
    squares = _finish(table, ratings, P, Q, kept, scale, ends_with)
    counts = census.user_counts, census.item_counts
    user_means, item_means = (np.where(n > 0, s / np.maximum(n, 1), overall) for s, n in zip(sums, counts, strict=True))
    return Model(
        mask=table.cells,
        scale=scale,
        user_factors=P,
        item_factors=Q,
        user_means=user_means,
        item_means=item_means,
        overall=overall,
        residual_variance=squares / max(census.n_ratings, 1),
        user_mean=P.mean(axis=0),
        user_covariance=np.atleast_2d(np.cov(P, rowvar=False, bias=True)),
    )


def _check_settings(rank: int, lam: float, n_iter: int, period: int) -> None:
    """Refuse what is no setting of the iteration."""
    if rank < 1:
        raise ParameterError(f"the rank is at least 1, found {rank}. The paper uses 8.")
    if not 0 <= lam <= 1:
        raise ParameterError(f"lam is the share of a cell that stays, from 0 to 1, found {lam}. The paper uses 0.7.")
    if n_iter < 0:
        raise ParameterError(f"the number of iterations is not negative, found {n_iter}. The paper uses 50.")
    if period < 1:
        raise ParameterError(f"the period of the projections is at least 1, found {period}. The paper uses 10.")


def _sums(table: Table, ratings: str) -> tuple[Floats, Floats]:
    """Sums of r by user and by item."""

    def add(block: Block, items: Floats) -> BlockResult:
        values = block.columns[ratings]
        items += np.bincount(block.items, values, minlength=len(items))
        return BlockResult(rows=(np.bincount(block.rows, values, minlength=block.n_users),))

    answer = table.run(add, [zeros(table.census.n_items)], reads=[ratings])
    return answer.rows[0], answer.sums[0]


def _cut(
    table: Table, ratings: str, P: Floats, Q: Floats, rank: int, *, share: float, start: Floats | None
) -> tuple[Floats, Floats]:
    """Pi_d of P Q' + share (r - P Q') on the observed cells, as two thin factors A V and V; V is near `start`."""

    def step(block: Block) -> BlockResult:
        return BlockResult({_STEP: share * (block.columns[ratings] - at_ratings(block, P[block.users], Q))})

    def times(block: Block, X: Floats) -> Floats:
        return P[block.users] @ (Q.T @ X) + by_user(block, X, block.columns[_STEP])

    def gram(X: Floats) -> Floats:
        def add(block: Block, out: Floats) -> None:
            Y = times(block, X)
            add_by_item(block, Y, out, block.columns[_STEP])
            out += Q @ (P[block.users].T @ Y)

        return table.run(add, [zeros(*X.shape)], reads=[_STEP]).sums[0]

    census = table.census
    table.run(step, reads=[ratings], writes=[_STEP])
    tolerance = EXACT if census.n_ratings < _LARGE else ENOUGH
    _, V = leading_right(gram, census.n_items, min(rank, census.n_users), start=start, tol=tolerance)
    rows = table.run(lambda block: BlockResult(rows=(times(block, V),)), reads=[_STEP]).rows[0]
    return rows, np.ascontiguousarray(V)


def _finish(
    table: Table, ratings: str, P: Floats, Q: Floats, kept: float | None, scale: Scale, ends_with: Completion
) -> float:
    """Write what is released; the squares by which the factors fall short of r.

    `kept` is the share of that which the iterations after the last cut leave, None if there are none.
    """

    def write(block: Block, squares: Floats) -> BlockResult:
        cells, r = at_ratings(block, P[block.users], Q), block.columns[ratings]
        short = r - cells
        squares += float(np.square(short).sum())
        if kept is None:
            return BlockResult({ends_with.released: scale.clip(cells)})
        cells = r - kept * short
        return BlockResult({ends_with.released: scale.clip(cells), ends_with.observed: cells})

    names = [ends_with.released] if kept is None else [ends_with.released, ends_with.observed]
    return float(table.run(write, [zeros(1)], reads=[ratings], writes=names).sums[0][0])
