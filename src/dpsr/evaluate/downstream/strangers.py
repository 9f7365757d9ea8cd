"""What a table is worth to people who are not in it: one split by people, several tables, learners folded in.

Some people are held out whole. Tables are made from the others; of each held-out person most ratings are their own, for
folding in, and the rest are predicted. `personalise` of the release itself is the yardstick. Noise is seeded and
held-out ratings are raw: **not private**.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.data import Ratings
from dpsr.evaluate.baselines.bias import OwnMean
from dpsr.evaluate.downstream.fold_in import FOLDED, LearnedItems
from dpsr.evaluate.downstream.learners import RANKS_ONLY, RatingTable
from dpsr.evaluate.downstream.training_tables import build_table
from dpsr.evaluate.metrics.accuracy import rmse
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.metrics.scores import score
from dpsr.pipeline import DPSR
from dpsr.release.people import ItemRelease
from dpsr.types.coordinates import codes_of

DELTA = 1e-5
RMSE, NDCG = "RMSE", "NDCG@10"
RAW_ROWS = "raw rows, not private"
LISTED_PEOPLE = 500
"""Lists are made for at most so many people, the same for every learner."""


@dataclass(frozen=True, eq=False)
class PeopleSplit:
    """`train` is of some people; of the others, `own` are the ratings they bring and `test` those to predict."""

    train: Ratings
    own: Ratings
    test: Ratings


@dataclass(frozen=True)
class Score:
    """How well a learner, trained on a table, serves held-out people: RMSE, or NDCG@10 if all it makes is lists."""

    table: str
    learner: str
    measure: str
    value: float


@dataclass(frozen=True, eq=False)
class Renamed:
    """A predictor asked by other codes of items; -1 among `codes` is an item it has not heard of, last in lists."""

    inner: Predictor
    codes: Ints

    def predict(self, users: Ints, items: Ints) -> Floats:
        """As the predictor says it."""
        return self.inner.predict(np.asarray(users), self.codes[items])

    def scores(self, user: int) -> Floats:
        """One for every item."""
        found = self.inner.scores(user)
        return np.where(self.codes >= 0, found[self.codes], found.min() - 1)


def split_people(ratings: Ratings, seed: int, *, people: float = 0.2, test: float = 0.2) -> PeopleSplit:
    """A share of people is held out, and a share of their ratings is tested."""
    rng = np.random.default_rng(seed)
    held = (rng.random(ratings.mask.n_users) < people)[ratings.mask.users]
    tested = held & (rng.random(len(ratings)) < test)
    return PeopleSplit(ratings[~held], ratings[held & ~tested], ratings[tested])


def score_tables(
    split: PeopleSplit,
    epsilon: float,
    seed: int,
    *,
    people: int | None = None,
    learners: Mapping[str, Callable[[RatingTable, int], LearnedItems]] = FOLDED,
) -> Iterator[Score]:
    """Every table with every learner; `people` are made up, the usual number unless told."""
    release: ItemRelease = DPSR(epsilon, unit="user", delta=DELTA, random_state=seed).fit(split.train).release
    mask, test = split.test.mask, split.test
    users, items = mask.id_pairs()
    personal = release.personalise(split.own, new_people=True).predict(users.to_pylist(), items.to_pylist())
    yield Score("release, unit user", "personalise", RMSE, rmse(test.values, personal))
    own = OwnMean(random_state=seed).fit(split.own.mask, split.own.values, test.scale)
    yield Score("their own ratings", "own mean", RMSE, rmse(test.values, own.predict(mask.users, mask.items)))
    for name, make in _tables(split, release, epsilon, seed, people).items():
        table, vocabulary, named = make()
        codes = codes_of(named(split.train.mask.item_ids), vocabulary)
        for learner, learn in learners.items():
            found = Renamed(learn(table, seed).fold_in(_own(split.own, codes, table)), codes)
            if learner in RANKS_ONLY:
                yield Score(name, learner, NDCG, score(found, split.own, _listed(test, seed)).ndcg)
            else:
                predicted = found.predict(mask.users.astype(np.int64), mask.items.astype(np.int64))
                yield Score(name, learner, RMSE, rmse(test.values, predicted))


def _listed(test: Ratings, seed: int) -> Ratings:
    """The test ratings of at most so many people, for whom lists are made."""
    people = np.unique(test.mask.users)
    chosen = np.random.default_rng(seed).permutation(people)[:LISTED_PEOPLE]
    return test[np.isin(test.mask.users, chosen)]


TrainingTable = tuple[RatingTable, pa.Array, Callable[[pa.Array], pa.Array]]


def _tables(
    split: PeopleSplit, release: ItemRelease, epsilon: float, seed: int, people: int | None
) -> dict[str, Callable[[], TrainingTable]]:
    """How each table is made: the table, its items, and how it calls real ones."""
    train = split.train

    def of_values(values: Floats) -> TrainingTable:
        return RatingTable(train.mask, values, train.scale), train.mask.item_ids, lambda ids: ids

    def made_up() -> TrainingTable:
        rows = release.synthesise(people)
        table = Ratings.from_arrays(*(rows[name] for name in ("user", "item", "rating")), scale=train.scale)
        return (
            RatingTable(table.mask, table.values, table.scale),
            table.mask.item_ids,
            release.synthetic_items,
        )

    return {
        "made-up people, unit user": made_up,
        "ratings.parquet, unit value": lambda: of_values(build_table("dpsr", train, epsilon, seed).values),
        RAW_ROWS: lambda: of_values(train.values),
    }


def _own(own: Ratings, codes: np.ndarray, table: RatingTable) -> RatingTable:
    """People's own ratings of items that the table has, by its codes; of items that share one, the first."""
    mask = own.mask
    items = codes[mask.items]
    known = items >= 0
    keys = mask.users[known].astype(np.int64) * table.mask.n_items + items[known]
    keys, first = np.unique(keys, return_index=True)
    rows, columns = keys // table.mask.n_items, keys % table.mask.n_items
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=mask.n_users))])
    shaped = type(mask)(mask.user_ids, table.mask.item_ids, indptr, columns.astype(np.int32), None)
    return RatingTable(shaped, own.values[known][first], own.scale)
