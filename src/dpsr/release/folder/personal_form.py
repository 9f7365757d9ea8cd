"""What people's own ratings meet, as the folder holds it: a part of `model.json`, and columns of two tables.

    model.json        personal: widths, weights, covariance, variance, means, spread[, effect_chances]
    items.parquet     covariance: how well each item is known, packed
    ratings.parquet   noisy, weight: what the noise left of every rating, where single ratings were bought

Numbers come from strangers: shapes must agree with the model, variances must be variances.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpsr.arrays import Floats, Singles
from dpsr.certify.schema import MalformedError
from dpsr.release.folder.layout import ITEMS, MODEL, RATINGS
from dpsr.release.folder.parquet import LARGEST, MOST_WIDE
from dpsr.types import NoisyRatings, PersonalPrior
from dpsr.types.personal import Widths

NOISY_COLUMNS = ("noisy", "weight")

_MOST_POINTS = 1_024
_NUMBER = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
_POSITIVE = {"type": "number", "minimum": 1e-12, "maximum": LARGEST}
_VECTOR = {"type": "array", "minItems": 1, "maxItems": MOST_WIDE, "items": _NUMBER}
_MATRIX = {"type": "array", "minItems": 1, "maxItems": MOST_WIDE, "items": _VECTOR}
_POINTS = {"type": "array", "minItems": 2, "maxItems": _MOST_POINTS, "items": _NUMBER}
_WIDTH = {"type": "integer", "minimum": 0, "maximum": MOST_WIDE}

FORM: Mapping[str, Any] = {
    "type": "object",
    "required": ["widths", "weights", "covariance", "variance", "means", "spread"],
    "additionalProperties": False,
    "properties": {
        "widths": {"type": "array", "minItems": 3, "maxItems": 3, "items": _WIDTH},
        "weights": _MATRIX,
        "covariance": _MATRIX,
        "variance": _POSITIVE,
        "means": _POINTS,
        "spread": {**_POINTS, "items": _POSITIVE},
        "effect_chances": {"type": "array", "minItems": 2, "maxItems": 2, "items": _VECTOR},
    },
}


def personal_record(prior: PersonalPrior) -> dict[str, Any]:
    """The part of `model.json`."""
    record: dict[str, Any] = {
        "widths": list(prior.widths),
        "weights": prior.weights.tolist(),
        "covariance": prior.covariance.tolist(),
        "variance": prior.variance,
        "means": prior.means.tolist(),
        "spread": prior.spread.tolist(),
    }
    if prior.effect_chances is not None:
        record["effect_chances"] = [part.tolist() for part in prior.effect_chances]
    return record


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
    shapes = prior.widths.rank == rank and prior.covariance.shape == (prior.widths.own,) * 2
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
