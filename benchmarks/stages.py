"""Stages 2 and 3 against the dense algorithm of the paper, and neighbours against implicit and sparse-dot-topn.

    .venv/bin/python benchmarks/stages.py [--quick] [--json FILE]

One process, every side warmed up, the same threads; the best of a few runs. At the paper's size the dense side is the
word-for-word transcription the tests use as oracle. At 6,040 x 3,706 its Python loops would measure the interpreter, so
the same dense algorithm runs vectorised: one matrix product for the similarities, masked array arithmetic for the
relaxations, a loop over items for the blend, LAPACK for the six SVDs (`--quick` times one SVD and counts it six times).
Data are synthetic.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from dpsr.complete import alternate_projections
from dpsr.denoise import blend_with_neighbours, item_neighbours
from dpsr.types import Certificate, Mask, Model, PrivateRatings, Scale

Floats = npt.NDArray[np.float64]

K, BETA, D, LAM, N_ITER, T = 15, 0.65, 8, 0.7, 50, 10
ML_1M, ML_10M = (6_040, 3_706, 1_000_000), (69_878, 10_677, 10_000_000)
RECEIPT = Certificate(nominal=1.0, parts=(), public={}, randomness="declared", private=False, reasons=("synthetic",))


def skewed_ratings(m: int, n: int, n_ratings: int, seed: int = 0) -> PrivateRatings:
    """Noisy ratings of rank 8 plus item means on a mask with log-normal activity and popularity."""
    rng = np.random.default_rng(seed)
    activity, popularity = rng.lognormal(0, 1.05, m), rng.lognormal(0, 1.5, n)
    cells = np.empty(0, np.int64)
    while len(cells) < n_ratings:
        u = rng.choice(m, n_ratings, p=activity / activity.sum())
        j = rng.choice(n, n_ratings, p=popularity / popularity.sum())
        cells = np.union1d(cells, u * n + j)
    cells = np.sort(rng.choice(cells, n_ratings, replace=False))
    u, j = cells // n, cells % n
    taste = np.einsum("rd,rd->r", rng.normal(size=(m, D))[u], rng.normal(size=(n, D))[j])
    values = np.clip(3.5 + 0.35 * taste + 0.5 * rng.normal(size=n)[j] + rng.laplace(0, 2, n_ratings), 1, 5)
    indptr = np.searchsorted(cells, np.arange(m + 1) * n).astype(np.int64)
    mask = Mask(pa.array(range(m)), pa.array(range(n)), indptr, j.astype(np.int32))
    return PrivateRatings(mask, np.rint(values), Scale(1, 5), RECEIPT)


def ours(ratings: PrivateRatings) -> Model:
    """Stages 2 and 3 at the paper's settings."""
    smoothed = blend_with_neighbours(ratings, item_neighbours(ratings, k=K), beta=BETA)
    return alternate_projections(smoothed, rank=D, lam=LAM, n_iter=N_ITER, period=T)


