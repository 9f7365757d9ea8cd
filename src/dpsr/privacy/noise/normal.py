"""Exactly rounded normal noise for integer statistics.

    N = round(sigma Z),   Z standard normal,   sigma^2 a whole number

so x + N = round(x + sigma Z) for a whole x: the continuous Gaussian mechanism, rounded afterwards, and priced as that
(`certify.normal`). Z is drawn exactly (Karney 2016, algorithm N): every decision compares uniform deviates bit by bit,
so no floating point decides anything. A draw is

    |Z| = k + x,    k whole, x in (0, 1):    k with probability ~ exp(-k^2/2),   x accepted with exp(-x (2k + x) / 2),

built from coins of probability exp(-1/2) (von Neumann: the parity of a descending run of uniforms below one half).

A uniform deviate is 64 bits of the stream; where two are equal so far, 64 more of each are read and kept. sigma |Z| is
rounded in floating point where that is certain to give the right integer, and with whole numbers where it is not,
reading more bits of x if those it has leave the choice open.

Known gap: two deviates that agree in 128 bits count as not in order. For fewer than 2^36 draws that changes the
probability of any event by less than the part `SAMPLER_SLACK` of it, for a deviate x meets another in so many bits with
the same chance whatever x is. So no e^epsilon multiplies it; it is added to delta (`certify.normal_price`).
"""

from __future__ import annotations

from math import isqrt, sqrt

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Bools, Ints, Words
from dpsr.certify.normal_price import VARIANCE_BITS
from dpsr.errors import PrivacyError
from dpsr.linalg.compiled import kernel
from dpsr.privacy.noise.source import NoiseSource, NoiseStream

_WORDS_PER_DRAW = 20
_CHUNK = 1 << 13
"""Draws whose random words are held at a time: few enough to stay near the processor."""

_LARGEST = 1 << VARIANCE_BITS

Deviate = tuple[np.uint64, np.uint64, bool]
"""A uniform deviate: its first 64 bits, room for 64 more, and whether these were read."""


def rounded_normal(variance: int, n: int, noise: NoiseSource) -> Ints:
    """n independent draws of round(sigma Z), sigma^2 = `variance`."""
    if not 0 < variance < _LARGEST:
        raise PrivacyError(
            f"the variance of normal noise is a whole number above 0 and below 2**104, found {str(variance)[:30]}. Use "
            "a larger epsilon, or a coarser grid."
        )
    stream, result = noise.stream(), np.empty(n, dtype=np.int64)
    spare = _Spare(stream.fork())
    words, read, done, sigma = np.empty(0, dtype=np.uint64), 0, 0, sqrt(variance)
    while done < n:
        want = min(_CHUNK, n - done)
        ask = max(_WORDS_PER_DRAW * want - len(words), _WORDS_PER_DRAW)  # what the chunk before left over comes first
        words, read = np.concatenate([words, stream.words(ask, read)]), read + ask
        signs, whole, first, second = np.empty(want, np.int8), np.empty(want, np.int64), *np.empty((2, want), np.uint64)
        more = np.empty(want, np.bool_)
        made, used = _draw_many(words, signs, whole, first, second, more)
        out = result[done : done + made]
        unsure = _round_many(sigma, signs, whole, first, out)
        for i in np.flatnonzero(unsure):
            bits = [int(first[i]), *([int(second[i])] if more[i] else [])]
            out[i] = int(signs[i]) * _round_exactly(variance, int(whole[i]), bits, spare)
        done, words = done + made, words[used:]
    return result


class _Spare:
    """Further words, one after the other, for draws that need more bits than they have."""

    def __init__(self, stream: NoiseStream) -> None:
        self._stream, self._read = stream, 0

    def word(self) -> int:
        self._read += 1
        return int(self._stream.words(1, self._read - 1)[0])


def _round_exactly(variance: int, whole: int, words: list[int], spare: _Spare) -> int:
    """round(sigma (whole + x)) for an x that begins with these words, and goes on with more where they leave it open.

    For z = a / 2^b:  floor(2 sigma z) = isqrt(4 variance a^2) >> b,  and  round(t) = (floor(2 t) + 1) // 2.
    """
    a, bits = whole, 0
    while True:
        a, bits = (a << 64) + (words.pop(0) if words else spare.word()), bits + 64
        low, high = ((isqrt(4 * variance * end * end) >> bits) + 1 >> 1 for end in (a, a + 1))
        if low == high and not words:
            return low


