"""Everyone on the frontier: our pipeline, the paper's, noisy ratings given to good baselines, and models without noise.

A method is fitted on training ratings and gives a predictor. The noise is seeded and belongs to one (set, method,
epsilon, seed) alone. **Seeded: nothing here is private.**

Noisy ratings are treated kindly: clipped to the scale, then given to ALS, whose rank and ridge are tuned on held-back
noisy ratings, which is post-processing.

Lists are not all made alike: our model orders by P(meets) P(likes), the first factor from the public mask, the others
by predicted rating alone. `most-rated` shows how much of a ranking figure the mask gives without any value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Ints
from dpsr.data import Ratings
from dpsr.evaluate.baselines import ALS, MF, Baseline, Bias, Constant
from dpsr.evaluate.ranking import Predictor
from dpsr.pipeline import DPSR
from dpsr.privacy.channels import Channel, gaussian, laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import Scale

DELTA = 1e-5
NEARLY_NO_NOISE = 20.0


@dataclass(frozen=True)
class Fit:
    """A fitted predictor and the exact epsilon it cost; None where there is no such figure."""

    predictor: Predictor
    exact_epsilon: float | None = None


@dataclass(frozen=True)
class Method:
    """A row of the table. `budgeted` says whether it is run once per epsilon, or once."""

    name: str
    title: str
    budgeted: bool
    fit: Callable[[Ratings, float, int], Fit]


def noise_seed(*what: object) -> int:
    """A seed of its own for everything that is named differently, the same on every machine."""
    return int.from_bytes(sha256(repr(what).encode()).digest()[:4], "big")


def _ours(train: Ratings, epsilon: float, seed: int) -> Fit:
    fitted = DPSR(epsilon, random_state=seed).fit(train)
    return Fit(fitted.model_, fitted.certificate.epsilon)


def _nearly_noiseless(train: Ratings, _: float, seed: int) -> Fit:
    return _ours(train, NEARLY_NO_NOISE, seed)


def _repaired(train: Ratings, epsilon: float, seed: int) -> Fit:
    fitted = DPSR.paper(epsilon, random_state=seed).fit(train)
    return Fit(fitted.model_, fitted.certificate.epsilon)


def _published(train: Ratings, epsilon: float, seed: int) -> Fit:
    fitted = DPSR.paper(epsilon, as_published=True, random_state=seed).fit(train)
    return Fit(fitted.model_, fitted.certificate.epsilon)


def _after(channel: Callable[[Scale, float], Channel], model: Callable[[], Baseline]) -> Callable[..., Fit]:
    """Noisy ratings first, then a baseline that takes them for ratings."""

    def fit(train: Ratings, epsilon: float, seed: int) -> Fit:
        mechanism = channel(train.scale, epsilon)
        noisy = train.scale.clip(privatise(train, mechanism, noise=NoiseSource.seeded(seed)).values)
        exact = None if channel is _gaussian else mechanism.epsilon
        return Fit(model().fit(train.mask, noisy, train.scale), exact)

    return fit


def _raw(model: Callable[[], Baseline]) -> Callable[..., Fit]:
    def fit(train: Ratings, _: float, __: int) -> Fit:
        return Fit(model().fit(train.mask, train.values, train.scale))

    return fit


@dataclass(frozen=True)
class MostRatedFirst:
    """Ranks by the public counts and predicts no rating: what a list is worth without a single value."""

    counts: npt.NDArray[np.float64]

    def predict(self, users: Ints, items: Ints) -> npt.NDArray[np.float64]:
        """Not a number: it has no opinion on ratings."""
        return np.full(np.broadcast_shapes(users.shape, items.shape), np.nan)

    def scores(self, user: int) -> npt.NDArray[np.float64]:
        """The same for everyone."""
        return self.counts


def _most_rated(train: Ratings, _: float, __: int) -> Fit:
    return Fit(MostRatedFirst(train.mask.item_counts.astype(np.float64)), 0.0)


@cache
def _laplace(scale: Scale, epsilon: float) -> Channel:
    return laplace(scale, epsilon)


@cache
def _gaussian(scale: Scale, epsilon: float) -> Channel:
    return gaussian(scale, epsilon, DELTA)


def _plain_factorisation() -> MF:
    """The paper's model; batches of 2048 because its own size is not stated and 256 takes a minute."""
    return MF(batch_size=2048)


OURS, CONSTANT, BIAS = "dpsr", "constant", "bias"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(CONSTANT, "constant, not private", False, _raw(Constant)),
        Method(BIAS, "user + item bias, not private", False, _raw(Bias)),
        Method("als", "ALS, not private", False, _raw(ALS)),
        Method("most-rated", "most rated first (mask only, no values)", False, _most_rated),
        Method(OURS, "dpsr", True, _ours),
        Method("dpsr-20", "dpsr at ε = 20 (nearly no noise)", False, _nearly_noiseless),
        Method("paper", "paper, repaired", True, _repaired),
        Method("published", "paper, as published (ε not kept)", True, _published),
        Method("laplace", "Laplace ratings, tuned ALS", True, _after(_laplace, ALS)),
        Method("laplace-mf", "Laplace ratings, plain MF", True, _after(_laplace, _plain_factorisation)),
        Method("gaussian", f"Gaussian ratings (δ = {DELTA:g}), tuned ALS", True, _after(_gaussian, ALS)),
    )
}
"""In the order in which they are run: what is asked first comes first."""

SHOWN = ("dpsr", "paper", "published", "laplace", "laplace-mf", "gaussian", "constant", "bias", "als",
         "dpsr-20", "most-rated")  # fmt: skip
"""In the order in which they are shown: private rows, then yardsticks."""
