"""What each stage adds, and how much each parameter matters. Repaired Stage 1, seeded: not private.

Two measures per stage: how far its output is from the true training ratings on the observed cells (does it remove
noise?), and the held-out RMSE of the factorisation trained on it, under each reading (does that help?).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.engine import MemoryTable
from dpsr.evaluate.experiment import READINGS, Arena, Normalisation, repaired_channel, stream
from dpsr.evaluate.metrics import rmse
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.completion import Completion, complete_by_projections
from dpsr.paper.neighbours import item_neighbours
from dpsr.pipeline import PaperDPSR
from dpsr.privacy.vault import privatise
from dpsr.types import Model, PrivateRatings

STAGES = ("Stage 1", "Stages 1 + 2", "Stages 1 + 2 + 3")

SENSITIVITY: dict[str, tuple[float, ...]] = {
    "alpha": (0.0, 0.3, 0.6, 1.0),
    "beta": (0.0, 0.35, 0.65, 0.85, 1.0),
    "n_neighbors": (1, 5, 15, 30, 100),
    "rank": (1, 2, 4, 8, 16),
    "lam": (0.0, 0.7, 0.9, 1.0),
    "n_iter": (0, 10, 50, 100),
    "period": (2, 10, 25, 50),
}
"""One parameter at a time, the others at the paper's values; every list holds the paper's own."""

SENSITIVITY_EPSILON = 1.0


@dataclass(frozen=True)
class StageResult:
    """One stage's output for one seed and budget. NOT PRIVATE.

    `observed_rmse` is measured on the training cells, `matrix_rmse` (Stage 3 only) and `factorised_rmse` (one per
    reading) on the test cells.
    """

    normalisation: Normalisation
    epsilon: float
    seed: int
    stage: str
    observed_rmse: float
    matrix_rmse: float | None
    factorised_rmse: dict[str, float]


@dataclass(frozen=True)
class SensitivityResult:
    """The whole pipeline with one parameter changed, for one seed at `SENSITIVITY_EPSILON`. NOT PRIVATE."""

    parameter: str
    value: float
    seed: int
    matrix_rmse: float
    factorised_rmse: dict[str, float]


def stages(arena: Arena, epsilon: float) -> Iterator[StageResult]:
    """Stage 1 alone, with Stage 2, with Stages 2 and 3, each followed by the factorisation."""
    settings = PaperDPSR()
    noisy = privatise(
        arena.train, repaired_channel(arena.train.scale, epsilon, settings.alpha), noise=stream(arena.seed, 2)
    )
    scale, table = noisy.scale, MemoryTable(noisy.mask, {"noisy": noisy.values})
    similar = item_neighbours(table, "noisy", scale, k=settings.n_neighbors)
    blend_with_neighbours(table, "noisy", similar, scale, beta=settings.beta, blended="smoothed")
    cut = {name: getattr(settings, name) for name in ("rank", "lam", "n_iter", "period")}
    model = complete_by_projections(table, "smoothed", scale, Completion("released", "observed"), **cut)
    outputs = (noisy.values, table["smoothed"], _observed(model, arena))
    for stage, values in zip(STAGES, outputs, strict=True):
        matrix = _test_rmse(model, arena) if stage == STAGES[-1] else None
        yield StageResult(
            arena.normalisation,
            epsilon,
            arena.seed,
            stage,
            rmse(arena.train.values, values),
            matrix,
            _factorised(arena, values),
        )


def sensitivity(arena: Arena) -> Iterator[SensitivityResult]:
    """Every value of every parameter; the noise of Stage 1 is the same unless `alpha` changes it."""

    @cache
    def noisy(alpha: float) -> PrivateRatings:
        channel = repaired_channel(arena.train.scale, SENSITIVITY_EPSILON, alpha)
        return privatise(arena.train, channel, noise=stream(arena.seed, 2))

    @cache  # the paper's own setting is on every list
    def outcome(settings: tuple[tuple[str, Any], ...]) -> tuple[float, dict[str, float]]:
        pipeline = PaperDPSR(**dict(settings))
        model = pipeline.reconstruct(noisy(pipeline.alpha)).model_
        return _test_rmse(model, arena), _factorised(arena, _observed(model, arena))

    for parameter, values in SENSITIVITY.items():
        for value in values:
            yield SensitivityResult(parameter, value, arena.seed, *outcome(_settings(parameter, value)))


def _settings(parameter: str, value: float) -> tuple[tuple[str, Any], ...]:
    """The paper's settings with one of them changed."""
    plain = PaperDPSR()
    return tuple((name, value if name == parameter else getattr(plain, name)) for name in SENSITIVITY)


def _observed(model: Model, arena: Arena) -> npt.NDArray[np.float64]:
    mask = arena.train.mask
    return model.predict(mask.users.astype(np.int64), mask.items.astype(np.int64))


def _test_rmse(model: Model, arena: Arena) -> float:
    mask = arena.test.mask
    predicted = model.predict(mask.users.astype(np.int64), mask.items.astype(np.int64))
    return rmse(arena.test.values, predicted)


def _factorised(arena: Arena, values: npt.NDArray[np.float64]) -> dict[str, float]:
    errors, mask = {}, arena.test.mask
    for reading in READINGS:
        model = replace(reading.factorisation, random_state=arena.seed)
        model.fit(arena.train.mask, values, arena.train.scale)
        errors[reading.name] = rmse(arena.test.values, model.predict(mask.users, mask.items))
    return errors
