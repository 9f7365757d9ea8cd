"""Which column of a table holds what: user, item, rating or weight, and perhaps a time.

Conventional names of columns are found, any other name is given. Names are compared without case and punctuation, so
`userId`, `user_id` and `User-ID` are one name. If no column or more than one has a conventional name for its part,
nothing is guessed: the error lists the columns and the option to use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from dpsr.errors import DataError
from dpsr.quoting import Source, quoted, quoted_list

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
