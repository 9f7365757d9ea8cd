"""The form of `model.json`, strictly: method, public settings, scale, and the numbers that have no table.

Every field is known and of the right type; every number is finite and of a size whose products are numbers, too. What
people's own ratings meet is a part of it, and columns of two tables, whose shapes must agree with the model:

    model.json        personal: widths, weights, covariance, variance, means, spread[, effect_chances]
    items.parquet     covariance: how well each item is known, packed
    ratings.parquet   noisy, weight: what the noise left of every rating, where single ratings were bought
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpsr.arrays import Floats, Singles
from dpsr.certify.certificate import UNITS
from dpsr.certify.folder import MalformedError, check_format, first_violation, strict_json
from dpsr.errors import ScaleError
from dpsr.release.folder.layout import ITEMS, MODEL, RATINGS
from dpsr.release.folder.parquet import LARGEST, MOST_ROWS, MOST_WIDE
from dpsr.synthesis import MOST_PEOPLE
from dpsr.types import NoisyRatings, PersonalPrior, Scale
from dpsr.types.coordinates import LARGEST as LARGEST_RATING
from dpsr.types.item_side import ACTIVITY_BINS
from dpsr.types.likes_side import METHODS as SCORES
from dpsr.types.personal import Widths

MODEL_FORMAT = "dpsr-model-2"
METHODS = ("default", "paper", "paper, as published")
NOISY_COLUMNS = ("noisy", "weight")

_NUMBER = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_RATING = {"type": "number", "minimum": -LARGEST_RATING, "maximum": LARGEST_RATING}
_VECTOR = {"type": "array", "minItems": 1, "maxItems": MOST_WIDE, "items": _NUMBER}
_MATRIX = {"type": "array", "minItems": 1, "maxItems": MOST_WIDE, "items": _VECTOR}
_NOT_NEGATIVE = {"type": "number", "minimum": 0, "maximum": LARGEST}
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
    "people": _NOT_NEGATIVE,
    "activity": {**_BY_ACTIVITY, "items": _NOT_NEGATIVE},
    "weights": {**_BY_ACTIVITY, "items": _NOT_NEGATIVE},
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


_MOST_POINTS = 1_024
_ABOVE_ZERO = {"type": "number", "minimum": 1e-12, "maximum": LARGEST}
_POINTS = {"type": "array", "minItems": 2, "maxItems": _MOST_POINTS, "items": _NUMBER}
_WIDTH = {"type": "integer", "minimum": 0, "maximum": MOST_WIDE}

_PERSONAL = _closed(
    True,
    {
        "widths": {"type": "array", "minItems": 3, "maxItems": 3, "items": _WIDTH},
        "weights": _MATRIX,
        "covariance": _MATRIX,
        "variance": _ABOVE_ZERO,
        "means": _POINTS,
        "spread": {**_POINTS, "items": _ABOVE_ZERO},
    },
    {"effect_chances": {"type": "array", "minItems": 2, "maxItems": 2, "items": _VECTOR}},
)
"""What people's own ratings meet, at the level of values."""

LIKES = "likes"
"""The form of a release of likes, at whichever unit."""

FORMS = {
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
            "ridge": {**_VECTOR, "items": _NOT_NEGATIVE},
            "gram": {**_VECTOR, "items": _NOT_NEGATIVE},
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
            "residual_variance": _NOT_NEGATIVE,
            "user_mean": _VECTOR,
            "user_covariance": _MATRIX,
        },
        {"personal": _PERSONAL},
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
    if wrong := first_violation(record, FORMS[unit], MODEL):
        raise MalformedError(wrong)
    return record


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


def personal_of(record: Mapping[str, Any] | None, covariance: Singles | None, rank: int) -> PersonalPrior | None:
    """The prior of a folder, if it has one: `record` from the model, `covariance` from the table of items."""
    if (record is None) != (covariance is None):
        raise MalformedError(f"{MODEL} and {ITEMS} do not agree on whether people's own ratings can be weighed")
    if record is None or covariance is None:
        return None
    widths = Widths(*record["widths"])
    prior = PersonalPrior(
        widths,
        _known_part(covariance, widths),
        _matrix(record["weights"], "weights"),
        _matrix(record["covariance"], "covariance"),
        float(record["variance"]),
        np.array(record["means"], dtype=np.float64),
        np.array(record["spread"], dtype=np.float64),
        _chances(record.get("effect_chances")),
    )
    _check_shapes(prior, rank)
    return prior


def noisy_of(ratings: Mapping[str, Any]) -> NoisyRatings | None:
    """Noisy readings of a table, if it has them: values and weights together, and no weight is negative."""
    values, weights = (ratings.get(name) for name in NOISY_COLUMNS)
    if (values is None) != (weights is None):
        raise MalformedError(f"{RATINGS} has one of the columns {' and '.join(NOISY_COLUMNS)}, and not the other")
    if values is None or weights is None:
        return None
    if weights.min() < 0:
        raise MalformedError(f"{RATINGS}: a weight is negative")
    return NoisyRatings(values, weights)


def _known_part(covariance: Singles, widths: Widths) -> Singles:
    """One number an item, or a packed matrix of its learned coefficients; no variance is negative."""
    d = widths.learned
    if covariance.shape[1] not in (1, d * (d + 1) // 2):
        raise MalformedError(f"{ITEMS}: its column covariance is not of the {d} coefficients an item has")
    known = 1 if covariance.shape[1] == 1 else d
    if covariance[:, np.cumsum(np.arange(1, known + 1)) - 1].min(initial=0.0) < 0:
        raise MalformedError(f"{ITEMS}: a variance is negative")
    return covariance


def _matrix(rows: list[list[float]], name: str) -> Floats:
    if len({len(row) for row in rows}) != 1:
        raise MalformedError(f"{MODEL}: the {name} of people are no matrix")
    return np.array(rows, dtype=np.float64)


def _chances(parts: list[list[float]] | None) -> tuple[Floats, Floats] | None:
    if parts is None:
        return None
    values, chances = (np.array(part, dtype=np.float64) for part in parts)
    if len(values) != len(chances) or np.abs(values).max() > 700:
        raise MalformedError(f"{MODEL}: the chances of people's effects are none")
    return values, chances


def _check_shapes(prior: PersonalPrior, rank: int) -> None:
    p, q, _ = prior.widths
    shapes = prior.widths.rank <= rank and prior.covariance.shape == (prior.widths.own,) * 2
    if not (shapes and p > 0 and q > 0 and prior.weights.shape[0] == p and prior.weights.shape[1] <= prior.widths.own):
        raise MalformedError(f"{MODEL}: what is expected of people is not of rank {rank}")
    if len(prior.means) != len(prior.spread) or not bool((np.diff(prior.means) > 0).all()):
        raise MalformedError(f"{MODEL}: the spread of ratings is not given at ascending means")
    scale = float(np.abs(prior.covariance).max())
    if (
        np.abs(prior.covariance - prior.covariance.T).max() > 1e-8 * scale
        or np.linalg.eigvalsh(prior.covariance).min() <= 0
    ):
        raise MalformedError(f"{MODEL}: the covariance of people is none")
