"""Strict JSON, and a checker of schemas that agrees with the reference implementation on what we use."""

import copy
import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.certificate import SCHEMA
from dpsr.certify.schema import MalformedError, strict_json, violations

PART = {
    "name": "ratings",
    "mechanism": "m",
    "epsilon": 1.0,
    "delta": 0.0,
    "bits": 2,
    "tables": [[[1, 3], [3, 1]]],
    "sensitivity": None,
    "noise_scale": None,
    "details": {},
}
SOUND = {
    "format": "dpsr-certificate-1",
    "private": True,
    "reasons": [],
    "unit": "u",
    "epsilon": 1.0,
    "delta": 0,
    "nominal": 1,
    "composition": "c",
    "randomness": "system",
    "public": {},
    "parts": [PART],
    "software": "s",
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.5, "", "inf", "5/7"]),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(["a", "name", "epsilon"]), one, max_size=3),
    max_leaves=6,
)


def paths(value, here=()):
    yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from paths(one, (*here, key))


def replaced(path, new):
    record = copy.deepcopy(SOUND)
    if not path:
        return new
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return record


@given(st.sampled_from(list(paths(SOUND))), ANYTHING)
@settings(max_examples=400, deadline=None)
def test_the_checker_agrees_with_jsonschema_on_certificates_with_any_one_place_replaced(path, new):
    record = replaced(path, new)
    assert bool(violations(record, SCHEMA)) == (not jsonschema.Draft202012Validator(SCHEMA).is_valid(record))


@pytest.mark.parametrize("field", SOUND)
def test_a_missing_field_is_named(field):
    record = {name: value for name, value in SOUND.items() if name != field}
    assert violations(record, SCHEMA, "it") == [f"it lacks {field!r}"]


def test_an_integer_is_written_without_a_point():
    """JSON Schema would take 2.0; a table of probabilities must not."""
    assert violations(replaced(("parts", 0, "tables", 0, 0, 0), 1.0), SCHEMA)


def test_a_schema_that_says_more_than_is_understood_is_refused():
    with pytest.raises(NotImplementedError, match="uniqueItems"):
        violations([], {"type": "array", "uniqueItems": True})


@pytest.mark.parametrize("text", [b'{"a":1,"a":1}', b"NaN", b"-Infinity", b"1e400", b"\xfe", b"", b"{", b"[" * 10**5])
def test_what_can_be_read_in_two_ways_is_not_read(text):
    with pytest.raises(MalformedError, match="not strict JSON"):
        strict_json(text)


def test_strict_json_reads_what_json_reads():
    assert strict_json(json.dumps(SOUND).encode()) == SOUND
