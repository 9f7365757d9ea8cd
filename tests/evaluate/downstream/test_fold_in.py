"""Learners on one table, tested on people who are not in it."""

import numpy as np
import pytest

from dpsr.data import realistic
from dpsr.evaluate.downstream.fold_in import FOLDED
from dpsr.evaluate.downstream.learners import LEARNERS, RANKS_ONLY, RatingTable
from dpsr.evaluate.downstream.strangers import score_tables, split_people
from dpsr.evaluate.metrics.accuracy import rmse
from dpsr.evaluate.registry import METHODS, build
from dpsr.evaluate.studies.benchmark.study import LEARNED_BY


@pytest.fixture(scope="module")
def ratings():
    return realistic(1, n_users=400, n_items=80, n_ratings=8_000)


CLOSE = {"surprise-svd": 0.2, "svd++": 0.2, "neural-cf": 0.35, "paper-mf": 0.6}
"""Learners that go down a gradient were at items not yet learned; the network stops early; the paper's has no ridge."""


@pytest.fixture(scope="module")
def learned(ratings):
    """Every learner on one table: what it knows of items, and what it itself says."""
    table = RatingTable(ratings.mask, ratings.values, ratings.scale)
    return table, {name: learn(table, 0) for name, learn in FOLDED.items()}


def test_every_learner_of_the_benchmark_can_serve_people_who_are_not_in_its_table():
    assert set(LEARNED_BY) <= set(FOLDED)
    without = {name for name, method in METHODS.items() if method.unit == "none"}
    assert without - {"popularity", "own-mean"} <= set(FOLDED)


@pytest.mark.parametrize("name", FOLDED)
def test_people_of_the_table_get_what_the_learner_itself_gives_them(ratings, learned, name):
    """One step of its own iteration, at which it stands still."""
    table, items_of = learned
    users, items = ratings.mask.users.astype(np.int64), ratings.mask.items.astype(np.int64)
    folded = items_of[name].fold_in(table)
    itself = LEARNERS[name](table, 0) if name in LEARNERS else build(name, None, 1e-5, 0).fit(ratings)
    if name in RANKS_ONLY:
        assert np.corrcoef(itself.scores(3), folded.scores(3))[0, 1] > 0.99
    else:
        assert rmse(itself.predict(users, items), folded.predict(users, items)) < CLOSE.get(name, 0.02)


def test_folding_in_leaves_the_items_as_they_were_learned(learned):
    """A planted error would show here: items that learn from the people they are tested on."""
    table, items_of = learned
    upside_down = RatingTable(table.mask, table.scale.low + table.scale.high - table.values, table.scale)
    for name, items in items_of.items():
        first = items.fold_in(table).scores(5)
        items.fold_in(upside_down)
        np.testing.assert_allclose(items.fold_in(table).scores(5), first, atol=1e-6, err_msg=name)


def test_people_are_solved_as_weighted_least_squares_has_it_for_lists(learned):
    """The oracle: the whole catalogue, cell by cell."""
    table, items_of = learned
    items = items_of["implicit-liked"]
    Q, c = items.fitted.item_factors, np.ones(table.mask.n_items)
    rows = slice(*table.mask.indptr[7:9])
    liked = table.values[rows] >= 3.5
    c[table.mask.items[rows][liked]] = 40.0
    wanted = (c > 1).astype(float)
    solved = np.linalg.solve((Q.T * c) @ Q + 0.01 * np.eye(Q.shape[1]), (Q.T * c) @ wanted)
    np.testing.assert_allclose(items.fold_in(table).scores(7), Q @ solved, atol=1e-8)


def test_a_split_by_people_keeps_them_apart(ratings):
    split = split_people(ratings, 0)
    assert not set(split.train.mask.users) & (set(split.own.mask.users) | set(split.test.mask.users))
    assert len(split.train) + len(split.own) + len(split.test) == len(ratings)


FEW = ("bias", "als", "item-knn", "surprise-svd")


def test_made_up_people_teach_what_the_release_knows(ratings):
    """At a generous budget learners on made-up people beat people's own means and come near `personalise`."""
    scores = score_tables(split_people(ratings, 0), 30.0, 0, learners={name: FOLDED[name] for name in FEW})
    found = {(one.table, one.learner): one.value for one in scores}
    best = found["release, unit user", "personalise"]
    for learner in FEW:
        assert best * 0.99 < found["made-up people, unit user", learner] < found["their own ratings", "own mean"]
