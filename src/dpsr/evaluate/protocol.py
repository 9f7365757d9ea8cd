"""How a method is tested: which part it learns from, which part it is asked about, and what is scored there.

A protocol is a value, so that a job can name the one it was measured under and a study can choose. All of them give a
method the training part and nothing else; codes of users and items are shared between the parts. `docs/protocol.md`
has the definitions. Everything compares with raw values: **not private**.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.data import Ratings
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines import ALS, Bias, Constant
from dpsr.evaluate.baselines.bias import MostRatedFirst
from dpsr.evaluate.metrics.accuracy import mae, rmse
from dpsr.evaluate.metrics.ranking import Predictor, top_lists
from dpsr.evaluate.metrics.scores import Scores, score
from dpsr.evaluate.sets import RatingSet
from dpsr.types import Mask, Model

LISTED_USERS = 300
"""Lists are kept for at most so many users, the same for every method on the same split."""


class Split(NamedTuple):
    """What a method learns from, and what it is asked about."""

    train: Ratings
    test: Ratings

    @property
    def test_cells(self) -> tuple[Ints, Ints]:
        """Users and items of the test part."""
        return self.test.mask.users.astype(np.int64), self.test.mask.items.astype(np.int64)


class EvaluationProtocol(Protocol):
    """How parts are made and what is scored.

    `metrics` are the columns that `score` fills, `errors` those of them that a model which only ranks has not got.
    """

    metrics: ClassVar[tuple[str, ...]]
    errors: ClassVar[tuple[str, ...]]

    def split(self, ratings: RatingSet, seed: int) -> Split:
        """Training and test part: the same for every method, whichever process asks."""

    def score(self, predictor: Predictor, split: Split, seed: int) -> dict[str, float]:
        """Every metric of one fitted model."""


@dataclass(frozen=True)
class HeldOutRatings:
    """Random parts by rating: RMSE and MAE over all test ratings, P@10 and NDCG@10 among items not rated in training.

    `ranked_users` bounds for how many users lists are scored, drawn at random and the same for every method (None: all;
    0: none, errors only). Ranking every item for everybody takes longer than fitting.
    """

    test_share: float = 0.2
    ranked_users: int | None = None

    errors: ClassVar[tuple[str, ...]] = ("rmse", "mae", "share_of_constant")
    metrics: ClassVar[tuple[str, ...]] = (
        "rmse", "mae", "precision_at_10", "ndcg_at_10", "chance_precision", "chance_ndcg", "share_of_constant",
    )  # fmt: skip

    def split(self, ratings: RatingSet, seed: int) -> Split:
        """A random share of all ratings is the test part."""
        return Split(*ratings.read(seed).split(self.test_share, seed=seed))

    def score(self, predictor: Predictor, split: Split, seed: int) -> dict[str, float]:
        """Errors over the whole test part, lists over that of the users ranked."""
        truth, predicted = split.test.values, predictor.predict(*split.test_cells)
        constant = Constant().fit(split.train.mask, split.train.values, split.train.scale)
        errors = {
            "rmse": rmse(truth, predicted),
            "mae": mae(truth, predicted),
            "share_of_constant": rmse(truth, predicted) / rmse(truth, constant.predict(*split.test_cells)),
        }
        return errors if self.ranked_users == 0 else errors | self._lists(predictor, split, seed)

    def _lists(self, predictor: Predictor, split: Split, seed: int) -> dict[str, float]:
        found = score(ranking_part(predictor), split.train, self._ranked_part(split.test, seed))
        return {
            "precision_at_10": found.precision,
            "ndcg_at_10": found.ndcg,
            "chance_precision": found.chance_precision,
            "chance_ndcg": found.chance_ndcg,
        }

    def _ranked_part(self, test: Ratings, seed: int) -> Ratings:
        """The test ratings of the users for whom lists are scored."""
        users = np.unique(test.mask.users)
        if self.ranked_users is None or len(users) <= self.ranked_users:
            return test
        chosen = np.zeros(test.mask.n_users, dtype=np.bool_)
        chosen[np.random.default_rng(seed).choice(users, self.ranked_users, replace=False)] = True
        rows = chosen[test.mask.users]
        return Ratings(test.mask.select(rows), test.levels[rows], test.scale)


PROTOCOLS: dict[str, EvaluationProtocol] = {
    "held-out ratings": HeldOutRatings(),
    "held-out ratings, 1000 users ranked": HeldOutRatings(ranked_users=1000),
    "held-out ratings, errors only": HeldOutRatings(ranked_users=0),
}
"""By the name under which a job knows them."""

ALL_RANKED, SAMPLE_RANKED, ERRORS_ONLY = PROTOCOLS


def ranking_part(predictor: Predictor) -> Predictor:
    """A `Model` ranks many users at once; whoever wraps one is ranked by it."""
    inner = getattr(predictor, "predictor_", None)
    return inner if isinstance(inner, Model) else predictor


def listed_users(train: Mask, seed: int) -> npt.NDArray[np.int64]:
    """Users with training ratings, a fixed sample of them."""
    users = np.flatnonzero(train.user_counts)
    if len(users) <= LISTED_USERS:
        return users
    return np.sort(np.random.default_rng(seed).choice(users, LISTED_USERS, replace=False))


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a row of numbers is made of: a method's predictions of the test ratings and some of its lists.

    `predicted` is in the order of the test table; `lists[i]` are the ten best items of `listed_users(...)[i]`.
    """

    predicted: npt.NDArray[np.float32]
    lists: npt.NDArray[np.int32]

    @classmethod
    def of(cls, predictor: Predictor, split: Split, seed: int) -> Predictions:
        """Ask a fitted model."""
        predicted: Floats = predictor.predict(*split.test_cells)
        lists = top_lists(ranking_part(predictor), split.train.mask, listed_users(split.train.mask, seed))
        return cls(predicted.astype(np.float32), lists)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """By name, to be stored."""
        return {"predicted": self.predicted, "lists": self.lists}


def against_yardsticks(models: dict[str, Predictor], train: RawRatings, test: RawRatings) -> dict[str, Scores]:
    """Scores of the given models and of the honest yardsticks, not private, on the same held-out ratings."""
    yardsticks = {
        "one constant": Constant(),
        "user + item bias, not private": Bias(),
        "factorisation (ALS), not private": ALS(),
    }
    fitted: dict[str, Predictor] = {
        "most rated first (for lists)": MostRatedFirst(
            train.mask.item_counts.astype(np.float64), float(train.values.mean())
        )
    }
    fitted |= {name: model.fit(train.mask, train.values, train.scale) for name, model in yardsticks.items()}
    return {name: score(model, train, test) for name, model in {**models, **fitted}.items()}
