"""What a learner may be given: raw ratings, noisy ratings, the table of the paper's release, the table of ours.

The tables are what `ratings.parquet` of a release holds; those of the paper's stages are what each stage ends with.
Noise is seeded: NOT PRIVATE, for experiments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from dpsr.arrays import Floats
from dpsr.engine import MemoryTable
from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.neighbours import item_neighbours
from dpsr.pipeline import DPSR, PaperDPSR
from dpsr.privacy.channels import Channel, calibrated_laplace, gaussian_classical, laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import PrivateRatings, Scale

RAW = "raw"
DELTA = 1e-5
"""Of the paper's Gaussian noise."""


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """One value per training rating, and the model that came with them, if one did."""

    values: Floats
    model: Predictor | None = None


def build_table(name: str, train: RawRatings, epsilon: float | None, seed: int, **settings: Any) -> ReleasedTable:
    """The table `name` of some training ratings; `settings` are those of the pipeline that makes it."""
    if name == RAW:
        return ReleasedTable(train.values)
    if epsilon is None or name not in TABLES:
        raise ParameterError(
            f"a table is raw, or one of {', '.join(TABLES)} at an epsilon; found {name!r} at epsilon {epsilon}."
        )
    return TABLES[name](train, epsilon, seed, **settings)


def _noisy(mechanism: Callable[[Scale, float], Channel], train: RawRatings, epsilon: float, seed: int) -> ReleasedTable:
    noisy = privatise(train, mechanism(train.scale, epsilon), noise=NoiseSource.seeded(seed))
    return ReleasedTable(train.scale.clip(noisy.values))


def _ours(train: RawRatings, epsilon: float, seed: int) -> ReleasedTable:
    release = DPSR(epsilon, random_state=seed).fit(train).release
    return ReleasedTable(release.ratings, release.model)


def _paper(train: RawRatings, epsilon: float, seed: int, **settings: Any) -> ReleasedTable:
    """All three stages: Stage 1 repaired, unless `as_published` is set."""
    pipeline = DPSR.paper(epsilon, random_state=seed, **settings)
    if pipeline.as_published:
        release = pipeline.fit(train).release
    else:
        release = pipeline.reconstruct(_stage_one(train, epsilon, seed, pipeline.alpha)).release
    return ReleasedTable(release.ratings, release.model)


def _stage_one(train: RawRatings, epsilon: float, seed: int, alpha: float) -> PrivateRatings:
    return privatise(train, _repaired(train.scale, epsilon, alpha), noise=NoiseSource.seeded(seed))


def _after_stage_one(train: RawRatings, epsilon: float, seed: int) -> ReleasedTable:
    return ReleasedTable(_stage_one(train, epsilon, seed, PaperDPSR().alpha).values)


def _after_stage_two(train: RawRatings, epsilon: float, seed: int) -> ReleasedTable:
    settings = PaperDPSR()
    noisy = _stage_one(train, epsilon, seed, settings.alpha)
    table = MemoryTable(noisy.mask, {"noisy": noisy.values})
    similar = item_neighbours(table, "noisy", noisy.scale, k=settings.n_neighbors)
    blend_with_neighbours(table, "noisy", similar, noisy.scale, beta=settings.beta, blended="smoothed")
    return ReleasedTable(table["smoothed"])


@cache
def _laplace(scale: Scale, epsilon: float) -> Channel:
    return laplace(scale, epsilon)


@cache
def _papers_gaussian(scale: Scale, epsilon: float) -> Channel:
    """The paper's own sigma."""
    return gaussian_classical(scale, epsilon, DELTA)


@cache
def _repaired(scale: Scale, epsilon: float, alpha: float) -> Channel:
    """The repaired Stage 1, built once per setting: its exact price takes longer to settle than the noise to draw."""
    return calibrated_laplace(scale, epsilon, alpha)


TABLES: dict[str, Callable[..., ReleasedTable]] = {
    "laplace": partial(_noisy, _laplace),
    "gaussian-classical": partial(_noisy, _papers_gaussian),
    "paper-stage-1": _after_stage_one,
    "paper-stage-2": _after_stage_two,
    "paper": _paper,
    "published": partial(_paper, as_published=True),
    "dpsr": _ours,
}
"""Tables with noise, by name; `raw` is the one without."""

RELEASED = {"dpsr": "dpsr", "dpsr-paper": "paper", "dpsr-as-published": "published", "laplace-als": "laplace"}
"""Methods that hand over a table beside their model, and which."""


def released_by(method: str, train: RawRatings, epsilon: float | None, seed: int) -> Floats | None:
    """The table a method's release holds, drawn with the same seed as its model; None if it releases none."""
    return build_table(RELEASED[method], train, epsilon, seed).values if method in RELEASED else None
