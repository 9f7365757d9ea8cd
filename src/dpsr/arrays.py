"""Names for the arrays that travel between functions, defined once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
AnyFloats = npt.NDArray[np.floating]
AnyInts = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]
"""Positions of ids in their vocabulary."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Levels = npt.NDArray[np.uint16]
"""Levels of a rating scale, 0 the lowest."""

Names = npt.NDArray[np.uint32]
Singles = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]
"""Random bits, 64 at a time."""
