"""Releases that know nobody: what those share that protect people or what they did, whether people rate or not.

Such a release has what is known about cells of items, its certificate, and an index that says which items may be named;
nothing in it is about anybody. So all that is personal is brought along, and opened for its own person alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify import Certificate
from dpsr.errors import ParameterError
from dpsr.release.lists.ranking import Recommendations, Tabular, html_table
from dpsr.release.personalise.personal_answers import PersonalAnswers, PredictsForAnybody
from dpsr.synthesis import Look, Synthesis, usual_people
from dpsr.types import Catalogue
from dpsr.types.coordinates import Ids
from dpsr.types.item_side import Crowd, ItemIndex

Side = TypeVar("Side")

CELL = "cell:"
"""With its number, what a cell is called whose items may not be named; the public hash leads from an id to its cell."""


@dataclass(frozen=True, eq=False)
class ReleaseOfItems(Tabular, Generic[Side]):
    """What may be shown to everybody where people, or what they did, are protected.

    `side` is what is known about cells of items, `index` says which cell an item has and which items may be named.
    """

    side: Side
    index: ItemIndex
    certificate: Certificate
    method: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    titles: list[str | None] | None = None
    """What the named items are called, where it is known."""

    synthetic: Synthesis | None = None
    """Which made-up people the folder holds; none unless told (`with_people`)."""

    nobody: ClassVar[str]
    """Why there is no list for a user, and what to do instead."""

    def with_titles(self, catalogue: Catalogue) -> Self:
        """The same release whose lists and card name items by their titles, where the catalogue has one."""
        return replace(self, titles=catalogue.titles_of(self.index.named))

    def titled(self, found: Recommendations) -> Recommendations:
        """A list with titles, if there are any."""
        if self.titles is None:
            return found
        return replace(found, titles=[self.titles[code] for code in self._named(found.items).tolist()])

    @property
    @abstractmethod
    def crowd(self) -> Crowd:
        """How many people there are and what they meet, as noisy answers say."""

    @property
    @abstractmethod
    def synthetic_rows(self) -> pa.Table | None:
        """The rows of the made-up people that the folder holds."""

    @abstractmethod
    def rows_drawn(self, asked: Synthesis, look: Look) -> pa.Table:
        """The rows of made-up people, drawn while `look` is shown who met what."""

    def with_people(self, people: int | None = None, *, seed: int = 0) -> Self:
        """The same release whose folder holds so many made-up people: about as many as there are unless told, 0 none.

        Numbers are noisy, so the usual one tells nothing. The seed is public: it hides nothing.
        """
        wanted = usual_people(self.crowd) if people is None else people
        return replace(self, synthetic=None if wanted == 0 else Synthesis(wanted, seed))

    def synthesise(self, people: int | None = None, *, seed: int = 0) -> pa.Table:
        """Rows (user, item, and a rating where people rate) of people who do not exist, drawn from this release: any
        recommender can learn from them. Free: nothing but the release is read. The same number and seed give the same
        people.

        >>> release.synthesise(10_000).to_pandas()                                          # doctest: +SKIP
        """
        rows = self.with_people(usual_people(self.crowd) if people is None else people, seed=seed).synthetic_rows
        if rows is None:
            raise ParameterError("at least one person is made up, found 0. Say how many, or leave it out.")
        return rows

    def synthetic_items(self, items: Ids) -> pa.Array:
        """How made-up people call these items: by name where they may be named, else by their cell."""
        cells = self.index.cells_of(items)
        if (cells < 0).any():
            raise ParameterError("an item outside the declared list is in no release, nor in a table made from one.")
        return item_names(self.index, cells)

    @property
    def contents(self) -> Self:
        """What its folder holds."""
        return self

    def recommend(self, user: Any, n: int = 10, **_: Any) -> Recommendations:
        """Refused: there are no users in this release."""
        raise ParameterError(self.nobody)

    def recommend_all(self, path: str | Path, n: int = 10, **_: Any) -> Path:
        """Refused: there are no users in this release."""
        raise ParameterError(self.nobody)

    def save(self, path: str | Path, *, overwrite: bool = False, people: int | None = None) -> Path:
        """Write the release folder, whole or not at all; with so many made-up people, or those it has."""
        from dpsr.release.folder.write import write_release

        contents: Any = self if people is None else self.with_people(people)
        return write_release(contents, Path(path), overwrite=overwrite)

    def _named(self, items: Ids) -> Ints:
        return self.index.named_codes(items)

    def to_arrow(self) -> pa.Table:
        """The rows of the made-up people: the table to share, since nobody real is in the release."""
        return self.synthesise() if self.synthetic_rows is None else self.synthetic_rows

    def _repr_html_(self) -> str:
        facts = {
            "promise": str(self.certificate),
            "exact epsilon": repr(self.certificate.epsilon),
            "method": self.method,
            "cells of items": f"{self.index.n_cells:,}",
            "items by name": f"{len(self.index.named):,}",
            "people": "none; to_pandas() has made-up ones",
        }
        return html_table(pa.table({"release": list(facts), "": list(facts.values())}))

    def __repr__(self) -> str:
        named = f"{len(self.index.named):,} items by name" if self.index.declared is None else "a declared catalogue"
        return f"{type(self).__name__}({self.index.n_cells:,} cells, {named}, {self.certificate})"


def item_names(index: ItemIndex, cells: Ints) -> pa.Array:
    """What made-up people call the items of these cells: by name where they may be named, else by the cell.

    Items that share a cell share a name; of several that may be named, the first one's.
    """
    if index.declared is not None:
        return index.declared.take(pa.array(cells))
    distinct, places = np.unique(cells, return_inverse=True)
    names: dict[int, str] = {}
    for cell, name in zip(index.named_cells.tolist(), map(str, index.named.to_pylist()), strict=True):
        if not name.startswith(CELL):
            names.setdefault(cell, name)
    called = pa.array([names.get(cell, f"{CELL}{cell}") for cell in distinct.tolist()], type=pa.string())
    return called.take(pa.array(places.ravel()))


class KnowsNobody(PredictsForAnybody, Protocol):
    """A release of items, as far as personal answers are concerned."""

    @property
    def index(self) -> ItemIndex: ...


Released = TypeVar("Released", bound=KnowsNobody)


class PersonalWithoutPeople(PersonalAnswers[Released]):
    """Personal answers where all that is personal is brought along."""

    left_out: ClassVar[str]
    """What is said of rows at items outside a declared catalogue, after their number."""

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"{self.dropped:,} {self.left_out}",) if self.dropped else ()

    @cached_property
    def dropped(self) -> int:
        """Rows at items outside a declared catalogue: they are left out."""
        return int(self._ratings.mask.item_counts[self._cells < 0].sum())

    def basis(self, users: Ids, items: Ids) -> Ints:
        unknown = (self.release.index.cells_of(items) < 0).astype(np.int64)
        return np.where(self.brought_ratings(users), unknown, 3 + 2 * unknown)

    @property
    def _item_ids(self) -> pa.Array:
        return self.release.index.named

    def _named_items(self, people: Ints) -> tuple[Ints, Ints]:
        """What these people have done already: pointers, and codes of named items, ascending for each."""
        mask = self._ratings.mask
        codes = np.concatenate([self._named[mask.items[mask.indptr[p] : mask.indptr[p + 1]]] for p in people])
        owner = np.repeat(np.arange(len(people)), mask.user_counts[people])
        n = max(len(self.release.index.named), 1)
        done = np.unique((owner * n + codes)[codes >= 0])  # 007 and 7 may be one name
        return np.searchsorted(done, n * np.arange(len(people) + 1)), done % n

    def _opened(self, people: Ints) -> tuple[Ints, Ints, Floats]:
        """Own rows of consecutive or single people, opened for them alone: pointers, codes of items and values."""
        start, stop = int(people[0]), int(people[-1]) + 1
        opened = self._ratings.own_rows(start, stop)
        places = np.concatenate([np.arange(opened.indptr[p - start], opened.indptr[p - start + 1]) for p in people])
        indptr = np.concatenate([[0], np.cumsum(self._ratings.mask.user_counts[people])])
        return indptr, opened.items[places], opened.values[places]

    @cached_property
    def _cells(self) -> Ints:
        return self.release.index.cells_of(self._ratings.mask.item_ids)

    @cached_property
    def _named(self) -> Ints:
        return self.release.index.named_codes(self._ratings.mask.item_ids)
