"""Noise on every rating, then a recommender that takes them for ratings: the paper's own baselines.

    r~ = r + Lap(D / epsilon)   or   r + N(0, sigma^2),   D the width of the scale, then clipped to the scale

as exact channels (`privacy.mechanisms`); sigma is the smallest that is (epsilon, delta)-DP (Balle and Wang 2018), not
the classical one, which is larger where it is proved and unproved where the paper uses it. Kindly: ratings are clipped
after the noise, and ALS chooses rank and ridge on held-back noisy ratings, which is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from dpsr.evaluate.baselines import ALS, MF, Baseline
from dpsr.evaluate.peers.base import MASK, SEEDED, PrivatePeer, Protection
from dpsr.evaluate.ranking import Predictor
from dpsr.privacy.channels import Channel, gaussian, laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import Scale
from dpsr.types.raw import RawRatings

MF_BATCH = 2048
"""The paper does not state its batch; 256 takes a minute on 100,000 ratings."""


@dataclass
class NoisyRatings(PrivatePeer):
    """`name` says the noise and the recommender: laplace-als, laplace-mf, gaussian-als or gaussian-mf."""

    name: str = "laplace-als"

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        noise, recommender = self.name.split("-")
        channel = channel_of(noise, ratings.scale, self.epsilon, self.delta)
        private = privatise(ratings, channel, noise=NoiseSource.seeded(self.random_state))
        model = self._recommender(recommender).fit(ratings.mask, ratings.scale.clip(private.values), ratings.scale)
        price = private.certificate
        return model, Protection("rating value", price.epsilon, price.delta, MASK, SEEDED)

    def _recommender(self, name: str) -> Baseline:
        if name == "als":
            return ALS(random_state=self.random_state)
        return MF(batch_size=MF_BATCH, random_state=self.random_state)


@cache
def channel_of(noise: str, scale: Scale, epsilon: float, delta: float) -> Channel:
    """The table of integers for this noise; settling its exact price takes longer than drawing from it."""
    return laplace(scale, epsilon) if noise == "laplace" else gaussian(scale, epsilon, delta)
