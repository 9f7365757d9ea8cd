"""Made-up ratings: the paper's generator, and one that looks like people.

The paper's (section Experimental Setup), for an m x n matrix of rank d:

    R = U V^T + E,   U, V ~ N(0, 1),   E ~ N(0, 0.1^2),   normalised to [1, 5], a tenth of the cells observed at random.

It does not say how R is normalised, and the two usual readings differ much in spread: "minmax" maps the least and the
greatest entry of R to 1 and 5 (standard deviation about 0.4), "standardise" is clip(3 + z) with z the standardised R
(standard deviation about 0.9). The observed ratings are then put on a stated grid, as every rating here is.

The realistic one draws taste p_u, q_j ~ N(0, I/sqrt(d)), kindness a_u and quality b_j, and uses them twice:

    P[u rates j]  ~  popularity_j * exp( t p_u.q_j )         who rated what depends on taste
    score_uj      =  a_u + b_j + c p_u.q_j + noise           and so does the rating

with Zipf popularity, log-normal activity, and scores cut into stars at the quantiles of MovieLens (mean 3.5, standard
deviation 1.1). Its privacy assumption is none: nobody stands behind these ratings. The embedded sample of `make demo`
is of this kind; as files it is what a stranger can try every command on, the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from dpsr.arrays import Floats, Ints
from dpsr.data.ratings import Ratings
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import file_name, quoted
from dpsr.types import Mask
from dpsr.types.coordinates import Scale

_STAR_CUTS = np.array([-1.55, -0.95, -0.15, 0.77])
"""Standard scores between the stars: 6, 11, 27, 34 and 22 per cent of a normal distribution, as in MovieLens 100K."""

_KINDNESS, _QUALITY, _TASTE, _NOISE = 0.45, 0.50, 0.50, 0.80
"""Standard deviations of the parts of a score; about a third of the variance is user and item bias, as in MovieLens."""

_CELLS_AT_A_TIME = 1 << 22


def paper_matrix(
    seed: int,
    *,
    n_users: int = 300,
    n_items: int = 200,
    rank: int = 8,
    density: float = 0.1,
    noise: float = 0.1,
    normalisation: Literal["minmax", "standardise"] = "minmax",
    step: float = 0.01,
) -> Ratings:
    """The paper's synthetic matrix on [1, 5], round(density * m * n) of its cells observed uniformly at random."""
    n_ratings = round(density * n_users * n_items)
    _check_shape(n_users, n_items, n_ratings, least=1)
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    R = U @ V.T + noise * rng.standard_normal((n_users, n_items))
    cells = np.sort(rng.choice(n_users * n_items, size=n_ratings, replace=False))
    scale = Scale(1, 5, step=step, snap=True)
    return _table(cells, _normalised(R, normalisation).ravel()[cells], scale, n_users, n_items)


def realistic(
    seed: int,
    *,
    n_users: int = 600,
    n_items: int = 400,
    n_ratings: int = 20_000,
    rank: int = 6,
    selection: float = 1.0,
    skew: float = 0.9,
    timestamps: bool = False,
) -> Ratings:
    """Whole stars from 1 to 5 with the habits of people; exactly `n_ratings` of them, at least one per user.

    `selection` is t above (0: who rated what says nothing about taste), `skew` the exponent of popularity.
    """
    _check_shape(n_users, n_items, n_ratings, least=n_users)
    rng = np.random.default_rng(seed)
    p, q = (rng.standard_normal((size, rank)) / rank**0.25 for size in (n_users, n_items))
    kindness, quality = _KINDNESS * rng.standard_normal(n_users), _QUALITY * rng.standard_normal(n_items)
    appeal = 0.7 * quality - skew * np.log(5 + rng.permutation(n_items))  # good items are somewhat better known
    counts = _activity(rng, n_users, n_items, n_ratings)
    cells = _choose(rng, counts, appeal, selection * p, q)
    users, items = np.divmod(cells, n_items)
    scores = kindness[users] + quality[items] + _TASTE * _dots(p, q, users, items)
    scores += _NOISE * rng.standard_normal(n_ratings)
    times = _times(rng, users, n_users) if timestamps else None
    return _table(cells, _stars(scores), Scale(1, 5), n_users, n_items, times)


def _table(
    cells: Ints, values: Floats, scale: Scale, n_users: int, n_items: int, timestamps: Ints | None = None
) -> Ratings:
    """Ids count from 1; users and items that happen to have no rating are still part of the catalogue."""
    user_ids, item_ids = (pa.array(np.arange(1, size + 1, dtype=np.int64)) for size in (n_users, n_items))
    return Ratings(Mask.of_cells(cells, user_ids, item_ids, timestamps), scale.encode(values), scale)


def _check_shape(n_users: int, n_items: int, n_ratings: int, *, least: int) -> None:
    if min(n_users, n_items) < 2:
        raise ParameterError(f"at least 2 users and 2 items are needed, found {n_users} and {n_items}.")
    if not least <= n_ratings <= n_users * n_items:
        raise ParameterError(
            f"{n_users} users and {n_items} items have between {least} and {n_users * n_items} ratings, "
            f"found {n_ratings}. Choose another number of ratings or another density."
        )


