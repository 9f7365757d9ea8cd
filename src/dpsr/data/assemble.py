"""From columns in any order to a table of ratings or interactions: which column holds what, and the canonical order.

Conventional names of columns are found, any other name is given. Names are compared without case and punctuation, so
`userId`, `user_id` and `User-ID` are one name. If no column or more than one has a conventional name for its part,
nothing is guessed: the error lists the columns and the option to use.

With users and items coded by the sorted order of their ids, the rating of user u for item j belongs to cell

    c = u * n + j,

and the table is sorted by c: compressed rows, items ascending within a user. The order depends on the set of ratings
only, so nothing about the order of the input rows survives. Cells and row numbers are packed into one int64 and sorted
as numbers, which is several times faster than sorting row numbers by cell and stable for free.

A pair has one rating, and repeated ones are refused or chosen from; interactions of one pair are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.data.coding import code_ids, code_ratings, read_times, read_weights
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import Source, quoted, quoted_list
from dpsr.types.mask import Mask
from dpsr.types.scale import Scale

CONVENTIONAL = {
    "user": "user userid uid reviewer reviewerid rater raterid customer customerid member memberid",
    "item": "item itemid iid movie movieid film filmid book bookid isbn asin product productid artist artistid "
    "song songid track trackid joke jokeid anime animeid game gameid business businessid restaurant restaurantid "
    "sku article articleid",
    "rating": "rating userrating bookrating ratingvalue starrating score reviewscore stars star value overall",
    "weight": "weight count playcount plays listencount listens quantity qty clicks views visits purchases strength",
    "timestamp": "timestamp time ts unixtime unixtimestamp unixreviewtime ratingtimestamp datetime createdat ratedat",
}
"""Recognised names. `date` is not among them: it is spelt in too many ways, and a time is rarely needed."""


@dataclass(frozen=True)
class RowKind:
    """What a row of a table is besides a user, an item and perhaps a time: the part `value`, and whether it is needed.

    `fields` is the least number of columns such a table has.
    """

    value: str
    needed: bool
    fields: int


RATING_ROWS = RowKind("rating", needed=True, fields=3)
INTERACTION_ROWS = RowKind("weight", needed=False, fields=2)


@dataclass(frozen=True)
class Roles:
    """The position of each column in the table; `timestamp`, and the `value` where it is a weight, may be absent."""

    user: int
    item: int
    value: int | None
    timestamp: int | None

    @property
    def used(self) -> list[int]:
        """The positions in the order user, item, value and timestamp, of those that are there."""
        return [place for place in (self.user, self.item, self.value, self.timestamp) if place is not None]

    def taken(self, shown: Sequence[str], kind: RowKind) -> dict[str, str]:
        """The column of each part as a person is told: `shown` is what each column is called."""
        places = {"user": self.user, "item": self.item, kind.value: self.value, "time": self.timestamp}
        return {part: shown[place] for part, place in places.items() if place is not None}


def find_columns(
    names: Sequence[str],
    *,
    source: str,
    kind: RowKind = RATING_ROWS,
    user: str | None = None,
    item: str | None = None,
    timestamp: str | None = None,
    **value: str | None,
) -> Roles:
    """The column of each part; the value's name is given as `rating=` or `weight=`, as the kind of row has it.

    `""` leaves a part out although a column looks like one, where it may be left out: `timestamp=""`, `weight=""`.
    """
    given = {"user": user, "item": item, **({kind.value: value.get(kind.value)} if kind.needed else {})}
    for role, name in given.items():
        if name is not None:  # a name that is wrong is said before one that is missing
            _place(role, name, names, source)
    absent = [role for role, name in given.items() if name is None and not _matches(role, None, names)]
    if absent and absent != ["user"] and absent != ["item"]:
        raise DataError(_absent(absent, names, source))
    places = {role: _place(role, name, names, source) for role, name in given.items()}
    optional = {"timestamp": timestamp, **({} if kind.needed else {kind.value: value.get(kind.value)})}
    for role, name in optional.items():
        if name != "" and (name is not None or _matches(role, None, names)):
            places[role] = _place(role, name, names, source)
    _refuse_shared(places, names, source)
    return Roles(places["user"], places["item"], places.get(kind.value), places.get("timestamp"))


def unread_rating(names: Sequence[str], roles: Roles) -> str | None:
    """The column that looks like a rating and was not asked for, if there is one."""
    found = [place for place in _matches("rating", None, names) if place not in roles.used]
    return names[found[0]] if found else None


def find_pair(names: Sequence[str], *, source: str, user: str | None, item: str | None) -> tuple[int, int]:
    """The columns of user and item alone, where no rating is needed."""
    places = {role: _place(role, name, names, source) for role, name in (("user", user), ("item", item))}
    _refuse_shared(places, names, source)
    return places["user"], places["item"]


def name_key(name: str) -> str:
    """A name without case and punctuation."""
    return "".join(character for character in name.casefold() if character.isalnum())


def _place(role: str, given: str | None, names: Sequence[str], source: str) -> int:
    matches = _matches(role, given, names)
    if len(matches) == 1:
        return matches[0]
    raise DataError(_complaint(role, given, [names[match] for match in matches], names, source))


def _matches(role: str, given: str | None, names: Sequence[str]) -> list[int]:
    if given is not None:
        return [place for place, name in enumerate(names) if name == given]
    return [place for place, name in enumerate(names) if name_key(name) in CONVENTIONAL[role].split()]


def _complaint(role: str, given: str | None, matches: list[str], names: Sequence[str], source: str) -> str:
    if given is not None:
        problem = f"{'two columns are' if matches else 'no column is'} named {quoted(given)}"
    elif matches:
        problem = f"more than one column could be the {role}: {quoted_list(matches)}"
    else:
        problem = f"no column looks like the {role}"
    left_out = {"timestamp": "times", "weight": "weights"}
    advice = f', or {role}="" to leave {left_out[role]} out' if role in left_out else ""
    return f'{source}: {problem}; {_listed(names)}. Name the one to use with {role}="..." (or --{role} COLUMN){advice}.'


def _listed(names: Sequence[str]) -> str:
    """The columns by name; but numbers may be the first rating of a file without a header, and are not shown."""
    if any(is_number(name) for name in names):
        return f"its {len(names)} columns have numbers for names. If the file has no header, add one"
    return f"the columns are {quoted_list(names)}"


def _absent(roles: list[str], names: Sequence[str], source: str) -> str:
    """All that was not found, at once; a table without ratings is told that it may be none."""
    either = " or ".join([", the ".join(roles[:-1]), f"the {roles[-1]}"]) if len(roles) > 1 else f"{roles[0]}"
    python = ", ".join(f'{role}="..."' for role in roles)
    options = " ".join(f"--{role} COLUMN" for role in roles)
    hint = (
        " Clicks, plays and purchases have no rating and need none: Interactions.read (or dpsr release FILE --likes "
        "--unit user --delta 1e-6)."
    )
    return (
        f"{source}: no column looks like the {either}; {_listed(names)}. "
        f"Name what to use with {python} (or {options}).{hint if roles == ['rating'] else ''}"
    )


def _refuse_shared(places: dict[str, int], names: Sequence[str], source: str) -> None:
    taken: dict[int, str] = {}
    for role, place in places.items():
        if place in taken:
            raise DataError(
                f"{source}: the column {quoted(names[place])} is named as {taken[place]} and as {role}. "
                f'Give each its own column with {role}="..." (or --{role} COLUMN); '
                f"{_listed(names)}."
            )
        taken[place] = role


def is_number(field: str) -> bool:
    """Whether a field or a name is spelt like a number, with a decimal point or comma."""
    try:
        float(field.replace(",", "."))
    except ValueError:
        return False
    return True


DUPLICATES = ("error", "first", "last")


@dataclass(frozen=True, eq=False)
class RatingColumns:
    """Columns of equal length as they were found, and where they were found.

    `ratings` are the values, the weights where the rows are interactions. `unread` names a column that looks like a
    rating and was not asked for.
    """

    users: pa.ChunkedArray
    items: pa.ChunkedArray
    ratings: pa.ChunkedArray
    timestamps: pa.ChunkedArray | None
    source: Source
    unread: str | None = None

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], roles: Roles, source: Source, unread: str | None = None) -> Self:
        """The columns in the order of `roles.used`; every row weighs one where no weight is given."""
        found = dict(zip(roles.used, columns, strict=True))
        values = _ones(len(columns[0])) if roles.value is None else found[roles.value]
        times = None if roles.timestamp is None else found[roles.timestamp]
        return cls(found[roles.user], found[roles.item], values, times, source, unread)


def _ones(n: int) -> pa.ChunkedArray:
    """n times one, in a byte each."""
    return pa.chunked_array([pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int8), pa.array([1.0]))])


def assemble(columns: RatingColumns, *, scale: Scale, duplicates: str) -> tuple[Mask, npt.NDArray[np.uint16]]:
    """The mask and the level of each of its ratings. `duplicates` says which rating of a repeated pair stays."""
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates is one of {', '.join(DUPLICATES)}, found {quoted(duplicates)}.")
    source = columns.source
    if not len(columns.ratings):
        raise DataError(
            f"{source.name}: there are no ratings. Give at least one row with a user, an item and a rating."
        )
    cells, user_ids, item_ids = _cells(columns)
    levels = code_ratings(columns.ratings, scale, source)
    times = None if columns.timestamps is None else read_times(columns.timestamps, source)
    order, cells = _canonical(cells, len(user_ids) * len(item_ids))
    kept = _without_duplicates(order, cells, duplicates, _Pairs(columns, source))
    order, cells = order[kept], cells[kept]
    mask = mask_of_cells(cells, user_ids, item_ids, None if times is None else times[order])
    return mask, levels[order]


def assemble_interactions(columns: RatingColumns) -> tuple[Mask, Floats, int]:
    """The mask, the weight of each of its interactions, and how many rows repeated a pair and were added to it.

    The time of a pair is that of its latest interaction.
    """
    source = columns.source
    if not len(columns.ratings):
        raise DataError(f"{source.name}: there are no interactions. Give at least one row with a user and an item.")
    cells, user_ids, item_ids = _cells(columns)
    weights = read_weights(columns.ratings, source)
    times = None if columns.timestamps is None else read_times(columns.timestamps, source)
    order, cells = _canonical(cells, len(user_ids) * len(item_ids))
    first = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weights[order], first)
    if not np.isfinite(total).all():
        raise DataError(f"{source.name}: the weights of one pair add up to more than a number can hold. Rescale them.")
    latest = None if times is None else np.maximum.reduceat(times[order], first)
    return mask_of_cells(cells[first], user_ids, item_ids, latest), total, len(cells) - len(first)


def _cells(columns: RatingColumns) -> tuple[Ints, pa.Array, pa.Array]:
    """The cell of every row, and the ids of users and items."""
    cells, user_ids = code_ids(columns.users, "user", columns.source)
    items, item_ids = code_ids(columns.items, "item", columns.source)
    cells *= len(item_ids)
    cells += items  # columns of tens of millions of rows: each is let go as soon as it is used
    return cells, user_ids, item_ids


def mask_of_cells(cells: Ints, user_ids: pa.Array, item_ids: pa.Array, timestamps: Ints | None = None) -> Mask:
    """The mask of strictly ascending cells `u * n + j`; users and items without a rating stay in the vocabulary."""
    n = len(item_ids)
    indptr = np.searchsorted(cells, n * np.arange(len(user_ids) + 1)).astype(np.int64)
    return Mask(user_ids, item_ids, indptr, (cells % n).astype(np.int32), timestamps)


def _canonical(cells: Ints, n_cells: int) -> tuple[Ints, Ints]:
    """Rows sorted by cell, earlier rows first within a cell, and their cells; `cells` itself may be sorted."""
    if bool((cells[1:] > cells[:-1]).all()):
        return np.arange(len(cells)), cells
    bits = len(cells).bit_length()
    if n_cells.bit_length() + bits > 63:
        order = np.argsort(cells, kind="stable")
        return order, cells[order]
    cells <<= bits
    cells |= np.arange(len(cells))
    cells.sort()
    order = cells & ((1 << bits) - 1)
    cells >>= bits
    return order, cells


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs as they were given, for the message about a repeated one."""

    columns: RatingColumns
    source: Source

    def refuse(self, row: int, earlier: int) -> DataError:
        pair = self.columns.users[row].as_py(), self.columns.items[row].as_py()
        return repeated_pair_error(pair, row, earlier, self.source)


def repeated_pair_error(pair: tuple[object, object], row: int, earlier: int, source: Source) -> DataError:
    """The error for a pair that is rated twice."""
    return DataError(
        f"{source.at(row)}: user {quoted(pair[0])} rates item {quoted(pair[1])} again, as before at "
        f"{source.place(earlier)}. "
        'Keep one of them with duplicates="first" or "last" (or --duplicates first).'
    )


def _without_duplicates(order: Ints, cells: Ints, duplicates: str, pairs: _Pairs) -> npt.NDArray[np.bool_] | slice:
    repeats = cells[1:] == cells[:-1]
    if not repeats.any():
        return slice(None)
    if duplicates == "error":
        later = np.flatnonzero(repeats) + 1
        place = later[np.argmin(order[later])]  # the first row of the input that repeats an earlier one
        raise pairs.refuse(int(order[place]), int(order[np.searchsorted(cells, cells[place])]))
    edge = np.array([False])
    return ~np.concatenate([edge, repeats] if duplicates == "first" else [repeats, edge])
