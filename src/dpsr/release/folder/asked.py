"""Whether what the tables of a folder hold was asked for: a part of the certificate for every kind of number in them.

Prices follow from the parts, so that a part left out would make a release look cheaper than it was. Which questions a
release cannot do without follows from its tables:

    values     a histogram and sums, perhaps one symbol a rating; one sum of all ratings; or symbols alone (the paper)
    people     levels, activity and scores; factors need second moments, and coefficients that lie elsewhere than is
               believed before they are asked for need that question
    likes      numbers of interactions and counts; axes of taste need second moments, or pairs
    both       names, where no list of items was declared, need names

How many numbers a question of people has follows from the tables, too, and a card shows it:

    scores          count, sum and one product for each factor, for every cell; factors are known after second moments
    coefficients    of k = 3 and one for each factor: 3 k, and k (k + 1) / 2 products
    counts          one for every cell, the first time; later for some of them
    moments, pairs  of presence: one for every two frequent cells
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpsr.certify import Certificate
from dpsr.certify.check import Check
from dpsr.certify.people import COUNTS, INTERACTIONS, MOMENTS, NAMES, PAIRS, PRESENCE, NormalPart
from dpsr.types.item_side import ItemIndex, ItemSide
from dpsr.types.likes_side import LikesSide

_HISTOGRAM, _SUMS, _TOTAL, _SYMBOLS = "level histogram", "window sums", "total", "ratings"

_OF_VALUES = ((_TOTAL,), (_SYMBOLS,), (_HISTOGRAM, _SUMS), (_HISTOGRAM, _SUMS, _SYMBOLS))
"""The questions that a release of values asks, in their order."""

_ALL_ASKED = "everything that the tables hold was asked for by a part of the certificate"
_AS_MANY = "every question has as many numbers as the tables ask for"


def check_values_asked(certificate: Certificate) -> Check:
    """Of a release of values; which columns follow from its questions is the method's affair (`consistency.py`)."""
    asked = tuple(part.name for part in certificate.parts)
    if asked not in _OF_VALUES:
        return Check(False, f"no release of values asks for {', '.join(asked)} and for nothing else")
    return Check(True, _ALL_ASKED)


def check_people_asked(certificate: Certificate, side: ItemSide, index: ItemIndex) -> Check:
    """Of a release of items that people rated."""
    needed = {
        "levels of people": ("levels",),
        "people by activity": ("activity",),
        "effects of items": ("scores",),
        **({"factors of taste": (MOMENTS,)} if side.n_factors else {}),
        **({"where people's coefficients lie": ("coefficients",)} if _coefficients_moved(side) else {}),
    }
    return _check(certificate, needed | _names(index))


def _coefficients_moved(side: ItemSide) -> bool:
    """Whether they lie elsewhere than is believed before they are asked for: around zero, each by itself."""
    return bool(side.mean.any() or (side.covariance != np.diag(np.diag(side.covariance))).any())


def check_likes_asked(certificate: Certificate, side: LikesSide, index: ItemIndex) -> Check:
    """Of a release of items that people met."""
    needed = {
        "people by activity": (INTERACTIONS,),
        "popularities of items": (COUNTS,),
        **({"axes of taste": (PRESENCE, PAIRS)} if len(side.frequent) else {}),
    }
    return _check(certificate, needed | _names(index))


def check_people_numbers(certificate: Certificate, side: ItemSide) -> Check:
    """Whether questions about scores and coefficients have as many numbers as the item side asks for."""
    factors = 0
    for part in _normal_parts(certificate):
        k = 3 + factors
        wanted = {
            "scores": side.n_cells * (2 + (factors if certificate.unit == "user" else 0)),
            "scores of people": side.n_cells * (2 + factors),
            "coefficients": 3 * k + k * (k + 1) // 2,
        }
        if part.numbers != wanted.get(part.name, part.numbers):
            return _other_number(part, wanted[part.name])
        if part.name == MOMENTS:
            factors = side.n_factors
    return Check(True, _AS_MANY)


def check_likes_numbers(certificate: Certificate, side: LikesSide) -> Check:
    """Whether questions about counts and pairs have as many numbers as the cells of the tables ask for."""
    wanted = {COUNTS: len(side.popularity)}
    if len(side.frequent):
        pairs = len(side.frequent) * (len(side.frequent) - 1) // 2
        wanted |= {PRESENCE: pairs, PAIRS: pairs}
    for part in _normal_parts(certificate):
        if part.numbers != wanted.get(part.name, part.numbers):
            return _other_number(part, wanted[part.name])
        if part.name == COUNTS:
            wanted.pop(COUNTS, None)
        elif part.name in (PRESENCE, PAIRS):
            wanted[part.name] = part.numbers
    return Check(True, _AS_MANY)


def _normal_parts(certificate: Certificate) -> Iterator[NormalPart]:
    return (part for part in certificate.parts if isinstance(part, NormalPart))


def _other_number(part: NormalPart, wanted: int) -> Check:
    return Check(
        False, f"{part.name} have {wanted:,} numbers in such a release, and the certificate states {part.numbers:,}"
    )


def _names(index: ItemIndex) -> dict[str, tuple[str, ...]]:
    return {"names of items": (NAMES,)} if index.declared is None and len(index.named) else {}


def _check(certificate: Certificate, needed: Mapping[str, tuple[str, ...]]) -> Check:
    """`needed` says what the tables hold, and which questions tell it: one of them is a part."""
    asked = {part.name for part in certificate.parts}
    for what, questions in needed.items():
        if not asked & set(questions):
            return Check(False, f"the tables hold {what}, and no part of the certificate asks for {questions[0]}")
    return Check(True, _ALL_ASKED)
