"""The coordinates of a rating: its level on the declared scale, and its cell, who rated what.

**The scale** is the finite grid every rating lives on,

    levels x = 0, ..., k-1   stand for   low + x * step,   k = (high - low) / step + 1.

It is printed on the rating form and therefore public. It is never inferred from the ratings, because the observed range
is itself private.

**The mask**: ids and their codes, who is in a table and how often, and the observed cells themselves. All of it is
public at the level of values. Ratings are kept user by user (compressed rows), items ascending within a user, users and
items coded by the sorted order of their ids. The order is canonical, so nothing about the order of the input rows
survives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import Bools, Codes, Ints
from dpsr.errors import ParameterError, ScaleError

MAX_LEVELS = 1001
"""Finer grids cost memory and add nothing: the noise of any useful epsilon is far coarser."""

LARGEST, _FINEST = 1e30, Fraction(1, 10**9)
"""Ratings are at most so large, steps at least one over that, and at least so fine a part of the largest rating:
squares of ratings are numbers then, and levels do not fall together."""

_ON_GRID = 1e-6
"""How far from a grid point, in steps, a float may be and still count as that point."""

_ADVICE = "Declare the scale printed on your rating form as LOW:HIGH:STEP, for example 1:5:1 or 0.5:5:0.5."


def _exact(number: float | str) -> Fraction:
    """The decimal a person wrote: 0.1 means one tenth, not the nearest binary fraction."""
    try:
        value = float(number)
        if isinstance(number, bool) or not isfinite(value):
            raise ValueError
        return Fraction(str(number) if isinstance(number, str) else repr(value))
    except (ValueError, TypeError, OverflowError) as error:
        raise ScaleError(f"a scale needs finite numbers, found {number!r}. {_ADVICE}") from error


def _written(number: float) -> str:
    """A number as people write it, without losing a digit."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


