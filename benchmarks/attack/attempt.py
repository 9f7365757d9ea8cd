"""One attack: what it is called, what was tried, how often, and how often it succeeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Attempt:
    """`succeeded` says how; an attack that holds has none. `not_tried` says why nothing could be tried here."""

    name: str
    tried: str
    times: int = 0
    succeeded: list[str] = field(default_factory=list)
    not_tried: str = ""

    def note(self, how: str, success: bool) -> None:
        """One more try, which succeeded or not."""
        self.times += 1
        if success:
            self.succeeded.append(how)

    def line(self) -> str:
        """The attack in one line."""
        if self.not_tried:
            return f"not tried   {self.name}: {self.tried}: {self.not_tried}"
        times = "once" if self.times == 1 else f"{self.times:,} times"
        if not self.succeeded:
            return f"held        {self.name}: {self.tried}; {times}"
        ways = "; ".join(dict.fromkeys(self.succeeded))
        return f"SUCCEEDED   {self.name}: {self.tried}; {times}, {len(self.succeeded)} successful: {ways[:400]}"


@dataclass(frozen=True)
class World:
    """Where attacks happen: a folder for rubbish, whether there is little time, and a database server if there is."""

    folder: Path
    quick: bool
    postgres: Any = None

    def place(self, name: str) -> Path:
        """A new folder."""
        made = self.folder / name
        made.mkdir(parents=True)
        return made


Attack = Callable[[World], Iterator[Attempt]]
