"""What a benchmark is: a named section that times both sides in one run and returns ratios, larger being better.

    @section("neighbours", "Top-15 neighbours against three libraries")
    def neighbours(quick: bool) -> Iterator[Ratio]:
        ...
        yield Ratio("neighbours 1M", theirs / ours, target=1.5, detail="0.21 s against 0.43 s")

A section prints nothing; what it yields is printed and compared with the stored ratios as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """How many times better than the other side, in one run. A figure without an other side has `value` None."""

    name: str
    value: float | None
    detail: str
    target: float | None = None


Body = Callable[[bool], Iterator[Ratio]]


@dataclass(frozen=True)
class Section:
    """A benchmark and what it compares."""

    name: str
    title: str
    run: Body


SECTIONS: dict[str, Section] = {}
"""Every section, in the order in which they were defined."""


def section(name: str, title: str) -> Callable[[Body], Body]:
    """Register a benchmark."""

    def register(body: Body) -> Body:
        SECTIONS[name] = Section(name, title, body)
        return body

    return register
