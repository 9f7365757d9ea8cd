"""What a ledger said when a release was charged to it, as the folder keeps it: a page for people, strictly written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from dpsr.certify import Certificate
from dpsr.certify.folder import MalformedError, check_format, first_violation, strict_json
from dpsr.release.folder.layout import BUDGET

FORMAT = "dpsr-budget-2"

_AMOUNT = {"type": "number", "minimum": 0, "maximum": 1e9}
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["format", "dataset", "budget", "spent", "left"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "dataset": {"type": "string", "maxLength": 120},
        "budget": _AMOUNT,
        "spent": _AMOUNT,
        "left": _AMOUNT,
    },
}
_SLACK = 1e-9


@dataclass(frozen=True)
class Budget:
    """One data set's budget after this release: `budget` in all, `spent` by every release together, `left`."""

    dataset: str
    budget: float
    spent: float
    left: float

    def to_json(self) -> str:
        """As the folder holds it."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, allow_nan=False) + "\n"


def read_budget(text: bytes, certificate: Certificate) -> Budget:
    """The page of a release that a ledger was charged for; refused where the figures cannot be a ledger's."""
    try:
        record = strict_json(text)
    except MalformedError as error:
        raise MalformedError(f"{BUDGET} cannot be read: {error}") from error
    check_format(record, FORMAT, BUDGET)
    if wrong := first_violation(record, _FORM, BUDGET):
        raise MalformedError(wrong)
    found = Budget(record["dataset"], *(float(record[name]) for name in ("budget", "spent", "left")))
    if not found.dataset.isprintable():
        raise MalformedError(f"{BUDGET}: the name of a data set is printable")
    if certificate.charge is None:
        raise MalformedError(f"{BUDGET} says what a ledger said, and the certificate names no charge")
    if abs(found.spent + found.left - found.budget) > _SLACK * found.budget:
        raise MalformedError(f"{BUDGET}: what is spent and what is left do not add up to the budget")
    if found.spent < certificate.epsilon * (1 - _SLACK):
        raise MalformedError(f"{BUDGET}: less is spent than this release alone has cost")
    return found
