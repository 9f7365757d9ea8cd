"""Which column holds what: conventional names are found, any other name is given.

Names are compared without case and punctuation, so `userId`, `user_id` and `User-ID` are one name. If no column or more
than one has a conventional name for its part, nothing is guessed: the error lists the columns and the option to use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsr.data.quoting import listed, shown
from dpsr.errors import DataError

CONVENTIONAL = {
    "user": "user userid uid reviewer reviewerid rater raterid customer customerid member memberid",
    "item": "item itemid iid movie movieid film filmid book bookid isbn asin product productid artist artistid "
    "song songid track trackid joke jokeid anime animeid game gameid business businessid restaurant restaurantid",
    "rating": "rating userrating bookrating ratingvalue starrating score reviewscore stars star value overall",
    "timestamp": "timestamp time ts unixtime unixtimestamp unixreviewtime ratingtimestamp",
}
"""Recognised names. `date` is not among them: it is rarely a number, and only Unix seconds are read."""


@dataclass(frozen=True)
class Roles:
    """The position of each column in the table; `timestamp` may be absent."""

    user: int
    item: int
    rating: int
    timestamp: int | None

    @property
    def used(self) -> list[int]:
        """The positions in the order user, item, rating and, if there is one, timestamp."""
        return [self.user, self.item, self.rating] + ([] if self.timestamp is None else [self.timestamp])


def find_columns(
    names: Sequence[str],
    *,
    source: str,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
) -> Roles:
    """The column of each part. `timestamp=""` leaves the times out although a column looks like one."""
    given = {"user": user, "item": item, "rating": rating}
    places = {role: _place(role, name, names, source) for role, name in given.items()}
    time = None if timestamp == "" else _optional(timestamp, names, source)
    _refuse_shared({**places, **({} if time is None else {"timestamp": time})}, names, source)
    return Roles(**places, timestamp=time)


def find_pair(names: Sequence[str], *, source: str, user: str | None, item: str | None) -> tuple[int, int]:
    """The columns of user and item alone, where no rating is needed."""
    places = {role: _place(role, name, names, source) for role, name in (("user", user), ("item", item))}
    _refuse_shared(places, names, source)
    return places["user"], places["item"]


def plain(name: str) -> str:
    """A name without case and punctuation."""
    return "".join(character for character in name.casefold() if character.isalnum())


def _place(role: str, given: str | None, names: Sequence[str], source: str) -> int:
    matches = _matches(role, given, names)
    if len(matches) == 1:
        return matches[0]
    raise DataError(_complaint(role, given, [names[match] for match in matches], names, source))


def _optional(given: str | None, names: Sequence[str], source: str) -> int | None:
    if given is None and not _matches("timestamp", None, names):
        return None
    return _place("timestamp", given, names, source)


def _matches(role: str, given: str | None, names: Sequence[str]) -> list[int]:
    if given is not None:
        return [place for place, name in enumerate(names) if name == given]
    return [place for place, name in enumerate(names) if plain(name) in CONVENTIONAL[role].split()]


def _complaint(role: str, given: str | None, matches: list[str], names: Sequence[str], source: str) -> str:
    if given is not None:
        problem = f"{'two columns are' if matches else 'no column is'} named {shown(given)}"
    elif matches:
        problem = f"more than one column could be the {role}: {listed(matches)}"
    else:
        problem = f"no column looks like the {role}"
    advice = ', or timestamp="" to leave times out' if role == "timestamp" else ""
    return (
        f"{source}: {problem}; the columns are {listed(names)}. "
        f'Name the one to use with {role}="..." (or --{role} COLUMN){advice}.'
    )


def _refuse_shared(places: dict[str, int], names: Sequence[str], source: str) -> None:
    taken: dict[int, str] = {}
    for role, place in places.items():
        if place in taken:
            raise DataError(
                f"{source}: the column {shown(names[place])} is named as {taken[place]} and as {role}. "
                f'Give each its own column with {role}="..." (or --{role} COLUMN); the columns are {listed(names)}.'
            )
        taken[place] = role
