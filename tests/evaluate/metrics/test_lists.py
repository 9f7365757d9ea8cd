"""Figures of lists: against an independent library, against a slow loop, and where there is nothing to measure."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import ndcg_score

from dpsr.evaluate.metrics.lists import (
    coverage_at,
    hits_of,
    list_ndcg_at,
    mean_of_known,
    popularity_bias_at,
    recall_at,
)
from dpsr.types import Mask


def mask_of(rows, n_items):
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    items = np.concatenate([np.sort(row) for row in rows]).astype(np.int32)
    return Mask(pa.array(np.arange(len(rows))), pa.array(np.arange(n_items)), indptr, items)


@pytest.fixture(scope="module")
def made_up():
    """Forty people, a catalogue of 150, lists of a hundred; person u has u hidden items, the first none."""
    rng = np.random.default_rng(0)
    lists = np.stack([rng.permutation(150)[:100] for _ in range(40)]).astype(np.int32)
    hidden = mask_of([rng.permutation(150)[:n] for n in range(40)], 150)
    return lists, hidden


def of(hidden, user):
    return hidden.items[hidden.indptr[user] : hidden.indptr[user + 1]]


@pytest.mark.parametrize("k", [1, 20, 100])
def test_ndcg_is_that_of_scikit_learn(made_up, k):
    lists, hidden = made_up
    truth, scores = np.zeros((40, 150)), np.zeros((40, 150))
    truth[hidden.users, hidden.items] = 1
    np.put_along_axis(scores, lists.astype(int), np.linspace(2, 1, 100)[None, :], axis=1)
    expected = [ndcg_score(truth[u : u + 1], scores[u : u + 1], k=k) for u in range(1, 40)]
    found = list_ndcg_at(hits_of(lists, hidden), hidden.user_counts, k)
    np.testing.assert_allclose(found[1:], expected, atol=1e-12)


@pytest.mark.parametrize("k", [3, 20, 100])
def test_every_figure_is_that_of_a_plain_loop(made_up, k):
    lists, hidden = made_up
    counts = np.random.default_rng(1).integers(1, 50, 150)
    recall, ndcg, shown, listed, chosen = [], [], set(), [], []
    for u, row in enumerate(lists):
        wanted = set(of(hidden, u).tolist())
        shown |= set(row[:k].tolist())
        listed.append(np.mean([counts[j] for j in row[:k]]))
        if wanted:
            recall.append(sum(j in wanted for j in row[:k]) / min(k, len(wanted)))
            gained = sum(1 / np.log2(i + 2) for i, j in enumerate(row[:k]) if j in wanted)
            ndcg.append(gained / sum(1 / np.log2(i + 2) for i in range(min(k, len(wanted)))))
            chosen.append(np.mean([counts[j] for j in wanted]))
    hits, n = hits_of(lists, hidden), hidden.user_counts
    assert mean_of_known(recall_at(hits, n, k)) == pytest.approx(np.mean(recall))
    assert mean_of_known(list_ndcg_at(hits, n, k)) == pytest.approx(np.mean(ndcg))
    assert coverage_at(lists, 150, k) == pytest.approx(len(shown) / 150)
    assert popularity_bias_at(lists, hidden, counts, k) == pytest.approx(np.mean(listed) / np.mean(chosen))


def test_a_perfect_list_has_one_at_every_k_and_one_without_hits_zero():
    hidden = mask_of([[3, 1, 4]], 6)
    best, worst = np.array([[1, 3, 4, 0, 2, 5]]), np.array([[0, 2, 5, -1, -1, -1]])
    for k in range(1, 7):
        assert recall_at(hits_of(best, hidden), hidden.user_counts, k) == 1
        assert list_ndcg_at(hits_of(best, hidden), hidden.user_counts, k) == pytest.approx(1)
        assert recall_at(hits_of(worst, hidden), hidden.user_counts, k) == 0


def test_lists_shorter_than_k_count_as_if_the_rest_were_missed():
    hidden = mask_of([[0, 1, 2]], 4)
    lists = np.array([[0, 3]])
    assert recall_at(hits_of(lists, hidden), hidden.user_counts, 20) == pytest.approx(1 / 3)
    assert coverage_at(lists, 4, 20) == 0.5


def test_where_nobody_has_a_hidden_item_nothing_is_said():
    hidden = mask_of([[], []], 4)
    lists = np.array([[0, 1], [2, -1]])
    hits = hits_of(lists, hidden)
    assert not hits.any()
    assert np.isnan(recall_at(hits, hidden.user_counts, 2)).all()
    assert np.isnan(mean_of_known(list_ndcg_at(hits, hidden.user_counts, 2)))
    assert np.isnan(popularity_bias_at(lists, hidden, np.ones(4, dtype=int), 2))


def test_places_where_a_list_has_run_out_are_never_hits():
    hidden = mask_of([[3], [0]], 4)  # with codes u * 4 + j, place -1 of the second row would be cell 3
    assert not hits_of(np.array([[-1, 0], [-1, 1]]), hidden).any()
