"""Which histories are lawful. Said once, and used by the reader before it believes an entry and by the writer before it
writes one: so nothing is read that would not have been written.

    form     every column is there or not, as its kind asks, and has the one form that dpsr writes
    order    numbers without gaps, the budget first and once, formats and times do not go back
    money    charges are above 0 and stay within the budget; a release has a charge of its own and costs no more
    chain    every digest follows from the entry and from the digest before

The database refuses most of this by itself (`sqlite_rules`, `postgresql_rules`), and whoever owns it can make it stop.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from dpsr.certify.certificate import UNITS
from dpsr.privacy.ledger.event import FORMAT, Event, UnlawfulError
from dpsr.privacy.ledger.names import is_name

CLOCK = timedelta(days=1)
"""How far clocks of one team may differ."""

LONGEST = {"who": 120, "method": 60, "note": 400}
"""Characters of what people write."""

HEX = {"charge": 32, "certificate": 64, "manifest": 64, "fingerprint": 64, "digest": 64}
"""Digits of ids and digests."""

_NEEDED = {"budget": {"unit"}, "charge": {"charge"}, "release": {"charge", "certificate", "manifest"}}
_ALLOWED = {"budget": {"unit"}, "charge": {"charge", "fingerprint"}, "release": _NEEDED["release"]}
_LATER = {"unit", "manifest", "fingerprint"}
"""Unknown to format 1."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class History:
    """The entries of one data set so far, and what the next one must fit."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.events: list[Event] = []
        self.spent_epsilon = self.spent_delta = Fraction(0)
        self.charges: dict[str, Event] = {}
        self.releases: dict[str, Event] = {}
        self._latest: datetime | None = None

    @property
    def head(self) -> str:
        """The digest of the last entry."""
        return self.events[-1].digest if self.events else ""

    @property
    def unit(self) -> str:
        """What the budget protects; before there was a choice it was the value of a rating."""
        return self.events[0].unit or UNITS[0]

    def add(self, event: Event) -> None:
        """The next entry, if it is lawful."""
        check_form(event)
        self._check_order(event)
        getattr(self, f"_check_{event.kind}")(event)
        if event.digest != event.digest_after(self.head):
            raise UnlawfulError("does not follow from the one before")
        self.events.append(event)
        if event.format == FORMAT:
            self._latest = max(time_of(event), self._latest or time_of(event))

    def _check_order(self, event: Event) -> None:
        if event.number != len(self.events) + 1:
            raise UnlawfulError("is missing or has another number")
        if event.dataset != self.dataset:
            raise UnlawfulError("is of another data set")
        if (event.kind == "budget") != (not self.events):
            raise UnlawfulError("is out of order: a budget comes first, and once")
        if self.events and event.format < self.events[-1].format:
            raise UnlawfulError("has the format of entries before a migration, and comes after it")
        if event.format == FORMAT and self._latest is not None and time_of(event) < self._latest - CLOCK:
            raise UnlawfulError("is more than a day older than the one before")

    def _check_budget(self, event: Event) -> None:
        if not event.epsilon or not event.delta < 1:
            raise UnlawfulError("is a budget of nothing, or with a delta of 1 or more")
        if event.format == FORMAT and not is_name(event.dataset):
            raise UnlawfulError("has a data set's name that dpsr does not write")

    def _check_charge(self, event: Event) -> None:
        budget, epsilon, delta = self.events[0], self.spent_epsilon + event.epsilon, self.spent_delta + event.delta
        if not event.epsilon:
            raise UnlawfulError("charges nothing")
        if epsilon > budget.epsilon or delta > budget.delta:
            raise UnlawfulError("charges more than the budget had left")
        if event.charge in self.charges:
            raise UnlawfulError("has the id of an earlier charge")
        self.spent_epsilon, self.spent_delta = epsilon, delta
        self.charges[event.charge or ""] = event

    def _check_release(self, event: Event) -> None:
        paid = self.charges.get(event.charge or "")
        if paid is None or event.charge in self.releases:
            raise UnlawfulError("is a release without a charge of its own")
        if event.epsilon > paid.epsilon or event.delta > paid.delta or event.method != paid.method:
            raise UnlawfulError("is not the release its charge paid for")
        self.releases[event.charge or ""] = event


def check_form(event: Event) -> None:
    """The columns of one entry by themselves."""
    if event.format not in (1, FORMAT) or event.kind not in _NEEDED:
        raise UnlawfulError("is of a kind or format that this version does not know")
    later = _LATER if event.format == 1 else set()
    there = {name for name in ("unit", *HEX) if getattr(event, name) is not None} - {"digest"}
    if not _NEEDED[event.kind] - later <= there <= _ALLOWED[event.kind] - later:
        raise UnlawfulError(f"has not the columns of a {event.kind}")
    if event.unit not in (None, *UNITS):
        raise UnlawfulError("has a unit that this version does not know")
    for name, digits in HEX.items():
        if not _is_hex(getattr(event, name), digits) and not (name == "charge" and event.format == 1):
            raise UnlawfulError(f"has no hexadecimal {name} of {digits} digits")
    for name, length in LONGEST.items():
        text: str = getattr(event, name)
        if event.format == FORMAT and (len(text) > length or _CONTROL.search(text)):
            raise UnlawfulError(f"has a {name} that is too long or not one line")
    time_of(event)


def time_of(event: Event) -> datetime:
    """When it says it was written."""
    try:
        if _TIME.fullmatch(event.at):
            return datetime.fromisoformat(event.at)
    except ValueError:  # the thirtieth of February
        pass
    raise UnlawfulError("has a time that is none")


def _is_hex(text: Any, digits: int) -> bool:
    return text is None or re.fullmatch(f"[0-9a-f]{{{digits}}}", text, re.ASCII) is not None
