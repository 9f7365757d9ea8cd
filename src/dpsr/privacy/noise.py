"""Where randomness comes from, and exact noise for integer statistics: no floating point touches a secret.

**A stream cipher keyed once, read by position.** AES-256 in counter mode turns a key into a stream of bits that nobody
without the key can tell from coin flips. The key comes from the operating system's generator, lives in memory only, and
is never written or shown. Because any place of the stream can be read directly, the noise of rating i is a function of
(key, question, i): a task that is retried, a different number of threads or another partition of the work draws the
same symbols, so that every rating is answered exactly once. `NoiseSource.seeded(seed)` makes its key from a seed, for
experiments: whoever has the seed can subtract the noise, so everything it touches is marked not private.

**Discrete Laplace noise**

    P[Z = z]  is proportional to  exp(-|z| / scale),   z integer, scale = t/s rational

after Canonne, Kamath and Steinke (2020): every decision is a comparison of uniform integers. A statistic
of integer sensitivity D released with it costs exactly D / scale.

**Exactly rounded normal noise**

    N = round(sigma Z),   Z standard normal,   sigma^2 a whole number

so x + N = round(x + sigma Z) for a whole x: the continuous Gaussian mechanism, rounded afterwards, and priced as that
(`certify.normal_price`). Z is drawn exactly (Karney 2016, algorithm N): every decision compares uniform deviates bit by
bit. A draw is

    |Z| = k + x,    k whole, x in (0, 1):    k with probability ~ exp(-k^2/2),   x accepted with exp(-x (2k + x) / 2),

built from coins of probability exp(-1/2) (von Neumann: the parity of a descending run of uniforms below one half). A
uniform deviate is 64 bits of the stream; where two are equal so far, 64 more of each are read and kept. sigma |Z| is
rounded in floating point where that is certain to give the right integer, and with whole numbers where it is not,
reading more bits of x if those it has leave the choice open.

Known gap: two deviates that agree in 128 bits count as not in order. For fewer than 2^36 draws that changes the
probability of any event by less than the part `SAMPLER_SLACK` of it, for a deviate x meets another in so many bits with
the same chance whatever x is. So no e^epsilon multiplies it; it is added to delta (`certify.normal_price`).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt, sqrt
from operator import index

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dpsr.arrays import Bools, Ints, Words
from dpsr.certify.normal_price import VARIANCE_BITS
from dpsr.errors import ParameterError, PrivacyError
from dpsr.linalg.compiled import kernel

_CIPHER_BLOCK = 16
_KEY = 32
_STREAMS = 1 << 63
_ZEROS = bytes(1 << 16)
"""What is encrypted, piece after piece: few enough to stay near the processor, where the stream itself is long."""


@dataclass(frozen=True)
class NoiseStream:
    """One stream of uniform bits under a key; any place can be read, and reads the same every time."""

    _key: bytes
    _number: int

    def half_words(self, n: int, start: int = 0) -> npt.NDArray[np.uint16]:
        """n uniform 16-bit integers, from place `start` on."""
        return self._bytes(2 * start, 2 * n).view(np.uint16)

    def words(self, n: int, start: int = 0) -> npt.NDArray[np.uint64]:
        """n uniform 64-bit integers, from place `start` on."""
        return self._bytes(8 * start, 8 * n).view(np.uint64)

    def fork(self) -> NoiseStream:
        """A second stream that belongs to this one."""
        return NoiseStream(self._key, self._number + _STREAMS)

    def _bytes(self, start: int, n: int) -> npt.NDArray[np.uint8]:
        block, skip = divmod(start, _CIPHER_BLOCK)
        counter = self._number.to_bytes(8, "big") + block.to_bytes(8, "big")
        encryptor = Cipher(algorithms.AES(self._key), modes.CTR(counter)).encryptor()
        if skip + n <= len(_ZEROS):
            return np.frombuffer(encryptor.update(_ZEROS[: skip + n]), dtype=np.uint8)[skip:]
        stream = np.empty(skip + n + _CIPHER_BLOCK - 1, dtype=np.uint8)  # the cipher asks for room to spare
        room = stream.data
        for at in range(0, skip + n, len(_ZEROS)):
            encryptor.update_into(_ZEROS[: skip + n - at], room[at:])
        stream.setflags(write=False)
        return stream[skip : skip + n]

    def __repr__(self) -> str:  # a key is never shown
        return "NoiseStream"


@dataclass(eq=False)
class NoiseSource:
    """A key, and whether it is secret. Every question to the ratings reads a stream of its own."""

    private: bool
    _key: bytes = field(repr=False)
    _asked: int = field(default=0, repr=False)

    @classmethod
    def system(cls) -> NoiseSource:
        """A fresh key from the operating system's cryptographically secure generator."""
        return cls(True, os.urandom(_KEY))

    @classmethod
    def seeded(cls, seed: int) -> NoiseSource:
        """A reproducible key for experiments. NOT PRIVATE."""
        try:
            whole = index(seed)
        except TypeError:
            raise ParameterError(f"a seed is a whole number, found {seed!r}. Without one, noise is private.") from None
        return cls(False, hashlib.sha256(f"dpsr experiment {whole}".encode()).digest())

    @classmethod
    def of_seed(cls, seed: int | None) -> NoiseSource:
        """The system's noise; where there is a seed, that of the experiment. NOT PRIVATE then."""
        return cls.system() if seed is None else cls.seeded(seed)

    @property
    def kind(self) -> str:
        return "system" if self.private else "seeded"

    @property
    def identity(self) -> str:
        """A public name for what was drawn so far, 32 hexadecimal digits; it tells nothing about the key."""
        return hashlib.sha256(b"dpsr draws %d " % self._asked + self._key).hexdigest()[:32]

    def stream(self) -> NoiseStream:
        """The next stream; no two questions share one."""
        self._asked += 1
        return NoiseStream(self._key, self._asked)


