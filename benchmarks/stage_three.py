"""Stage 3 against the same six cuts by scipy's `svds` (ARPACK, its default tolerance) on the same operator.

Both sides get the blended ratings. The libraries' products run on one thread, as scipy's do; BLAS has as many threads
as our kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds
from threadpoolctl import threadpool_limits

from benchmarks import tables
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr.engine import MemoryTable
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.completion import Completion, complete_by_projections
from dpsr.paper.neighbours import item_neighbours
from dpsr.types import Model, PrivateRatings

Floats = npt.NDArray[np.float64]

D, LAM, N_ITER, T = 8, 0.7, 50, 10
CELLS = 1_000_000


@section("stage3", "Stage 3 against six calls of scipy's svds")
def stage_three(quick: bool) -> Iterator[Ratio]:
    """One ratio a size, with how far the predictions are apart."""
    for size in tables.sizes(quick):
        noisy = tables.private(size)
        smoothed = blended(noisy)
        results: dict[str, Model | tuple[Floats, Floats]] = {}
        sides = {
            "dpsr": lambda s=smoothed, r=results: r.update(dpsr=ours(s)),
            "svds": lambda s=smoothed, r=results: r.update(svds=by_svds(s)),
        }
        seconds = in_turns(sides, rounds=3 if size == "1M" else 1)
        apart = largest_difference(results["dpsr"], results["svds"])  # type: ignore[arg-type]
        detail = f"dpsr {seconds['dpsr']}, svds {seconds['svds']}, predictions apart by {apart:.1e} of the width"
        yield Ratio(f"stage 3 {size}", seconds["svds"].wall / seconds["dpsr"].wall, detail, target=3)


def blended(noisy: PrivateRatings) -> PrivateRatings:
    """What Stage 2 hands to Stage 3."""
    table = MemoryTable(noisy.mask, {"noisy": noisy.values})
    similar = item_neighbours(table, "noisy", noisy.scale, k=15)
    blend_with_neighbours(table, "noisy", similar, noisy.scale, beta=0.65, blended="smoothed")
    return noisy.with_values(table["smoothed"])


def ours(smoothed: PrivateRatings) -> Model:
    """The paper's settings."""
    table, ends = MemoryTable(smoothed.mask, {"rating": smoothed.values}), Completion("released", "observed")
    return complete_by_projections(table, "rating", smoothed.scale, ends, rank=D, lam=LAM, n_iter=N_ITER, period=T)


def by_svds(smoothed: PrivateRatings) -> tuple[Floats, Floats]:
    """The same alternation with ARPACK."""
    mask, r = smoothed.mask, smoothed.values
    mean = float(r.mean())
    P, Q, step = np.full((mask.n_users, 1), mean), np.ones((mask.n_items, 1)), r - mean
    with threadpool_limits(numba.get_num_threads(), "blas"):
        for _ in range(1 + N_ITER // T):
            U, s, Vt = svds(operator(P, Q, mask.indptr, mask.items, step), k=D)
            P, Q = U * s, Vt.T
            step = (1 - LAM**T) * (r - np.einsum("rd,rd->r", P[mask.users], Q[mask.items]))
    return P, Q


def operator(P: Floats, Q: Floats, indptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32], step: Floats) -> object:
    """Low rank plus sparse; both orders of the sparse part are made, as a careful user would."""
    S = sp.csr_matrix((step, items, indptr), shape=(len(P), len(Q)))
    St = S.T.tocsr()
    return LinearOperator(
        S.shape,
        matvec=lambda x: P @ (Q.T @ x) + S @ x,
        rmatvec=lambda y: Q @ (P.T @ y) + St @ y,
        dtype=np.float64,
    )


def largest_difference(model: Model, theirs: tuple[Floats, Floats]) -> float:
    """Over random cells, clipped to the scale, as a share of its width."""
    rng, (P, Q) = np.random.default_rng(0), theirs
    u, j = rng.integers(0, len(P), CELLS), rng.integers(0, len(Q), CELLS)
    other = model.scale.clip(np.einsum("rd,rd->r", P[u], Q[j]))
    return float(np.abs(model.predict(u, j) - other).max() / model.scale.width)
