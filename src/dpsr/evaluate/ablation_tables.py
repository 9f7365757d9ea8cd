"""The stage ablation and the sensitivity of the parameters as tables: means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from dpsr.evaluate.ablation import SENSITIVITY_EPSILON, SensitivityResult, StageResult
from dpsr.evaluate.experiment import READINGS
from dpsr.evaluate.tables import Cell, Table

Row = TypeVar("Row")
Name = TypeVar("Name", bound=Hashable)


def stage_table(results: Sequence[StageResult], normalisation: str) -> Table:
    """What each stage does to the noise on the observed cells and to the held-out error of what is trained on it."""
    rows: list[tuple[Cell, ...]] = []
    chosen = [result for result in results if result.normalisation == normalisation]
    for (epsilon, stage), group in _grouped(chosen, lambda result: (result.epsilon, result.stage)).items():
        matrix = [result.matrix_rmse for result in group if result.matrix_rmse is not None]
        rows.append(
            (
                f"{epsilon:g}",
                stage,
                _mean([result.observed_rmse for result in group]),
                _mean(matrix) if matrix else None,
                *_readings([result.factorised_rmse for result in group]),
            )
        )
    header = ("epsilon", "output of", "RMSE on observed cells", "matrix, test RMSE", *_reading_titles())
    title = f"Stages of DPSR (repaired), {normalisation}: error left on the observed cells, and test RMSE"
    return Table(f"stages_{normalisation}", title, header, tuple(rows))


def sensitivity_table(results: Sequence[SensitivityResult]) -> Table:
    """One parameter at a time, the others as in the paper."""
    rows: list[tuple[Cell, ...]] = [
        (
            parameter,
            f"{value:g}",
            _mean([result.matrix_rmse for result in group]),
            *_readings([result.factorised_rmse for result in group]),
        )
        for (parameter, value), group in _grouped(results, lambda result: (result.parameter, result.value)).items()
    ]
    header = ("parameter", "value", "matrix, test RMSE", *_reading_titles())
    title = f"Sensitivity of DPSR (repaired), minmax, epsilon = {SENSITIVITY_EPSILON:g}: test RMSE"
    return Table("sensitivity", title, header, tuple(rows))


def _reading_titles() -> list[str]:
    return [f"factorised, {reading.name}" for reading in READINGS]


def _readings(errors: Sequence[dict[str, float]]) -> list[float]:
    return [_mean([error[reading.name] for error in errors]) for reading in READINGS]


def _grouped(rows: Sequence[Row], name: Callable[[Row], Name]) -> dict[Name, list[Row]]:
    groups: dict[Name, list[Row]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return groups


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
