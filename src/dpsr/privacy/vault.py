"""The vault: raw ratings behind a counter that hands out noisy answers and adds up what they cost.

A pipeline that asks several questions about the same ratings holds a `Vault` and never a rating. Every answer comes
with its price; a question that would exceed the budget is refused before any noise is drawn. What may be asked:

    histogram    how many ratings have each (pooled) level                 one rating moves two counts by one
    window_sums  sums over items and users of  weight x clip(r - centre)   at most  max weight x window width
    symbols      one symbol per rating from one of several finite channels at most the dearest channel

Centres, weights, windows and channels are functions of the public mask and of earlier answers. Integers only: values
are rounded to a fixed grid before they are added, and the noise is discrete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.errors import PrivacyError
from dpsr.privacy.channel import Channel
from dpsr.privacy.discrete import discrete_laplace, laplace_scale
from dpsr.privacy.mechanisms import analytic_sigma, check_delta, check_epsilon
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.privatise import SEEDED, as_table, public_facts
from dpsr.privacy.sampler import BITS, Sampler
from dpsr.types import Certificate, Mask, Part, Scale
from dpsr.types.exact import float_up
from dpsr.types.raw import RawRatings

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

VALUE_GRID = 1 << 12
"""A window of half the scale's width is this many steps of the value grid."""

WEIGHT_GRID = 1 << 4
"""Weights are multiples of one over this."""


@dataclass(frozen=True)
class Noisy:
    """A noisy statistic and the variance of the noise in each of its numbers."""

    values: Floats
    noise_variance: float


@dataclass(frozen=True)
class Group:
    """Ratings added up together: `labels[i]` is the sum rating i goes to, `weights[i]` in [0, 1] how much of it."""

    labels: Ints
    weights: Floats
    size: int


class Vault:
    """Raw ratings and a budget. Ask; do not look."""

    def __init__(self, ratings: RawRatings, epsilon: float, *, noise: NoiseSource, delta: float | None = None) -> None:
        self.mask: Mask = ratings.mask
        self.scale: Scale = ratings.scale
        self.epsilon = check_epsilon(epsilon)
        self.delta = None if delta is None else check_delta(delta)
        self._levels = ratings.levels
        self._noise = noise
        self._parts: list[Part] = []

    @property
    def spent(self) -> Fraction:
        return sum((Fraction(part.epsilon) for part in self._parts), Fraction(0))

    @property
    def left(self) -> float:
        """What is left of the budget, rounded down."""
        return -float_up(self.spent - Fraction(self.epsilon))

    def histogram(self, bins: Ints, *, epsilon: float) -> Noisy:
        """Noisy counts of `bins[level]`."""
        counts = np.bincount(bins[self._levels], minlength=int(bins.max()) + 1)
        return self._release("level histogram", counts, 2, epsilon, unit=1.0, details={"bins": bins.tolist()})

    def window_sums(
        self, centre: Floats, half_width: float, groups: Sequence[Group], *, epsilon: float
    ) -> tuple[Noisy, ...]:
        """For every group, noisy sums of weight x clip(value - centre, -half_width, half_width).

        `centre` and `half_width` are in rating points, one centre per rating. All groups together cost `epsilon` once.
        """
        step = self.scale.width / 2 / VALUE_GRID
        limit = int(half_width / step)
        steps = np.rint((self.scale.values[self._levels] - centre) / step).astype(np.int64)
        clipped = np.clip(steps, -limit, limit)
        weights = [np.floor(group.weights * WEIGHT_GRID).astype(np.int64) for group in groups]
        sums = [
            np.bincount(group.labels, (w * clipped).astype(np.float64), group.size).astype(np.int64)
            for group, w in zip(groups, weights, strict=True)
        ]  # float64 adds integers below 2**53 exactly
        answer = self._release(
            "window sums",
            np.concatenate(sums),
            sensitivity=2 * limit * int(np.max(np.sum(weights, axis=0))),
            epsilon=epsilon,
            unit=step / WEIGHT_GRID,
            details={"half_width": limit * step, "sums": [group.size for group in groups]},
        )
        edges = np.cumsum([group.size for group in groups])[:-1]
        return tuple(Noisy(values, answer.noise_variance) for values in np.split(answer.values, edges))

    def symbols(self, channels: Sequence[Channel], choice: Ints) -> npt.NDArray[np.uint16]:
        """One symbol per rating: rating i passes once through `channels[choice[i]]`."""
        price = max(channel.epsilon for channel in channels)
        part = Part(
            name="ratings",
            mechanism=channels[0].mechanism,
            epsilon=price,
            bits=BITS,
            tables=tuple(as_table(channel.weights) for channel in channels),
        )
        self._charge(part)
        k, most = self.scale.n_levels, max(channel.weights.shape[1] for channel in channels)
        stacked = np.zeros((len(channels) * k, most), dtype=np.uint64)
        for c, channel in enumerate(channels):
            stacked[c * k : (c + 1) * k, : channel.weights.shape[1]] = channel.weights
        rows = choice.astype(np.int64) * k + self._levels
        return Sampler(stacked).draw(rows, self._noise)

    def certificate(self, nominal: float | None = None) -> Certificate:
        """The receipt for everything asked so far."""
        reasons = () if self._noise.private else (SEEDED,)
        return Certificate(
            nominal=self.epsilon if nominal is None else nominal,
            parts=tuple(self._parts),
            public=public_facts(self.mask, self.scale),
            randomness=self._noise.kind,
            private=not reasons,
            reasons=reasons,
            software=f"dpsr {version('dpsr')}",
        )

    def _release(
        self, name: str, values: Ints, sensitivity: int, epsilon: float, *, unit: float, details: dict[str, Any]
    ) -> Noisy:
        """Charge, then add discrete Laplace noise: the price and the noise come from the same two numbers."""
        scale = laplace_scale(sensitivity, epsilon)
        part = Part(
            name=name,
            mechanism="discrete Laplace",
            epsilon=float_up(Fraction(sensitivity) / scale),
            sensitivity=sensitivity,
            noise_scale=str(scale),
            details=details,
        )
        self._charge(part)
        noisy = values + discrete_laplace(scale, len(values), self._noise)
        return Noisy(noisy.astype(np.float64) * unit, 2 * (float(scale) * unit) ** 2)

    def _charge(self, part: Part) -> None:
        if self.spent + Fraction(part.epsilon) > Fraction(self.epsilon):
            raise PrivacyError(
                f"{part.name} would cost {part.epsilon:.6g} and only {self.left:.6g} of {self.epsilon:g} is left. "
                "Nothing was drawn. Ask for less."
            )
        self._parts.append(part)


def gaussian_is_better(weights: Sequence[float], epsilon: float, delta: float) -> bool:
    """Whether (epsilon, delta) Gaussian noise on sums would have less variance than pure epsilon Laplace noise.

    One rating moves one sum of each group, by its weight: sensitivity sum(w) in L1 and sqrt(sum(w^2)) in L2. With the
    smallest Gaussian deviation (Balle and Wang) the variances are 2 (L1 / epsilon)^2 and (L2 sigma(epsilon, delta))^2.
    """
    w = np.asarray(weights, dtype=np.float64)
    return bool(analytic_sigma(epsilon, delta) ** 2 * (w @ w) < 2 * (w.sum() / epsilon) ** 2)