def _normalised(R: Floats, normalisation: str) -> Floats:
    if normalisation == "minmax":
        least, span = float(R.min()), float(np.ptp(R))
        return np.clip(1 + 4 * (R - least) / span, 1, 5)
    if normalisation == "standardise":
        return np.clip(3 + (R - float(R.mean())) / float(R.std()), 1, 5)
    raise ParameterError(f'normalisation is "minmax" or "standardise", found {quoted(normalisation)}.')


def _activity(rng: np.random.Generator, n_users: int, n_items: int, n_ratings: int) -> Ints:
    """Log-normal numbers of ratings with the given sum, between 1 and half the items (more only if they must)."""
    most = min(n_items, max(n_items // 2, -(-2 * n_ratings // n_users)))
    weights = np.exp(rng.standard_normal(n_users))
    low, high = 0.0, most / float(weights.min())
    for _ in range(200):  # bisection on the multiplier: the capped sum grows with it
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * weights, 1, most).sum() < n_ratings else (low, middle)
    exact = np.clip(high * weights, 1, most)
    counts = np.floor(exact).astype(np.int64)
    short = n_ratings - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:short]] += 1  # largest remainders first
    return counts


def _choose(rng: np.random.Generator, counts: Ints, appeal: Floats, p: Floats, q: Floats) -> Ints:
    """The cells rated, ascending: `counts[u]` items for user u without replacement, weights exp(appeal + p.q).

    An exponential clock of rate w runs for every cell; the first to ring are such a sample.
    """
    n_items, cells = len(appeal), []
    height = max(1, _CELLS_AT_A_TIME // n_items)
    for start in range(0, len(counts), height):
        logs = (p[start : start + height] @ q.T + appeal).astype(np.float32)
        rings = rng.standard_exponential(logs.shape, dtype=np.float32) * np.exp(-logs)
        for user, ring in enumerate(rings, start=start):
            chosen = np.argpartition(ring, counts[user] - 1)[: counts[user]]
            cells.append(np.sort(chosen) + user * n_items)
    return np.concatenate(cells)


def _dots(p: Floats, q: Floats, users: Ints, items: Ints) -> Floats:
    """p_u.q_j for every rating, one factor at a time: no array of ratings by factors."""
    total = np.zeros(len(users))
    for factor in range(p.shape[1]):
        total += p[users, factor] * q[items, factor]
    return total


def _stars(scores: Floats) -> Floats:
    standard = (scores - float(scores.mean())) / float(scores.std())
    return 1 + np.searchsorted(_STAR_CUTS, standard).astype(np.float64)


def _times(rng: np.random.Generator, users: Ints, n_users: int) -> Ints:
    """Users arrive over three years and rate for some weeks: seconds, distinct people mixed, as a real log has them."""
    day, first = 86_400, 1_500_000_000
    arrival = rng.uniform(0, 3 * 365 * day, n_users)
    return (first + arrival[users] + rng.exponential(20 * day, len(users))).astype(np.int64)


def demo_ratings() -> Ratings:
    """60,000 ratings with timestamps by 1,000 users for 500 items, whole stars from 1 to 5."""
    return realistic(20_240_601, n_users=1_000, n_items=500, n_ratings=60_000, timestamps=True)


_FIRST = "Night Summer Winter Silent Last Golden Paper Second Northern Hidden Long Little Broken Blue Distant Quiet"
_THEN = "River Garden Train House Letter Island Orchard Street Song Mountain Harbour Window Circus Library Bridge Road"
_LAST = ("", " Returns")


def titles() -> Iterator[str]:
    """Titles of films that do not exist."""
    for last, then, first in product(_LAST, _THEN.split(), _FIRST.split()):
        yield f"{first} {then}{last}"


def write_sample(folder: Path) -> list[Path]:
    """ratings.csv, items.csv and pairs.csv in `folder`; files that are there already stay."""
    files = [folder / name for name in ("ratings.csv", "items.csv", "pairs.csv")]
    there = [path.name for path in files if path.exists()]
    if there:
        raise DataError(f"{folder.name or 'this folder'} holds {', '.join(there)} already. Choose another folder.")
    ratings = demo_ratings()
    ids = ratings.mask.item_ids.to_pylist()
    lines = [f"{item},{title}" for item, title in zip(ids, islice(titles(), len(ids)), strict=True)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pacsv.write_csv(ratings.to_arrow(), files[0])
        files[1].write_text("\n".join(["item,title", *lines]) + "\n", "utf-8")
        files[2].write_text("user,item\n42,7\n42,9\n43,7\n", "utf-8")
    except OSError as error:
        with suppress(OSError):  # none of them was there before
            for path in files:
                path.unlink(missing_ok=True)
        raise DataError(
            f"the sample could not be written to {file_name(folder)}: {error.strerror or error}. Choose a folder with "
            "enough room where you may write."
        ) from error
    return files