@dataclass(frozen=True)
class Scale:
    """A rating scale from `low` to `high` in steps of `step`.

    `snap=True` is for continuous ratings: a value between two grid points is put on the nearer one.
    Without it, a value off the grid is an error.

    >>> Scale(1, 5).n_levels, Scale(0.5, 5, step=0.5).n_levels, Scale(-10, 10, step=0.25, snap=True).n_levels
    (5, 10, 81)
    """

    low: float
    high: float
    step: float = 1
    snap: bool = False

    def __post_init__(self) -> None:
        low, high, step = _exact(self.low), _exact(self.high), _exact(self.step)
        if high <= low:
            raise ScaleError(f"a scale runs from its lowest to its highest rating, found {self}. {_ADVICE}")
        if step <= 0:
            raise ScaleError(f"the step of a scale is positive, found {self}. {_ADVICE}")
        if (high - low) % step:
            raise ScaleError(f"the step must divide the range of the scale, found {self}. {_ADVICE}")
        if (high - low) / step + 1 > MAX_LEVELS:
            raise ScaleError(
                f"a scale has at most {MAX_LEVELS} levels, {self} has {(high - low) / step + 1}. "
                "Declare a coarser step and let values be put on it (Scale(..., snap=True), or --snap)."
            )
        largest = max(abs(low), abs(high))
        if largest > LARGEST or step < max(1 / Fraction(LARGEST), _FINEST * largest):
            raise ScaleError(
                f"ratings are at most {LARGEST:g} and a step is at least a billionth of the largest, found {self}. "
                "Write ratings in other units, or count them from another zero."
            )
        object.__setattr__(self, "low", float(low))
        object.__setattr__(self, "high", float(high))
        object.__setattr__(self, "step", float(step))

    @classmethod
    def parse(cls, text: str, *, snap: bool = False) -> Scale:
        """Read `LOW:HIGH:STEP`, or `LOW:HIGH` for steps of one; decimal commas are points, as in files.

        >>> str(Scale.parse("0,5:5:0,5"))
        '0.5:5:0.5'
        """
        parts = text.replace(",", ".").split(":")
        if len(parts) not in (2, 3):
            raise ScaleError(f"a scale is written LOW:HIGH:STEP, found {text!r}. {_ADVICE}")
        low, high, step = (float(_exact(part.strip())) for part in [*parts, "1"][:3])
        return cls(low, high, step, snap)

    @classmethod
    def of(cls, scale: ScaleLike) -> Scale:
        """A scale however it is written: itself, "0.5:5:0.5", (1, 5) or (0.5, 5, 0.5).

        >>> Scale.of("0.5:5:0.5") == Scale.of((0.5, 5, 0.5)) == Scale(0.5, 5, 0.5)
        True
        """
        if isinstance(scale, Scale):
            return scale
        if isinstance(scale, str):
            return cls.parse(scale)
        if not isinstance(scale, tuple | list) or len(scale) not in (2, 3):
            raise ScaleError(f"a scale is a Scale, LOW:HIGH:STEP or (low, high, step), found {scale!r}. {_ADVICE}")
        return cls(*scale)

    def __str__(self) -> str:
        """LOW:HIGH:STEP with every digit, so that it can be read back.

        >>> str(Scale(1000001, 1000005)), str(Scale(0.5, 5, 0.5))
        ('1000001:1000005:1', '0.5:5:0.5')
        """
        return ":".join(_written(number) for number in (self.low, self.high, self.step))

    @property
    def width(self) -> float:
        """The largest change of one rating, the paper's sensitivity of a single value."""
        return self.high - self.low

    @property
    def midpoint(self) -> float:
        return (self.low + self.high) / 2

    @cached_property
    def n_levels(self) -> int:
        return int((_exact(self.high) - _exact(self.low)) / _exact(self.step)) + 1

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """The rating each level stands for, lowest first."""
        low, step = _exact(self.low), _exact(self.step)
        values = np.array([float(low + x * step) for x in range(self.n_levels)])
        values.setflags(write=False)
        return values

    def locate(self, values: npt.ArrayLike) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]:
        """The level of each value, and whether it has one. Unchecked twin of `encode`."""
        v = np.asarray(values, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            steps = (v - self.low) / self.step
            level = np.rint(steps)
            inside = (level >= 0) & (level < self.n_levels) & np.isfinite(v)
            inside &= (v >= self.low - _ON_GRID * self.step) & (v <= self.high + _ON_GRID * self.step)
            if not self.snap:
                inside &= np.abs(steps - level) <= _ON_GRID
        return np.where(inside, level, 0).astype(np.uint16), inside

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """The level of each value; an error says where the first one stands that has none, and not what it is."""
        levels, ok = self.locate(values)
        if not ok.all():
            raise ScaleError(off_scale(self, where=f"position {int(np.argmin(ok))}"))
        return levels

    def clip(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.clip(values, self.low, self.high)


ScaleLike: TypeAlias = Scale | str | tuple[float, float] | tuple[float, float, float]
"""A scale as people write it; see `Scale.of`."""


def off_scale(scale: Scale, *, where: str) -> str:
    """The one sentence for a rating that does not lie on the scale; which rating it is stays secret."""
    snap = "" if scale.snap else ", or let continuous values be put on its grid (Scale(..., snap=True), or --snap)"
    return (
        f"{where}: the rating is {'outside' if scale.snap else 'not on'} the scale {scale}. Declare the scale printed "
        f"on your rating form (for half stars: 0.5:5:0.5){snap}; it is never guessed from the data, because the "
        "observed range is private."
    )


Ids: TypeAlias = Sequence[str] | Sequence[int] | npt.NDArray[np.generic] | pa.Array


class Vocabularies:
    """Users and items by their ids, ascending; an id's code is its position."""

    user_ids: pa.Array
    item_ids: pa.Array

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_users, self.n_items

    def user_codes(self, ids: Ids) -> Ints:
        """The code of each user id, -1 where the id is unknown."""
        return codes_of(ids, self.user_ids)

    def item_codes(self, ids: Ids) -> Ints:
        """The code of each item id, -1 where the id is unknown."""
        return codes_of(ids, self.item_ids)


@dataclass(frozen=True, eq=False)
class Census(Vocabularies):
    """Who is in a rating table and how often: small enough to hold whatever the size of the table."""

    user_ids: pa.Array
    item_ids: pa.Array
    user_counts: Ints
    item_counts: Ints
    timed: bool = False

    @property
    def n_ratings(self) -> int:
        return int(self.user_counts.sum())


@dataclass(frozen=True, eq=False)
class Mask(Vocabularies):
    """The observed cells of an m x n rating matrix.

    `user_ids` and `item_ids` are the vocabularies (int64 or string, ascending). The ratings of user u are the
    positions `indptr[u]:indptr[u+1]` of every column of the table. `timestamps` (Unix seconds) are public too.
    """

    user_ids: pa.Array
    item_ids: pa.Array
    indptr: Ints
    items: Codes
    timestamps: Ints | None = None

    def __post_init__(self) -> None:
        for column in (self.indptr, self.items, self.timestamps):
            if column is not None:
                column.setflags(write=False)

    @classmethod
    def of_cells(cls, cells: Ints, user_ids: pa.Array, item_ids: pa.Array, timestamps: Ints | None = None) -> Mask:
        """The mask of strictly ascending cells `u * n + j`; users and items without a rating stay in the vocabulary."""
        n = len(item_ids)
        indptr = np.searchsorted(cells, n * np.arange(len(user_ids) + 1)).astype(np.int64)
        return cls(user_ids, item_ids, indptr, (cells % n).astype(np.int32), timestamps)

    @property
    def n_ratings(self) -> int:
        return len(self.items)

    @cached_property
    def users(self) -> Codes:
        """The user code of every rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.user_counts)

    @cached_property
    def user_counts(self) -> Ints:
        return np.diff(self.indptr)

    @cached_property
    def item_counts(self) -> Ints:
        return np.bincount(self.items, minlength=self.n_items).astype(np.int64)

    @cached_property
    def census(self) -> Census:
        """Who is in the table, and how often."""
        return Census(self.user_ids, self.item_ids, self.user_counts, self.item_counts, self.timestamps is not None)

    def id_pairs(self) -> tuple[pa.Array, pa.Array]:
        """The ids of the user and of the item of every rating."""
        return self.user_ids.take(pa.array(self.users)), self.item_ids.take(pa.array(self.items))

    def to_arrow(self, **columns: Any) -> pa.Table:
        """One row a rating: user, item, these columns, and the timestamp where there is one."""
        user, item = self.id_pairs()
        times = {} if self.timestamps is None else {"timestamp": self.timestamps}
        return pa.table({"user": user, "item": item, **columns, **times})

    def select(self, rows: Bools) -> Mask:
        """The same users and items with only the chosen ratings."""
        kept = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        times = None if self.timestamps is None else self.timestamps[rows]
        return Mask(self.user_ids, self.item_ids, kept[self.indptr], self.items[rows], times)


def codes_of(ids: Ids, vocabulary: pa.Array) -> Ints:
    """The position of each id in `vocabulary`, -1 where it is not in it; nothing passed as an id is an error."""
    array = _arrow(ids)
    if array is None or array.type != vocabulary.type:
        array = pa.array([_as(vocabulary.type, one) for one in ids], type=vocabulary.type)
    found = pc.index_in(array, value_set=vocabulary)
    return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def paired(users: Ids, items: Ids) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Users and items, each in one dimension: as many of both, or a single one of either."""
    found = np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items))
    for what, ids in zip(("users", "items"), found, strict=True):
        if ids.ndim > 1 or (len(ids) == 1 and isinstance(ids[0], Iterable) and not isinstance(ids[0], str | bytes)):
            shape = f"an array of shape {ids.shape}" if ids.ndim > 1 else f"a {type(ids[0]).__name__}"
            raise ParameterError(
                f"{what} are ids in one dimension, found {shape}. Pass a list, or one column such as frame['user']."
            )
    if len(found[0]) != len(found[1]) and 1 not in map(len, found):
        raise ParameterError(
            f"predict needs one item per user, found {len(found[0])} users and {len(found[1])} items. "
            "Pass two arrays of the same length, or a single user or item."
        )
    return found


