"""Strict JSON, and a checker of schemas that agrees with the reference implementation on what we use."""

import copy
import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify import Certificate
from dpsr.certify.certificate import PUBLIC_FACTS, ChargeReference
from dpsr.certify.folder import MalformedError, check_format, first_violation, strict_json
from dpsr.certify.form import CERTIFICATE_FORM as SCHEMA
from dpsr.certify.parts import ChannelPart, DividedSumsPart, HistogramPart, SumsPart
from dpsr.certify.unproved import DeclaredPart, PublishedPart

PUBLIC = {
    "facts": PUBLIC_FACTS["value"],
    "scale": "1:2:1",
    "levels": 2,
    "n_users": 1,
    "n_items": 1,
    "n_ratings": 1,
    "median_ratings_per_user": 1.0,
    "max_ratings_per_user": 1,
    "has_timestamps": False,
}
SOUND = Certificate(
    nominal=1.0,
    parts=(
        ChannelPart("ratings", "randomised response", 2, (((1, 3), (3, 1)),)),
        HistogramPart("level histogram", "5/7", (0, 1)),
        SumsPart("window sums", "3", (0, 1), (9, 7), (("items", 1), ("users", 1)), 0.5),
        DividedSumsPart("window sums", "3", ((0, 1),), ((9, 7),), ((1, 0),), (("items", 1), ("users", 1)), (0.5,)),
        PublishedPart("ratings", 1.0, 0.3),
        DeclaredPart("ratings"),
    ),
    public=PUBLIC,
    randomness="system",
    private=True,
    id="0" * 32,
    charge=ChargeReference("1" * 32, "2" * 64),
).to_record()
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
    assert bool(first_violation(record, SCHEMA)) == (not jsonschema.Draft202012Validator(SCHEMA).is_valid(record))


@pytest.mark.parametrize("field", SOUND)
def test_a_missing_field_is_named(field):
    record = {name: value for name, value in SOUND.items() if name != field}
    assert first_violation(record, SCHEMA, "it") == f"it lacks {field!r}"


def test_a_certificate_as_it_is_written_has_the_form():
    assert first_violation(SOUND, SCHEMA) is None


def test_an_integer_is_written_without_a_point():
    """JSON Schema would take 2.0; a table of probabilities must not."""
    assert first_violation(replaced(("parts", 0, "tables", 0, 0, 0), 1.0), SCHEMA)


@pytest.mark.parametrize(
    ("schema", "fits", "not_"),
    [
        ({"type": "array", "minItems": 1, "maxItems": 2}, [0], [0, 0, 0]),
        ({"type": "string", "maxLength": 2}, "ab", "abc"),
        ({"type": "object", "maxProperties": 1}, {"a": 1}, {"a": 1, "b": 1}),
        ({"type": "string", "pattern": "^[0-9]$"}, "1", "1\n"),
    ],
)
def test_sizes_are_bounded_and_a_form_ends_where_it_ends(schema, fits, not_):
    assert not first_violation(fits, schema)
    assert first_violation(not_, schema)


def test_a_schema_that_says_more_than_is_understood_is_refused():
    with pytest.raises(NotImplementedError, match="uniqueItems"):
        first_violation([], {"type": "array", "uniqueItems": True})


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"\xfe",
        b"",
        b"{",
        b"[" * 10**5,
        b"1" * 400,
        b"-" + b"1" * 10_000,
        str(1 << 64).encode(),
        b'"\\ud800"',
        b'{"a\\udfff":1}',
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_can_be_read_in_two_ways_or_not_be_printed_is_not_read(text):
    with pytest.raises(MalformedError, match="not strict JSON") as error:
        strict_json(text)
    assert len(str(error.value)) < 120
    assert str(error.value).isprintable()


def test_whole_numbers_of_64_bits_and_characters_of_two_halves_are_read():
    assert strict_json(str((1 << 64) - 1).encode()) == (1 << 64) - 1
    assert strict_json(str((1 << 104) - 1).encode(), 104) == (1 << 104) - 1
    with pytest.raises(MalformedError, match="104 bits"):
        strict_json(str(1 << 104).encode(), 104)
    assert strict_json(b'"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize(("found", "age"), [("dpsr-thing-1", "older"), ("dpsr-thing-3", "newer")])
def test_a_file_of_another_version_says_so(found, age):
    with pytest.raises(MalformedError, match=f"{found} of an? {age} version of dpsr, this one reads dpsr-thing-2"):
        check_format({"format": found}, "dpsr-thing-2", "thing.json")


@pytest.mark.parametrize(
    "record", [{"format": "dpsr-thing-2"}, {}, [], None, {"format": 7}, {"format": "dpsr-thing-x"}]
)
def test_what_has_no_format_is_left_to_the_form(record):
    check_format(record, "dpsr-thing-2", "thing.json")


def test_strict_json_reads_what_json_reads():
    assert strict_json(json.dumps(SOUND).encode()) == SOUND


@pytest.mark.parametrize("wrong", [True, None, "1", -1, 11, 0.5, [1]], ids=repr)
def test_of_a_long_list_of_numbers_the_one_that_is_wrong_is_named(wrong):
    rule = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 10}}
    assert first_violation([0, 10] * 20, rule) is None
    assert first_violation([0, 10] * 20 + [wrong, 3], rule).startswith("it[40] must be ")
