"""The order of questions about interactions: how often second moments are asked, and that all is spent."""

import numpy as np
import pytest

from dpsr import DPSR, Interactions


def crowd(n_users, taste, n_items=60, seed=0):
    """Two halves of the items, each for its own people, or all for everybody."""
    rng = np.random.default_rng(seed)
    p = 1 / (3.0 + np.arange(n_items) // 2)
    rows = []
    for u in range(n_users):
        own = p * np.where(np.arange(n_items) % 2 == u % 2, 1.0, 0.05) if taste else p
        rows += [(u, int(j)) for j in rng.choice(n_items, 8, replace=False, p=own / own.sum())]
    return Interactions.from_arrays([u for u, _ in rows], [j for _, j in rows])


@pytest.mark.parametrize(("taste", "epsilon", "moments"), [(True, 30.0, 1), (True, 1.0, 2)])
def test_questions_follow_what_is_known_and_the_whole_budget_is_spent(taste, epsilon, moments):
    likes = crowd(800, taste)
    model = DPSR(epsilon, unit="user", delta=1e-4, items=likes.item_ids, random_state=0).fit(likes)
    names = [part.name for part in model.certificate.parts]
    assert names.count("second moments of presence") == moments
    assert 0.999 * epsilon < model.certificate.epsilon <= epsilon
    assert (model.release.side.method != "popularity") == taste


@pytest.mark.parametrize("unit", ["user", "rating"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_where_hardly_anybody_has_two_items_nothing_but_popularity_is_asked(unit, epsilon):
    rng, p = np.random.default_rng(0), 1 / (5.0 + np.arange(400))
    items = [rng.choice(400, 2 if u % 20 == 0 else 1, replace=False, p=p / p.sum()) for u in range(3_000)]
    likes = Interactions.from_arrays(np.repeat(np.arange(3_000), [len(one) for one in items]), np.concatenate(items))
    model = DPSR(epsilon, unit=unit, delta=1e-5, items=np.arange(400), random_state=0).fit(likes)
    parts = model.certificate.parts
    assert {part.name for part in parts} == {"numbers of interactions", "weighted counts"}
    asked = [getattr(part, "numbers", 0) for part in parts if part.name == "weighted counts"]
    assert asked[:3] == [400] * 3, "whoever has one item weighs the same wherever it is: rounds narrowed for nothing"
    assert model.release.side.method == "popularity"
    assert 0.999 * epsilon < model.certificate.epsilon <= epsilon


def test_doubted_taste_is_weighed_and_what_is_left_goes_into_counts():
    """Popularity alone was dropped for a taste of no evidence, or the taste for popularity."""
    weights = []
    for seed in range(6):
        likes = crowd(800, False, n_items=300, seed=seed)
        model = DPSR(3.0, unit="user", delta=1e-4, items=likes.item_ids, random_state=seed).fit(likes)
        names = [part.name for part in model.certificate.parts]
        assert names.count("second moments of presence") <= 1
        assert 0.999 * 3.0 < model.certificate.epsilon <= 3.0
        side = model.release.side
        weights.append(float((side.loadings**2).sum()) if side.method != "popularity" else 0.0)
    assert min(weights) == 0.0
