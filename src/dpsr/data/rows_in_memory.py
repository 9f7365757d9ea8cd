"""What ratings and interactions have in common once they are in memory: they are split, chosen from, handed back."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Bools, Ints
from dpsr.engine.raw import RawRows
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import quoted


class RowsInMemory(RawRows):
    """Rows that can be chosen from; `_noun` is what one is called, `_select` makes the same kind of table again."""

    _noun = "row"

    @abstractmethod
    def _select(self, rows: Bools) -> Self:
        """Some of the rows; users and items keep their codes."""

    @abstractmethod
    def _value_column(self) -> dict[str, npt.NDArray[np.float64]]:
        """What a row has besides user, item and time, by its name. Secret."""

    def split(
        self, test_size: float = 0.2, *, seed: int | None = None, by: Literal["random", "time"] = "random"
    ) -> tuple[Self, Self]:
        """Train and test parts with the same users and items, so that codes agree.

        Args:
            test_size: The share of rows in the test part; they are round(test_size * N).
            seed: The same seed gives the same parts however the input was ordered.
            by: "random" draws rows; "time" takes the latest, equal times in the order of users and items.

        Returns:
            The train part and the test part.
        """
        if not 0 < test_size < 1:
            raise ParameterError(f"test_size is a share between 0 and 1, found {test_size}. A common choice is 0.2.")
        n_test = round(test_size * len(self))
        if not 0 < n_test < len(self):
            raise DataError(
                f"a split needs a {self._noun} on either side, test_size={test_size} of {len(self):,} {self._noun}s "
                f"puts {n_test:,} in the test part. Choose another test_size or give more {self._noun}s."
            )
        held_out = np.zeros(len(self), dtype=bool)
        held_out[self._order(by, seed)[len(self) - n_test :]] = True
        return self._select(~held_out), self._select(held_out)

    def _order(self, by: str, seed: int | None) -> Ints:
        """All rows in the order in which they are dealt, the test part last."""
        if by == "random":
            return np.random.default_rng(seed).permutation(len(self))
        if by != "time":
            raise ParameterError(f'a split is by "random" or by "time", found {quoted(by)}.')
        if self.mask.timestamps is None:
            raise DataError(
                f"a split by time needs timestamps, these {self._noun}s have none. "
                'Name their column with timestamp="..." (or --timestamp COLUMN), or split by="random".'
            )
        return np.argsort(self.mask.timestamps, kind="stable")

    @property
    def shape(self) -> tuple[int]:
        """How many rows, as an array would say."""
        return (len(self),)

    def __getitem__(self, rows: Any) -> Self:
        """Some of the rows, by position or truth value; users and items keep their codes.

        With `score` this is what scikit-learn's model selection asks of data: `cross_val_score(DPSR(1.0), ratings)`.
        """
        chosen = np.zeros(len(self), dtype=np.bool_)
        chosen[rows[0] if isinstance(rows, tuple) else rows] = True
        return self._select(chosen)

    def to_arrow(self) -> pa.Table:
        """The raw table, for the curator: user, item, the value and perhaps timestamp, in canonical order."""
        return self.mask.to_arrow(**self._value_column())

    def to_frame(self) -> Any:
        """`to_arrow` as a pandas DataFrame."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as error:
            raise DataError(
                "to_frame makes a pandas DataFrame, and pandas is not installed. Install dpsr[frames], or use to_arrow."
            ) from error
