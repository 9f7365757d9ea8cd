"""An id that is not in a release: say so, and what was perhaps meant."""

from __future__ import annotations

from difflib import get_close_matches

import pyarrow as pa
import pyarrow.compute as pc

from dpsr.errors import ParameterError
from dpsr.types import Mask

_LOOKED_AT = 20_000
"""Ids compared letter by letter; in larger releases, those that begin alike."""

_SHOWN = 40


def require_user(mask: Mask, user: str | int) -> None:
    """Refuse a user the release does not know, with the nearest ids or the range of them."""
    if mask.user_codes([user])[0] >= 0:
        return
    spelt = _printable(str(user))
    raise ParameterError(
        f"the user '{spelt}' is not in this release. {_hint(str(user), mask.user_ids)} For somebody new, give their "
        "own ratings with --rated ITEM=RATING (in Python: fold_in)."
    )


def _hint(wanted: str, vocabulary: pa.Array) -> str:
    if not pa.types.is_string(vocabulary.type):
        ends = pc.min_max(vocabulary).as_py()
        return f"Its {len(vocabulary):,} users have whole numbers from {ends['min']} to {ends['max']} as ids."
    close = get_close_matches(wanted, _plausible(wanted, vocabulary), n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(repr(_printable(one)) for one in close)}?"
    first = ", ".join(repr(_printable(one)) for one in vocabulary[:3].to_pylist())
    return f"Its {len(vocabulary):,} users are called {first} and so on."


def _plausible(wanted: str, vocabulary: pa.Array) -> list[str]:
    if len(vocabulary) > _LOOKED_AT:
        vocabulary = vocabulary.filter(pc.starts_with(vocabulary, wanted[:2], ignore_case=True))
    return list(vocabulary[:_LOOKED_AT].to_pylist())


def _printable(text: str) -> str:
    """Ids are data from strangers: what could steer a terminal is left out."""
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return "".join(character for character in cut if character.isprintable())