def id_array(ids: Ids) -> pa.Array:
    """Ids as an Arrow array, whatever they came in; none at all are text."""
    if isinstance(ids, pa.Array):
        return ids
    listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    return pa.array(listed) if listed else pa.array([], type=pa.string())


def _arrow(ids: Ids) -> pa.Array | None:
    """Ids as an Arrow array, at the speed of Arrow; None for what it cannot hold in one type."""
    if isinstance(ids, pa.Array):
        return ids
    try:  # a list goes straight to Arrow: numpy would pad every string to the longest one
        array = pa.array(ids if isinstance(ids, list | tuple) else np.asarray(ids))
        return array.cast(pa.int64()) if pa.types.is_integer(array.type) else array
    except (pa.ArrowException, OverflowError, ValueError):
        return None


def _as(kind: pa.DataType, one: object) -> int | str | None:
    """One id as the vocabulary spells it: 42, 42.0 and "42" are the same number, and the same name."""
    one = one.as_py() if isinstance(one, pa.Scalar) else one
    if one is None or isinstance(one, bool | np.bool_):  # nobody, and not a person called "None" or "True"
        return None
    text = str(int(one)) if isinstance(one, float | np.floating) and float(one).is_integer() else str(one)
    if pa.types.is_string(kind):
        return text
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None
