"""Counts of items and users in octaves: all that the rule looks at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsr.arrays import Floats, Ints

OCTAVES = 20
"""Classes of counts: 1, 2 to 3, 4 to 7, and so on; the last one is open."""


class Side(NamedTuple):
    """Items, or users, by octave of their counts."""

    rows: Floats
    mass: Floats
    other: Floats
    effect: float
    slopes: float

    @classmethod
    def of(cls, counts: Ints, effect: float, slopes: float) -> Side:
        """`other` is how many more ratings the rows of an octave have beside the one that is predicted."""
        some = counts[counts > 0]
        place = octaves(some)
        rows = np.bincount(place, minlength=OCTAVES).astype(np.float64)
        total = np.bincount(place, some, OCTAVES)
        return cls(rows, total / max(total.sum(), 1), np.maximum(total / np.maximum(rows, 1) - 1, 0.0), effect, slopes)


def octaves(counts: Ints) -> Ints:
    """floor(log2 count), exactly; zero where there is nothing."""
    return np.minimum(np.frexp(np.maximum(counts, 1).astype(np.float64))[1] - 1, OCTAVES - 1).astype(np.int64)
