"""The form of `model.json`, strictly: method, public settings, scale, and the numbers that have no table.

Every field is known and of the right type; every number is finite and of a size whose products are numbers, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify.certificate import UNITS
from dpsr.certify.schema import MalformedError, check_format, first_violation, strict_json
from dpsr.errors import ScaleError
from dpsr.release.folder.layout import MODEL
from dpsr.release.folder.parquet import LARGEST, MOST_ROWS, MOST_WIDE
from dpsr.release.folder.personal_form import FORM as PERSONAL
from dpsr.synthesis.people import MOST_PEOPLE
from dpsr.types import Scale
from dpsr.types.item_side import ACTIVITY_BINS
from dpsr.types.likes_side import METHODS as SCORES
from dpsr.types.scale import LARGEST as LARGEST_RATING

MODEL_FORMAT = "dpsr-model-2"
METHODS = ("default", "paper", "paper, as published")

_NUMBER = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_RATING = {"type": "number", "minimum": -LARGEST_RATING, "maximum": LARGEST_RATING}
_VECTOR = {"type": "array", "minItems": 1, "maxItems": MOST_WIDE, "items": _NUMBER}
_POSITIVE = {"type": "number", "minimum": 0, "maximum": LARGEST}
_SETTINGS = {
    "epsilon": {"type": "number", "minimum": 0, "maximum": 100},
    "delta": {"anyOf": [{"type": "null"}, _SHARE]},
    "unit": {"enum": list(UNITS)},
    "alpha": _SHARE,
    "beta": _SHARE,
    "lam": _SHARE,
    "n_neighbors": _COUNT,
    "rank": _COUNT,
    "n_iter": _COUNT,
    "period": _COUNT,
    "as_published": {"type": "boolean"},
    "tune": {"type": "boolean"},
}
"""Of every method there is; each has some of them."""


def _closed(required: bool, properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    names, both = list(properties) if required else [], properties | (optional or {})
    return {"type": "object", "required": names, "additionalProperties": False, "properties": both}


_SCALE = _closed(True, {"low": _RATING, "high": _RATING, "step": _RATING, "snap": {"type": "boolean"}})


_BY_ACTIVITY = {"type": "array", "minItems": ACTIVITY_BINS, "maxItems": ACTIVITY_BINS}
_MADE_UP = {
    "people": {"type": "integer", "minimum": 1, "maximum": MOST_PEOPLE},
    "ratings": {"type": "integer", "minimum": 0, "maximum": MOST_ROWS},
    "seed": _COUNT,
}
_CROWD = {
    "people": _POSITIVE,
    "activity": {**_BY_ACTIVITY, "items": _POSITIVE},
    "weights": {**_BY_ACTIVITY, "items": _POSITIVE},
    "synthetic": {"anyOf": [{"type": "null"}, _closed(True, _MADE_UP)]},
}
"""How many people do how much, and which were made up from it."""


def _of_people(unit: str) -> dict[str, Any]:
    """The item side where people or ratings are protected."""
    most = {"type": "array", "minItems": 3, "maxItems": MOST_WIDE}
    return _closed(
        True,
        {
            "format": {"const": MODEL_FORMAT},
            "unit": {"const": unit},
            "method": {"const": "people"},
            "settings": _closed(False, {name: _SETTINGS[name] for name in ("epsilon", "delta", "unit")}),
            "scale": _SCALE,
            "named": {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1},
            "residual": {"type": "number", "minimum": 1e-9, "maximum": 1e9},
            "spread": {"type": "number", "minimum": 1e-9, "maximum": 1e9},
            "levels": {**_BY_ACTIVITY, "items": _NUMBER},
            "mean": {**most, "items": _NUMBER},
            "covariance": {**most, "items": _VECTOR},
            **_CROWD,
        },
    )


LIKES = "likes"
"""The form of a release of likes, at whichever unit."""

_FORMS = {
    LIKES: _closed(
        True,
        {
            "format": {"const": MODEL_FORMAT},
            "unit": {"enum": ["rating", "user"]},
            "method": {"const": LIKES},
            "settings": _closed(False, {name: _SETTINGS[name] for name in ("epsilon", "delta", "unit")}),
            "scores": {"enum": list(SCORES)},
            "named": {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1},
            "frequent": {"type": "integer", "minimum": 0, "maximum": 1 << 20},
            "ridge": {**_VECTOR, "items": _POSITIVE},
            "gram": {**_VECTOR, "items": _POSITIVE},
            **_CROWD,
        },
    ),
    "value": _closed(
        True,
        {
            "format": {"const": MODEL_FORMAT},
            "unit": {"const": "value"},
            "method": {"enum": list(METHODS)},
            "settings": _closed(False, _SETTINGS),
            "scale": _SCALE,
            "rank": {"type": "integer", "minimum": 1, "maximum": MOST_WIDE},
            "overall": _NUMBER,
            "residual_variance": {"type": "number", "minimum": 0, "maximum": LARGEST},
            "user_mean": _VECTOR,
            "user_covariance": {"type": "array", "minItems": 1, "maxItems": MOST_WIDE, "items": _VECTOR},
        },
        {"personal": PERSONAL},
    ),
    **{unit: _of_people(unit) for unit in ("rating", "user")},
}
"""By unit of protection, and of likes."""

_ASYMMETRY = 1e-8
"""Of a covariance, relative to its largest entry: what sums of doubles in two orders may differ by, and more."""


def read_model(text: bytes, unit: str) -> dict[str, Any]:
    """The record of a folder that protects `unit`."""
    try:
        record = strict_json(text)
    except MalformedError as error:
        raise MalformedError(f"{MODEL} cannot be read: {error}") from error
    check_format(record, MODEL_FORMAT, MODEL)
    if wrong := first_violation(record, _FORMS[unit], MODEL):
        raise MalformedError(wrong)
    return record


def check_model(record: dict[str, Any], unit: str) -> None:
    """Refuse to write what would not be read."""
    if wrong := first_violation(record, _FORMS[unit], MODEL):
        raise MalformedError(wrong)


def scale_of(record: dict[str, Any]) -> Scale:
    """The rating scale."""
    try:
        return Scale(**record["scale"])
    except ScaleError as error:
        raise MalformedError(f"{MODEL} has no scale: {str(error).removesuffix('.')}") from None


def prior_of(record: dict[str, Any]) -> tuple[Floats, Floats]:
    """Mean and covariance of the factors of somebody new: as wide as the factors are, and a covariance."""
    rank, mean = record["rank"], np.array(record["user_mean"], dtype=np.float64)
    if len(mean) != rank:
        raise MalformedError(f"{MODEL}: what is expected of somebody new is not of rank {rank}")
    return mean, covariance_of(record["user_covariance"], rank, "somebody new")


def covariance_of(rows: list[list[float]], rank: int, whose: str) -> Floats:
    """A square matrix of this rank that is a covariance."""
    if {len(row) for row in rows} | {len(rows)} != {rank}:
        raise MalformedError(f"{MODEL}: what is expected of {whose} is not of rank {rank}")
    covariance = np.array(rows, dtype=np.float64)
    slack = _ASYMMETRY * float(np.abs(covariance).max())
    if np.abs(covariance - covariance.T).max() > slack or np.linalg.eigvalsh(covariance).min() < -rank * slack:
        raise MalformedError(f"{MODEL}: the covariance of {whose} is none")
    return covariance
