"""The protocol of `score`: candidates, relevance, ties, who is averaged. Oracle: ranx and a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from dpsr.data import Ratings
from dpsr.errors import ParameterError
from dpsr.evaluate import Scores, relevance_threshold, score
from dpsr.evaluate.metrics import ranking
from dpsr.types import Scale


class Table:
    """A predictor that looks its scores up in a dense matrix; test use only."""

    def __init__(self, matrix, low=-np.inf, high=np.inf):
        self.matrix, self.low, self.high = matrix, low, high

    def predict(self, users, items):
        return np.clip(self.matrix[users, items], self.low, self.high)

    def scores(self, user):
        return self.matrix[user]


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(7)
    cells = np.sort(rng.choice(40 * 60, 900, replace=False))
    ratings = Ratings.from_arrays(cells // 60, cells % 60, rng.integers(1, 6, 900), scale=Scale(1, 5))
    return ratings.split(0.3, seed=1)


@pytest.fixture(scope="module")
def model(parts):
    return Table(np.random.default_rng(8).normal(3, 1, parts[0].mask.shape))


def _cells(ratings):
    return zip(ratings.mask.users.tolist(), ratings.mask.items.tolist(), ratings.values.tolist(), strict=True)


def _ranx(model, train, test, candidates):
    """P@10 and NDCG@10 by ranx, user by user; its batch interface compiles for a minute."""
    from ranx.metrics.ndcg import _ndcg
    from ranx.metrics.precision import _precision

    seen, held = {}, {}
    for u, j, _ in _cells(train):
        seen.setdefault(u, set()).add(j)
    for u, j, value in _cells(test):
        held.setdefault(u, {})[j] = value
    found = []
    for u, row in held.items():
        relevant = np.array([[j, 1.0] for j, value in row.items() if value >= 3.5])
        pool = set(range(test.mask.n_items)) - seen.get(u, set()) if candidates == "all" else set(row)
        run = np.array(sorted(([j, model.matrix[u, j]] for j in pool), key=lambda pair: -pair[1]))
        if len(relevant):
            found.append((_precision(relevant, run, 10, 1), _ndcg(relevant, run, 10, 1, True)))
    return *np.mean(found, axis=0), len(found)


@pytest.mark.filterwarnings("ignore")  # ranx compiles with old numba idioms
@pytest.mark.parametrize("candidates", ["all", "rated"])
def test_ranking_scores_agree_with_ranx(parts, model, candidates):
    found = score(model, *parts, candidates=candidates)
    precision, ndcg, users = _ranx(model, *parts, candidates)
    assert (found.precision, found.ndcg) == (pytest.approx(precision), pytest.approx(ndcg))
    assert found.n_ranked_users == users


def test_graded_ndcg_agrees_with_a_plain_loop(parts, model):
    train, test = parts
    held = {}
    for u, j, value in _cells(test):
        held.setdefault(u, {})[j] = value - 1
    seen = {(u, j) for u, j, _ in _cells(train)}
    found = []
    for u, row in held.items():
        if any(row.values()):
            pool = sorted((j for j in range(60) if (u, j) not in seen), key=lambda j, u=u: -model.matrix[u, j])
            dcg = sum(row.get(j, 0) / np.log2(i + 2) for i, j in enumerate(pool[:10]))
            found.append(dcg / sum(g / np.log2(i + 2) for i, g in enumerate(sorted(row.values())[::-1][:10])))
    assert score(model, train, test, gain="rating").ndcg == pytest.approx(np.mean(found))


def test_blocks_do_not_change_the_scores(parts, model, monkeypatch):
    whole = score(model, *parts)
    monkeypatch.setattr(ranking, "BLOCK_CELLS", 150)
    assert score(model, *parts) == whole


def test_training_items_are_never_recommended(parts):
    train, test = parts
    matrix = np.zeros(train.mask.shape)
    matrix[train.mask.users, train.mask.items] = 9.0
    matrix[test.mask.users, test.mask.items] = test.values
    perfect = score(Table(matrix), train, test)
    assert perfect.ndcg == 1.0
    assert perfect.rmse == 0.0


def test_ranking_uses_unclipped_scores_so_that_clipping_makes_no_ties(parts):
    train, test = parts
    order = np.zeros(train.mask.shape)
    order[test.mask.users, test.mask.items] = test.values
    clipped = Table(100 + order, low=1, high=5)  # every prediction is 5, the scores still know the order
    assert score(clipped, train, test).ndcg == 1.0
    assert score(clipped.predict, train, test).ndcg < 0.5


def test_ties_go_to_the_lower_item_code():
    train = Ratings.from_arrays(["a", "b"], [0, 1], [3, 3], scale=Scale(1, 5))
    both = Ratings.from_arrays(["a", "a", "b", "b"], [0, 1, 0, 1], [3, 5, 5, 3], scale=Scale(1, 5))
    held = np.array([False, True, True, False])
    train, test = (Ratings(both.mask.select(rows), both.levels[rows], both.scale) for rows in (~held, held))
    flat = Table(np.zeros((2, 2)))
    assert score(flat, train, test, k=1).precision == 1.0  # one candidate each
    empty = Ratings(both.mask.select(held & False), both.levels[held & False], both.scale)
    assert score(flat, empty, test, k=1).precision == 0.5  # b's relevant item is code 0, a's is code 1


def test_users_without_a_relevant_test_item_are_left_out():
    ratings = Ratings.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [5, 5, 1, 1], scale=Scale(1, 5))
    held = np.array([False, True, False, True])
    train, test = (Ratings(ratings.mask.select(rows), ratings.levels[rows], ratings.scale) for rows in (~held, held))
    found = score(Table(np.full((2, 2), 3.0)), train, test, k=1)
    assert (found.n_ranked_users, found.precision, found.n_ratings) == (1, 1.0, 2)


def test_chance_is_the_average_over_many_random_orders(parts):
    train, test = parts
    rng = np.random.default_rng(0)
    found = [score(Table(rng.random(train.mask.shape)), train, test) for _ in range(200)]
    assert np.mean([f.precision for f in found]) == pytest.approx(found[0].chance_precision, rel=0.03)
    assert np.mean([f.ndcg for f in found]) == pytest.approx(found[0].chance_ndcg, rel=0.03)


def test_chance_counts_lists_shorter_than_k():
    ratings = Ratings.from_arrays([0, 0, 0, 1], [0, 1, 2, 0], [1, 5, 1, 1], scale=Scale(1, 5))
    held = np.array([False, True, True, False])
    train, test = (Ratings(ratings.mask.select(rows), ratings.levels[rows], ratings.scale) for rows in (~held, held))
    found = score(Table(np.zeros((2, 3))), train, test)
    assert found.chance_precision == pytest.approx(1 / 10)
    assert found.chance_ndcg == pytest.approx((1 + 1 / np.log2(3)) / 2)


def test_the_threshold_sits_at_the_same_height_of_every_scale():
    assert relevance_threshold(Scale(1, 5)) == 3.5
    assert relevance_threshold(Scale(0.5, 5, step=0.5)) == pytest.approx(0.5 + 0.625 * 4.5)
    assert relevance_threshold(Scale(-10, 10)) == pytest.approx(2.5)


def test_a_threshold_can_be_given(parts, model):
    assert score(model, *parts, threshold=5).n_ranked_users < score(model, *parts, threshold=1).n_ranked_users


def test_different_vocabularies_are_refused_with_advice(parts, model):
    other = Ratings.from_arrays([1, 2], [1, 2], [3, 4], scale=Scale(1, 5))
    with pytest.raises(ParameterError, match="Take both from one call"):
        score(model, parts[0], other)


def test_scores_say_that_they_are_not_private(parts, model):
    assert score(model, *parts).private is False
    assert "NOT PRIVATE" in (Scores.__doc__ or "")


def test_the_top_of_a_list_is_that_of_a_full_stable_sort_ties_and_all():
    rng = np.random.default_rng(0)
    for values in (3, 50, 10**6):
        scores = rng.integers(0, values, (40, 60)).astype(float)
        scores[rng.random(scores.shape) < 0.3] = -np.inf
        for k in (1, 10, 60, 99):
            expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            np.testing.assert_array_equal(ranking.top_items(scores, k), expected)
