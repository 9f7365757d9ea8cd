"""Vaults with a planted error, each of a kind that has happened to somebody. An audit worth its name rejects them.

    bound halved            noise for half of what a person can add
    a person in two blocks  what is bounded is half a person, and everybody is two
    noise reused            every question draws the same random numbers
    exact count leaked      how many people there are, without noise

Nothing else in the library may use them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpsr.arrays import Ints
from dpsr.audit.people.questions import Setting, Trial, people_counted, scores, scores_twice
from dpsr.privacy.noise import NoiseSource, rounded_normal
from dpsr.privacy.vault.people import PeopleVault
from dpsr.privacy.vault.people.asking import AskedOfPeople

Planted = Callable[[Setting, NoiseSource, np.random.Generator], Trial]


class HalvedBound(AskedOfPeople):
    """A quarter of the variance that its receipts state."""

    def _draw(self, variance: int, n: int) -> Ints:
        return rounded_normal(max(variance // 4, 1), n, self._noise)


class ReusedNoise(AskedOfPeople):
    """The stream of the first question for all of them."""

    _first: int | None = None

    def _draw(self, variance: int, n: int) -> Ints:
        if self._first is None:
            self._first = int(self._noise.stream().words(1)[0] >> np.uint64(1))
        return rounded_normal(variance, n, NoiseSource.seeded(self._first))


class ExactCount(AskedOfPeople):
    """No noise on the first number of every answer."""

    def _draw(self, variance: int, n: int) -> Ints:
        noise = rounded_normal(variance, n, self._noise)
        noise[0] = 0
        return noise


class _HalvedBound(HalvedBound, PeopleVault):
    """Of ratings."""


class _ReusedNoise(ReusedNoise, PeopleVault):
    """Of ratings."""


class _ExactCount(ExactCount, PeopleVault):
    """Of ratings."""


def halved_bound(setting: Setting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Noise for half the bound."""
    return _named("noise for half the bound", scores(replace(setting, vaults=_HalvedBound), noise, rng))


def two_blocks(setting: Setting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Everybody's ratings in two blocks, each half bounded by itself."""
    return _named("a person in two blocks", scores(setting, noise, rng, halves=True))


def reused_noise(setting: Setting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Two questions with the same random numbers."""
    return _named("noise used again", scores_twice(replace(setting, vaults=_ReusedNoise), noise, rng))


def exact_count(setting: Setting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """The number of people as it is."""
    return _named("exact number of people", people_counted(replace(setting, vaults=_ExactCount), noise, rng))


PLANTED: tuple[Planted, ...] = (halved_bound, two_blocks, reused_noise, exact_count)


def _named(name: str, trial: Trial) -> Trial:
    return replace(trial, name=name)
