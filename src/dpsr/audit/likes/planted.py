"""Vaults of interactions with a planted error, of the kinds that `audit.people.planted` has for ratings.

Nothing else in the library may use them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpsr.arrays import Ints
from dpsr.audit.likes.questions import LikesSetting, counts, counts_twice, moments, names, pairs, people_numbered
from dpsr.audit.people.planted import ExactCount, HalvedBound, ReusedNoise
from dpsr.audit.people.questions import Trial
from dpsr.privacy.noise import NoiseSource, rounded_normal
from dpsr.privacy.vault.people.likes_vault import PeopleLikesVault, SingleLikesVault

Planted = Callable[[LikesSetting, NoiseSource, np.random.Generator], Trial]


class _HalvedBound(HalvedBound, PeopleLikesVault):
    """Of interactions."""


class _ReusedNoise(ReusedNoise, PeopleLikesVault):
    """Of interactions."""


class _ExactCount(ExactCount, PeopleLikesVault):
    """Of interactions."""


class _HalvedPairs(SingleLikesVault):
    """A quarter of the variance that its receipts state, of single interactions."""

    def _draw(self, variance: int, n: int) -> Ints:
        return rounded_normal(max(variance // 4, 1), n, self._noise)


def halved_bound(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Noise for half the bound of counts."""
    found = counts(replace(setting, vaults=_HalvedBound), noise, rng)
    return replace(found, name="noise for half the bound of counts")


def halved_products(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Noise for half the bound of second moments."""
    found = moments(replace(setting, vaults=_HalvedBound), noise, rng)
    return replace(found, name="noise for half the bound of second moments")


def halved_pairs(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Noise for half the bound of pairs, where single interactions are protected."""
    found = pairs(replace(setting, unit="rating", vaults=_HalvedPairs), noise, rng)
    return replace(found, name="noise for half the bound of pairs")


def halved_names(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Noise for half the bound of names."""
    found = names(replace(setting, vaults=_HalvedBound), noise, rng)
    return replace(found, name="noise for half the bound of names")


def two_blocks(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Everybody's interactions in two blocks, each half bounded by itself."""
    return replace(counts(setting, noise, rng, halves=True), name="a person in two blocks")


def reused_noise(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """Two questions with the same random numbers."""
    return replace(counts_twice(replace(setting, vaults=_ReusedNoise), noise, rng), name="noise used again")


def exact_count(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator) -> Trial:
    """The number of people with one interaction as it is: canaries have one."""
    return replace(people_numbered(replace(setting, vaults=_ExactCount), noise, rng), name="exact number of people")


PLANTED_LIKES: tuple[Planted, ...] = (
    halved_bound,
    halved_products,
    halved_pairs,
    halved_names,
    two_blocks,
    reused_noise,
    exact_count,
)
