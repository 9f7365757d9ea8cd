"""The whole examination, in the order in which a person would ask."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpsr.doctor.check import Check, Status
from dpsr.doctor.machine import check_machine
from dpsr.doctor.randomness import check_randomness
from dpsr.doctor.versions import check_versions


@dataclass(frozen=True)
class Examination:
    """Everything that was looked at."""

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is broken; what is absent is optional."""
        return all(check.status is not Status.broken for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {"healthy": self.healthy, "checks": [asdict(check) for check in self.checks]}


def examine() -> Examination:
    """Look at everything; takes some seconds, most of them for importing libraries."""
    return Examination((*check_versions(), *check_machine(), *check_randomness()))
