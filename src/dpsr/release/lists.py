"""One list as a table: user, rank, item, score, the columns that lists of everybody have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.release.ranking import Recommendations
from dpsr.release.release import Release
from dpsr.release.suggest import require_user


def list_of_user(release: Release, user: str | int, n: int = 10) -> pa.Table:
    """The list of a user the release knows; an unknown one is an error with suggestions."""
    require_user(release.mask, user)
    code = release.ids.user_code(user)
    return _table(release.mask.user_ids[code].as_py(), release.recommend(user, n))


def list_of_guest(release: Release, rated: list[str], n: int = 10) -> pa.Table:
    """The list of somebody new, from their own ratings `ITEM=RATING`; nothing is stored."""
    pairs = [_parsed(text) for text in rated]
    items, values = [item for item, _ in pairs], [value for _, value in pairs]
    if not (release.mask.item_codes(items) >= 0).any():
        raise ParameterError(
            f"none of the {len(pairs)} rated items is in this release, so there is nothing to learn from. "
            "Check the ids against the item column of items.parquet."
        )
    return _table(None, release.fold_in(items, values, n))


def _parsed(text: str) -> tuple[str, float]:
    """The last equals sign separates: ids may contain one, ratings may not."""
    item, equals, value = text.rpartition("=")
    try:
        if not equals or not item:
            raise ValueError
        return item, float(value)
    except ValueError as error:
        raise ParameterError(f"a rating of somebody new is written ITEM=RATING, found {text[:60]!r}.") from error


def _table(user: str | int | None, found: Recommendations) -> pa.Table:
    count = len(found.items)
    return pa.table(
        {
            "user": [user] * count,
            "rank": pa.array(np.arange(1, count + 1), type=pa.int32()),
            "item": found.items,
            "score": found.scores,
        }
    )
