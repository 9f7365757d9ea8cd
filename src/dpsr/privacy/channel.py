"""A per-rating mechanism as a finite table, so that its price is computed and not argued.

    P[symbol y | level x] = weights[x, y] / 2**BITS,   exactly

Sampling compares one random integer with cumulative integers: no floating point touches the secret, so attacks on the
floating-point representation of noise (Mironov 2012 and after) have nothing to work on. The first 16 random bits decide
nearly every draw through a guide table; only where a symbol ends inside their bucket are the other 46 bits drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from dpsr.errors import PrivacyError
from dpsr.privacy.exact import delta_of, epsilon_of
from dpsr.privacy.noise import NoiseSource
from dpsr.types import Scale

Floats = npt.NDArray[np.float64]

BITS = 62
"""Row total 2**62: fits a signed 64-bit word, and cells down to 1e-18 keep an integer weight."""

_TAIL_BITS = BITS - 16
_UNDECIDED = np.uint16(0xFFFF)


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
        if k != self.scale.n_levels or s != len(self.outputs) or s >= int(_UNDECIDED):
            raise PrivacyError(
                f"a channel needs one row per level and one column per output, found {k} x {s} for "
                f"{self.scale.n_levels} levels and {len(self.outputs)} outputs"
            )
        if any(sum(int(w) for w in row) != 1 << BITS for row in self.weights):
            raise PrivacyError(f"every row of a channel must sum to 2**{BITS}")
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
        return epsilon_of(self.weights)

    def delta(self, epsilon: float) -> float:
        """The exact delta of one rating at `epsilon`, rounded up."""
        return delta_of(self.weights, BITS, epsilon)

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

    def sample(self, levels: npt.NDArray[np.uint16], noise: NoiseSource) -> npt.NDArray[np.uint16]:
        """One symbol per level. The draw is exact: 62 uniform bits against the integer table."""
        guide, shift = self._guide
        heads = noise.half_words(len(levels))
        symbols, open_rows = _draw_heads(levels, heads, guide, shift)
        if len(open_rows):
            tails = noise.words(len(open_rows)) >> np.uint64(64 - _TAIL_BITS)
            _draw_tails(levels, heads, tails, open_rows, self._cumulative, symbols)
        return symbols

    @cached_property
    def _cumulative(self) -> npt.NDArray[np.uint64]:
        return np.cumsum(self.weights, axis=1, dtype=np.uint64)

    @cached_property
    def _guide(self) -> tuple[npt.NDArray[np.uint16], int]:
        """For each leading bit pattern, the symbol if it is decided already, else a mark.

        Few levels get all 16 leading bits; fine scales fewer, so that the table stays in the processor's cache.
        """
        bits = 16 if len(self.weights) <= 16 else 12
        width = 1 << (BITS - bits)
        starts = np.arange(1 << bits, dtype=np.uint64) * np.uint64(width)
        guide = np.empty((len(self.weights), 1 << bits), dtype=np.uint16)
        for row, edges in zip(guide, self._cumulative, strict=True):
            first = np.searchsorted(edges, starts, side="right")
            last = np.searchsorted(edges, starts + np.uint64(width - 1), side="right")
            row[:] = np.where(first == last, first, _UNDECIDED)
        return guide, 16 - bits


def to_weights(probabilities: Floats) -> npt.NDArray[np.uint64]:
    """Integer rows that sum to 2**BITS: each cell rounded down, the remainder given to the row's largest cell."""
    weights = np.floor(probabilities / probabilities.sum(axis=1, keepdims=True) * 2.0**BITS).astype(np.int64)
    missing = (1 << BITS) - weights.sum(axis=1)
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += missing
    return weights.astype(np.uint64)


@numba.njit(cache=True)
def _draw_heads(levels, heads, guide, shift):  # type: ignore[no-untyped-def]
    n = len(levels)
    symbols = np.empty(n, dtype=np.uint16)
    count = 0
    for i in range(n):
        symbols[i] = guide[levels[i], heads[i] >> shift]
        count += symbols[i] == 0xFFFF
    open_rows = np.empty(count, dtype=np.int64)
    at = 0
    for i in range(n):
        if symbols[i] == 0xFFFF:
            open_rows[at] = i
            at += 1
    return symbols, open_rows


@numba.njit(cache=True)
def _draw_tails(levels, heads, tails, open_rows, cumulative, symbols):  # type: ignore[no-untyped-def]
    for t in range(len(open_rows)):
        i = open_rows[t]
        word = (np.uint64(heads[i]) << np.uint64(46)) | tails[t]
        edges = cumulative[levels[i]]
        low, high = 0, len(edges) - 1
        while low < high:
            middle = (low + high) // 2
            if edges[middle] > word:
                high = middle
            else:
                low = middle + 1
        symbols[i] = low
