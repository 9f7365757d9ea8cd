"""A per-rating mechanism as a finite table, so that its price is computed and not argued, and exact draws from it.

    P[symbol y | level x] = weights[x, y] / 2**BITS,   exactly

Sampling compares one random integer with cumulative integers: no floating point touches the secret, and attacks on the
floating-point representation of noise (Mironov 2012 and after) have nothing to work on. The first 16 random bits decide
nearly every draw through a guide table; only where a symbol ends inside their bucket are the other 46 read. Both are
read at the draw's own place in a stream, so that a draw repeated is the same draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts, Floats, Ints, Words
from dpsr.certify.table_price import delta_of, epsilon_of
from dpsr.errors import PrivacyError
from dpsr.linalg.compiled import kernel
from dpsr.privacy.noise import NoiseSource, NoiseStream
from dpsr.types import Scale

Symbols = npt.NDArray[np.uint16]

BITS = 62
"""Row total 2**62: fits a signed 64-bit word, and cells down to 1e-18 keep an integer weight."""

_TAIL_BITS = BITS - 16
_UNDECIDED = 0xFFFF
_PIECE = 1 << 16
"""Draws whose random bits are held at a time."""

_GUIDE_BYTES = 1 << 18
"""The guide table stays within the processor's cache: the more rows, the fewer leading bits it looks at."""


_FEW_LEVELS = 24
"""Up to so many levels all pairs are compared exactly; beyond, those that floating point cannot rule out."""


