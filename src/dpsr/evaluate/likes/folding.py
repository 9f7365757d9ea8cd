"""People folded into a factor model of interactions, each from their own items alone (Hu, Koren and Volinsky 2008).

p_u = argmin  confidence sum_{j in u} (1 - p.v_j)^2 + unseen sum_{j not in u} (p.v_j)^2 + ridge |p|^2
    = (unseen V'V + (confidence - unseen) sum_{j in u} v v' + ridge)^-1 confidence sum_{j in u} v
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.evaluate.likes.contract import Baskets
from dpsr.evaluate.peers.least_squares import normal_equations, ridge_solve


@dataclass(frozen=True, eq=False)
class Factors:
    """Item vectors, and how people's own vectors follow from their items."""

    items: Floats
    confidence: float
    unseen: float
    ridge: float

    def own_vectors(self, baskets: Baskets) -> Floats:
        """p_u of everybody."""
        indptr, columns = baskets.indptr.astype(np.int64), baskets.indices.astype(np.int32)
        ones = np.ones(len(columns))
        gram, right = normal_equations(indptr, columns, ones, np.ascontiguousarray(self.items))
        unseen = self.unseen * (self.items.T @ self.items)
        return ridge_solve(unseen + (self.confidence - self.unseen) * gram, self.confidence * right, self.ridge)

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        return self.own_vectors(baskets) @ self.items.T
