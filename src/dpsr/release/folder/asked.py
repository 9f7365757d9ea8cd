"""Whether what the tables of a folder hold was asked for: a part of the certificate for every kind of number in them.

Prices follow from the parts, so that a part left out would make a release look cheaper than it was. Which questions a
release cannot do without follows from its tables:

    values     a histogram and sums, perhaps one symbol a rating; one sum of all ratings; or symbols alone (the paper)
    people     levels, activity and scores; factors need second moments
    likes      numbers of interactions and counts; axes of taste need second moments, or pairs
    both       names, where no list of items was declared, need names
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsr.certify import Certificate
from dpsr.certify.check import Check
from dpsr.certify.people import COUNTS, INTERACTIONS, MOMENTS, NAMES, PAIRS, PRESENCE
from dpsr.types.item_side import ItemIndex, ItemSide
from dpsr.types.likes_side import LikesSide

_HISTOGRAM, _SUMS, _TOTAL, _SYMBOLS = "level histogram", "window sums", "total", "ratings"

_OF_VALUES = ((_TOTAL,), (_SYMBOLS,), (_HISTOGRAM, _SUMS), (_HISTOGRAM, _SUMS, _SYMBOLS))
"""The questions that a release of values asks, in their order."""

_ALL_ASKED = "everything that the tables hold was asked for by a part of the certificate"


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
        "effects of items": ("scores", "scores of people"),
        **({"factors of taste": (MOMENTS,)} if side.n_factors else {}),
    }
    return _check(certificate, needed | _names(index))


def check_likes_asked(certificate: Certificate, side: LikesSide, index: ItemIndex) -> Check:
    """Of a release of items that people met."""
    needed = {
        "people by activity": (INTERACTIONS,),
        "popularities of items": (COUNTS,),
        **({"axes of taste": (PRESENCE, PAIRS)} if len(side.frequent) else {}),
    }
    return _check(certificate, needed | _names(index))


def _names(index: ItemIndex) -> dict[str, tuple[str, ...]]:
    return {"names of items": (NAMES,)} if index.declared is None and len(index.named) else {}


def _check(certificate: Certificate, needed: Mapping[str, tuple[str, ...]]) -> Check:
    """`needed` says what the tables hold, and which questions tell it: one of them is a part."""
    asked = {part.name for part in certificate.parts}
    for what, questions in needed.items():
        if not asked & set(questions):
            return Check(False, f"the tables hold {what}, and no part of the certificate asks for {questions[0]}")
    return Check(True, _ALL_ASKED)
