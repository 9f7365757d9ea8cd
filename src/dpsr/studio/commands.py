"""What a curator has chosen so far, as it travels in the address of a page, and the commands behind the pages: one
function each, choices in, arguments out. What is shown is what is run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from urllib.parse import urlencode

from dpsr.database import is_address
from dpsr.studio.sources import query_for

_LONGEST = 2_000


@dataclass(frozen=True)
class Choices:
    """Text as it was typed; an empty one was not chosen. Commands judge it, not this class."""

    source: str = ""
    table: str = ""
    user: str = ""
    item: str = ""
    rating: str = ""
    delimiter: str = ""
    duplicates: str = ""
    items: str = ""
    scale: str = ""
    unit: str = "value"
    epsilon: str = "1"
    delta: str = "1e-6"
    ledger: str = ""
    dataset: str = ""
    out: str = "release"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Choices:
        """What an address or a form says; further names are passed over, and text is cut where no one types more."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: _plain(text) for name, text in given.items() if name in known})

    def query(self, **changes: str) -> str:
        """The same as part of an address, with some of it changed."""
        return urlencode({name: text for name, text in asdict(replace(self, **changes)).items() if text})

    def hidden(self, *without: str) -> dict[str, str]:
        """What a form passes on besides its own fields."""
        return {name: text for name, text in asdict(self).items() if text and name not in without}


def _plain(text: str) -> str:
    return "".join(character for character in text[:_LONGEST] if character.isprintable()).strip()


GRID = (
    "0.05", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1", "1.25", "1.5", "1.75", "2",
    "2.5", "3", "3.5", "4", "5", "6", "7", "8", "10",
)  # fmt: skip
"""Where the slider stops."""

Arguments = list[str]


def columns(chosen: Choices) -> Arguments:
    """The names of a file's columns."""
    return ["describe", _file(chosen.source), *_option("delimiter", chosen.delimiter), "--columns"]


def describe(chosen: Choices) -> Arguments:
    """Counts of a file or a table."""
    return ["describe", *_ratings(chosen)]


def plan(chosen: Choices) -> Arguments:
    """What every epsilon of the grid would buy."""
    return ["plan", *_ratings(chosen), *_duplicates(chosen), "--scale", chosen.scale, "--epsilon", ",".join(GRID)]


def plan_people(chosen: Choices, shape: Mapping[str, int]) -> Arguments:
    """The same where people are protected, from totals alone."""
    totals = ["--users", shape["n_users"], "--items", shape["n_items"], "--ratings", shape["n_ratings"]]
    promise = ["--unit", "user", *_option("delta", chosen.delta)]
    return ["plan", *map(str, totals), "--scale", chosen.scale, *promise, "--epsilon", ",".join(GRID)]


def show_ledger(ledger: str) -> Arguments:
    """What is left."""
    return ["ledger", "show", "--ledger", ledger]


def begin_ledger(ledger: str, dataset: str, epsilon: str, unit: str, delta: str) -> Arguments:
    """A budget for a data set."""
    extra = [] if unit == "value" else ["--delta", delta]
    return ["ledger", "init", "--ledger", ledger, "--dataset", dataset, "--epsilon", epsilon, "--unit", unit, *extra]


def release(chosen: Choices) -> Arguments:
    """The release itself."""
    delta = [] if chosen.unit == "value" else ["--delta", chosen.delta]
    return [
        *("release", *_ratings(chosen), *_duplicates(chosen), "--scale", chosen.scale),
        *("--epsilon", chosen.epsilon, "--unit", chosen.unit, *delta),
        *(_option("items", _path(chosen.items)) if chosen.items else ()),
        *(_option("ledger", chosen.ledger) + (_option("dataset", chosen.dataset) if chosen.ledger else [])),
        *("--out", _path(chosen.out)),
    ]


def verify(folder: str, ledger: str) -> Arguments:
    """A check of the promise, every byte and the ledger."""
    return ["verify", _path(folder), *_option("ledger", ledger)]


def shown(arguments: Sequence[str]) -> str:
    """As one types it; without `--yes`, a terminal asks before it spends."""
    return shlex.join(["dpsr", *arguments])


def _ratings(chosen: Choices) -> Arguments:
    named = [*_option("user", chosen.user), *_option("item", chosen.item), *_option("rating", chosen.rating)]
    if is_address(chosen.source):
        return [chosen.source, "--query", query_for(chosen), *named]
    return [_file(chosen.source), *named, *_option("delimiter", chosen.delimiter)]


def _duplicates(chosen: Choices) -> Arguments:
    return _option("duplicates", chosen.duplicates)


def _file(path: str) -> str:
    """A path that is no option and not standard input."""
    return _path(path or "ratings.csv")


def _path(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def _option(name: str, value: str) -> Arguments:
    """One word, so that a value that begins with a dash stays a value."""
    if not value:
        return []
    return [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]
