"""What holds of a certificate by itself: its form, its prices, its sum and what it says of itself.

Prices are computed from the description of each part. A stated figure may not lie below the computed one by a single
unit in the last place, and not above it by more than one part in 10^9: more would mean that it was never computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isqrt
from typing import Any, NamedTuple

from dpsr.certify.amounts import MAX_DELTA, MAX_EPSILON, epsilon_text
from dpsr.certify.certificate import FORMAT, Certificate
from dpsr.certify.folder import MalformedError, check_format, first_violation, strict_json
from dpsr.certify.form import CERTIFICATE_FORM, PART_FORMS, PUBLIC_FORMS
from dpsr.certify.normal_price import VARIANCE_BITS
from dpsr.certify.one_rating import MOST_CELLS as MOST_PAIRED
from dpsr.certify.parts import DIVIDED_GRID, ChannelPart, DividedSumsPart, HistogramPart, Part, SumsPart
from dpsr.certify.people import (
    COUNTS,
    INTERACTIONS,
    LIKES_QUESTIONS,
    MOMENTS,
    PAIRS,
    PRESENCE,
    QUESTIONS,
    NormalPart,
    RatingPart,
)
from dpsr.errors import PrivacyError, ReleaseError

CERTIFICATE = "certificate.json"
MOST_BYTES = 1 << 25
"""Of the file: the largest certificate we know how to write (1,001 levels, the paper's channel) has half as many."""

_SLACK = 1e-9
_ADVICE = "Take the folder as `dpsr release` wrote it."
_MOST_CELLS = 4_000_000
"""Of all tables together."""

_MOST_WITH_DELTA = 1
"""Parts whose delta is recomputed, which takes long; no pipeline has more."""


class Check(NamedTuple):
    """One statement about a release, and whether it holds."""

    holds: bool
    words: str


def read_certificate(text: bytes) -> Certificate:
    """A certificate whose form is right and whose prices can be computed; an error says what is wrong."""
    certificate = Certificate.from_record(_record(text))
    for part in certificate.parts:
        try:
            part.stated  # noqa: B018 (refuses what cannot be priced)
        except (PrivacyError, ArithmeticError) as error:
            raise ReleaseError(f"{CERTIFICATE}: {part.name} cannot be priced: {error}. {_ADVICE}") from error
    return certificate


def check_certificate(text: bytes) -> tuple[list[Check], Certificate | None]:
    """Everything that can be said of a certificate from its own bytes; the certificate, if it could be read."""
    try:
        certificate = read_certificate(text)
    except ReleaseError as error:
        return [Check(False, str(error).removesuffix(f". {_ADVICE}"))], None
    record = strict_json(text, VARIANCE_BITS)
    checks = [*_terms(record, certificate), *_prices(record, certificate), *_sums(record, certificate)]
    return [*checks, *_flag(certificate)], certificate


def _record(text: bytes) -> dict[str, Any]:
    try:
        record = strict_json(text, VARIANCE_BITS)
        check_format(record, FORMAT, CERTIFICATE)
    except MalformedError as error:
        raise ReleaseError(f"{CERTIFICATE} cannot be read: {error}. {_ADVICE}") from error
    wrong = (
        first_violation(record, _WITHOUT_PARTS, "the certificate")
        or first_violation(record["public"], PUBLIC_FORMS[record["unit"]], "public")
        or _wrong_part(record["parts"])
    )
    if wrong:
        raise ReleaseError(f"{CERTIFICATE} has not the form of a certificate: {wrong}. {_ADVICE}")
    return record


_WITHOUT_PARTS = {
    **CERTIFICATE_FORM,
    "properties": {**CERTIFICATE_FORM["properties"], "parts": {"type": "array", "minItems": 1, "maxItems": 20}},
}
"""Parts are looked at one by one, by their kind, so that the words say what is wrong with which."""


def _wrong_part(parts: list[Any]) -> str | None:
    """What is wrong with the first part that is not right; parts of a kind nobody knows are named."""
    if sum(map(_cells, parts)) > _MOST_CELLS:
        return f"its tables have more than {_MOST_CELLS:,} cells"
    if sum(isinstance(part, dict) and part.get("at_epsilon") is not None for part in parts) > _MOST_WITH_DELTA:
        return f"more than {_MOST_WITH_DELTA} of its parts has a delta"
    for place, part in enumerate(parts, start=1):
        kind = part.get("kind") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in PART_FORMS:
            return f"part {place} is of no kind this version knows"
        if wrong := first_violation(part, PART_FORMS[kind], f"part {place}"):
            return wrong
    return None


def _cells(value: Any) -> int:
    """How many elements the lists in `value` have, counted row by row."""
    if isinstance(value, dict):
        return sum(map(_cells, value.values()))
    if not isinstance(value, list):
        return 0
    if {list, dict}.isdisjoint(map(type, value)):  # a row of numbers, as nearly all are
        return len(value)
    return len(value) + sum(map(_cells, value))


def fits(stated: float, exact: float) -> bool:
    """Never below the exact figure, and not above it by more than a trace."""
    return stated == exact or exact <= stated <= exact * (1 + _SLACK)


def _terms(record: dict[str, Any], certificate: Certificate) -> Iterator[Check]:
    unit = certificate.unit
    words = _LIKES_WORDS[unit] if certificate.likes else _UNIT_WORDS[unit]
    yield Check(record["promise"] == certificate.promise, f"the unit of protection is the {words}")
    protection = certificate.to_record()["protection"]
    yield Check(record["protection"] == protection, "what it states for each unit follows from its price")
    said = record["composition"] == certificate.composition
    yield Check(said, f"it says {'how' if said else 'wrongly how'} the prices of its parts add up")
    kinds = {"person": "user", "rating": "rating"}
    own = all(kinds.get(part.kind, "value") == unit for part in certificate.parts)
    yield Check(own, "every part asks about that unit")
    levels = {_levels(part) for part in certificate.parts} - {None}
    same = levels <= {certificate.public.get("levels")}
    yield Check(same, "every part describes as many levels as the scale has")
    asks = LIKES_QUESTIONS if certificate.likes else (*QUESTIONS, "scores of people")
    fitting = all(part.name in asks for part in certificate.parts if isinstance(part, NormalPart))
    yield Check(fitting, "every question to people is one that such a release asks")
    fit = all(_sizes_fit(part, certificate.public) for part in certificate.parts)
    yield Check(fit, "every part has as many sums and symbols as its description and the public counts ask for")
    asked = {"nominal": certificate.nominal, "nominal_delta": certificate.nominal_delta}
    for part in certificate.parts:
        if isinstance(part, ChannelPart) and asked.keys() & part.settings.keys():
            same = all(part.settings.get(name, figure) == figure for name, figure in asked.items())
            yield Check(same, f"{part.name}: {'what' if same else 'not what'} the certificate says was asked for")
        if isinstance(part, DividedSumsPart):
            yield Check(_weights_fit(part), f"{part.name}: the weights of a rating add up to all of it or to one share")


_UNIT_WORDS = {"value": "value of one rating", "rating": "existence of one rating", "user": "whole person"}
_LIKES_WORDS = {"rating": "existence of one interaction", "user": "whole person"}


def _levels(part: Part) -> int | None:
    """How many levels a part describes; None if it does not say."""
    if isinstance(part, ChannelPart | DividedSumsPart):
        sizes = set(map(len, part.tables if isinstance(part, ChannelPart) else part.steps))
        return sizes.pop() if len(sizes) == 1 else 0
    if isinstance(part, HistogramPart):
        return len(part.bins)
    return len(part.steps) if isinstance(part, SumsPart) else None


def _sizes_fit(part: Part, public: dict[str, Any]) -> bool:
    """One sum for every item and every user, or one for all ratings; one output for every symbol of the only table.

    Contrasts are one for every two classes, as many classes as it takes: they are over all ratings, whoever is in the
    table. Second moments are one for every two of some of the cells.
    """
    if isinstance(part, SumsPart | DividedSumsPart):
        wanted = (("items", public.get("n_items")), ("users", public.get("n_users")))
        rows = part.families[:2] if isinstance(part, DividedSumsPart) else part.families
        return rows == (wanted if part.name == "window sums" else (("all ratings", 1),)) and _contrasts_fit(part)
    if isinstance(part, ChannelPart) and part.outputs:
        return [len(part.outputs)] == [len(table[0]) for table in part.tables]
    if isinstance(part, NormalPart) and part.name in (MOMENTS, PRESENCE, PAIRS):
        return _pairs_fit(part, public.get("cells", 0))
    if isinstance(part, NormalPart) and part.name in NUMBERS:
        return part.numbers == (RATING_NUMBERS if isinstance(part, RatingPart) else NUMBERS)[part.name]
    if isinstance(part, NormalPart) and part.name == COUNTS:
        return part.numbers <= public["cells"]
    if isinstance(part, NormalPart) and part.name in _PER_CELL:
        return "cells" in public and part.numbers % public["cells"] == 0
    return True


def _weights_fit(part: DividedSumsPart) -> bool:
    """Whether a rating has all of its weight in the sums, or, where it may be asked one by one, one share for all."""
    whole, light = ({sum(one) for one in weights} for weights in (part.weights, part.light))
    return whole <= {DIVIDED_GRID} and len(light) <= 1 and min(light, default=1) >= 1


def _contrasts_fit(part: SumsPart | DividedSumsPart) -> bool:
    return all(name == "contrasts" and isqrt(sums) ** 2 == sums for name, sums in part.families[2:])


def _pairs_fit(part: NormalPart, cells: int) -> bool:
    """Whether there is a number of cells that has so many pairs, and it is the one its bound is for."""
    asked = (1 + isqrt(1 + 8 * part.numbers)) // 2
    if asked * (asked - 1) != 2 * part.numbers or asked > cells:
        return False
    if part.name == PAIRS:  # with more cells their bound does not hold
        return asked <= MOST_PAIRED
    return not isinstance(part, RatingPart) or part.name == PRESENCE or asked == part.settings["cells"]


NUMBERS = {"levels": 5, "activity": 28, INTERACTIONS: 14}
"""How many numbers a question asks for, where that is always the same: cards show it."""

RATING_NUMBERS = {**NUMBERS, "levels": 6}
"""The same at the unit `rating`, where the number of ratings is one of them."""

_PER_CELL = ("scores", "scores of people")
"""Questions with as many numbers for every cell."""


def _prices(record: dict[str, Any], certificate: Certificate) -> Iterator[Check]:
    for part, stated in zip(certificate.parts, record["parts"], strict=True):
        exact = part.stated
        if all(fits(float(stated[name]), figure) for name, figure in exact.items()):
            found = ", ".join(
                f"{name} = {epsilon_text(figure, 6)}" for name, figure in exact.items() if figure or name != "delta"
            )
            yield Check(True, f"{part.name}: {found}, recomputed from its {_EVIDENCE[part.kind]}")
        else:
            found = ", ".join(f"{name} = {figure!r}" for name, figure in exact.items())
            claimed = ", ".join(repr(stated[name]) for name in exact)
            yield Check(False, f"{part.name}: {found} by its {_EVIDENCE[part.kind]}, and it states {claimed}")


_EVIDENCE = {
    "channel": "integer tables",
    "histogram": "bins and noise scale",
    "sums": "steps, weights and noise scale",
    "divided": "steps, weights and noise scale",
    "published": "worst case over all data sets",
    "declared": "owner's word",
    "person": "bound for a person and its noise",
    "rating": "bound for a rating and its noise",
}


def _sums(record: dict[str, Any], certificate: Certificate) -> Iterator[Check]:
    together = "add up to"
    if certificate.mu is not None:
        yield _sum("mu", record.get("mu", 0.0), certificate.mu, together)
        together = "may add up to, whatever the answers"
    elif "mu" in record:
        yield Check(False, "mu is stated, and no part has one")
    yield _sum("epsilon", record["epsilon"], certificate.epsilon, together)
    yield _sum("delta", record["delta"], certificate.delta, together)


def _sum(name: str, stated: float | str, exact: float, together: str) -> Check:
    if fits(float(stated), exact):
        return Check(True, f"{name} = {epsilon_text(float(stated), 6)} is what its parts {together}")
    return Check(False, f"{name} is stated as {float(stated)!r}, and its parts {together}: {exact!r}")


def _flag(certificate: Certificate) -> Iterator[Check]:
    """`private` may be said only if nothing speaks against it; `NOT PRIVATE` needs a reason."""
    against = list(_against(certificate))
    if certificate.private and (against or certificate.reasons):
        words = "; ".join(against) or "it lists reasons why it is not"
        yield Check(False, f"the certificate calls itself private although {words}")
    elif not certificate.private and not certificate.reasons:
        yield Check(False, "the certificate calls itself NOT PRIVATE and gives no reason")
    else:
        said = "private" if certificate.private else "NOT PRIVATE, with its reasons"
        yield Check(True, f"the certificate rightly calls itself {said}")


def _against(certificate: Certificate) -> Iterator[str]:
    if certificate.randomness != "system":
        yield f"its randomness is {certificate.randomness!r}, not the system's"
    if certificate.epsilon > MAX_EPSILON:
        price = "infinite" if certificate.epsilon == inf else f"{certificate.epsilon:.6g}"
        yield f"its epsilon is {price}, and no promise worth the name is made above {MAX_EPSILON:g}"
    if certificate.nominal is None:
        yield "no epsilon was asked for"
    elif certificate.epsilon > certificate.nominal:
        yield f"its epsilon {certificate.epsilon!r} exceeds the {certificate.nominal!r} asked for"
    if certificate.delta > certificate.nominal_delta:
        yield f"its delta {certificate.delta!r} exceeds the {certificate.nominal_delta!r} asked for"
    if certificate.delta >= MAX_DELTA:
        yield f"its delta {certificate.delta!r} is no small chance"