_LAPLACE_WORDS = 10
"""Nearly all scales use that many on average."""

_FEWEST_LAPLACE_WORDS = 64
"""For a draw or two, which often take more than the average: asking again costs more than these."""

_LAPLACE_CHUNK = 1 << 14
"""Draws whose random words are held at a time."""

_LAPLACE_LIMIT = 1 << 40
"""Numerators and denominators stay below this, so that no product of the sampler overflows 63 bits."""


@lru_cache(maxsize=1024)  # audits ask the same question of thousands of vaults
def laplace_scale(sensitivity: int, epsilon: float) -> Fraction:
    """A rational scale with small terms that is not below sensitivity / epsilon: rounding favours privacy."""
    exact = Fraction(sensitivity) / Fraction(epsilon)
    bits = max(0, 24 - int(exact).bit_length())
    scale = Fraction(-((-exact.numerator << bits) // exact.denominator), 1 << bits)
    if scale.numerator >= _LAPLACE_LIMIT:
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
        want = min(_LAPLACE_CHUNK, n - done)
        ask = patience * max(_LAPLACE_WORDS * want, _FEWEST_LAPLACE_WORDS)
        words = stream.words(ask, used)  # what the chunk before left over comes again
        made, taken = _draw_laplaces(result[done : done + want], words, scale.numerator, scale.denominator)
        done, used = done + made, used + taken
        patience = 1 if made else 2 * patience  # a draw that is longer than all these words
    return result


@kernel
def _draw_laplaces(out: Ints, words: Words, t: int, s: int) -> tuple[int, int]:
    """Draw until `out` is full or the words run out; the draws made and the words they used.

    A draw cut short is not thrown away but begun again with the same words and more: dropping it would favour short
    draws, which are the small ones.
    """
    at = 0
    for i in range(len(out)):
        drawn, end, value = _draw_laplace(words, at, t, s)
        if not drawn:
            return i, at
        out[i] = value
        at = end
    return len(out), at


@kernel
def _uniform_below(words: Words, at: int, n: int) -> tuple[np.int64, int]:
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
        draw, at = _uniform_below(words, at, t * k)
        if draw < 0:
            return -1, at
        if draw >= u:
            return k & 1, at
        k += 1


@kernel
def _draw_laplace(words: Words, at: int, t: int, s: int) -> tuple[bool, int, int | np.int64]:
    while True:
        u, at = _uniform_below(words, at, t)
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
        sign, at = _uniform_below(words, at, 2)
        if more < 0 or sign < 0:
            return False, at, 0
        y = (u + t * v) // s
        if sign == 1 and y == 0:
            continue
        return True, at, (-y if sign == 1 else y)


_NORMAL_WORDS = 20
_NORMAL_CHUNK = 1 << 13
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
        want = min(_NORMAL_CHUNK, n - done)
        ask = max(_NORMAL_WORDS * want - len(words), _NORMAL_WORDS)  # what the chunk before left over comes first
        words, read = np.concatenate([words, stream.words(ask, read)]), read + ask
        signs, whole, first, second = np.empty(want, np.int8), np.empty(want, np.int64), *np.empty((2, want), np.uint64)
        more = np.empty(want, np.bool_)
        made, used = _draw_normals(words, signs, whole, first, second, more)
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
def _draw_normals(
    words: Words, signs: npt.NDArray[np.int8], whole: Ints, first: Words, second: Words, more: Bools
) -> tuple[int, int]:
    """Draw until the arrays are full or the words run out; the draws made and the words they used.

    A draw cut short is begun again with the same words and more: dropping it would favour short draws.
    """
    at = 0
    for i in range(len(signs)):
        k, x, end = _draw_normal(words, at)
        if end < 0 or end >= len(words):
            return i, at
        signs[i] = 1 if words[end] >> np.uint64(63) else -1
        whole[i] = k
        first[i], second[i], more[i] = x
        at = end + 1
    return len(signs), at


@kernel
def _draw_normal(words: Words, at: int) -> tuple[int, Deviate, int]:
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
