"""Text by strangers: how it is named and quoted in an error, and what of it may reach a terminal.

A field of a file, an id or a reason in a release is text by a stranger. It is cut to 60 characters and loses every
character that is not printable (escape sequences could rewrite the terminal, direction marks could disguise the text).
Where square brackets mean colours, its own are made harmless.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_SHOWN = 60
_MAX_LISTED = 12


@dataclass(frozen=True)
class Source:
    """Where a table came from: its name, and the place of its i-th rating (i from 0) in the words of the reader.

    `place` is called only when there is something to report, so it may be slow.
    """

    name: str
    place: Callable[[int], str]

    def at(self, row: int) -> str:
        """The beginning of a message about one rating."""
        return f"{self.name}, {self.place(row)}"


def position(row: int) -> str:
    """The place of a rating in arrays and frames, which count from 0."""
    return f"position {row}"


def file_name(path: Path) -> str:
    """The name without its folder: messages are pasted into tickets, folders tell who works on what."""
    return printable(path.name or str(path), 120)


def quoted(field: object) -> str:
    """A field in quotes, safe to print."""
    return f"'{printable(str(field), MAX_SHOWN - 2)}'"


def quoted_id(field: object) -> str:
    """An id in quotes. One of several lines is most likely rows behind a quote that was not closed, ratings and all."""
    lines = len(str(field).splitlines()) > 1
    return "(several lines, which are not shown: is every quote closed?)" if lines else quoted(field)


def quoted_list(names: Sequence[str]) -> str:
    """Column names in quotes, the first dozen of them."""
    rest = len(names) - _MAX_LISTED
    return ", ".join(quoted(name) for name in names[:_MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def printable(text: str, limit: int) -> str:
    """At most `limit` characters, each of them printable."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(character if character.isprintable() else "�" for character in cut)


def without_values(reason: object) -> str:
    """What a library said about data, less the data: text in quotes and numbers give way to three dots."""
    text = re.sub(r"Could not convert .* with type", "Could not convert … with type", str(reason), flags=re.DOTALL)
    text = re.sub(r"""(["'`]).*\1""", "…", text, flags=re.DOTALL)
    return re.sub(r"(?<![A-Za-z0-9_])[-+]?[0-9][0-9.,eE+-]*", "…", text)


def without_controls(text: str) -> str:
    """Text of any length in which nothing but line breaks steers a terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def for_terminal(text: object, limit: int = MAX_SHOWN) -> str:
    """Text from a stranger, as a line with markup may hold it: printable, short, and no markup of its own."""
    shown = _TAG.sub(lambda tag: f"{2 * tag[1]}\\{tag[2]}", printable(str(text), limit))
    return shown + "\\" * (len(shown) - len(shown.rstrip("\\")))  # or the last one would hide the markup behind it


_TAG = re.compile(r"(\\*)(\[[a-z#/@][^[]*?\])")
"""What Rich takes for markup."""


def json_text(record: Any) -> str:
    """JSON that people can read, in which every character that is not printable is spelt out."""
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
