"""The declared rating scale: the finite grid every rating lives on.

    levels x = 0, ..., k-1   stand for   low + x * step,   k = (high - low) / step + 1

The scale is printed on the rating form and therefore public. It is never inferred from the ratings,
because the observed range is itself private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpsr.errors import ScaleError

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
