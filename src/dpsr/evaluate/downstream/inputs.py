"""What a learner may be given: raw ratings, noisy ratings, the table of the paper's release, the table of ours.

The tables are what `ratings.parquet` of a release holds. Noise is seeded: NOT PRIVATE, for experiments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsr.arrays import Floats
from dpsr.evaluate.ranking import Predictor
from dpsr.pipeline import DPSR
from dpsr.privacy.channels import laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types.raw import RawRatings

RAW = "raw"


@dataclass(frozen=True, eq=False)
class Given:
    """One value per training rating, and the model that came with them, if one did."""

    values: Floats
    model: Predictor | None = None


def _raw(train: RawRatings, _: float | None, __: int) -> Given:
    return Given(train.values)


def _laplace(train: RawRatings, epsilon: float | None, seed: int) -> Given:
    noisy = privatise(train, laplace(train.scale, epsilon or 0.0), noise=NoiseSource.seeded(seed))
    return Given(train.scale.clip(noisy.values))


def _paper(train: RawRatings, epsilon: float | None, seed: int) -> Given:
    release = DPSR.paper(epsilon or 0.0, random_state=seed).fit(train).release
    return Given(release.ratings, release.model)


def _published(train: RawRatings, epsilon: float | None, seed: int) -> Given:
    release = DPSR.paper(epsilon or 0.0, as_published=True, random_state=seed).fit(train).release
    return Given(release.ratings, release.model)


def _ours(train: RawRatings, epsilon: float | None, seed: int) -> Given:
    release = DPSR(epsilon or 0.0, random_state=seed).fit(train).release
    return Given(release.ratings, release.model)


MAKE: dict[str, Callable[[RawRatings, float | None, int], Given]] = {
    RAW: _raw,
    "laplace": _laplace,
    "paper": _paper,
    "published": _published,
    "dpsr": _ours,
}

RELEASED = {"dpsr": "dpsr", "dpsr-paper": "paper", "dpsr-as-published": "published", "laplace-als": "laplace"}
"""Methods that hand over a table beside their model, and the input that is that table."""


def released_by(method: str, train: RawRatings, epsilon: float | None, seed: int) -> Floats | None:
    """The table a method's release holds, drawn with the same seed as its model; None if it releases none."""
    return MAKE[RELEASED[method]](train, epsilon, seed).values if method in RELEASED else None


INPUTS = (RAW, "laplace", "paper", "dpsr")
