"""The numbers of one fit, and their mean and spread over seeds. NOT PRIVATE: computed from raw ratings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

NUMBERS = ("rmse", "mae", "precision", "ndcg", "chance_precision", "chance_ndcg", "seconds")


@dataclass(frozen=True)
class Record:
    """One method, once. `epsilon` is None for methods without a budget; `precision` and `ndcg` are at ten."""

    set: str
    method: str
    epsilon: float | None
    seed: int
    rmse: float
    mae: float
    precision: float
    ndcg: float
    chance_precision: float
    chance_ndcg: float
    seconds: float
    exact_epsilon: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and CSV."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """What `DPSR.plan` expects of one training mask: RMSE over the constant's."""

    set: str
    epsilon: float
    seed: int
    share: float


@dataclass(frozen=True)
class Averages:
    """Means and sample standard deviations over seeds, by set, method, epsilon and number."""

    mean: dict[tuple[str, str, float | None, str], float]
    deviation: dict[tuple[str, str, float | None, str], float]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Averages:
        """Group by everything but the seed."""
        groups: dict[tuple[str, str, float | None, str], list[float]] = {}
        for record in records:
            for name in NUMBERS:
                groups.setdefault((record.set, record.method, record.epsilon, name), []).append(getattr(record, name))
        spread = {key: float(np.std(v, ddof=1)) if len(v) > 1 else float("nan") for key, v in groups.items()}
        return cls({key: float(np.mean(v)) for key, v in groups.items()}, spread)

    def at(self, name: str, method: str, epsilon: float, number: str = "rmse") -> float | None:
        """The mean at an epsilon; of a method without a budget, its only mean. None if it was not run."""
        found = self.mean.get((name, method, epsilon, number))
        return self.mean.get((name, method, None, number)) if found is None else found

    def spread(self, name: str, method: str, epsilon: float, number: str = "rmse") -> float:
        """The deviation beside `at`; NaN for a single seed."""
        found = self.deviation.get((name, method, epsilon, number))
        return self.deviation.get((name, method, None, number), float("nan")) if found is None else found
