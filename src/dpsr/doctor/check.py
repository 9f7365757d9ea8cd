"""What an examination is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """`absent` is optional and not installed; `warning` works, but may disappoint; `broken` must be repaired first."""

    ok = "ok"
    absent = "absent"
    warning = "warning"
    broken = "broken"


@dataclass(frozen=True)
class Check:
    """One thing looked at: where it belongs, what it is, how it is, and the detail a person would ask for."""

    area: str
    name: str
    status: Status
    detail: str
