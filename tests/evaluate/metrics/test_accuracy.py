"""The four measures: hand examples, independent libraries, and errors planted on purpose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, ndcg_score

from dpsr.errors import ParameterError
from dpsr.evaluate import mae, ndcg_at_k, precision_at_k, rmse


def test_rmse_and_mae_by_hand():
    assert rmse([1, 2, 3, 4], [1, 2, 3, 8]) == 2.0
    assert mae([1, 2, 3, 4], [1, 2, 3, 8]) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_rmse_and_mae_agree_with_scikit_learn(seed):
    truth, predicted = np.random.default_rng(seed).normal(size=(2, 500))
    assert rmse(truth, predicted) == pytest.approx(mean_squared_error(truth, predicted) ** 0.5, rel=1e-12)
    assert mae(truth, predicted) == pytest.approx(mean_absolute_error(truth, predicted), rel=1e-12)


def test_rmse_is_an_offset_when_every_error_is_the_offset():
    assert rmse(np.arange(9.0), np.arange(9.0) + 1.05) == pytest.approx(1.05)


@pytest.mark.parametrize("shapes", [((0,), (0,)), ((3,), (2,))])
def test_an_error_over_nothing_or_over_mismatched_cells_is_refused_with_advice(shapes):
    with pytest.raises(ParameterError, match="Predict exactly the held-out cells"):
        rmse(np.zeros(shapes[0]), np.zeros(shapes[1]))


def test_precision_by_hand_divides_by_k_even_when_the_list_is_shorter():
    assert precision_at_k([[1, 0, 1, 1, 0]], k=5) == 0.6
    assert precision_at_k([[1, 1]], k=10) == 0.2
    assert precision_at_k([[1, 0], [0, 0]], k=2) == 0.25


def test_precision_ignores_places_beyond_k():
    assert precision_at_k([[0, 0, 1, 1]], k=2) == 0.0


def test_ndcg_by_hand():
    third_of_two = (1 / np.log2(4)) / (1 + 1 / np.log2(3))
    assert ndcg_at_k([[0, 0, 1]], [[1, 1, 0]], k=3) == pytest.approx(third_of_two)
    assert ndcg_at_k([[3, 2, 1]], [[1, 2, 3]], k=3) == 1.0


def test_ndcg_ideal_counts_relevant_items_the_list_missed():
    assert ndcg_at_k([[1, 0]], [[1, 1]], k=2) < ndcg_at_k([[1, 0]], [[1, 0]], k=2) == 1.0


@pytest.mark.parametrize("k", [1, 5, 10])
def test_ndcg_with_graded_gains_agrees_with_scikit_learn(k):
    rng = np.random.default_rng(k)
    gains, scores = rng.integers(0, 6, size=(20, 30)).astype(float), rng.normal(size=(20, 30))
    ranked = np.take_along_axis(gains, np.argsort(-scores, axis=1), axis=1)
    assert ndcg_at_k(ranked, gains, k=k) == pytest.approx(ndcg_score(gains, scores, k=k), rel=1e-12)


def test_without_users_the_ranking_measures_are_not_a_number_rather_than_zero():
    assert np.isnan(precision_at_k(np.empty((0, 10))))
    assert np.isnan(ndcg_at_k(np.empty((0, 10)), np.empty((0, 10))))
