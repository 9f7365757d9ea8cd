"""Somebody new gets recommendations from their own ratings and the released item side."""

import numpy as np
import pyarrow as pa
import pytest

from dpsr import DPSR, Scale, load_release
from dpsr.data import realistic
from dpsr.errors import ParameterError, ScaleError
from dpsr.release.lists.fold_in import FoldedInUser
from dpsr.types import Mask, Model


def toy(n_users=4000, n_items=60, rank=3, noise=0.3, seed=0):
    """A model that is the truth, so that the right answer is known."""
    rng = np.random.default_rng(seed)
    users = np.column_stack([np.ones(n_users), rng.normal(size=(n_users, rank)) * 0.5])
    items = np.column_stack([np.full(n_items, 3.0), rng.normal(size=(n_items, rank))])
    indptr = np.arange(n_users + 1)
    mask = Mask(pa.array(range(n_users)), pa.array(range(n_items)), indptr, np.zeros(n_users, dtype=np.int32))
    return Model(
        mask, Scale(1, 5, 0.01), users, items, np.full(n_users, 3.0), np.full(n_items, 3.0), 3.0, noise**2,
        users.mean(axis=0), np.cov(users, rowvar=False, bias=True),
    ), rng  # fmt: skip


def test_the_guests_factors_are_the_bayesian_answer():
    """The oracle: the same posterior from the normal equations in factor space."""
    model, rng = toy()
    codes, ratings = np.arange(8), rng.uniform(1, 5, 8).round(2)
    guest = FoldedInUser.from_ratings(model, codes, ratings)
    mean, cov = model.user_factors.mean(0), np.cov(model.user_factors, rowvar=False, bias=True) + 1e-9 * np.eye(4)
    B = model.item_factors[codes]
    precision = np.linalg.inv(cov) + B.T @ B / model.residual_variance
    expected = np.linalg.solve(precision, np.linalg.solve(cov, mean) + B.T @ ratings / model.residual_variance)
    np.testing.assert_allclose(guest.factors, expected, atol=1e-4)


def test_more_ratings_bring_predictions_nearer_to_the_truth():
    model, rng = toy()
    errors = []
    for count in (0, 3, 10, 40):
        wrong = []
        for _ in range(60):
            truth = model.item_factors @ np.r_[1, rng.normal(size=3) * 0.5]
            truth = np.clip(truth, 1, 5)
            codes = rng.choice(60, count, replace=False)
            seen = np.clip(truth[codes] + rng.normal(size=count) * 0.3, 1, 5).round(2)
            wrong.append(FoldedInUser.from_ratings(model, codes, seen).predict(np.arange(60)) - truth)
        errors.append(np.sqrt(np.mean(np.square(wrong))))
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 0.4 * errors[0]


def test_what_the_guest_rated_is_not_recommended_and_nothing_changes():
    model = DPSR.paper(epsilon=2.0).fit(realistic(0, n_users=80, n_items=50, n_ratings=1_500))
    before = model.model_.user_factors.copy()
    items, scores = model.fold_in([1, 2, 3, 999], [5, 1, 4, 3], n=6)
    assert len(items) == 6
    assert not {1, 2, 3} & set(items)
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_array_equal(model.model_.user_factors, before)


def test_a_guest_is_welcome_at_a_loaded_release(tmp_path):
    model = DPSR.paper(epsilon=2.0).fit(realistic(0, n_users=80, n_items=50, n_ratings=1_500))
    loaded = load_release(model.save(tmp_path / "r"))
    assert loaded.fold_in([1, 2], [5, 1]).items == model.fold_in([1, 2], [5, 1]).items


def test_a_guest_without_ratings_is_the_average_user():
    model, _ = toy()
    guest = FoldedInUser.from_ratings(model, [], [])
    np.testing.assert_allclose(guest.factors, model.user_factors.mean(0))


def test_ratings_off_the_scale_or_without_an_item_are_refused():
    model, _ = toy()
    with pytest.raises(ScaleError, match="not on this release's scale"):
        FoldedInUser.from_ratings(model, [1], [9])
    with pytest.raises(ParameterError, match="one rating per item"):
        FoldedInUser.from_ratings(model, [1, 2], [3])
