"""A matrix that is never formed: low rank plus sparse,

    A = P Q' + S,      P (m x p), Q (n x p),  S on the places of a pattern.

A product with a block of b columns costs O((m + n) p b + nnz b) and nothing of size m x n is ever held. S is kept
twice, by rows and by columns, so that both products are race-free and add in a fixed order.
"""

from __future__ import annotations

from dpsr.linalg.pattern import Pattern
from dpsr.linalg.products import Floats, rows_times_block


class LowRankPlusSparse:
    """A = P Q' + S as a pair of block products."""

    def __init__(self, left: Floats, right: Floats, pattern: Pattern, values: Floats) -> None:
        self.left = left
        self.right = right
        self.pattern = pattern
        self.values = values
        self._by_columns = values[pattern.places]

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    def times(self, X: Floats) -> Floats:
        """A X."""
        Y = rows_times_block(self.pattern.indptr, self.pattern.columns, self.values, X)
        Y += self.left @ (self.right.T @ X)
        return Y

    def transposed_times(self, Y: Floats) -> Floats:
        """A' Y."""
        X = rows_times_block(self.pattern.column_indptr, self.pattern.rows, self._by_columns, Y)
        X += self.right @ (self.left.T @ Y)
        return X
