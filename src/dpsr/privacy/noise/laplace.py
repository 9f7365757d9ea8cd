"""Exact discrete Laplace noise for integer statistics.

    P[Z = z]  is proportional to  exp(-|z| / scale),   z integer, scale = t/s rational

after Canonne, Kamath and Steinke (2020): every decision is a comparison of uniform integers, so the distribution is
exact and no floating point touches a secret. A statistic of integer sensitivity D released with it costs exactly
D / scale.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Ints, Words
from dpsr.errors import PrivacyError
from dpsr.linalg.compiled import kernel
from dpsr.privacy.noise.source import NoiseSource

_WORDS_PER_DRAW = 10
"""Nearly all scales use that many on average."""

_FEWEST_WORDS = 64
"""For a draw or two, which often take more than the average: asking again costs more than these."""

_CHUNK = 1 << 14
"""Draws whose random words are held at a time."""

_LIMIT = 1 << 40
"""Numerators and denominators stay below this, so that no product of the sampler overflows 63 bits."""


@lru_cache(maxsize=1024)  # audits ask the same question of thousands of vaults
def laplace_scale(sensitivity: int, epsilon: float) -> Fraction:
    """A rational scale with small terms that is not below sensitivity / epsilon: rounding favours privacy."""
    exact = Fraction(sensitivity) / Fraction(epsilon)
    bits = max(0, 24 - int(exact).bit_length())
    scale = Fraction(-((-exact.numerator << bits) // exact.denominator), 1 << bits)
    if scale.numerator >= _LIMIT:
        raise PrivacyError(
            f"a sensitivity of {sensitivity} at epsilon = {epsilon:g} asks for noise too wide for the exact sampler. "
            "Use a larger epsilon."
        )
    return scale


def discrete_laplace(scale: Fraction, n: int, noise: NoiseSource) -> npt.NDArray[np.int64]:
    """n independent draws.

    They are read one after the other off one stream, so the values do not depend on how many words are held at a time.
    """
    stream, result = noise.stream(), np.empty(n, dtype=np.int64)
    done, used, patience = 0, 0, 1
    while done < n:
        want = min(_CHUNK, n - done)
        ask = patience * max(_WORDS_PER_DRAW * want, _FEWEST_WORDS)
        words = stream.words(ask, used)  # what the chunk before left over comes again
        made, taken = _fill(result[done : done + want], words, scale.numerator, scale.denominator)
        done, used = done + made, used + taken
        patience = 1 if made else 2 * patience  # a draw that is longer than all these words
    return result


@kernel
def _fill(out: Ints, words: Words, t: int, s: int) -> tuple[int, int]:
    """Draw until `out` is full or the words run out; the draws made and the words they used.

    A draw cut short is not thrown away but begun again with the same words and more: dropping it would favour short
    draws, which are the small ones.
    """
    at = 0
    for i in range(len(out)):
        drawn, end, value = _draw(words, at, t, s)
        if not drawn:
            return i, at
        out[i] = value
        at = end
    return len(out), at


@kernel
def _uniform(words: Words, at: int, n: int) -> tuple[np.int64, int]:
    """A uniform integer below n by rejection; -1 when the words have run out."""
    limit = np.uint64(0xFFFFFFFFFFFFFFFF) - np.uint64(0xFFFFFFFFFFFFFFFF) % np.uint64(n)
    while at < len(words):
        word = words[at]
        at += 1
        if word < limit:
            return np.int64(word % np.uint64(n)), at
    return np.int64(-1), at


@kernel
def _bernoulli_exp(words: Words, at: int, u: int | np.int64, t: int) -> tuple[int, int]:
    """1 with probability exp(-u/t), 0 <= u <= t; -1 when the words have run out."""
    k = 1
    while True:
        draw, at = _uniform(words, at, t * k)
        if draw < 0:
            return -1, at
        if draw >= u:
            return k & 1, at
        k += 1


@kernel
def _draw(words: Words, at: int, t: int, s: int) -> tuple[bool, int, int | np.int64]:
    while True:
        u, at = _uniform(words, at, t)
        if u < 0:
            return False, at, 0
        keep, at = _bernoulli_exp(words, at, u, t)
        if keep < 0:
            return False, at, 0
        if keep == 0:
            continue
        v = 0
        more, at = _bernoulli_exp(words, at, 1, 1)
        while more == 1:
            v += 1
            more, at = _bernoulli_exp(words, at, 1, 1)
        sign, at = _uniform(words, at, 2)
        if more < 0 or sign < 0:
            return False, at, 0
        y = (u + t * v) // s
        if sign == 1 and y == 0:
            continue
        return True, at, (-y if sign == 1 else y)
