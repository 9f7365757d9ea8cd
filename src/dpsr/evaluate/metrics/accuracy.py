"""Four accuracy measures as pure functions of arrays. They know nothing of models, files or privacy.

Ranking measures take *gains*: row u of `ranked` holds the gain of the item in first, second, ... place of user u's
list, zero where the item is not relevant or the list has run out.

    RMSE    = sqrt( mean (truth - predicted)^2 )             MAE = mean |truth - predicted|
    P@k     = mean_u  #{ i <= k : ranked_ui > 0 } / k
    NDCG@k  = mean_u  DCG_u / IDCG_u,    DCG_u = sum_{i <= k} ranked_ui / log2(i + 1)

IDCG_u is the DCG of the user's gains in descending order. The gain enters as it is (linear gain, not 2^gain - 1).
The averages run over the rows given; which users have a row is a matter of protocol (`docs/protocol.md`).

Every figure computed from held-out ratings reads raw values and is therefore **not private**.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.errors import ParameterError


def rmse(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Root of the mean squared error.

    >>> rmse([1, 2, 3], [1, 2, 6])
    1.7320508075688772
    """
    return float(np.sqrt(np.mean(_errors(truth, predicted) ** 2)))


def mae(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Mean absolute error.

    >>> mae([1, 2, 3], [1, 2, 6])
    1.0
    """
    return float(np.mean(np.abs(_errors(truth, predicted))))


def precision_at_k(ranked: npt.ArrayLike, *, k: int = 10) -> float:
    """Share of the first `k` places that hold a relevant item; a list shorter than `k` still divides by `k`.

    >>> precision_at_k([[1, 0, 1, 0]], k=4)
    0.5
    """
    gains = _rows(ranked)[:, :k]
    return float(np.mean(np.sum(gains > 0, axis=1) / k)) if len(gains) else float("nan")


def ndcg_at_k(ranked: npt.ArrayLike, available: npt.ArrayLike, *, k: int = 10) -> float:
    """Discounted gain of the list against the best list that could be made of the `available` gains.

    `available` has one row per user with the gains of everything that could be found, in any order, padded with zeros.

    >>> round(ndcg_at_k([[0, 1]], [[1, 0]], k=2), 6)  # one relevant item, in second place: 1 / log2(3)
    0.63093
    """
    found, best = _rows(ranked)[:, :k], -np.sort(-_rows(available), axis=1)[:, :k]
    if not len(found):
        return float("nan")
    return float(np.mean((found @ discounts(found.shape[1])) / (best @ discounts(best.shape[1]))))


def discounts(k: int) -> Floats:
    """1 / log2(i + 1) for places i = 1, ..., k."""
    return np.asarray(1 / np.log2(np.arange(2, k + 2)), dtype=np.float64)


def _errors(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> Floats:
    t, p = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if t.shape != p.shape or not t.size:
        raise ParameterError(
            f"an error needs one prediction for each of at least one rating, found shapes {t.shape} and {p.shape}. "
            "Predict exactly the held-out cells, and check that the split left any."
        )
    return np.asarray(t - p)


def _rows(gains: npt.ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(gains, dtype=np.float64))
