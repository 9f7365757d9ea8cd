"""What a curator has chosen so far, as it travels in the address of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from urllib.parse import urlencode

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
