"""What a ledger said when the release was charged, as plain numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from dpsr.errors import ReleaseError

FILE = "budget.json"
"""The page of a release folder that keeps a `Budget`, so that a card drawn again says the same."""


@dataclass(frozen=True)
class Budget:
    """One data set's budget after this release: `budget` in all, `spent` by every release together, `left`."""

    dataset: str
    budget: float
    spent: float
    left: float

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Budget:
        try:
            record = json.loads(text)
            return cls(str(record["dataset"]), *(float(record[name]) for name in ("budget", "spent", "left")))
        except (ValueError, KeyError, TypeError) as error:
            raise ReleaseError(
                f"{FILE} must hold a data set's name, its budget, what is spent and what is left, and this one does "
                f"not ({type(error).__name__}). Take the folder as `dpsr release` wrote it."
            ) from error
