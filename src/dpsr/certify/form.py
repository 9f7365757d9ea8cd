"""The form of a certificate, strictly: every field is known, of the right type, and within what can be computed.

Text is printable ASCII: it is shown on terminals and pages, and nothing in it may steer them.
"""

from __future__ import annotations

from typing import Any

from dpsr.certify.certificate import (
    COMPOSITIONS,
    DIVIDED,
    FORMAT,
    LIKES_FACTS,
    LIKES_PROMISES,
    NOT_PROTECTED,
    PROMISES,
    PUBLIC_FACTS,
)
from dpsr.certify.normal_price import VARIANCE_BITS
from dpsr.certify.one_rating import SETTING_NAMES as RATING_SETTINGS
from dpsr.certify.one_rating import SQUARED_BOUNDS
from dpsr.certify.parts import MECHANISMS
from dpsr.certify.people import (
    LIKES_QUESTIONS,
    MOST_NAMED,
    QUESTIONS,
    SQUARED_BOUND,
    SQUARED_MOMENT_BOUND,
    SQUARED_PRESENCE_BOUND,
)

_PRICE = {"anyOf": [{"type": "number", "minimum": 0}, {"const": "inf"}]}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_HEX32, _HEX64 = {"type": "string", "pattern": "^[0-9a-f]{32}$"}, {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_TEXT = {"type": "string", "maxLength": 400, "pattern": "^[ -~]*$"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_LEVELS = 1001
FAMILIES = ["all ratings", "contrasts", "items", "users"]
_WEIGHT = {"type": "integer", "minimum": 0, "maximum": 1 << 62}
_SETTING_NAMES = ("nominal", "nominal_delta", "alpha", "alpha_asked", "base", "centre", "sigma")
_SETTINGS = {
    "type": "object",
    "properties": {name: {"type": "number"} for name in _SETTING_NAMES},
    "additionalProperties": False,
}
_SCALE = {"type": "string", "pattern": "^[0-9]{1,30}(/[0-9]{1,30})?$"}


def _closed(**properties: Any) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


def _with(form: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """The same object, which may have these fields besides."""
    return {**form, "properties": {**form["properties"], **properties}}


def _part(kind: str, names: list[str], **description: Any) -> dict[str, Any]:
    fixed = {"kind": {"const": kind}, "name": {"enum": names}, "epsilon": _PRICE, "delta": _SHARE}
    return _closed(**fixed, **description)


def _normal_part(kind: str, names: list[str], **description: Any) -> dict[str, Any]:
    """Sums with normal noise: their price is a mu."""
    whole = {"type": "integer", "minimum": 1, "maximum": (1 << VARIANCE_BITS) - 1}
    fixed = {"kind": {"const": kind}, "name": {"enum": names}, "mu": _PRICE, "delta": _SHARE}
    noise = {"variance": whole, "numbers": {"type": "integer", "minimum": 0, "maximum": 1 << 40}}
    threshold = {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 0, "maximum": 1 << 60}]}
    return _closed(**fixed, **noise, **description, threshold=threshold)


_ASKED = [*QUESTIONS, *(name for name in LIKES_QUESTIONS if name not in QUESTIONS)]

_WINDOWS = 100

_STEPS = {
    "type": "array",
    "minItems": 2,
    "maxItems": _LEVELS,
    "items": {"type": "integer", "minimum": -(1 << 40), "maximum": 1 << 40},
}
_FAMILIES = {
    "type": "array",
    "minItems": 1,
    "maxItems": 3,
    "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"anyOf": [{"enum": FAMILIES}, _COUNT]}},
}
_WHOLE_WEIGHT = {"type": "integer", "minimum": 0, "maximum": 1 << 20}
_WEIGHTS = {"type": "array", "minItems": 2, "maxItems": 3, "items": _WHOLE_WEIGHT}
_WEIGHT_LISTS = {"type": "array", "maxItems": 1 << 8, "items": _WEIGHTS}

PART_FORMS = {
    "channel": _part(
        "channel",
        ["ratings"],
        mechanism={"enum": list(MECHANISMS)},
        bits={"type": "integer", "minimum": 1, "maximum": 62},
        tables={
            "type": "array",
            "minItems": 1,
            "maxItems": 100,
            "items": {
                "type": "array",
                "minItems": 2,
                "maxItems": _LEVELS,
                "items": {"type": "array", "minItems": 1, "maxItems": 1 << 16, "items": _WEIGHT},
            },
        },
        at_epsilon={"anyOf": [{"type": "null"}, {"type": "number", "minimum": 0, "maximum": 700}]},
        settings=_SETTINGS,
        outputs={"type": "array", "maxItems": 1 << 16, "items": {"type": "number"}},
    ),
    "histogram": _part(
        "histogram",
        ["level histogram"],
        noise_scale=_SCALE,
        bins={"type": "array", "minItems": 2, "maxItems": _LEVELS, "items": _COUNT},
    ),
    "sums": _part(
        "sums",
        ["total", "window sums"],
        noise_scale=_SCALE,
        steps=_STEPS,
        weights={"type": "array", "minItems": 1, "maxItems": 2, "items": _WHOLE_WEIGHT},
        families=_FAMILIES,
        step={"type": "number", "minimum": 0},
    ),
    "divided": _part(
        "divided",
        ["window sums"],
        noise_scale=_SCALE,
        steps={"type": "array", "minItems": 1, "maxItems": _WINDOWS, "items": _STEPS},
        weights=_WEIGHT_LISTS,
        light=_WEIGHT_LISTS,
        families=_FAMILIES,
        step={"type": "array", "minItems": 1, "maxItems": _WINDOWS, "items": {"type": "number", "minimum": 0}},
    ),
    "published": _part(
        "published",
        ["ratings"],
        nominal={"type": "number", "minimum": 0, "maximum": 100},
        alpha=_SHARE,
    ),
    "declared": _part("declared", ["ratings"]),
    "person": _with(
        _normal_part(
            "person", _ASKED, squared_bound={"enum": [SQUARED_BOUND, SQUARED_MOMENT_BOUND, SQUARED_PRESENCE_BOUND]}
        ),
        most_named={"type": "integer", "minimum": 1, "maximum": MOST_NAMED},
    ),
    "rating": _normal_part(
        "rating",
        list(SQUARED_BOUNDS),
        settings={
            "type": "object",
            "properties": {name: {"type": "number", "minimum": 0, "maximum": 1 << 40} for name in RATING_SETTINGS},
            "additionalProperties": False,
            "required": ["bound"],
        },
    ),
}

_OF_PEOPLE = _closed(
    facts={"const": PUBLIC_FACTS["user"]},
    scale=_TEXT,
    levels=_COUNT,
    cells={**_COUNT, "minimum": 1},
    declared_items={"anyOf": [{"type": "null"}, _COUNT]},
)

LIKES_PUBLIC = _closed(
    facts={"const": LIKES_FACTS},
    cells={**_COUNT, "minimum": 1},
    declared_items={"anyOf": [{"type": "null"}, _COUNT]},
)
"""The public facts where interactions are protected: there is no scale."""

PUBLIC_FORMS = {
    "value": _closed(
        facts={"const": PUBLIC_FACTS["value"]},
        scale=_TEXT,
        levels=_COUNT,
        n_users=_COUNT,
        n_items=_COUNT,
        n_ratings=_COUNT,
        median_ratings_per_user={"type": "number", "minimum": 0},
        max_ratings_per_user=_COUNT,
        has_timestamps={"type": "boolean"},
    ),
    "rating": {"anyOf": [_OF_PEOPLE, LIKES_PUBLIC]},
    "user": {"anyOf": [_OF_PEOPLE, LIKES_PUBLIC]},
}
"""The public facts of each unit."""

CERTIFICATE_FORM: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dpsr certificate",
    **_with(
        _closed(
            format={"const": FORMAT},
            id=_HEX32,
            charge={"anyOf": [{"type": "null"}, _closed(id=_HEX32, digest=_HEX64)]},
            private={"type": "boolean"},
            reasons={"type": "array", "maxItems": 20, "items": _TEXT},
            unit={"enum": list(PROMISES)},
            promise={"enum": [*PROMISES.values(), *LIKES_PROMISES.values()]},
            epsilon=_PRICE,
            delta=_SHARE,
            nominal={"anyOf": [{"type": "null"}, {"type": "number", "minimum": 0, "maximum": 100}]},
            nominal_delta=_SHARE,
            protection=_closed(
                **{
                    unit: {"anyOf": [{"const": NOT_PROTECTED}, _closed(epsilon=_PRICE, delta=_SHARE)]}
                    for unit in ("value", "rating", "user")
                }
            ),
            composition={"enum": sorted({*COMPOSITIONS.values(), DIVIDED})},
            randomness={"enum": ["system", "seeded", "declared"]},
            public={"anyOf": [PUBLIC_FORMS["value"], _OF_PEOPLE, LIKES_PUBLIC]},
            parts={"type": "array", "minItems": 1, "maxItems": 20, "items": {"anyOf": list(PART_FORMS.values())}},
            software={"type": "string", "pattern": "^(dpsr [0-9][0-9A-Za-z.+!]{0,40})?$"},
        ),
        mu=_PRICE,
    ),
}
