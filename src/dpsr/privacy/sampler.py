"""Exact draws from rows of an integer table.

    P[symbol y | row r] = weights[r, y] / 2**BITS,   exactly

One random integer is compared with cumulative integers: no floating point touches the secret. The first 16 random bits
decide nearly every draw through a guide table; only where a symbol ends inside their bucket are the other 46 read. Both
are read at the draw's own place in a stream, so that a draw repeated is the same draw.
"""

from __future__ import annotations

from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from dpsr.errors import PrivacyError
from dpsr.privacy.noise import NoiseStream

BITS = 62
"""Row total 2**62: fits a signed 64-bit word, and cells down to 1e-18 keep an integer weight."""

_TAIL_BITS = BITS - 16
_UNDECIDED = 0xFFFF
_PIECE = 1 << 16
"""Draws whose random bits are held at a time."""

_GUIDE_BYTES = 1 << 22
"""The guide table stays within the processor's cache: the more rows, the fewer leading bits it looks at."""


class Sampler:
    """Draws symbols for rows of `weights`; every row must sum to 2**BITS."""

    def __init__(self, weights: npt.NDArray[np.uint64]) -> None:
        if any(sum(map(int, row)) != 1 << BITS for row in weights) or weights.shape[1] >= _UNDECIDED:
            raise PrivacyError(f"every row of a table must sum to 2**{BITS}, over fewer than {_UNDECIDED} symbols")
        self.weights = weights

    def draw(self, rows: npt.NDArray[np.integer], stream: NoiseStream, start: int = 0) -> npt.NDArray[np.uint16]:
        """One symbol per row index; the first stands at place `start` of the stream."""
        symbols = np.empty(len(rows), dtype=np.uint16)
        for at in range(0, len(rows), _PIECE):
            piece = slice(at, min(at + _PIECE, len(rows)))
            self._draw_piece(rows[piece], stream, start + at, symbols[piece])
        return symbols

    def _draw_piece(
        self, rows: npt.NDArray[np.integer], stream: NoiseStream, start: int, symbols: npt.NDArray[np.uint16]
    ) -> None:
        guide, shift = self._guide
        heads = stream.half_words(len(rows), start)
        undecided = _draw_heads(rows, heads, guide, shift, symbols)
        if len(undecided):
            tails = stream.fork().words(len(rows), start) >> np.uint64(64 - _TAIL_BITS)
            _draw_tails(rows, heads, tails, undecided, self._cumulative, symbols)

    @cached_property
    def _cumulative(self) -> npt.NDArray[np.uint64]:
        return np.cumsum(self.weights, axis=1, dtype=np.uint64)

    @cached_property
    def _guide(self) -> tuple[npt.NDArray[np.uint16], int]:
        """For each row and leading bit pattern, the symbol if it is decided already, else a mark."""
        n_rows = len(self.weights)
        bits = min(16, max(6, (_GUIDE_BYTES // (2 * n_rows)).bit_length() - 1))
        width = 1 << (BITS - bits)
        starts = np.arange(1 << bits, dtype=np.uint64) * np.uint64(width)
        guide = np.empty((n_rows, 1 << bits), dtype=np.uint16)
        for row, edges in zip(guide, self._cumulative, strict=True):
            first = np.searchsorted(edges, starts, side="right")
            last = np.searchsorted(edges, starts + np.uint64(width - 1), side="right")
            row[:] = np.where(first == last, first, _UNDECIDED)
        return guide, 16 - bits


def to_weights(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Integer rows that sum to 2**BITS: each cell rounded down, the remainder given to the row's largest cell."""
    weights = np.floor(probabilities / probabilities.sum(axis=1, keepdims=True) * 2.0**BITS).astype(np.int64)
    missing = (1 << BITS) - weights.sum(axis=1)
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += missing
    return weights.astype(np.uint64)


@numba.njit(cache=True)
def _draw_heads(rows, heads, guide, shift, symbols):  # type: ignore[no-untyped-def]
    n = len(rows)
    count = 0
    for i in range(n):
        symbols[i] = guide[rows[i], heads[i] >> shift]
        count += symbols[i] == 0xFFFF
    undecided = np.empty(count, dtype=np.int64)
    at = 0
    for i in range(n):
        if symbols[i] == 0xFFFF:
            undecided[at] = i
            at += 1
    return undecided


@numba.njit(cache=True)
def _draw_tails(rows, heads, tails, undecided, cumulative, symbols):  # type: ignore[no-untyped-def]
    for t in range(len(undecided)):
        i = undecided[t]
        word = (np.uint64(heads[i]) << np.uint64(46)) | tails[i]
        edges = cumulative[rows[i]]
        low, high = 0, len(edges) - 1
        while low < high:
            middle = (low + high) // 2
            if edges[middle] > word:
                high = middle
            else:
                low = middle + 1
        symbols[i] = low
