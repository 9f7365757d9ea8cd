"""Stages 2 and 3 against the dense algorithm of the paper.

At the paper's size the dense side is the word-for-word transcription the tests use as oracle. At 6,040 x 3,706 its
Python loops would measure the interpreter, so the same dense algorithm runs vectorised: one matrix product for the
similarities, masked array arithmetic for the relaxations, a loop over items for the blend, LAPACK for the six SVDs (a
quick run times one SVD and counts it six times).
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import tables
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr import DPSR
from dpsr.certify import Certificate
from dpsr.types import Mask, Model, PrivateRatings, Scale

Floats = npt.NDArray[np.float64]

K, BETA, D, LAM, N_ITER, T = 15, 0.65, 8, 0.7, 50, 10
ROOT = Path(__file__).parent.parent
RECEIPT = Certificate(
    nominal=1.0, parts=(), public={}, randomness="declared", private=False, reasons=("synthetic",), id="0" * 32
)


@section("dense", "Stages 2 and 3 against the dense algorithm of the paper")
def dense(quick: bool) -> Iterator[Ratio]:
    """The paper's size word for word, and a million ratings vectorised."""
    yield at_the_papers_size()
    yield from at_one_million(quick)


def at_the_papers_size() -> Ratio:
    """300 x 200, 10 %: against the word-for-word transcription."""
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from dense_oracle import Oracle

    noisy, mask, ratings = papers_table()
    apart = float(np.abs(every_cell(ours(ratings)) - Oracle(noisy, mask).run()).max())
    seconds = in_turns({"dpsr": lambda: ours(ratings), "dense": lambda: Oracle(noisy, mask).run()}, rounds=1)
    fast = in_turns({"dpsr": lambda: ours(ratings)}, rounds=20)["dpsr"]
    detail = f"dpsr {fast}, word for word {seconds['dense']}, apart by {apart:.1e}"
    return Ratio("stages 2 and 3, 300 x 200", seconds["dense"].wall / fast.wall, detail, target=20)


def papers_table() -> tuple[Floats, npt.NDArray[np.bool_], PrivateRatings]:
    """The paper's generator with heavy noise: dense values, mask, and both as private ratings."""
    rng = np.random.default_rng(0)
    R = rng.normal(size=(300, 8)) @ rng.normal(size=(200, 8)).T
    noisy = np.clip(1 + 4 * (R - R.min()) / (R.max() - R.min()) + rng.laplace(0, 4, R.shape), 1, 5)
    mask = rng.random(R.shape) < 0.1
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int64)
    places = Mask(pa.array(range(300)), pa.array(range(200)), indptr, np.nonzero(mask)[1].astype(np.int32))
    return noisy, mask, PrivateRatings(places, noisy[mask], Scale(1, 5), RECEIPT)


def at_one_million(quick: bool) -> Iterator[Ratio]:
    """6,040 x 3,706 with a million ratings: against the dense algorithm, vectorised."""
    megabytes = peak_megabytes()  # before this process grows: a child starts from its parent's high-water mark
    ratings = tables.private("1M")
    model = ours(ratings)
    fast = in_turns({"dpsr": lambda: ours(ratings)}, rounds=3)["dpsr"]
    seconds, result = vectorised(*as_dense(ratings), ratings.scale, quick=quick)
    apart = "" if result is None else f", apart by {np.abs(every_cell(model) - result).max():.1e}"
    form = "vectorised, one SVD counted six times" if quick else "vectorised"
    yield Ratio("stages 2 and 3, 1M", seconds / fast.wall, f"dpsr {fast}, {form} {seconds:.1f} s{apart}", target=30)
    yield Ratio("stages 2 and 3, 1M, peak memory", None, f"{megabytes:.0f} MB, the data and its making included")


def peak_megabytes() -> float:
    """Peak resident memory of our run alone, in a fresh process; the ratings are made there too."""
    code = "from benchmarks.dense import *; ours(tables.private('1M')); report()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def report() -> None:
    """Print this process's peak memory in megabytes."""
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def ours(ratings: PrivateRatings) -> Model:
    """Stages 2 and 3 at the paper's settings."""
    pipeline = DPSR.paper(n_neighbors=K, beta=BETA, rank=D, lam=LAM, n_iter=N_ITER, period=T)
    return pipeline.reconstruct(ratings).model_


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


def dense_blend(noisy: Floats, mask: npt.NDArray[np.bool_], scale: Scale) -> Floats:
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
        second[users[some], j] = scale.clip(BETA * noisy[users[some], j] + (1 - BETA) * cf)
    return second


def vectorised(noisy: Floats, mask: npt.NDArray[np.bool_], scale: Scale, *, quick: bool) -> tuple[float, Floats | None]:
    """Seconds of the whole dense algorithm, and its result unless five of the six SVDs were only counted."""
    start = perf_counter()
    second = dense_blend(noisy, mask, scale)
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
    return (seconds + N_ITER // T * one, None) if quick else (seconds, scale.clip(R))
