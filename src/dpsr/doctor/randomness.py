"""A self-test of what privacy rests on: the system's generator, exact tables, and draws that follow them.

A chi-square test compares frequencies of real draws with the exact table. It calls a healthy sampler broken once in a
million examinations; a sampler off by five per cent in one likely symbol it catches practically always. The arithmetic
is checked exactly, against figures that can be worked out by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import inf

import numpy as np
import numpy.typing as npt

from dpsr.certify.table_price import epsilon_of, log_up
from dpsr.doctor.check import Check, Status
from dpsr.privacy.channels import Channel, laplace, optimal_channel, randomised_response
from dpsr.privacy.channels.channel import BITS
from dpsr.privacy.noise import NoiseSource, discrete_laplace
from dpsr.types import Scale

Draw = Callable[[Channel, npt.NDArray[np.uint16]], npt.NDArray[np.integer]]

REJECT = 1e-6
_DRAWS, _SLOW_DRAWS = 4_000_000, 200_000
_BYTES = 1 << 20
_LEAST_EXPECTED = 20.0
_SCALE = Scale(1, 5)
_LN2 = "0.69314718055994530941723212145817656807550013436025525412068"


def check_randomness() -> Iterator[Check]:
    """The generator, the arithmetic, and the draws."""
    yield check_generator(os.urandom)
    yield check_arithmetic()
    channels = {
        "Laplace": laplace(_SCALE, 1.0),
        "randomised response": randomised_response(_SCALE, 1.0),
        "optimal channel": optimal_channel(_SCALE, 1.0, [0.06, 0.11, 0.27, 0.34, 0.22]),
    }
    noise = NoiseSource.system()
    for name, channel in channels.items():
        yield check_channel(name, channel, lambda which, levels: which.sample(levels, noise))
    yield check_discrete(lambda scale, n: discrete_laplace(scale, n, noise))


def check_generator(read: Callable[[int], bytes]) -> Check:
    """Bytes of the operating system's generator: two reads differ, and all 256 values are equally frequent."""
    try:
        first, second = read(_BYTES), read(_BYTES)
    except (OSError, NotImplementedError) as error:
        return _check("system generator", None, f"does not answer ({type(error).__name__}); nothing can be released")
    counts = np.bincount(np.frombuffer(first, dtype=np.uint8), minlength=256)
    p = 0.0 if first == second else chi_square(counts, np.full(256, len(first) / 256))
    return _check("system generator", p, f"{2 * _BYTES >> 20} MiB read")


def check_arithmetic() -> Check:
    """Prices of tables one can work out by hand, on the side that never understates them."""
    half, quarter = 1 << (BITS - 1), 1 << (BITS - 2)
    table = [[half, quarter, quarter], [quarter, half, quarter]]
    ln2 = Fraction(_LN2)
    right = (
        0 <= Fraction(epsilon_of(table)) - ln2 < Fraction(1, 2**52)
        and log_up(Fraction(1)) == 0.0
        and epsilon_of([[half, half], [2 * half, 0]]) == inf
    )
    status = Status.ok if right else Status.broken
    words = "ln 2, 0 and infinity come out as they should, rounded up" if right else "a known price comes out wrong"
    return Check("privacy", "exact prices", status, words)


def check_channel(name: str, channel: Channel, draw: Draw) -> Check:
    """Rows sum to a power of two, the price is what a plain loop over fractions gives, and draws follow the table."""
    rows = [[int(cell) for cell in row] for row in channel.weights]
    ratios = [Fraction(a[y], b[y]) for a in rows for b in rows for y in range(len(a)) if b[y]]
    exact = all(sum(row) == 1 << BITS for row in rows) and log_up(max(ratios)) == channel.epsilon
    if not exact:
        return Check("privacy", f"sampler, {name}", Status.broken, "the table does not have the price it states")
    levels = np.repeat(np.arange(len(rows), dtype=np.uint16), _DRAWS // len(rows))
    symbols = draw(channel, levels)
    counts = [np.bincount(symbols[levels == x], minlength=len(row)) for x, row in enumerate(rows)]
    p = min(
        len(rows) * chi_square(count, count.sum() * likely)  # Bonferroni: one test a row
        for count, likely in zip(counts, channel.probabilities, strict=True)
    )
    return _check(f"sampler, {name}", p, f"{_DRAWS:,} draws from its {len(rows)} x {len(rows[0])} table")


def check_discrete(draw: Callable[[Fraction, int], npt.NDArray[np.int64]]) -> Check:
    """Discrete Laplace noise against its exact probabilities."""
    scale, most = Fraction(7, 2), 40
    values = np.clip(draw(scale, _SLOW_DRAWS), -most, most)
    weights = np.exp(-np.abs(np.arange(-most, most + 1)) / float(scale))
    weights[[0, -1]] /= 1 - np.exp(-1 / float(scale))  # everything beyond is counted at the ends
    expected = weights / weights.sum() * _SLOW_DRAWS
    p = chi_square(np.bincount(values + most, minlength=2 * most + 1), expected)
    return _check("discrete Laplace", p, f"{_SLOW_DRAWS:,} draws of scale {scale}")


def chi_square(counts: npt.NDArray[np.int64], expected: npt.NDArray[np.float64]) -> float:
    """p-value of Pearson's test; symbols expected less than twenty times are taken together."""
    from scipy.stats import chi2

    rare = expected < _LEAST_EXPECTED
    observed, mean = counts[~rare].astype(np.float64), expected[~rare]
    if expected[rare].sum() > 0:
        observed, mean = np.append(observed, counts[rare].sum()), np.append(mean, expected[rare].sum())
    if len(mean) < 2:
        return 1.0
    return float(chi2.sf(((observed - mean) ** 2 / mean).sum(), len(mean) - 1))


def _check(name: str, p: float | None, detail: str) -> Check:
    if p is None:
        return Check("privacy", name, Status.broken, detail)
    fits = p >= REJECT
    words = f"{detail}, p = {min(p, 1.0):.2g}" if fits else f"{detail} do not fit their probabilities (p = {p:.1g})"
    return Check("privacy", name, Status.ok if fits else Status.broken, words)
