"""A matrix that is never formed: low rank plus sparse,

    A = P Q' + S,      P (m x p), Q (n x p),  S by compressed rows.

A product with a block of b columns costs O((m + n) p b + nnz b), and A'A X no more than one pass over S. Nothing of
size m x n is ever held, and S not a second time by columns.
"""

from __future__ import annotations

import numpy as np

from dpsr.linalg.lanes import as_lines
from dpsr.linalg.pattern import Codes, Integers
from dpsr.linalg.products import Floats, add_gram, add_rows_times, gram_room


class LowRankPlusSparse:
    """A = P Q' + S by its products."""

    def __init__(self, left: Floats, right: Floats, indptr: Integers, columns: Codes, values: Floats) -> None:
        self.left = left
        self.right = right
        self._rows = indptr, columns, values
        self._room = gram_room(len(right), len(values))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    def times(self, X: Floats) -> Floats:
        """A X."""
        Y = as_lines(self.left @ (self.right.T @ X))
        for x, y in zip(as_lines(X), Y, strict=True):
            add_rows_times(*self._rows, x, y)
        return np.hstack(list(Y))[:, : X.shape[1]]

    def gram(self, X: Floats) -> Floats:
        """A'A X."""
        Y = as_lines(self.left @ (self.right.T @ X))
        Z = np.zeros((len(Y), len(X), Y.shape[2]))
        for x, y, z in zip(as_lines(X), Y, Z, strict=True):
            add_gram(*self._rows, x, y, z, self._room)
            z += self.right @ (self.left.T @ y)
        return np.hstack(list(Z))[:, : X.shape[1]]
