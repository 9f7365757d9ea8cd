"""One call from a fitted model and a held-out table to the figures of a results table.

The protocol is written out in `docs/protocol.md`. Everything here compares predictions with raw ratings, so nothing it
returns is private: do not publish it beside a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.evaluate.metrics.accuracy import mae, ndcg_at_k, precision_at_k, rmse
from dpsr.evaluate.metrics.ranking import Candidates, Predict, Predictor, RankedGains, rank_gains
from dpsr.types import Mask, Scale

Gain = Literal["binary", "rating"]

RELEVANT_SHARE = (3.5 - 1) / (5 - 1)
"""The paper calls a rating of 3.5 on a scale from 1 to 5 relevant: five eighths of the way up."""


@dataclass(frozen=True)
class Scores:
    """Accuracy on held-out ratings. NOT PRIVATE: computed from raw values without noise.

    `precision` and `ndcg` average over the `n_ranked_users` users with a relevant test item and are NaN if there are
    none. `chance_precision` and `chance_ndcg` are what a random order of the same candidates is expected to get.
    """

    private: ClassVar[bool] = False

    rmse: float
    mae: float
    precision: float
    ndcg: float
    chance_precision: float
    chance_ndcg: float
    n_ratings: int
    n_ranked_users: int


def relevance_threshold(scale: Scale) -> float:
    """The paper's 3.5 of 1 to 5, at the same relative height of any scale.

    >>> relevance_threshold(Scale(1, 5)), relevance_threshold(Scale(0, 10))
    (3.5, 6.25)
    """
    return scale.low + RELEVANT_SHARE * scale.width


def score(
    predictor: Predictor | Predict,
    train: RawRatings,
    test: RawRatings,
    *,
    k: int = 10,
    threshold: float | None = None,
    candidates: Candidates = "all",
    gain: Gain = "binary",
) -> Scores:
    """Score a model on `test`, for which `train` only says which items are already known.

    `predictor` is a `dpsr.types.Model` (`DPSR.fit(...).model_`), a baseline, or a function of coded users and items.
    A bare function is ranked by its own, possibly clipped, predictions. `gain="rating"` makes every test rating count
    with its height above the bottom of the scale in NDCG; precision always uses the threshold.
    """
    _same_vocabulary(train.mask, test.mask)
    limit = relevance_threshold(test.scale) if threshold is None else threshold
    predict = predictor.predict if isinstance(predictor, Predictor) else predictor
    predicted = predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
    relevant = (test.values >= limit).astype(np.float64)
    hits = rank_gains(predictor, train.mask, test.mask, relevant, k=k, candidates=candidates)
    order = hits if gain == "binary" else _by_rating(predictor, train, test, k, candidates)
    return Scores(
        rmse=rmse(test.values, predicted),
        mae=mae(test.values, predicted),
        precision=precision_at_k(hits.ranked, k=k),
        ndcg=ndcg_at_k(order.ranked, order.available, k=k),
        chance_precision=_mean(hits.chance_precision),
        chance_ndcg=_mean(order.chance_ndcg),
        n_ratings=len(test),
        n_ranked_users=len(hits.ranked),
    )


def _by_rating(
    predictor: Predictor | Predict, train: RawRatings, test: RawRatings, k: int, candidates: Candidates
) -> RankedGains:
    height = test.values - test.scale.low
    return rank_gains(predictor, train.mask, test.mask, height, k=k, candidates=candidates)


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _same_vocabulary(train: Mask, test: Mask) -> None:
    if not (train.user_ids.equals(test.user_ids) and train.item_ids.equals(test.item_ids)):
        raise ParameterError(
            f"training and test ratings must code the same users and items, found {train.shape} and {test.shape}. "
            "Take both from one call of `ratings.split(...)`."
        )
