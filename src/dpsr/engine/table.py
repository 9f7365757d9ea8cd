"""What a stage may ask of a rating table, wherever it is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsr.engine.block import Block, Made
from dpsr.types import Census

Array = npt.NDArray[Any]

Task: TypeAlias = Callable[..., Made | None]
"""task(block, *sums): adds to the sums in place, returns what it made of the block. It reads nothing else that changes,
so that it may be run again."""


TIMESTAMP = "timestamp"
"""The column of times, in tables that have them. Public."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The sums over all blocks, and the rows of all users, in the order of the users."""

    sums: tuple[Array, ...]
    rows: tuple[Array, ...]


class Table(ABC):
    """Ratings user by user, cut into blocks, with columns beside the item codes."""

    census: Census

    room: int = 1 << 28
    """Bytes that the item-side sums of one pass may take, where a stage can choose."""

    @abstractmethod
    def run(
        self,
        task: Task,
        sums: Sequence[Array] = (),
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        secret: bool = False,
        keep: bool = False,
    ) -> Answer:
        """One pass: `task` on every block, with the columns it `reads`; the columns it `writes` are kept.

        `sums` are where item-side sums start from, usually zeros; they are added to in place. A `secret` task carries
        a key, which must not reach a disk on its way. With `keep`, columns that were written before a run was killed
        stay as they are, where the table outlives the run.
        """

    @abstractmethod
    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """All blocks in order, with columns: for what must be written down one after the other."""

    @abstractmethod
    def hiding(self, column: str) -> Table:
        """The same table, its later columns included, without one column: for those who may not read it."""

    @abstractmethod
    def drop(self, column: str) -> None:
        """Forget a column."""

    def at_hand(self) -> Table:
        """A table for passes that read nothing but who rated what and are too light to travel."""
        return self


def zeros(*shape: int) -> npt.NDArray[np.float64]:
    """An empty item-side sum."""
    return np.zeros(shape)
