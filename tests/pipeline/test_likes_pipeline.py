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


@pytest.mark.parametrize(("taste", "epsilon", "moments"), [(True, 30.0, 1), (True, 1.0, 2), (False, 30.0, 1)])
def test_questions_follow_what_is_known_and_the_whole_budget_is_spent(taste, epsilon, moments):
    likes = crowd(800, taste)
    model = DPSR(epsilon, unit="user", delta=1e-4, items=likes.item_ids, random_state=0).fit(likes)
    names = [part.name for part in model.certificate.parts]
    assert names.count("second moments of presence") == moments
    assert 0.999 * epsilon < model.certificate.epsilon <= epsilon
    assert (model.release.side.method != "popularity") == taste