@kernel
def _round_many(sigma: float, signs: npt.NDArray[np.int8], whole: Ints, first: Words, out: Ints) -> Bools:
    """Round in floating point; true where its last bits, or bits of x that were not read, could have decided."""
    unsure, unread = np.zeros(len(out), dtype=np.bool_), sigma * 2.0**-63
    for i in range(len(out)):
        exact = sigma * (whole[i] + first[i] * 2.0**-64)
        nearest = np.floor(exact + 0.5)
        unsure[i] = abs(abs(exact - nearest) - 0.5) < exact * 2.0**-48 + 2.0**-40 + unread or exact > 2.0**50
        out[i] = signs[i] * np.int64(nearest)
    return unsure


@kernel
def _draw_many(
    words: Words, signs: npt.NDArray[np.int8], whole: Ints, first: Words, second: Words, more: Bools
) -> tuple[int, int]:
    """Draw until the arrays are full or the words run out; the draws made and the words they used.

    A draw cut short is begun again with the same words and more: dropping it would favour short draws.
    """
    at = 0
    for i in range(len(signs)):
        k, x, end = _draw(words, at)
        if end < 0 or end >= len(words):
            return i, at
        signs[i] = 1 if words[end] >> np.uint64(63) else -1
        whole[i] = k
        first[i], second[i], more[i] = x
        at = end + 1
    return len(signs), at


@kernel
def _draw(words: Words, at: int) -> tuple[int, Deviate, int]:
    """One |Z| = k + x, and where it stopped reading; -1 when the words ran out."""
    while True:
        k = 0
        coin, at = _coin(words, at)
        while coin == 1:
            k += 1
            coin, at = _coin(words, at)
        for _ in range(k * (k - 1) if coin == 0 else 0):
            coin, at = _coin(words, at)
            if coin != 1:
                break
        else:
            coin = 1 if coin >= 0 else -1
        x, at = _uniform(words, at)
        for _ in range(k + 1 if coin == 1 else 0):
            coin, x, at = _keep(words, at, k, x)
            if coin != 1:
                break
        if coin < 0 or at < 0:
            return 0, x, -1
        if coin == 1:
            return k, x, at


@kernel
def _uniform(words: Words, at: int) -> tuple[Deviate, int]:
    """A fresh deviate; `at` is -1 once the words have run out."""
    if at < 0 or at >= len(words):
        return (np.uint64(0), np.uint64(0), False), -1
    return (words[at], np.uint64(0), False), at + 1


@kernel
def _below(words: Words, at: int, u: Deviate, v: Deviate) -> tuple[np.bool_, Deviate, Deviate, int]:
    """Whether u < v, both with the bits they have now, and where it stopped reading."""
    if u[0] != v[0] or at < 0:
        return u[0] < v[0], u, v, at
    if not u[2]:
        more, at = _uniform(words, at)
        u = (u[0], more[0], True)
    if not v[2]:
        more, at = _uniform(words, at)
        v = (v[0], more[0], True)
    return u[1] < v[1], u, v, at


@kernel
def _coin(words: Words, at: int) -> tuple[int, int]:
    """1 with probability exp(-1/2), 0 otherwise, -1 when the words have run out.

    The length n of the run 1/2 > u1 > u2 > ... > un is even with that probability.
    """
    last, at = _uniform(words, at)
    if last[0] >> np.uint64(63):
        return (1 if at >= 0 else -1), at
    n = 1
    while at >= 0:
        new, at = _uniform(words, at)
        down, new, last, at = _below(words, at, new, last)
        if not down and at >= 0:
            return 1 - (n & 1), at
        last, n = new, n + 1
    return -1, at


@kernel
def _keep(words: Words, at: int, k: int, x: Deviate) -> tuple[int, Deviate, int]:
    """1 with probability exp(-x (2k + x) / (2k + 2)), 0 otherwise, -1 when the words have run out; x with its bits.

    The run x > z1 > z2 > ... goes on at each step with probability (2k + x) / (2k + 2) only: a whole number below 2k +
    2 decides, unless it is 2k, when a fresh deviate must lie below x.
    """
    last, first, n, m = x, True, 0, np.uint64(2 * k + 2)
    limit = np.uint64(0xFFFFFFFFFFFFFFFF) - np.uint64(0xFFFFFFFFFFFFFFFF) % m
    while True:
        z, at = _uniform(words, at)
        down, z, last, at = _below(words, at, z, last)
        if first:
            x = last
        if at < 0:
            return -1, x, at
        if not down:
            return 1 - (n & 1), x, at
        i, at = _uniform(words, at)
        while i[0] >= limit and at >= 0:
            i, at = _uniform(words, at)
        which = i[0] % m
        goes_on = which < m - np.uint64(2)
        if which == m - np.uint64(2):
            r, at = _uniform(words, at)
            goes_on, r, x, at = _below(words, at, r, x)
        if at < 0:
            return -1, x, at
        if not goes_on:
            return 1 - (n & 1), x, at
        last, first, n = z, False, n + 1
