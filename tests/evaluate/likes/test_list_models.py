"""List models without privacy against slow versions of themselves, and the two protocols."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpsr import Interactions
from dpsr.data import realistic
from dpsr.evaluate.likes import baselines
from dpsr.evaluate.likes.baselines import best_setting
from dpsr.evaluate.likes.contract import Factors, SameForAll, baskets_of
from dpsr.evaluate.likes.protocol import LIST_PROTOCOLS, HeldOutPeople, score_lists, top_lists_of
from dpsr.evaluate.likes.registry import LIST_METHODS
from dpsr.evaluate.registry import built


@pytest.fixture(scope="module")
def likes():
    return realistic(1, n_users=150, n_items=60, n_ratings=2500).liked(at_least=1)


def dense_ease(x, ridge):
    inverse = np.linalg.inv(x.T @ x + ridge * np.eye(x.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return weights


@pytest.mark.parametrize("ridge", [1.0, 50.0])
def test_ease_is_the_closed_form_whichever_side_is_smaller(likes, ridge):
    few = likes.of_people(np.arange(40))  # fewer people than items, and the other way round
    for one in (few, likes):
        x = baskets_of(one.mask).toarray()
        found = baselines.closed_form(one, ridge).scores_of(baskets_of(one.mask))
        np.testing.assert_allclose(found, x @ dense_ease(x, ridge), atol=1e-9)


def test_ease_minimises_its_loss_among_matrices_with_a_zero_diagonal(likes):
    x = baskets_of(likes.mask).toarray()
    weights, rng = dense_ease(x, 10.0), np.random.default_rng(0)

    def loss(b):
        return np.sum((x - x @ b) ** 2) + 10.0 * np.sum(b**2)

    for _ in range(20):
        step = 1e-3 * rng.standard_normal(weights.shape)
        np.fill_diagonal(step, 0)
        assert loss(weights) < loss(weights + step)


def test_items_beyond_the_largest_matrix_follow_by_popularity(likes, monkeypatch):
    monkeypatch.setattr(baselines, "LARGEST", 20)
    scores = baselines.closed_form(likes, 50.0).scores_of(baskets_of(likes.mask))
    counts = likes.mask.item_counts
    inside = np.argsort(-counts, kind="stable")[:20]
    outside = np.setdiff1d(np.arange(60), inside)
    assert scores[:, inside].min() > scores[:, outside].max()
    assert (np.argsort(-scores[0, outside], kind="stable") == np.argsort(-counts[outside], kind="stable")).all()


@pytest.mark.parametrize(("k", "shrinkage"), [(5, 0.0), (10, 20.0), (500, 3.0)])
def test_item_knn_is_that_of_a_slow_loop(likes, k, shrinkage):
    x = baskets_of(likes.mask).toarray()
    counts, n = x.sum(axis=0), x.shape[1]
    weights = np.zeros((n, n))
    for j in range(n):
        near = np.array([
            0 if i == j else (x[:, i] @ x[:, j]) / (np.sqrt(counts[i] * counts[j]) + shrinkage) for i in range(n)
        ])  # fmt: skip
        best = near >= np.sort(near)[max(n - k, 0)]
        weights[best, j] = near[best]
    found = baselines.neighbours(likes, (k, shrinkage)).scores_of(baskets_of(likes.mask))
    np.testing.assert_allclose(found, x @ weights, rtol=1e-5, atol=1e-6)


def test_people_are_folded_in_as_the_library_itself_recalculates_them(likes):
    from implicit.cpu.als import AlternatingLeastSquares

    baskets = baskets_of(likes.mask).astype(np.float32)
    library = AlternatingLeastSquares(
        factors=8, regularization=2.0, alpha=5.0, iterations=5, random_state=0, num_threads=1, dtype=np.float64
    )
    library.fit(baskets, show_progress=False)
    expected = library.recalculate_user(np.arange(150), baskets)
    found = Factors(np.asarray(library.item_factors, dtype=np.float64), 5.0, 1.0, 2.0).own_vectors(baskets)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-3)


def test_own_vectors_minimise_the_loss_they_state(likes):
    rng = np.random.default_rng(3)
    v, basket = rng.normal(0, 0.3, (60, 3)), baskets_of(likes.mask)[:1]
    model = Factors(v, 4.0, 0.5, 1.5)
    (p,) = model.own_vectors(basket)
    seen = basket.toarray()[0] > 0

    def loss(q):
        s = v @ q
        return 4.0 * np.sum((1 - s[seen]) ** 2) + 0.5 * np.sum(s[~seen] ** 2) + 1.5 * q @ q

    assert all(loss(p) < loss(p + 1e-3 * rng.standard_normal(3)) for _ in range(20))


def test_settings_are_those_with_the_best_recall_on_people_held_back(likes):
    worth = {"popular": 1.0, "contrary": -1.0}
    best = best_setting(
        likes, 0, ["contrary", "popular"], lambda train, one: SameForAll(worth[one] * train.mask.item_counts)
    )
    assert best == "popular"


def test_settings_fall_back_on_the_first_where_there_is_nobody_to_hold_back():
    tiny = Interactions.from_arrays([1, 2], [1, 2])
    assert best_setting(tiny, 0, [7, 8], lambda *_: pytest.fail("nothing can be compared")) == 7


@pytest.mark.parametrize("name", ["popularity", "item-knn", "ease", "ials"])
def test_tuned_models_are_no_worse_than_chance_and_taste_beats_popularity(likes, name):
    split = LIST_PROTOCOLS["held-out people"].split(likes, 0)
    method = built(LIST_METHODS[name], None, 1e-5, 0).fit(split.train)
    assert method.protection.unit == "none"
    chance = 20 / 60
    assert score_lists(method, split).means["recall_at_20"] > 1.1 * chance


def test_ials_takes_its_settings_from_its_grid(likes):
    model = baselines.ials(likes, 0)
    assert model.confidence in baselines.CONFIDENCE
    assert model.ridge in baselines.IALS_RIDGES


@pytest.mark.parametrize("protocol", LIST_PROTOCOLS)
def test_nothing_hidden_is_shown_or_trained_on_and_the_seed_decides(likes, protocol):
    split, again, other = (LIST_PROTOCOLS[protocol].split(likes, seed) for seed in (1, 1, 2))

    def cells(part):
        rows = part.to_arrow().to_pydict()
        return set(zip(rows["user"], rows["item"], strict=True))

    assert not cells(split.hidden) & (cells(split.shown) | cells(split.train))
    assert (split.hidden.mask.user_counts >= 1).all()
    assert cells(split.hidden) == cells(again.hidden) != cells(other.hidden)
    if protocol == "held-out people":
        assert not set(split.train.user_ids.to_pylist()) & set(split.hidden.user_ids.to_pylist())
    else:
        assert cells(split.shown) <= cells(split.train)


def test_at_most_so_many_people_are_ranked(likes, monkeypatch):
    monkeypatch.setattr(HeldOutPeople, "ranked", 7)
    split = HeldOutPeople().split(likes, 0)
    assert split.shown.n_users == split.hidden.n_users == 7


def test_lists_hold_nothing_that_is_shown_and_end_where_items_do(likes):
    lists = top_lists_of(SameForAll(likes.mask.item_counts.astype(float)), likes.mask)
    assert lists.shape == (150, 100)
    for u, row in enumerate(lists):
        own = set(likes.mask.items[likes.mask.indptr[u] : likes.mask.indptr[u + 1]].tolist())
        assert set(row[row >= 0].tolist()) == set(range(60)) - own


def test_baskets_are_the_rows_of_the_mask(likes):
    assert sp.issparse(baskets_of(likes.mask))
    assert baskets_of(likes.mask).sum() == likes.n_interactions
