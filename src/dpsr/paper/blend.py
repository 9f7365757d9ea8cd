"""Blend each noisy rating with the same user's ratings of similar items (Algorithm 1, lines 13 to 22).

    cf_ij  = sum_{k in N_j, i rated k} |s_jk| r_ik / sum_{k in N_j, i rated k} |s_jk|
    out_ij = clip( beta r_ij + (1 - beta) cf_ij )        if user i rated a neighbour of j,  r_ij unchanged otherwise

All r are Stage-1 values: blended ratings never feed other blends, so the order of the work does not matter. Blends
never leave a user, so a block is blended by itself. A negative similarity counts by its size, as printed; the sign is
lost there, and that is the paper's choice.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from dpsr.arrays import Codes, Floats, Ints
from dpsr.engine import Block, BlockResult, Table
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import parallel_kernel, threads_for
from dpsr.paper.neighbours import Neighbours
from dpsr.types import Scale


def blend_with_neighbours(
    table: Table, ratings: str, neighbours: Neighbours, scale: Scale, *, beta: float, blended: str
) -> None:
    """Keep `beta` of each rating in the column `ratings`, take the rest from similar items: the column `blended`."""
    if not 0 <= beta <= 1:
        raise ParameterError(
            f"beta is the share of a rating that is kept, between 0 and 1, found {beta}. The paper uses 0.65."
        )
    similar = neighbours.items, neighbours.similarities

    def blend(block: Block) -> BlockResult:
        values = block.columns[ratings]
        with threads_for(len(values) * neighbours.items.shape[1]) as threads:
            user = block.indptr, block.items, values
            return BlockResult({blended: _blended(*user, *similar, float(beta), scale.low, scale.high, threads)})

    table.run(blend, reads=[ratings], writes=[blended])


@parallel_kernel
def _blended(
    indptr: Ints,
    items: Codes,
    values: Floats,
    neighbours: Codes,
    similarities: Floats,
    beta: float,
    low: float,
    high: float,
    threads: int,
) -> Floats:
    """Users are dealt out to the threads; `place[k]` is where the current user rated item k, -1 if not."""
    blended = values.copy()
    n, width = neighbours.shape
    for t in prange(threads):
        place = np.full(n, -1, np.int64)
        for i in range(t, len(indptr) - 1, threads):
            for e in range(indptr[i], indptr[i + 1]):
                place[items[e]] = e
            for e in range(indptr[i], indptr[i + 1]):
                j = items[e]
                total = weights = 0.0
                for c in range(width):
                    k = neighbours[j, c]
                    if k < 0:
                        break
                    if place[k] >= 0:
                        weight = abs(similarities[j, c])
                        total += weight * values[place[k]]
                        weights += weight
                if weights > 0.0:
                    blend = beta * values[e] + (1.0 - beta) * (total / weights)
                    blended[e] = min(max(blend, low), high)
            for e in range(indptr[i], indptr[i + 1]):
                place[items[e]] = -1
    return blended
