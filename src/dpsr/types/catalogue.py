"""What there is to rate, as its owner declares it: ids and, where known, titles. Public by declaration."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dpsr.arrays import AnyArray
from dpsr.types.coordinates import codes_of


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Items in the order of the file: `ids` are int64, or objects that are all `str`, each there once.

    `titles` has one entry per id, None where the file gives none.
    """

    ids: AnyArray
    titles: list[str | None]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def titled(self) -> bool:
        """Whether any item has a title."""
        return any(title is not None for title in self.titles)

    def titles_of(self, items: pa.Array) -> list[str | None]:
        """The title of each of these ids, None for one that is not in the catalogue or has none.

        >>> import numpy as np
        >>> Catalogue(np.array([7, 3]), ["Heat", None]).titles_of(pa.array([3, 7, 9]))
        [None, 'Heat', None]
        """
        vocabulary = pa.array(self.ids.tolist(), None if len(self.ids) else items.type)
        return [self.titles[place] if place >= 0 else None for place in codes_of(items, vocabulary).tolist()]
