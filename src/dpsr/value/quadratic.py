"""What any two features of a row tell together: values f' Q f for a matrix Q, as a linear map of Q.

With c the counts of ratings and C = sum c f f' / sum c, the map and its transpose are

    at(Q)_i = f_i' Q f_i - <Q, C>,          back(r) = sum_i r_i (f_i f_i' - C),

so that values average to nothing over ratings. Products are never written down for every row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.value.side import outer_gram


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The map of rows with these features.

    >>> Quadratic.of(np.array([[1.0], [-1.0], [2.0]]), np.array([1.0, 1.0, 2.0])).at(np.array([[2.0]])).tolist()
    [-3.0, -3.0, 3.0]
    """

    features: Floats
    centre: Floats

    @classmethod
    def of(cls, features: Floats, counts: Floats) -> Quadratic:
        """Rows with so many ratings each."""
        return cls(features, _squares(features, counts) / max(counts.sum(), 1.0))

    def at(self, Q: Floats) -> Floats:
        """The value of every row."""
        return np.asarray(((self.features @ Q) * self.features).sum(axis=1) - (Q * self.centre).sum())

    def back(self, rows: Floats) -> Floats:
        """The transpose: a matrix from a number for every row."""
        return np.asarray(_squares(self.features, rows) - rows.sum() * self.centre)

    def gram(self, precision: Floats) -> Floats:
        """The precision of vec(Q) where values are known with these precisions."""
        c, v = self.centre.ravel(), _squares(self.features, precision).ravel()
        around_zero = outer_gram(self.features, self.features, precision)
        return np.asarray(around_zero - np.outer(c, v) - np.outer(v, c) + precision.sum() * np.outer(c, c))


def _squares(features: Floats, rows: Floats) -> Floats:
    return np.asarray(features.T @ (features * rows[:, None]))
