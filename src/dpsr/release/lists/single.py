"""One list as a table: user, rank, item, score, the columns that lists of everybody have.

For an id that is not in the release it says what was perhaps meant.
"""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.errors import ParameterError
from dpsr.quoting import printable
from dpsr.release.likes import LikesRelease
from dpsr.release.lists.ranking import RecommendationLists, Recommendations
from dpsr.release.people import ItemRelease
from dpsr.release.release import Release
from dpsr.types import Mask
from dpsr.types.coordinates import Ids


def list_of_user(release: Release | ItemRelease | LikesRelease, user: str | int, n: int = 10) -> pa.Table:
    """The list of a user the release knows; an unknown one is an error with suggestions."""
    if isinstance(release, ItemRelease | LikesRelease):
        return _table(user, release.recommend(user, n))
    require_user(release.mask, user)
    code = release.ids.user_code(user)
    return _table(release.mask.user_ids[code].as_py(), release.recommend(user, n))


def lists_of_users(release: Release, users: Ids, n: int, unknown: str) -> RecommendationLists:
    """One list below the other, in the order asked for; ids come back as they were given."""
    column = pa.chunked_array([users]) if isinstance(users, pa.Array) else users
    given = column.to_pylist() if isinstance(column, pa.ChunkedArray) else np.asarray(column).tolist()
    if unknown == "error":
        for user in given:
            require_user(release.mask, user)
    tables = [_table(user, release._list(user, n)) for user in given]
    empty = pa.table({"user": [], "rank": pa.array([], pa.int32()), "item": [], "score": pa.array([], pa.float64())})
    return RecommendationLists(pa.concat_tables(tables) if tables else empty)


def list_of_likes(release: Release | ItemRelease | LikesRelease, liked: list[str], n: int = 10) -> pa.Table:
    """The list of somebody new from what they did, where interactions were learned from; nothing is stored."""
    if not isinstance(release, LikesRelease):
        raise ParameterError("this release was learned from ratings: write --rated ITEM=RATING for somebody new.")
    _require_some(release, liked)
    return _table(None, release.fold_in(liked, None, n))


def list_of_new_user(release: Release | ItemRelease | LikesRelease, rated: list[str], n: int = 10) -> pa.Table:
    """The list of somebody new, from their own ratings `ITEM=RATING`; nothing is stored."""
    if isinstance(release, LikesRelease):
        raise ParameterError("this release was learned from interactions: write --liked ITEM for what somebody did.")
    pairs = [_parsed(text) for text in rated]
    items, values = [item for item, _ in pairs], [value for _, value in pairs]
    _require_some(release, items)
    return _table(None, release.fold_in(items, values, n))


def unknown_items(release: Release | ItemRelease | LikesRelease, items: list[str]) -> list[str]:
    """Those that the release knows nothing of, so that they have no part in a list; none where ids are hashed."""
    known = release.mask.item_codes if isinstance(release, Release) else release.index.cells_of
    return [item for item, code in zip(items, known(items), strict=True) if code < 0]


def why_empty(release: Release | ItemRelease | LikesRelease) -> str:
    """Why a list has no items, and what could be done."""
    if not isinstance(release, Release) and len(release.index.named) == 0:
        return (
            "No item of this release may be named, so lists are empty. Release again with a declared list of items "
            "(--items FILE), with more people, or at a larger epsilon."
        )
    return "Nothing is left to recommend: every item that could be is known already."


def _require_some(release: Release | ItemRelease | LikesRelease, items: list[str]) -> None:
    if len(unknown_items(release, items)) == len(items):
        raise ParameterError(
            f"{'this item is not' if len(items) == 1 else f'none of the {len(items)} items is'} in this release, so "
            "there is nothing to learn from. "
            "Check the ids against the item column of items.parquet."
        )


def _parsed(text: str) -> tuple[str, float]:
    """The last equals sign separates: ids may contain one, ratings may not."""
    item, equals, value = text.rpartition("=")
    try:
        if not equals or not item:
            raise ValueError
        return item, float(value.replace(",", "."))  # as a scale may be written, and ratings of a file
    except ValueError as error:
        raise ParameterError(
            f"a rating of somebody new is written ITEM=RATING, such as 42=5, found {text[:60]!r}."
        ) from error


def _table(user: str | int | None, found: Recommendations) -> pa.Table:
    return found.to_arrow().add_column(0, "user", pa.array([user] * len(found)))


_LOOKED_AT = 20_000
"""Ids compared letter by letter; in larger releases, those that begin alike."""

_SHOWN = 40


def require_user(mask: Mask, user: object) -> None:
    """Refuse a user the release does not know, with the nearest ids or the range of them."""
    if mask.user_codes([user])[0] >= 0:
        return
    spelt = printable(str(user), _SHOWN)
    raise ParameterError(
        f"the user '{spelt}' is not in this release. {_hint(str(user), mask.user_ids)} For somebody new, give their "
        "own ratings: fold_in(items, values) (or --rated ITEM=RATING)."
    )


def _hint(wanted: str, vocabulary: pa.Array) -> str:
    if not pa.types.is_string(vocabulary.type):
        ends = pc.min_max(vocabulary).as_py()
        return f"Its {len(vocabulary):,} users have whole numbers from {ends['min']} to {ends['max']} as ids."
    close = get_close_matches(wanted, _plausible(wanted, vocabulary), n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(repr(printable(one, _SHOWN)) for one in close)}?"
    first = ", ".join(repr(printable(one, _SHOWN)) for one in vocabulary[:3].to_pylist())
    return f"Its {len(vocabulary):,} users are called {first} and so on."


def _plausible(wanted: str, vocabulary: pa.Array) -> list[str]:
    if len(vocabulary) > _LOOKED_AT:
        vocabulary = vocabulary.filter(pc.starts_with(vocabulary, wanted[:2], ignore_case=True))
    return list(vocabulary[:_LOOKED_AT].to_pylist())
