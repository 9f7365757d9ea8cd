"""The release again, from the same noisy answers and other ratings: it must be the same release, bit for bit.

Whatever follows the answers of the vault is a function of them and of what is public, so it costs nothing. That is a
theorem about programs that see nothing else, and this is its test: a pipeline runs once and its answers are kept; it
runs again on other ratings of the same people, and is given the kept answers. A raw mean, a channel chosen by a raw
level, a count that slipped into the certificate, an answer drawn a second time: each makes a difference, and a
difference has no false alarm. There is no epsilon for a release that depends on raw values without noise, so what is
found is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyArray, AnyInts, Levels
from dpsr.audit.findings import Finding
from dpsr.certify import Part
from dpsr.engine import MemoryTable, PassResult
from dpsr.engine.raw import LEVEL, RawRatings, RawTable
from dpsr.engine.table import Task
from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.paper import PaperDPSR
from dpsr.privacy.vault.journal import Journal
from dpsr.release import Contents
from dpsr.types import Mask

WHAT = "everything after the noisy answers, on other ratings"


class Tape(Journal):
    """The answers of one run, in memory. Rewound, it gives them again and remembers whether the questions changed."""

    def __init__(self) -> None:
        self._kept: list[tuple[Part, str, AnyInts]] = []
        self._at, self._rewound, self.same_questions = 0, False, True

    def rewind(self) -> Tape:
        self._at, self._rewound = 0, True
        return self

    def answered(self, part: Part, about: str = "") -> npt.NDArray[np.int64] | None:
        """The kept answer to the next question."""
        if not self._rewound or self._at >= len(self._kept):
            self.same_questions &= not self._rewound
            return None
        asked, asked_about, answer = self._kept[self._at]
        self._at += 1
        self.same_questions &= asked.to_record() == part.to_record() and asked_about == about
        return answer.astype(np.int64)

    @property
    def kept(self) -> tuple[tuple[Part, AnyInts], ...]:
        """Questions with their noisy answers."""
        return tuple((part, answer) for part, _, answer in self._kept)

    def keep(self, part: Part, values: AnyInts, about: str = "") -> None:
        """An answer that was drawn."""
        self._kept.append((part, about, values.copy()))


class _KeptTable(MemoryTable):
    """A table in memory whose drawn columns stay as they are, as those of a working folder do."""

    def __init__(self, mask: Mask, levels: AnyArray, drawn: dict[str, AnyArray] | None = None) -> None:
        super().__init__(mask, {LEVEL: levels, **(drawn or {})})
        self.drawn = dict(drawn or {})

    def run(
        self,
        task: Task,
        sums: Sequence[AnyArray] = (),
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        secret: bool = False,
        keep: bool = False,
    ) -> PassResult:
        """See `Table`."""
        if keep and writes and all(name in self.drawn for name in writes):
            return PassResult(tuple(sums), ())
        result = super().run(task, sums, reads=reads, writes=writes, secret=secret, keep=keep)
        if keep:
            self.drawn.update({name: self[name].copy() for name in writes})
        return result


def audit_replay(pipelines: Sequence[DPSR | PaperDPSR], ratings: RawRatings, *, claim: float) -> Finding:
    """Fit each once, fit again on other ratings with the same answers, compare everything that is released."""
    differ = sorted({name for pipeline in pipelines for name in what_differs(pipeline, ratings)})
    runs = len(pipelines) * len(other_ratings(ratings))
    detail = f"these differ: {', '.join(differ)}" if differ else f"the same release {runs} times, bit for bit"
    return Finding(WHAT, claim, np.inf if differ else 0.0, runs, detail)


def what_differs(pipeline: DPSR | PaperDPSR, ratings: RawRatings) -> set[str]:
    """The names of everything in a release that other ratings change although the noisy answers are the same."""
    tape, table = Tape(), _KeptTable(ratings.mask, ratings.levels)
    first, differ = _facts(_fitted(pipeline, table, ratings, tape)), set[str]()
    for levels in other_ratings(ratings):
        again = _KeptTable(ratings.mask, levels, table.drawn)
        try:
            second = _facts(_fitted(pipeline, again, ratings, tape.rewind()))
        except Exception:  # it went well with these answers once: that it does not any more is the ratings' doing
            differ.add("whether it runs at all")
            continue
        differ |= {name for name in first if not same_value(first[name], second.get(name))}
    return differ if tape.same_questions else differ | {"the questions"}


def other_ratings(ratings: RawRatings) -> tuple[Levels, ...]:
    """The scale turned around, and everything at its low end."""
    turned = (ratings.scale.n_levels - 1 - ratings.levels).astype(ratings.levels.dtype)
    return turned, np.zeros_like(ratings.levels)


def _fitted(pipeline: DPSR | PaperDPSR, table: MemoryTable, ratings: RawRatings, tape: Tape) -> Contents:
    contents = pipeline.unfitted().fit_table(RawTable(table, ratings.scale), tape)
    assert isinstance(contents, Contents), "only pipelines that release ratings are replayed"
    return contents


def _facts(contents: Contents) -> dict[str, Any]:
    """Everything that a folder is written from, by name; the name of the draws is new in every run and is left out."""
    table = contents.table
    assert isinstance(table, MemoryTable)
    model = {f"model: {one.name}": getattr(contents.model, one.name) for one in fields(contents.model)}
    columns = {
        f"column: {name}": table[name].copy()
        for name in (contents.ratings, contents.observed, *(contents.noisy or ()))
        if name
    }
    receipt = {name: value for name, value in contents.certificate.to_record().items() if name != "id"}
    certificate = {f"certificate: {name}": value for name, value in receipt.items()}
    return {**model, **columns, **certificate, "method": contents.method, "settings": contents.settings}


def same_value(one: Any, other: Any) -> bool:
    """Whether two things of a release are the same, to the last bit."""
    if isinstance(one, Mask):
        return True  # the same object went in
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            same_value(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    return bool(one == other)
