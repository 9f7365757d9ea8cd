"""Top-15 item neighbours against implicit, sparse-dot-topn and similaripy.

The libraries get the centred, normalised matrix ready-made, in single and double precision where they take both, and
rank by s; ours starts from ratings and ranks by |s|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import scipy.sparse as sp
import similaripy
from implicit.nearest_neighbours import all_pairs_knn
from sparse_dot_topn import sp_matmul_topn

from benchmarks import tables
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr.engine import MemoryTable
from dpsr.paper.neighbours import item_neighbours
from dpsr.types import PrivateRatings

K, OURS = 15, "dpsr"


@section("neighbours", f"Top-{K} item neighbours against implicit, sparse-dot-topn and similaripy")
def neighbours(quick: bool) -> Iterator[Ratio]:
    """One ratio a size, against the fastest peer."""
    for size in tables.sizes(quick):
        private = tables.private(size)
        sides = {OURS: lambda private=private: ours(private)} | peers(centred_items(private))
        seconds = in_turns(sides, rounds=5 if size == "1M" else 2)
        fastest = min(one.wall for name, one in seconds.items() if name != OURS)
        detail = ", ".join(f"{name} {one}" for name, one in seconds.items())
        yield Ratio(f"neighbours {size}", fastest / seconds[OURS].wall, detail, target=1.0)


def ours(private: PrivateRatings) -> object:
    """From ratings in memory, the counting sort by item included."""
    return item_neighbours(MemoryTable(private.mask, {"rating": private.values}), "rating", private.scale, k=K)


def peers(X: sp.csr_matrix) -> dict[str, Callable[[], object]]:
    """The libraries on items x users."""
    threads, Xt, single = numba.get_num_threads(), X.T.tocsr(), X.astype(np.float32)
    single_t = Xt.astype(np.float32)
    return {
        "implicit": lambda: all_pairs_knn(X, K + 1, num_threads=threads, show_progress=False),
        "sparse-dot-topn": lambda: sp_matmul_topn(X, Xt, top_n=K + 1, n_threads=threads),
        "sparse-dot-topn, floats": lambda: sp_matmul_topn(single, single_t, top_n=K + 1, n_threads=threads),
        "similaripy, floats": lambda: similaripy.dot_product(
            single, single_t, k=K + 1, num_threads=threads, verbose=False
        ),
    }


def centred_items(ratings: PrivateRatings) -> sp.csr_matrix:
    """Items x users: the normalised columns whose products are the similarities."""
    mask = ratings.mask
    X = sp.csc_matrix((ratings.values.copy(), mask.items, mask.indptr), shape=mask.shape[::-1]).tocsr()
    counts = np.diff(X.indptr)
    X.data -= np.repeat(np.asarray(X.sum(1)).ravel() / np.maximum(counts, 1), counts)
    norm = np.sqrt(np.asarray(X.multiply(X).sum(1)).ravel())
    X.data /= np.repeat(np.where(norm > 0, norm, 1), counts)
    return X
