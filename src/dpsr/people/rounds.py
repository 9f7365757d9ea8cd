r"""Rounds of scores, and what all of them say of a cell's weighted count lam and its effect theta.

A round asked at the estimate `at` has S = lam G(theta - at) + noise and C = lam H(theta - at) + noise, H = G'.

**Scores of people** are linear, G(t) = rho t, and pooled into one line (`PooledRounds`).

**Scores of ratings** saturate: x = z / sqrt(z^2 + a^2) tells the less of an effect the further from it it was asked. If
residuals are normal, G(t) = rho E[x(z + t)] is known (`Saturation`); and every round is linearised at what is believed
of each cell's effect now. They are not normal, so G and H are believed within MODEL_ERROR of themselves: the error of S
is

    sigma^2 + (MODEL_ERROR lam G)^2.

So a round that was asked far from an effect counts by its noise where noise is large, and hardly at all where there is
none; there the last round decides, which was asked near the effect, where G is next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsr.arrays import Floats, Ints

EFFECT_VARIANCE = 0.2
"""Of items' effects, in squared spreads, before anything is known."""

MODEL_ERROR = 0.15
"""How far, relatively, scores and counts of ratings may lie from those of normal residuals."""

_LEAST_VARIANCE = 0.1
"""Of ratings around their item, in squared spreads, whatever effects are believed to explain."""

_CLEAR = 3.0
"""How many deviations of noise and chance scores and counts have to be for a first guess at an effect."""

_Z = np.linspace(-6, 6, 241)
_P = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()
_T = np.linspace(-12, 12, 481)
"""Distances, in spreads, at which curves are tabulated."""


@dataclass(frozen=True, eq=False)
class PooledRounds:
    """Rounds of scores put together: S = lam (theta - at) + noise of deviation weight^-1/2.

    A round has the slope rho relative to the first and noise sigma, S_k = rho_k lam (theta - at_k) + sigma_k N(0, 1).
    Least squares over rounds has one line as sufficient statistic: S_k / rho_k and at_k averaged with weights rho_k^2 /
    sigma_k^2.
    """

    S: Floats
    at: Floats
    weight: float

    @classmethod
    def none(cls, *shape: int) -> PooledRounds:
        return cls(np.zeros(shape), np.zeros(shape), 0.0)

    def add(self, S: Floats, at: Floats, rho: float, sigma: float) -> PooledRounds:
        """With one round more."""
        w = rho**2 / sigma**2
        total = self.weight + w
        return PooledRounds(
            (self.S * self.weight + S / rho * w) / total, (self.at * self.weight + at * w) / total, total
        )

    @property
    def sigma(self) -> float:
        return float(self.weight**-0.5)


@dataclass(frozen=True)
class Saturation:
    """Scores x = z / sqrt(z^2 + width^2) of residuals whose variance beside items' effects is 1 - v + `level_variance`.

    `unit` is the slope of a rating of weighted count one.
    """

    width: float
    level_variance: float
    unit: float

    def tables(self, effect_variance: float) -> tuple[Floats, Floats, Floats]:
        """G, H = G' and H' on `_T`, if effects have this variance."""
        deviation = np.sqrt(max(1 - effect_variance, _LEAST_VARIANCE) + self.level_variance)
        z, a = _T[:, None] + deviation * _Z, self.width
        root = np.sqrt(z * z + a * a)
        parts = (z / root, a**2 / root**3, -3 * a**2 * z / root**5)
        G, H, curvature = (one @ _P / self.unit for one in parts)
        return G, H, curvature


@dataclass(frozen=True, eq=False)
class Round:
    """Scores S and counts C of all cells, with deviations of their noise; rho is the slope beside what is expected."""

    S: Floats
    C: Floats
    at: Floats
    noise: float
    count_noise: float
    rho: float = 1.0
    saturation: Saturation | None = None

    def curve(self, t: Floats, effect_variance: float) -> tuple[Floats, Floats, Floats]:
        """G, H and H' of every cell if its effect is t."""
        if self.saturation is None:
            slope = np.full(len(t), self.rho)
            return self.rho * (t - self.at), slope, np.zeros(len(t))
        G, H, curvature = (
            self.rho * np.interp(t - self.at, _T, one) for one in self.saturation.tables(effect_variance)
        )
        return G, H, curvature

    def first_effects(self, farthest: float) -> Floats:
        """Where to begin: the effect, at most `farthest` away, at which scores are to counts as they are.

        The angle of (G, H) rises with the effect, also where noise has made a count negative. A Newton step from `at`
        would overshoot without end: counts vanish far from an effect. Cells of few ratings, whose own residuals are not
        those of all, and those that noise drowns begin at `at`.
        """
        if self.saturation is None:
            return self.at
        G, H, _ = self.saturation.tables(EFFECT_VARIANCE)
        near, a = np.abs(_T) <= farthest, self.noise / self.count_noise
        found = np.interp(np.arctan2(self.S, a * self.C), np.arctan2(G, a * H)[near], _T[near])
        length = np.hypot(self.S, a * self.C)
        return np.where(length**2 > _CLEAR**2 * (self.noise**2 + length), self.at + found, self.at)

    def at_cells(self, cells: Ints) -> Round:
        """The same for some cells."""
        return replace(self, S=self.S[cells], C=self.C[cells], at=self.at[cells])

    @property
    def model_error(self) -> float:
        return 0.0 if self.saturation is None else MODEL_ERROR


def sufficient_statistics(rounds: Sequence[Round], t: Floats, lam: Floats, effect_variance: float) -> Floats:
    """Sums (8, cells) over rounds, over their errors: S G, S G', G G, G G', G' G' and C H, H H, H H', all at t."""
    out = np.zeros((8, len(t)))
    for one in rounds:
        G, H, curvature = one.curve(t, effect_variance)
        w = 1 / (one.noise**2 + (one.model_error * lam * G) ** 2)
        for i, product in enumerate((one.S * G, one.S * H, G * G, G * H, H * H)):
            out[i] += w * product
        w = 1 / (one.count_noise**2 + (one.model_error * lam * H) ** 2)
        for i, product in enumerate((one.C * H, H * H, H * curvature)):
            out[5 + i] += w * product
    return out


def count_noise(rounds: Sequence[Round]) -> float:
    """The deviation of the noise of all counts together, where rounds were asked at the effect."""
    slopes = [float(one.curve(one.at[:1], EFFECT_VARIANCE)[1][0]) for one in rounds]
    return float(sum((slope / one.count_noise) ** 2 for slope, one in zip(slopes, rounds, strict=True)) ** -0.5)
