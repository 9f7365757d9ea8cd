"""Names of data sets: one spelling each, and none that looks like another.

A name is kept in Unicode's composed form (NFC), so that an accent typed in two ways is one name. Characters that nobody
sees are refused, and so is a new name that differs from an existing one only in case, in width, in such a spelling or
in Cyrillic and Greek letters that look like Latin ones: a data set under two names would have two budgets. Names from
before these rules are found as they were written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import combinations

from dpsr.errors import LedgerError

LONGEST = 120

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Printable by Unicode's categories, and empty on every screen: joiners, fillers, variation selectors, the blank of
Braille. Format and control characters and spaces other than the plain one are not printable in the first place."""


def label(name: str) -> str:
    """A data set's name in its one spelling, or an error that says what a name is."""
    composed = unicodedata.normalize("NFC", name)
    if not is_name(composed):
        raise LedgerError(
            f"a data set has a name of 1 to {LONGEST} printable characters that can be seen, with single spaces "
            f"between words and none around them, found {name[:LONGEST]!a}."
        )
    return composed


def is_name(name: str) -> bool:
    """Whether this is the one spelling of a name."""
    seen = name.isprintable() and not _UNSEEN.search(name) and unicodedata.is_normalized("NFC", name)
    return seen and 0 < len(name) <= LONGEST and name == name.strip() and "  " not in name


def find(name: str, known: Iterable[str]) -> str | None:
    """The data set that is meant by `name`: spelt so, or spelt otherwise with the same letters."""
    names = list(known)
    if name in names:
        return name
    alike = [one for one in names if _composed(one) == _composed(name)]
    if len(alike) > 1:
        raise LedgerError(
            f"{name!a} may be any of {', '.join(ascii(one) for one in alike)}, which are spellings of one name from "
            "before names had one spelling. Write it as it is in the ledger."
        )
    return alike[0] if alike else None


def check_new(name: str, known: Iterable[str]) -> None:
    """Refuse a new name that can be taken for an existing one."""
    for one in known:
        if _folded(one) == _folded(name):
            raise LedgerError(
                f"there is a data set {one!a}, which can be taken for {name!a}, and ratings under two names would "
                "have two budgets. Charge that one, or choose a name that looks different."
            )


def look_alikes(known: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of existing names that can be taken for one another."""
    return [(one, other) for one, other in combinations(known, 2) if _folded(one) == _folded(other)]


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


_CYRILLIC = ("авекмнорстухіјѕһԁԛԝ", "abekmhopctyxijshdqw")
_GREEK = ("αβεζηικμνορτυχ", "abezhikmvoptyx")
_LATIN_TWINS = str.maketrans(_CYRILLIC[0] + _GREEK[0], _CYRILLIC[1] + _GREEK[1])
"""Letters that look like Latin ones, small or capital, after case was folded."""


def _folded(name: str) -> str:
    """Without case, width, unseen characters, the number of spaces and the alphabet of letters that look alike."""
    seen = "".join(c for c in name if c.isprintable() or c.isspace())
    letters = unicodedata.normalize("NFKD", _UNSEEN.sub("", seen)).casefold().translate(_LATIN_TWINS)
    return " ".join(unicodedata.normalize("NFKC", letters).split())
