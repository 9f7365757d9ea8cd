"""People who do not exist, in a folder: `synthetic.parquet` and what `model.json` says of it.

Made-up people follow from the item side, a number of people and a public seed, which `model.json` states. So they are
drawn again and compared: a table that holds anything else, such as rows of real people, is not the one that follows.
Another version of dpsr may draw other people; then its folder is refused here, with the advice to verify with that one:
what a folder says about its own version proves nothing.

A few bytes of a file can stand for millions of rows, and a line of a model for millions of people. So first the numbers
are held against each other and the size of the file; then people and items are read a few rows at a time and compared
while they are drawn, up to the first that differs; and only a table that holds them all is unpacked as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.certify.certificate import software
from dpsr.certify.check import Check
from dpsr.certify.folder import MalformedError
from dpsr.release.folder.layout import SYNTHETIC
from dpsr.release.folder.parquet import Column, read_batches, read_table
from dpsr.release.likes import LikesRelease
from dpsr.release.nobody import item_names
from dpsr.release.people import ItemRelease
from dpsr.synthesis import Synthesis, planned_ratings

MakesUpPeople: TypeAlias = ItemRelease | LikesRelease

_LIKES = (Column("user", "whole"), Column("item", "id"))
_RATINGS = (*_LIKES, Column("rating", "real"))

PEOPLE_A_BYTE = 3
"""At most: somebody's number has eight bytes, of which Snappy packs at most 22 into one (`parquet_pages`)."""

FOLLOWS = f"{SYNTHETIC} is what the item side gives at its public seed: people who do not exist"
DOES_NOT = f"{SYNTHETIC} is not what the item side gives at its public seed: who is in it, nobody knows"


def synthesis_of(record: Mapping[str, Any]) -> Synthesis | None:
    """Which people were made up."""
    found = record["synthetic"]
    return None if found is None else Synthesis(found["people"], found["seed"])


def check_synthetic(release: MakesUpPeople, data: bytes | None, stated: Mapping[str, Any] | None) -> Iterator[Check]:
    """Whether the table is there if it is stated, has its form, and follows from the item side."""
    if (data is None) != (stated is None):
        found = "is missing" if data is None else "is there"
        yield Check(False, f"{SYNTHETIC} {found}, and the model states {'none' if stated is None else 'one'}")
        return
    asked = release.synthetic
    if data is None or stated is None or asked is None:
        return
    columns, rows = _RATINGS if isinstance(release, ItemRelease) else _LIKES, stated["ratings"]
    try:
        batches = read_batches(data, columns, rows, ("user", "item"))
        if not _plausible(release, asked, rows, len(data)):
            yield Check(False, f"{SYNTHETIC}: so many people would not have so many ratings, nor lie in so few bytes")
            return
        drawn = drawn_as_in(release, asked, batches)
        table = None if drawn is None or len(drawn) != rows else read_table(data, columns, rows)
    except MalformedError as error:
        yield Check(False, f"{SYNTHETIC}: {error}")
        return
    if table is not None and "rating" in table and not release.scale.locate(table["rating"])[1].all():
        yield Check(False, f"{SYNTHETIC}: a rating is not on the scale")
    elif table is not None and drawn is not None and _equal(drawn, table):
        yield Check(True, FOLLOWS)
    else:
        other = release.certificate.software != software()
        yield Check(False, f"{DOES_NOT}; another version says it made it: verify with that one" if other else DOES_NOT)


def _plausible(release: MakesUpPeople, asked: Synthesis, rows: int, size: int) -> bool:
    """Whether so many people have about so many rows, and their numbers fit into the file."""
    if not asked.people <= min(rows, PEOPLE_A_BYTE * size):
        return False
    planned = planned_ratings(release.crowd, asked)
    return max(rows, planned) <= 2 * min(rows, planned) + 1000


class _DiffersError(Exception):
    """Somebody else is in the table, or met something else."""


def drawn_as_in(release: MakesUpPeople, asked: Synthesis, batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """The rows that follow; None at the first person or item that is another in the table."""
    unseen: list[pa.Table] = []

    def look(people: Ints, cells: Ints) -> None:
        while sum(map(len, unseen)) < len(people):
            batch = next(batches, None)
            if batch is None:
                raise _DiffersError
            unseen.append(_plain(pa.table(batch)))
        found = pa.concat_tables(unseen)
        unseen[:] = [found[len(people) :]]
        users, items = (found[name][: len(people)].combine_chunks() for name in ("user", "item"))
        if not users.equals(pa.array(people + 1)) or not items.equals(item_names(release.index, cells)):
            raise _DiffersError

    try:
        return release.rows_drawn(asked, look)
    except _DiffersError:
        return None


def _plain(table: pa.Table) -> pa.Table:
    """Text written out."""
    kind = table["item"].type
    if not pa.types.is_dictionary(kind):
        return table
    return table.set_column(1, "item", table["item"].cast(kind.value_type))


def _equal(rows: pa.Table, table: Mapping[str, Any]) -> bool:
    items = table["item"].cast(rows["item"].type) if isinstance(table["item"], pa.DictionaryArray) else table["item"]
    numbers = all(np.array_equal(rows[name].to_numpy(), table[name]) for name in rows.column_names if name != "item")
    return numbers and bool(rows["item"].combine_chunks().equals(items))
