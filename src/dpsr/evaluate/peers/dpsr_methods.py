"""The three pipelines of this project as peers: ours, the paper's repaired, the paper's as published.

Their protection is copied from their certificate, which computes it; as published, the paper's Stage 1 costs more than
it says (docs/published.md), and the figure here is what it really costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsr.evaluate.peers.base import MASK, SEEDED, PrivatePeer, Protection
from dpsr.evaluate.ranking import Predictor
from dpsr.pipeline import DPSR
from dpsr.pipeline.estimator import PrivateRecommender
from dpsr.types.raw import RawRatings


@dataclass
class Pipeline(PrivatePeer):
    """`name` is dpsr, dpsr-paper or dpsr-as-published."""

    name: str = "dpsr"

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        model: PrivateRecommender
        if self.name == "dpsr":
            model, note = DPSR(self.epsilon, random_state=self.random_state).fit(ratings), SEEDED
        else:
            published = self.name == "dpsr-as-published"
            model = DPSR.paper(self.epsilon, as_published=published, random_state=self.random_state).fit(ratings)
            note = f"nominal epsilon {self.epsilon:g} is not kept; {SEEDED}" if published else SEEDED
        price = model.certificate
        return model.model_, Protection("rating value", price.epsilon, price.delta, MASK, note)
