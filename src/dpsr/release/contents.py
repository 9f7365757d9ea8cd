"""What goes into a release folder, wherever its table is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsr.engine import Table
from dpsr.types import Certificate, Model


@dataclass(frozen=True, eq=False)
class Contents:
    """What goes into a folder: the columns of `table` are the private ratings, and perhaps observed cells."""

    model: Model
    table: Table
    certificate: Certificate
    method: str
    settings: dict[str, Any]
    ratings: str
    observed: str | None = None
