"""Alternating projections as passes over blocks of users: `projections` for tables wherever they are kept.

A = P Q' + S falls apart into the rows of each block, A_b = P_b Q' + S_b, and A'A is the sum of A_b' A_b. So a product
with A'A is one pass that adds up item-side sums, A V one that makes user rows, and

    step = share (r - P Q')     on the observed cells

one that writes a column. Beside a block, what is held grows with users and items alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.complete.projections import check_settings, completed, factors_at_ratings, tolerance
from dpsr.engine import Block, Made, Table
from dpsr.engine.table import zeros
from dpsr.linalg import LowRankPlusSparse
from dpsr.linalg.compiled import one_blas_thread
from dpsr.linalg.gram import leading_right
from dpsr.linalg.products import row_and_column_sums
from dpsr.types import Model, Scale

Floats = npt.NDArray[np.float64]

STEP = "step"
"""The column by which the observed cells differ from the low rank."""


@dataclass(frozen=True)
class Completion:
    """The columns a completion ends with: predictions inside the scale, and cells that were moved off the factors.

    `observed` is written only where iterations follow the last cut.
    """

    released: str
    observed: str


def project_table(
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
    """`alternate_projections` of the column `ratings`; the model knows the census and no mask."""
    check_settings(rank, lam, n_iter, period)
    census = table.census
    sums = _sums(table, ratings)
    overall = float(sums[1].sum()) / census.n_ratings if census.n_ratings else scale.midpoint
    P, Q = np.full((census.n_users, 1), overall), np.ones((census.n_items, 1))
    P, Q = _cut(table, ratings, P, Q, rank, share=1.0, start=None)
    for _ in range(n_iter // period if lam < 1 else 0):
        P, Q = _cut(table, ratings, P, Q, rank, share=1 - lam**period, start=Q)
    table.drop(STEP)
    kept = lam ** (n_iter % period) if n_iter % period else None
    return completed(census, scale, (P, Q), overall, sums, _finish(table, ratings, P, Q, kept, scale, ends_with))


def _sums(table: Table, ratings: str) -> tuple[Floats, Floats]:
    """Sums of r by user and by item."""

    def add(block: Block, items: Floats) -> Made:
        rows, columns = row_and_column_sums(block.indptr, block.items, block.columns[ratings], block.n_items)
        items += columns
        return Made(rows=(rows,))

    answer = table.run(add, [zeros(table.census.n_items)], reads=[ratings])
    return answer.rows[0], answer.sums[0]


def _cut(
    table: Table, ratings: str, P: Floats, Q: Floats, rank: int, *, share: float, start: Floats | None
) -> tuple[Floats, Floats]:
    """Pi_d of P Q' + step as two thin factors."""

    def step(block: Block) -> Made:
        short = block.columns[ratings] - factors_at_ratings(block, P[block.users], Q)
        return Made({STEP: share * short})

    def part(block: Block) -> LowRankPlusSparse:
        return LowRankPlusSparse(P[block.users], Q, block.indptr, block.items, block.columns[STEP])

    def gram(X: Floats) -> Floats:
        def add(block: Block, out: Floats) -> None:
            with one_blas_thread():
                out += part(block).gram(X)

        return table.run(add, [zeros(*X.shape)], reads=[STEP]).sums[0]

    table.run(step, reads=[ratings], writes=[STEP])
    census = table.census
    _, V = leading_right(gram, census.n_items, min(rank, census.n_users), start=start, tol=tolerance(census.n_ratings))

    def times(block: Block) -> Made:
        with one_blas_thread():
            return Made(rows=(part(block).times(V),))

    return table.run(times, reads=[STEP]).rows[0], np.ascontiguousarray(V)


def _finish(
    table: Table, ratings: str, P: Floats, Q: Floats, kept: float | None, scale: Scale, ends_with: Completion
) -> float:
    """Write what is released; the squares by which the factors fall short of r.

    `kept` is the share of that which the iterations after the last cut leave, None if there are none.
    """

    def write(block: Block, squares: Floats) -> Made:
        cells, r = factors_at_ratings(block, P[block.users], Q), block.columns[ratings]
        short = r - cells
        squares += float(np.square(short).sum())
        if kept is None:
            return Made({ends_with.released: scale.clip(cells)})
        cells = r - kept * short
        return Made({ends_with.released: scale.clip(cells), ends_with.observed: cells})

    names = [ends_with.released] if kept is None else [ends_with.released, ends_with.observed]
    return float(table.run(write, [zeros(1)], reads=[ratings], writes=names).sums[0][0])
