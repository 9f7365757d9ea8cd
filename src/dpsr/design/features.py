"""Public features of users and items: the constant, counts and mask embeddings.

Every column but the constant is centred and scaled to unit mean square *over ratings* and winsorised at three, so that
one coefficient means the same everywhere and nobody is an outlier.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.design.embeddings import Embeddings
from dpsr.engine import Table
from dpsr.engine.products import Incidence

Floats = npt.NDArray[np.float64]

_WINSOR = 3.0


def public_features(table: Table, embeddings: Embeddings) -> tuple[Floats, Floats]:
    """x_u = [1, counts, embedding] for users and z_j alike for items."""
    n_u, c_j = table.census.user_counts.astype(np.float64), table.census.item_counts.astype(np.float64)
    active, popular = Incidence(table).both(np.log1p(n_u), np.log1p(c_j))
    x = _side(n_u, popular / np.maximum(n_u, 1), embeddings.users)
    z = _side(c_j, active / np.maximum(c_j, 1), embeddings.items)
    return x, z


def standardise(columns: Floats, weight: Floats) -> Floats:
    """Columns centred and scaled to unit weighted mean square, winsorised; constant columns become zero."""
    total = max(weight.sum(), 1.0)
    for _ in range(2):  # once more after the outliers are cut
        columns = columns - weight @ columns / total
        size = np.sqrt(weight @ columns**2 / total)
        columns = np.clip(columns / np.where(size > 1e-9, size, np.inf), -_WINSOR, _WINSOR)
    return columns


def _side(counts: Floats, partners: Floats, embedding: Floats) -> Floats:
    """[1, log count, its square, the partners' mean log count, embedding].

    A row without ratings takes the mean features of those with fewest, the nearest thing known about it.
    """
    log_count = standardise(np.log1p(counts)[:, None], counts)[:, 0]
    plain = standardise(np.column_stack([log_count, np.clip(log_count**2, 0, 6), partners]), counts)
    features = np.column_stack([np.ones(len(counts)), plain, standardise(embedding, counts)])
    cold = counts == 0
    if cold.any() and not cold.all():
        features[cold] = features[counts == counts[~cold].min()].mean(axis=0)
    return features
