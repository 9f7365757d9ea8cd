"""The compiled loop over pairs of a block of users and a tile of items: who can still be among the n best?

A product comes as three arrays: its values in single precision (users x items), and the factors of its error, one per
user and one per item (`candidates` says why their product bounds the error).
"""

from __future__ import annotations

from math import erfc

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts, Floats
from dpsr.linalg.compiled import kernel

Product = tuple[npt.NDArray[np.float32], Floats, Floats]
Weights = tuple[bool, float, float, float]
Rated = tuple[AnyInts, AnyInts, AnyInts]
Kept = tuple[Floats, AnyInts, Floats, AnyInts]

MARGIN = 1e-9
"""Relative; thousands of times what double precision can add to the interval."""

_TINY = 1e-30
"""Absolute; covers what single precision loses where numbers vanish."""

_VANISHING = 1e-300
"""Absolute, for scores so small that double precision rounds them to nothing."""

_STRIDE = 64
"""Items looked at together: in most strides none is worth a closer look."""


@kernel
def see_tile(first: int, predicted: Product, meets: Product, weights: Weights, rated: Rated, kept: Kept) -> None:
    """Let the items from code `first` on pass by. `kept` is the heap, items, upper ends and counts of every user.

    `meets` bounds a weighed score from above all by itself; without weights it is the prediction.
    """
    best, _, _, counts = kept
    weighed, _, _, hardly = weights
    n = predicted[0].shape[1]
    for row in range(len(counts)):
        for start in range(0, n, _STRIDE):
            stop, bar = min(start + _STRIDE, n), best[row, 0]
            if (weighed and bar <= hardly) or _any_reaches(meets, row, start, stop, bar):
                _see_stride(first, row, start, stop, predicted, meets, weights, rated, kept)


@kernel
def _any_reaches(product: Product, row: int, start: int, stop: int, bar: float) -> bool:
    """Whether one of the upper ends reaches the bar: without a branch, so that several are compared at a time."""
    values, own, theirs = product[0][row], product[1][row], product[2]
    hits = 0
    for column in range(start, stop):
        hits += float(values[column]) + own * theirs[column] + _TINY >= bar
    return hits > 0


@kernel
def _see_stride(
    first: int,
    row: int,
    start: int,
    stop: int,
    predicted: Product,
    meets: Product,
    weights: Weights,
    rated: Rated,
    kept: Kept,
) -> None:
    best, items, highs, counts = kept
    codes, at, ends = rated
    for column in range(start, stop):
        item = first + column
        low, high = _interval(row, column, predicted, meets, weights)
        if high < best[row, 0] or counts[row] < 0:
            continue
        while at[row] < ends[row] and codes[at[row]] < item:
            at[row] += 1
        if at[row] == ends[row] or codes[at[row]] != item:
            counts[row] = _remember(item, low, high, best[row], items[row], highs[row], counts[row])


@kernel
def _interval(row: int, column: int, predicted: Product, meets: Product, weights: Weights) -> tuple[float, float]:
    """Between what the score of a pair lies. `weights`: whether to weigh, the overall mean, sqrt(2) sigma, floor."""
    weighed, overall, width, hardly = weights
    p, e = float(predicted[0][row, column]), predicted[1][row] * predicted[2][column] + _TINY
    if not weighed:
        return p - e, p + e
    r, f = float(meets[0][row, column]), meets[1][row] * meets[2][column] + _TINY
    low = max(r - f, hardly) * 0.5 * erfc((overall - p + e) / width)
    high = max(r + f, hardly) * 0.5 * erfc((overall - p - e) / width)
    return low * (1 - MARGIN) - _VANISHING, high * (1 + MARGIN) + _VANISHING


@kernel
def _remember(item: int, low: float, high: float, best: Floats, items: AnyInts, highs: Floats, count: int) -> int:
    """Let `low` raise the bar, and note the item; where there is no room left, drop what is below the bar."""
    if low > best[0]:
        _replace_least(best, low)
    if count == len(items):
        count = _drop(best[0], items, highs, count)
        if count == len(items):
            return -1
    items[count], highs[count] = item, high
    return count + 1


@kernel
def _replace_least(heap: Floats, value: float) -> None:
    place, n = 0, len(heap)
    while True:
        child = 2 * place + 1
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if child >= n or heap[child] >= value:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = value


@kernel
def _drop(bar: float, items: AnyInts, highs: Floats, count: int) -> int:
    """Keep what reaches the bar, in order; how many that are."""
    kept = 0
    for place in range(count):
        if highs[place] >= bar:
            items[kept], highs[kept] = items[place], highs[place]
            kept += 1
    return kept


@kernel
def drop_all(best: Floats, items: AnyInts, highs: Floats, counts: AnyInts) -> None:
    """`_drop` for every user whose candidates found room."""
    for row in range(len(counts)):
        if counts[row] > 0:
            counts[row] = _drop(best[row, 0], items[row], highs[row], counts[row])
