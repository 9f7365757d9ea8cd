r"""Second moments of presence from pairs of cells, where single interactions are protected.

Somebody with n of the frequent cells adds 1 / sqrt n on each of their pairs, so rows are not centred. Without taste
they have cell j with p_j(n) = 1 - exp(-t centre_j), t such that sum_j p_j(n) = n, and the sum over people would be

    E_ij = sum_u p_i(n_u) p_j(n_u) / sqrt n_u.

What pairs are above that is W p_i p_j v_i . v_j, W = sum_u n_u^(3/2): the model of `taste` with g = 1 and without
c. The sample's noise in a pair has the variance sum_u x_i x_j / n_u, about p_i p_j sum_u n_u. Numbers of people come in
octaves and with noise, so E is scaled to the sum of all pairs, which is known best.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats
from dpsr.likes.activity import Activity, presence
from dpsr.likes.taste import Moments
from dpsr.types.item_side import SIZES

_MOST = 0.9
"""Of all cells: who has more is taken for one with so many."""


def moments_of_pairs(pairs: Floats, noise: float, centre: Floats, activity: Activity) -> Moments:
    """Symmetric sums of pairs with an empty diagonal, less what popularity and activity explain."""
    T = len(centre)
    expected, squares, sample, own = np.zeros((T, T)), 0.0, 0.0, 0.0
    for size, people in zip(SIZES, activity.counts, strict=True):
        if people > 0:
            n = min(float(size), _MOST * T)
            p = presence(n, centre)
            expected += people / np.sqrt(n) * np.outer(p, p)
            squares, sample, own = squares + people * n**1.5, sample + people * n, own + people * n**0.5
    np.fill_diagonal(expected, 0)
    scale = max(float(pairs.sum()), 0.0) / max(float(expected.sum()), 1e-9)
    return Moments(
        pairs - scale * expected, noise, max(sample, 1.0), max(squares, 1.0), centre, np.ones(T), max(own, 1.0)
    )
