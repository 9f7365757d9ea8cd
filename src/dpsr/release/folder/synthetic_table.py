"""`synthetic.parquet`: people who do not exist, and how anyone can see that nobody else is in it.

The table follows from the item side, a number of people and a public seed, which `model.json` states. So it is drawn
again and compared: a table that holds anything else, such as rows of real people, is not the one that follows. Another
version of dpsr may draw other people; then its folder is refused here, with the advice to verify with that one: what a
folder says about its own version proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpsr.certify.certificate import software
from dpsr.certify.check import Check
from dpsr.certify.json_schema import MalformedError
from dpsr.release.folder.layout import SYNTHETIC
from dpsr.release.folder.parquet import Column, read_table, writer
from dpsr.release.likes.likes_release import LikesRelease
from dpsr.release.people.item_release import ItemRelease
from dpsr.synthesis.people import planned_ratings

MakesUpPeople: TypeAlias = ItemRelease | LikesRelease

_LIKES = (Column("user", "whole"), Column("item", "id"))
_RATINGS = (*_LIKES, Column("rating", "real"))

FOLLOWS = f"{SYNTHETIC} is what the item side gives at its public seed: people who do not exist"
DOES_NOT = f"{SYNTHETIC} is not what the item side gives at its public seed: who is in it, nobody knows"


def synthetic_record(release: MakesUpPeople) -> dict[str, int] | None:
    """What `model.json` says of the table."""
    people, asked = release.made_up, release.synthetic
    if people is None or asked is None:
        return None
    return {"people": asked.people, "ratings": len(people.cells), "seed": asked.seed}


def write_synthetic(release: MakesUpPeople, path: Path) -> None:
    """The table, if the release has one."""
    rows = release.synthetic_rows
    if rows is not None:
        with writer(path, rows.schema) as file:
            file.write_table(rows)


def check_synthetic(release: MakesUpPeople, data: bytes | None, stated: Mapping[str, Any] | None) -> Iterator[Check]:
    """Whether the table is there if it is stated, has its form, and follows from the item side."""
    if (data is None) != (stated is None):
        found = "is missing" if data is None else "is there"
        yield Check(False, f"{SYNTHETIC} {found}, and the model states {'none' if stated is None else 'one'}")
        return
    if data is None or stated is None:
        return
    try:
        table = read_table(data, _RATINGS if isinstance(release, ItemRelease) else _LIKES, stated["ratings"])
    except MalformedError as error:
        yield Check(False, f"{SYNTHETIC}: {error}")
        return
    if not _plausible(release, stated):
        yield Check(False, f"{SYNTHETIC}: so many people would not have so many ratings")
        return
    on_scale = "rating" not in table or bool(release.scale.locate(table["rating"])[1].all())
    inside = bool(((table["user"] >= 1) & (table["user"] <= stated["people"])).all())
    if not on_scale or not inside:
        yield Check(False, f"{SYNTHETIC}: a rating is not on the scale, or a person has no number that is stated")
    elif _equal(release, table):
        yield Check(True, FOLLOWS)
    else:
        other = release.certificate.software != software()
        yield Check(False, f"{DOES_NOT}; another version says it made it: verify with that one" if other else DOES_NOT)


def _plausible(release: MakesUpPeople, stated: Mapping[str, Any]) -> bool:
    """Whether drawing them again takes about as much room as the file that was read, which is bounded."""
    asked, rows = release.synthetic, stated["ratings"]
    return asked is not None and asked.people <= rows and planned_ratings(release.crowd, asked) <= 2 * rows + 1000


def _equal(release: MakesUpPeople, table: Mapping[str, Any]) -> bool:
    rows = release.synthetic_rows
    if rows is None or len(rows) != len(table["user"]):
        return False
    items = table["item"].cast(rows["item"].type) if isinstance(table["item"], pa.DictionaryArray) else table["item"]
    numbers = all(np.array_equal(rows[name].to_numpy(), table[name]) for name in rows.column_names if name != "item")
    return numbers and bool(rows["item"].combine_chunks().equals(items))