def best_of(action: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of a few runs."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return min(times)


def as_dense(ratings: PrivateRatings) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Noisy values and mask, written out."""
    noisy, mask = np.zeros(ratings.mask.shape), np.zeros(ratings.mask.shape, bool)
    u, j = ratings.mask.users, ratings.mask.items
    noisy[u, j], mask[u, j] = ratings.values, True
    return noisy, mask


def every_cell(model: Model) -> Floats:
    """The completed matrix, written out."""
    return model.scale.clip(model.user_factors @ model.item_factors.T)


def dense_similarities(noisy: Floats, mask: npt.NDArray[np.bool_]) -> Floats:
    """Line 12 as one matrix product."""
    mean = np.where(mask, noisy, 0).sum(0) / np.maximum(mask.sum(0), 1)
    X = np.where(mask, noisy - mean, 0)
    norm = np.linalg.norm(X, axis=0)
    X /= np.where(norm > 0, norm, 1)
    S = X.T @ X
    np.fill_diagonal(S, 0)
    return S


def dense_blend(noisy: Floats, mask: npt.NDArray[np.bool_]) -> Floats:
    """Lines 12 to 22, item by item."""
    S = np.abs(dense_similarities(noisy, mask))
    second = noisy.copy()
    for j in range(noisy.shape[1]):
        quanta = np.rint(S[j] * 2.0**31)
        near = np.argsort(-quanta, kind="stable")[:K]
        near = near[quanta[near] > 0]
        users = np.flatnonzero(mask[:, j])
        weights = mask[np.ix_(users, near)] * S[j, near]
        total = weights.sum(1)
        some = total > 0
        cf = (weights * noisy[np.ix_(users, near)]).sum(1)[some] / total[some]
        second[users[some], j] = np.clip(BETA * noisy[users[some], j] + (1 - BETA) * cf, 1, 5)
    return second


def dense_vectorised(noisy: Floats, mask: npt.NDArray[np.bool_], *, quick: bool) -> tuple[float, Floats | None]:
    """Seconds of the whole dense algorithm, and its result unless five of the six SVDs were only counted."""
    start = perf_counter()
    second = dense_blend(noisy, mask)
    R = np.where(mask, second, second[mask].mean())
    for t in range(N_ITER + 1):
        if t:
            R[mask] = LAM * R[mask] + (1 - LAM) * second[mask]
        if t % T == 0 and not (quick and t):
            began = perf_counter()
            U, s, Vt = np.linalg.svd(R, full_matrices=False)
            R = (U[:, :D] * s[:D]) @ Vt[:D]
            one = perf_counter() - began
    seconds = perf_counter() - start
    return (seconds + N_ITER // T * one, None) if quick else (seconds, np.clip(R, 1, 5))


def peak_megabytes() -> float:
    """Peak resident memory of our run alone, in a fresh process; the ratings are made there too."""
    code = (
        "import resource; from benchmarks.stages import *; ours(skewed_ratings(*ML_1M));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    return float(done.stdout)


def at_the_papers_size() -> dict[str, Any]:
    """300 x 200, 10 %: against the word-for-word transcription."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "stages"))
    from dense_oracle import Oracle

    rng = np.random.default_rng(0)
    R = rng.normal(size=(300, 8)) @ rng.normal(size=(200, 8)).T
    noisy = np.clip(1 + 4 * (R - R.min()) / (R.max() - R.min()) + rng.laplace(0, 4, R.shape), 1, 5)
    mask = rng.random(R.shape) < 0.1
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int64)
    places = Mask(pa.array(range(300)), pa.array(range(200)), indptr, np.nonzero(mask)[1].astype(np.int32))
    ratings = PrivateRatings(places, noisy[mask], Scale(1, 5), RECEIPT)
    apart = float(np.abs(every_cell(ours(ratings)) - Oracle(noisy, mask).run()).max())
    dense, fast = best_of(lambda: Oracle(noisy, mask).run(), 3), best_of(lambda: ours(ratings), 20)
    return {"dense_s": dense, "dpsr_s": fast, "ratio": dense / fast, "largest_difference": apart}


