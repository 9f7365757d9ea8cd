"""Learners on tables they take for ratings: real libraries, a set with structure to find, and honest failures."""

import builtins

import numpy as np
import pytest

from dpsr.data import realistic
from dpsr.errors import ParameterError
from dpsr.evaluate.baselines import Constant
from dpsr.evaluate.downstream.learners import LEARNERS, RANKS_ONLY, RatingTable
from dpsr.evaluate.downstream.training_tables import TABLES, build_table, released_by
from dpsr.evaluate.measure import LEARNERS as MEASURE
from dpsr.evaluate.measure.learners import measure_learners
from dpsr.evaluate.metrics.accuracy import rmse
from dpsr.evaluate.metrics.scores import score
from dpsr.evaluate.protocol import ERRORS_ONLY, SAMPLE_RANKED
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.benchmark.study import LEARNED_BY
from dpsr.pipeline import DPSR


@pytest.fixture(scope="module")
def split():
    return realistic(0, n_users=200, n_items=100, n_ratings=8000).split(0.2, seed=0)


def table(train, values=None):
    return RatingTable(train.mask, train.values if values is None else values, train.scale)


@pytest.mark.parametrize("name", [name for name in LEARNED_BY if name not in RANKS_ONLY])
def test_rating_learners_beat_the_constant_on_raw_ratings(split, name):
    train, test = split
    users, items = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
    constant = Constant().fit(train.mask, train.values, train.scale).predict(users, items)
    predicted = LEARNERS[name](table(train), 0).predict(users, items)
    assert rmse(test.values, predicted) < 0.95 * rmse(test.values, constant)
    assert predicted.min() >= 1
    assert predicted.max() <= 5


@pytest.mark.parametrize("name", sorted(RANKS_ONLY))
def test_implicit_learners_rank_better_than_chance(split, name):
    train, test = split
    found = score(LEARNERS[name](table(train), 0), train, test)
    assert found.ndcg > 1.2 * found.chance_ndcg


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_learns_from_the_values_and_repeats_itself(split, name):
    train, _ = split
    upside_down = train.scale.low + train.scale.high - train.values
    one, again, other = (
        LEARNERS[name](table(train, v), 0).scores(5) for v in (train.values, train.values, upside_down)
    )
    assert np.allclose(one, again, atol=1e-6)
    assert not np.allclose(one, other, atol=1e-3)


def test_values_between_the_levels_are_taken_as_they_are(split):
    train, _ = split
    moved = np.clip(train.values + 0.3, 1, 5)
    for name, learn in LEARNERS.items():
        assert np.isfinite(learn(table(train, moved), 0).scores(0)).all(), name


def test_a_missing_library_is_a_sentence(split, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("implicit"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr("dpsr.evaluate.downstream.learners.import_module", lambda name: without(name))
    with pytest.raises(ParameterError, match=r"Install dpsr\[peers,torch\]"):
        LEARNERS["implicit-liked"](table(split[0]), 0)


def test_tables_are_those_that_releases_hold(split):
    train, _ = split
    release = DPSR(1.0, random_state=3).fit(train).release
    assert np.array_equal(build_table("dpsr", train, 1.0, 3).values, release.ratings)
    assert np.array_equal(released_by("dpsr", train, 1.0, 3), release.ratings)
    assert released_by("als", train, None, 3) is None
    assert np.array_equal(build_table("raw", train, None, 0).values, train.values)
    for name in TABLES:
        given = build_table(name, train, 1.0, 0)
        assert given.values.shape == (len(train),)
        assert given.values.min() >= 1
        assert given.values.max() <= 5
        assert not np.array_equal(given.values, train.values)
    for wrong in (("magic", 1.0), ("laplace", None)):
        with pytest.raises(ParameterError, match="a table is raw, or one of laplace"):
            build_table(wrong[0], train, wrong[1], 0)


def test_settings_of_a_pipeline_change_its_table(split):
    train, _ = split
    plain, same, other = (
        build_table("paper", train, 1.0, 0, **changed).values for changed in ({}, {"beta": 0.65}, {"beta": 1.0})
    )
    assert np.array_equal(plain, same)
    assert not np.array_equal(plain, other)


def job(table, learners, protocol=ERRORS_ONLY):
    epsilon = None if table == "raw" else 1.0
    return Job(MEASURE, RatingSet("realistic"), table, epsilon, 0, 0, 0, protocol, options=(("learners", learners),))


def test_a_learner_that_fails_is_a_row_and_the_model_itself_is_one_too(monkeypatch, tmp_path):
    def broken(table, seed):
        raise RuntimeError("no gradient today")

    monkeypatch.setitem(LEARNERS, "broken", broken)
    rows = measure_learners(job("dpsr", ("bias", "broken")), tmp_path)
    assert [row["learner"] for row in rows] == ["the model itself", "bias", "broken"]
    assert rows[2]["error"] == "RuntimeError: no gradient today"
    assert 0.8 < rows[0]["rmse"] < 1.2
    assert rows[0]["observed_rmse"] > 0


def test_a_learner_that_only_ranks_has_no_error(tmp_path):
    (row,) = measure_learners(job("raw", ("implicit-liked",), SAMPLE_RANKED), tmp_path)
    assert row["ndcg_at_10"] > 0
    assert not {"rmse", "mae", "share_of_constant"} & row.keys()
    assert row["observed_rmse"] == 0
