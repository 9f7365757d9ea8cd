"""Learners on one table, tested on people who are not in it."""

import numpy as np
import pytest

from dpsr.data import realistic
from dpsr.evaluate.downstream.fold_in import FOLDED
from dpsr.evaluate.downstream.learners import LEARNERS, RatingTable
from dpsr.evaluate.downstream.strangers import score_tables, split_people
from dpsr.evaluate.metrics.accuracy import rmse


@pytest.fixture(scope="module")
def ratings():
    return realistic(1, n_users=400, n_items=80, n_ratings=8_000)


@pytest.mark.parametrize("name", FOLDED)
def test_people_of_the_table_get_what_the_learner_itself_gives_them(ratings, name):
    """One step of its own iteration, at which it stands still."""
    table = RatingTable(ratings.mask, ratings.values, ratings.scale)
    users, items = ratings.mask.users.astype(np.int64), ratings.mask.items.astype(np.int64)
    folded = FOLDED[name](table, 0).fold_in(table).predict(users, items)
    itself = LEARNERS[name](table, 0).predict(users, items)
    assert rmse(itself, folded) < (0.2 if name == "surprise-svd" else 0.02)  # whose steps were at items not yet learned


def test_a_split_by_people_keeps_them_apart(ratings):
    split = split_people(ratings, 0)
    assert not set(split.train.mask.users) & (set(split.own.mask.users) | set(split.test.mask.users))
    assert len(split.train) + len(split.own) + len(split.test) == len(ratings)


def test_made_up_people_teach_what_the_release_knows(ratings):
    """At a generous budget learners on made-up people beat people's own means and come near `personalise`."""
    found = {(one.table, one.learner): one.rmse for one in score_tables(split_people(ratings, 0), 30.0, 0)}
    best = found["release, unit user", "personalise"]
    for learner in FOLDED:
        assert best * 0.99 < found["made-up people, unit user", learner] < found["their own ratings", "own mean"]