def at_one_million(*, quick: bool) -> dict[str, Any]:
    """6,040 x 3,706 with a million ratings: against the dense algorithm, vectorised."""
    peak = peak_megabytes()  # before this process grows: a child starts from its parent's high-water mark
    ratings = skewed_ratings(*ML_1M)
    model = ours(ratings)
    fast = best_of(lambda: ours(ratings), 3)
    dense, result = dense_vectorised(*as_dense(ratings), quick=quick)
    apart = None if result is None else float(np.abs(every_cell(model) - result).max())
    form = "vectorised, one SVD counted six times" if quick else "vectorised, whole"
    return {
        "dense_s": dense,
        "dense_form": form,
        "dpsr_s": fast,
        "ratio": dense / fast,
        "largest_difference": apart,
        "peak_mb": peak,
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


def neighbours(shape: tuple[int, int, int], repeats: int) -> dict[str, Any]:
    """Top-15 neighbours. The peers get the centred matrix ready-made and rank by s; ours starts from ratings."""
    ratings = skewed_ratings(*shape)
    X, threads = centred_items(ratings), numba.get_num_threads()
    seconds = {"dpsr": best_of(lambda: item_neighbours(ratings, k=K), repeats + 1)}
    try:
        from implicit.nearest_neighbours import all_pairs_knn

        seconds["implicit"] = best_of(
            lambda: all_pairs_knn(X, K + 1, num_threads=threads, show_progress=False), repeats
        )
    except ImportError:
        print("implicit is not installed: left out")
    try:
        from sparse_dot_topn import sp_matmul_topn

        Xt = X.T.tocsr()
        seconds["sparse-dot-topn"] = best_of(lambda: sp_matmul_topn(X, Xt, top_n=K + 1, n_threads=threads), repeats)
    except ImportError:
        print("sparse-dot-topn is not installed: left out")
    fastest = min((s for name, s in seconds.items() if name != "dpsr"), default=float("nan"))
    return {"seconds": seconds, "ratio": fastest / seconds["dpsr"], "threads": threads}


def first_call() -> dict[str, float]:
    """Seconds of a first run on a tiny table in a fresh process: nothing compiled, then with the kernels cached."""
    import tempfile

    code = (
        "from time import perf_counter as now; a = now(); from benchmarks.stages import *; b = now();"
        "ours(skewed_ratings(60, 80, 900)); print(b - a, now() - b)"
    )
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            subprocess.run(
                [sys.executable, "-c", code],
                cwd=root,
                env=os.environ | {"NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            for _ in range(2)
        ]
    return {"import_s": float(runs[1][0]), "cold_s": float(runs[0][1]), "cached_s": float(runs[1][1])}


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and write it down when asked."""
    parser = argparse.ArgumentParser(description="Stages 2 and 3 against the dense algorithm and against peers.")
    parser.add_argument("--quick", action="store_true", help="time one dense SVD and count it six times; skip 10 M")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments if arguments is not None else [])
    results: dict[str, Any] = {}
    print(
        f"\nStages 2 and 3, {numba.get_num_threads()} threads, synthetic ratings, K={K}, d={D}, N_iter={N_ITER}, T={T}"
    )
    small = results["paper_size"] = at_the_papers_size()
    print(f"300 x 200, 10 %, word for word: {small['dense_s']:.3f} s   dpsr: {small['dpsr_s'] * 1e3:.1f} ms", end="   ")
    print(f"{small['ratio']:.0f} times faster (target 20), apart by {small['largest_difference']:.1e}")
    large = results["one_million"] = at_one_million(quick=options.quick)
    print(
        f"6,040 x 3,706, 1 M, {large['dense_form']}: {large['dense_s']:.1f} s   dpsr: {large['dpsr_s']:.2f} s",
        end="   ",
    )
    print(f"{large['ratio']:.0f} times faster (target 30), peak {large['peak_mb']:.0f} MB (target 1000)", end="")
    print("" if large["largest_difference"] is None else f", apart by {large['largest_difference']:.1e}")
    for name, shape, repeats in [("1 M", ML_1M, 3)] + ([] if options.quick else [("10 M", ML_10M, 1)]):
        figures = results[f"neighbours {name}"] = neighbours(shape, repeats)
        each = "   ".join(f"{peer}: {seconds:.2f} s" for peer, seconds in figures["seconds"].items())
        print(f"top-{K} neighbours, {name}: {each}   {figures['ratio']:.1f} times the fastest peer (target 1.5)")
    first = results["first_call"] = first_call()
    print(f"first call on a tiny table: {first['cold_s']:.1f} s to compile, {first['cached_s']:.2f} s from the cache")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
