"""Models without privacy: what accuracy the private ones give up.

Constant, bias, ALS and the paper's factorisation are `evaluate.baselines`; item-kNN and SVD++ have modules of their
own. Popularity predicts the training mean and ranks by how often an item was rated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.baselines import ALS, MF, Baseline, Bias, Constant
from dpsr.evaluate.peers.base import NO_PROTECTION, PeerModel, Protection
from dpsr.evaluate.peers.item_knn import ItemKNN
from dpsr.evaluate.peers.noisy_ratings import MF_BATCH
from dpsr.evaluate.peers.svdpp import SVDpp
from dpsr.evaluate.ranking import Predictor
from dpsr.types.raw import RawRatings

BASELINES: dict[str, Callable[[int], Baseline]] = {
    "constant": lambda _: Constant(),
    "bias": lambda seed: Bias(random_state=seed),
    "als": lambda seed: ALS(random_state=seed),
    "paper-mf": lambda seed: MF(batch_size=MF_BATCH, random_state=seed),
}


def fit_without_privacy(name: str, ratings: RawRatings, seed: int) -> Predictor:
    """The model `name` on raw ratings."""
    if name in BASELINES:
        return BASELINES[name](seed).fit(ratings.mask, ratings.values, ratings.scale)
    if name == "popularity":
        return MostRatedFirst(ratings.mask.item_counts.astype(np.float64), float(ratings.values.mean()))
    return ItemKNN(seed).fit(ratings) if name == "item-knn" else SVDpp(seed).fit(ratings)


@dataclass(frozen=True, eq=False)
class MostRatedFirst:
    """The mean for everyone, and the most rated items first."""

    counts: Floats
    mean: float

    def predict(self, users: Ints, items: Ints) -> Floats:
        """The training mean."""
        return np.full(np.broadcast_shapes(np.shape(users), np.shape(items)), self.mean)

    def scores(self, user: int) -> Floats:
        """How often each item was rated, the same for everyone."""
        return self.counts


@dataclass
class WithoutPrivacy(PeerModel):
    """A model fitted on raw ratings."""

    name: str
    random_state: int = 0
    private: bool = field(default=False, init=False)

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        return fit_without_privacy(self.name, ratings, self.random_state), NO_PROTECTION
