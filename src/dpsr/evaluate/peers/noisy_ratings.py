"""Noise on every rating, then a recommender that takes them for ratings: the paper's own baselines.

    r~ = r + Lap(D / epsilon)   or   r + N(0, sigma^2),   D the width of the scale, then clipped to the scale

as exact channels (`privacy.channels`); sigma is the smallest that is (epsilon, delta)-DP (Balle and Wang 2018), not
the classical one, which is larger where it is proved and unproved where the paper uses it. Kindly: ratings are clipped
after the noise, and ALS chooses rank and ridge on held-back noisy ratings, which is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines import ALS, MF, Baseline
from dpsr.evaluate.baselines.factorisation import LARGE_BATCH
from dpsr.evaluate.contract import MASK, SEEDED, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.privacy.channels import Channel, gaussian, laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import Scale


@dataclass
class NoisyRatings(PrivateMethod):
    """`noise` on every rating, then `learner` on the noisy ratings."""

    noise: Literal["laplace", "gaussian"] = "laplace"
    learner: Literal["als", "mf"] = "als"

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        channel = channel_of(self.noise, ratings.scale, self.epsilon, self.delta)
        private = privatise(ratings, channel, noise=NoiseSource.seeded(self.noise_seed))
        model = self._recommender().fit(ratings.mask, ratings.scale.clip(private.values), ratings.scale)
        price = private.certificate
        return model, Protection("rating value", price.epsilon, price.delta, MASK, SEEDED)

    def _recommender(self) -> Baseline:
        if self.learner == "als":
            return ALS(random_state=self.learner_seed)
        return MF(batch_size=LARGE_BATCH, random_state=self.learner_seed)


@cache
def channel_of(noise: str, scale: Scale, epsilon: float, delta: float) -> Channel:
    """The table of integers for this noise; settling its exact price takes longer than drawing from it."""
    return laplace(scale, epsilon) if noise == "laplace" else gaussian(scale, epsilon, delta)