class Sampler:
    """Draws symbols for rows of `weights`; every row must sum to 2**BITS."""

    def __init__(self, weights: npt.NDArray[np.uint64]) -> None:
        if any(sum(map(int, row)) != 1 << BITS for row in weights) or weights.shape[1] >= _UNDECIDED:
            raise PrivacyError(f"every row of a table must sum to 2**{BITS}, over fewer than {_UNDECIDED} symbols")
        self.weights = weights

    def draw(self, rows: npt.NDArray[np.integer], stream: NoiseStream, start: int = 0) -> Symbols:
        """One symbol per row index; the first stands at place `start` of the stream."""
        symbols = np.empty(len(rows), dtype=np.uint16)
        for at in range(0, len(rows), _PIECE):
            piece = slice(at, min(at + _PIECE, len(rows)))
            self._draw_piece(rows[piece], stream, start + at, symbols[piece])
        return symbols

    def _draw_piece(self, rows: npt.NDArray[np.integer], stream: NoiseStream, start: int, symbols: Symbols) -> None:
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
    def _guide(self) -> tuple[Symbols, int]:
        """For each row and leading bit pattern, the symbol if it is decided already, else a mark."""
        n_rows = len(self.weights)
        bits = min(16, max(6, (_GUIDE_BYTES // (2 * n_rows)).bit_length() - 1))
        guide = np.empty((n_rows, 1 << bits), dtype=np.uint16)
        _fill_guide(self._cumulative, np.uint64(BITS - bits), guide)
        return guide, 16 - bits


def to_weights(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Integer rows that sum to 2**BITS: each cell rounded down, the remainder given to the row's largest cell."""
    weights = np.floor(probabilities / probabilities.sum(axis=1, keepdims=True) * 2.0**BITS).astype(np.int64)
    missing = (1 << BITS) - weights.sum(axis=1)
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += missing
    return weights.astype(np.uint64)


@kernel
def _fill_guide(cumulative: Words, shift: np.uint64, guide: Symbols) -> None:
    """For patterns in ascending order: the first edge above the first word with that pattern, and above the last."""
    for i in range(len(guide)):
        edges, first = cumulative[i], 0
        for pattern in range(guide.shape[1]):
            start = np.uint64(pattern) << shift
            while edges[first] <= start:  # the last edge is 2**BITS, above every word
                first += 1
            decided = edges[first] > start + ((np.uint64(1) << shift) - np.uint64(1))
            guide[i, pattern] = first if decided else 0xFFFF


@kernel
def _draw_heads(rows: AnyInts, heads: AnyInts, guide: Symbols, shift: int, symbols: Symbols) -> Ints:
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


@kernel
def _draw_tails(
    rows: AnyInts,
    heads: AnyInts,
    tails: Words,
    undecided: Ints,
    cumulative: Words,
    symbols: Symbols,
) -> None:
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


@dataclass(frozen=True, eq=False)
class Channel:
    """A finite randomiser of rating levels, with everything its price can be computed from.

    `outputs[y]` is the rating value symbol y is published as. `settings` are public facts for the certificate.
    """

    scale: Scale
    outputs: Floats
    weights: npt.NDArray[np.uint64]
    mechanism: str
    settings: dict[str, float]

    def __post_init__(self) -> None:
        k, s = self.weights.shape
        if k != self.scale.n_levels or s != len(self.outputs):
            raise PrivacyError(
                f"a channel needs one row per level and one column per output, found {k} x {s} for "
                f"{self.scale.n_levels} levels and {len(self.outputs)} outputs"
            )
        self._sampler  # noqa: B018 (refuses rows that do not sum up)
        self.weights.setflags(write=False)
        self.outputs.setflags(write=False)

    @classmethod
    def from_probabilities(
        cls, scale: Scale, outputs: Floats, probabilities: Floats, *, mechanism: str, settings: dict[str, float]
    ) -> Channel:
        """A channel from real probabilities, rounded to integers. Its price is that of the integers."""
        return cls(scale, np.asarray(outputs, dtype=np.float64), to_weights(probabilities), mechanism, settings)

    @cached_property
    def epsilon(self) -> float:
        """The exact price of one rating, rounded up to the next float; infinite if a cell is empty."""
        return epsilon_of(self.weights.tolist())

    def delta(self, epsilon: float) -> float:
        """The exact delta of one rating at `epsilon`, rounded up. Enumerated once."""
        if epsilon not in self._deltas:
            pairs = _worst_pairs(self.probabilities, epsilon) if len(self.weights) > _FEW_LEVELS else None
            self._deltas[epsilon] = delta_of(self.weights.tolist(), BITS, epsilon, pairs)
        return self._deltas[epsilon]

    @cached_property
    def _deltas(self) -> dict[float, float]:
        return {}

    @cached_property
    def probabilities(self) -> Floats:
        return self.weights / 2.0**BITS

    def posterior(self, prior: npt.ArrayLike) -> Floats:
        """P[level x | symbol y] under a public prior over levels, one column per symbol."""
        joint = np.asarray(prior, dtype=np.float64)[:, None] * self.probabilities
        evidence = joint.sum(axis=0)
        return joint / np.where(evidence > 0, evidence, 1)

    def expected_error(self, prior: npt.ArrayLike, *, guess: str = "output") -> float:
        """Root mean squared error of a guess at the true rating under a public prior.

        `guess="output"` takes the published value itself, `guess="posterior"` the posterior mean, the best there is.
        """
        p = np.asarray(prior, dtype=np.float64)
        values = self.scale.values
        if guess == "posterior":
            guesses = values @ self.posterior(p)
        elif guess == "output":
            guesses = self.outputs
        else:
            raise PrivacyError(f"guess must be 'output' or 'posterior', found {guess!r}")
        joint = p[:, None] * self.probabilities
        return float(np.sqrt((joint * (values[:, None] - guesses[None, :]) ** 2).sum()))

    def sample(self, levels: npt.NDArray[np.uint16], noise: NoiseSource) -> Symbols:
        """One symbol per level, exactly as the integer table says."""
        return self.draw(levels, noise.stream())

    def draw(self, levels: npt.NDArray[np.uint16], stream: NoiseStream, start: int = 0) -> Symbols:
        """The same for ratings that stand from place `start` on in a stream."""
        return self._sampler.draw(levels, stream, start)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.weights)


def _worst_pairs(probabilities: Floats, epsilon: float) -> list[tuple[int, int]]:
    """Pairs of levels that can attain the largest delta, found in floating point with a margin far above its error."""
    shrunk = np.exp(epsilon) * probabilities
    excess = np.array([np.maximum(row - shrunk, 0).sum(axis=1) for row in probabilities])
    np.fill_diagonal(excess, -1)
    margin = 1e-9 * max(float(excess.max()), 0.0) + 1e-14 * probabilities.shape[1]
    return [(int(x), int(z)) for x, z in zip(*np.nonzero(excess >= excess.max() - margin), strict=True)]
