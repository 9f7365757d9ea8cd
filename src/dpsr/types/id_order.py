"""The order of items by their ids: numbers by size, then text by the alphabet with the numbers in it by size.

It follows from each id alone, as it is spelt: whether *all* ids of a file are numbers is somebody's secret, and
others' predictions may not depend on it. So item2 lies before item10, and 9 before 10, in every file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.types.coordinates import Ids, codes_of, id_array

_WHOLE = re.compile(r"-?[0-9]{1,40}")
_DIGITS = re.compile(r"([0-9]{1,18})")

Key = tuple[int, int, tuple[str | int, ...], str]


def spelt(ids: pa.Array) -> list[str]:
    """Ids as text in one spelling: a whole number without leading zeros, whether it came as a number or as text.

    Ids of a file are numbers if all of them are; one person's odd id must not change how others' are spelt.

    >>> spelt(pa.array(["007", "7a", "-7"])), spelt(pa.array([7]))
    (['7', '7a', '-7'], ['7'])
    """
    return [str(int(one)) if _WHOLE.fullmatch(one) else one for one in map(str, ids.to_pylist())]


def natural_key(spelling: str) -> Key:
    """What ids are ordered by: whole numbers first, by size; then text, in which runs of digits count as numbers.

    >>> sorted(["b2", "10", "b10", "9", "-1"], key=natural_key)
    ['-1', '9', '10', 'b2', 'b10']
    """
    if _WHOLE.fullmatch(spelling):
        return 0, int(spelling), (), ""
    pieces = _DIGITS.split(spelling)  # text, digits, text, ...
    return 1, 0, tuple(int(one) if place % 2 else one for place, one in enumerate(pieces)), spelling


@dataclass(frozen=True, eq=False, repr=False)
class IdOrder:
    """Places in the order of some ids: odd numbers for these, and an even number for any other id, between them."""

    ids: pa.Array

    @cached_property
    def _keys(self) -> list[Key]:
        return [natural_key(one) for one in spelt(self.ids)]

    @cached_property
    def _sorted(self) -> list[Key]:
        return sorted(set(self._keys))

    @cached_property
    def _own(self) -> Ints:
        """The place of each of the ids themselves; two spellings of one number have one."""
        if pa.types.is_integer(self.ids.type):
            numbers = self.ids.to_numpy(zero_copy_only=False)
            return 2 * np.unique(numbers, return_inverse=True)[1].astype(np.int64) + 1
        rank = {key: place for place, key in enumerate(self._sorted)}
        return np.array([2 * rank[key] + 1 for key in self._keys], dtype=np.int64)

    def places(self, ids: Ids | None = None) -> Ints:
        """The place of each id; without any, of those that make the order."""
        if ids is None:
            return self._own
        codes = codes_of(ids, self.ids) if len(self.ids) else np.full(len(ids), -1, dtype=np.int64)
        places, strange = np.empty(len(codes), dtype=np.int64), np.flatnonzero(codes < 0)
        places[codes >= 0] = self._own[codes[codes >= 0]]
        if len(strange):
            places[strange] = self._between(id_array(ids).take(pa.array(strange)))
        return places

    def _between(self, ids: pa.Array) -> Ints:
        encoded = ids.dictionary_encode()
        found = []
        for key in map(natural_key, spelt(encoded.dictionary)):
            at = bisect_left(self._sorted, key)
            found.append(2 * at + (at < len(self._sorted) and self._sorted[at] == key))
        return np.array(found, dtype=np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
