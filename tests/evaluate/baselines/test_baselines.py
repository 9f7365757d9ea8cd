"""One contract for every baseline, then what each of them computes, each against an independent oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

from dpsr.data import Ratings, paper_matrix
from dpsr.errors import ParameterError
from dpsr.evaluate import ALS, MF, Bias, Constant, score
from dpsr.evaluate.baselines import factorisation
from dpsr.evaluate.baselines.als import alternate
from dpsr.evaluate.baselines.bias import SWEEPS, solve_biases
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.types import Scale

MODELS = {
    "constant": Constant,
    "bias": Bias,
    "als": lambda: ALS(sweeps=4),
    "mf": lambda: MF(epochs=10),
    "mf centred": lambda: MF(epochs=10, centred=True, batch_size=None, start="positive"),
}


@pytest.fixture(scope="module")
def sparse_ratings():
    """A table with users and items that keep no rating in training."""
    rng = np.random.default_rng(3)
    cells = np.sort(rng.choice(30 * 25, 200, replace=False))
    ratings = Ratings.from_arrays(cells // 25, cells % 25, rng.integers(1, 6, 200), scale=Scale(1, 5))
    rows = (ratings.mask.users != 4) & (ratings.mask.items != 7)
    return Ratings(ratings.mask.select(rows), ratings.levels[rows], ratings.scale)


@pytest.fixture(params=MODELS, name="fresh")
def _fresh(request):
    return MODELS[request.param]


class TestContract:
    def test_predictions_are_finite_and_inside_the_scale_for_everyone(self, fresh, sparse_ratings):
        mask, scale = sparse_ratings.mask, sparse_ratings.scale
        model = fresh().fit(mask, sparse_ratings.values, scale)
        users, items = (grid.ravel() for grid in np.meshgrid(range(-1, mask.n_users), range(-1, mask.n_items)))
        found = model.predict(users, items)
        assert np.isfinite(found).all()
        assert ((found >= scale.low) & (found <= scale.high)).all()

    def test_strangers_and_users_without_ratings_get_at_most_what_is_known(self, fresh, sparse_ratings):
        model = fresh().fit(sparse_ratings.mask, sparse_ratings.values, sparse_ratings.scale)
        cold, stranger = model.predict(np.array([4, -1]), np.array([2, 2]))
        assert cold == stranger
        assert model.predict(np.array([4]), np.array([7])) == pytest.approx(sparse_ratings.values.mean())

    def test_the_same_seed_gives_the_same_model(self, fresh, sparse_ratings):
        mask, values, scale = sparse_ratings.mask, sparse_ratings.values, sparse_ratings.scale
        first, again = (fresh().fit(mask, values, scale).predict(mask.users, mask.items) for _ in range(2))
        np.testing.assert_array_equal(first, again)

    def test_values_outside_the_scale_are_accepted(self, fresh, sparse_ratings):
        wild = np.random.default_rng(0).normal(3, 200, len(sparse_ratings))
        model = fresh().fit(sparse_ratings.mask, wild, sparse_ratings.scale)
        assert np.isfinite(model.predict(sparse_ratings.mask.users, sparse_ratings.mask.items)).all()

    def test_scores_are_predictions_before_clipping(self, fresh, sparse_ratings):
        model = fresh().fit(sparse_ratings.mask, sparse_ratings.values, sparse_ratings.scale)
        items = np.arange(sparse_ratings.mask.n_items)
        clipped = sparse_ratings.scale.clip(model.scores(3))
        np.testing.assert_allclose(clipped, model.predict(np.full(len(items), 3), items))

    def test_one_rating_is_enough(self, fresh):
        ratings = Ratings.from_arrays([0, 1], [0, 1], [2, 4], scale=Scale(1, 5))
        one = Ratings(ratings.mask.select(np.array([True, False])), ratings.levels[:1], ratings.scale)
        found = fresh().fit(one.mask, one.values, one.scale).predict(np.array([0, 1]), np.array([0, 1]))
        assert np.isfinite(found).all()

    def test_all_equal_ratings_do_not_break_it(self, fresh, sparse_ratings):
        flat = np.full(len(sparse_ratings), 4.0)
        model = fresh().fit(sparse_ratings.mask, flat, sparse_ratings.scale)
        assert np.isfinite(model.predict(sparse_ratings.mask.users, sparse_ratings.mask.items)).all()

    @pytest.mark.parametrize("values", [np.array([1.0]), np.full(1, np.nan), np.array([])])
    def test_values_that_do_not_fit_the_mask_are_refused_with_advice(self, fresh, sparse_ratings, values):
        with pytest.raises(ParameterError, match="of the same table"):
            fresh().fit(sparse_ratings.mask, values, sparse_ratings.scale)

    def test_it_can_be_scored(self, fresh, sparse_ratings):
        train, test = sparse_ratings.split(0.2, seed=0)
        model = fresh().fit(train.mask, train.values, train.scale)
        assert isinstance(model, Predictor)
        assert score(model, train, test).n_ratings == len(test)


def test_constant_is_the_training_mean(sparse_ratings):
    model = Constant().fit(sparse_ratings.mask, sparse_ratings.values, sparse_ratings.scale)
    assert model.predict(np.array([0]), np.array([0]))[0] == pytest.approx(sparse_ratings.values.mean())


def test_biases_solve_the_ridge_regression(sparse_ratings, monkeypatch):
    """Oracle: the normal equations of the sparse design of dummy variables."""
    monkeypatch.setattr("dpsr.evaluate.baselines.bias.SWEEPS", 500)
    mask = sparse_ratings.mask
    residual = sparse_ratings.values - sparse_ratings.values.mean()
    rows = np.arange(len(residual))
    design = sparse.hstack(
        [
            sparse.csr_matrix((np.ones(len(rows)), (rows, mask.users)), (len(rows), mask.n_users)),
            sparse.csr_matrix((np.ones(len(rows)), (rows, mask.items)), (len(rows), mask.n_items)),
        ]
    )
    penalty = sparse.diags([2.0] * mask.n_users + [5.0] * mask.n_items)
    exact = spsolve((design.T @ design + penalty).tocsc(), design.T @ residual)
    b, c = solve_biases(mask.users, mask.items, residual, mask.shape, 2.0, 5.0)
    np.testing.assert_allclose(np.concatenate([b, c]), exact, atol=1e-10)


def test_a_few_sweeps_are_as_good_as_many(sparse_ratings, monkeypatch):
    mask, residual = sparse_ratings.mask, sparse_ratings.values - sparse_ratings.values.mean()
    few = solve_biases(mask.users, mask.items, residual, mask.shape, 1.0, 1.0)
    monkeypatch.setattr("dpsr.evaluate.baselines.bias.SWEEPS", 40 * SWEEPS)
    many = solve_biases(mask.users, mask.items, residual, mask.shape, 1.0, 1.0)
    np.testing.assert_allclose(np.concatenate(few), np.concatenate(many), atol=1e-2)


def test_bias_finds_planted_biases_and_shrinks_noise_away():
    rng = np.random.default_rng(0)
    users, items = (grid.ravel() for grid in np.meshgrid(range(60), range(40), indexing="ij"))
    b, c = rng.normal(0, 0.7, 60), rng.normal(0, 0.7, 40)
    scale = Scale(-10, 10, step=0.02, snap=True)
    planted = Ratings.from_arrays(users, items, b[users] + c[items] + rng.normal(0, 0.1, len(users)), scale=scale)
    noise = Ratings.from_arrays(users, items, rng.normal(0, 1, len(users)), scale=scale)
    assert Bias().fit(planted.mask, planted.values, scale).chosen_ == (1, 1)
    assert min(Bias().fit(noise.mask, noise.values, scale).chosen_) >= 50


def test_one_half_sweep_is_ridge_regression_weighted_by_the_count(sparse_ratings):
    mask = sparse_ratings.mask
    residual = sparse_ratings.values - sparse_ratings.values.mean()
    start = np.random.default_rng(1).normal(size=(mask.n_items, 3))
    P, Q = alternate(mask, residual, start, 0.2, 1)
    for user in (0, 11, 4):
        place = slice(mask.indptr[user], mask.indptr[user + 1])
        F, n = start[mask.items[place]], place.stop - place.start
        exact = np.linalg.solve(F.T @ F + (0.2 * n or 1) * np.eye(3), F.T @ residual[place])
        np.testing.assert_allclose(P[user], exact, atol=1e-12)
    raters = mask.items == 2
    F = P[mask.users[raters]]
    exact = np.linalg.solve(F.T @ F + 0.2 * raters.sum() * np.eye(3), F.T @ residual[raters])
    np.testing.assert_allclose(Q[2], exact, atol=1e-12)


def test_als_recovers_the_papers_matrix_far_better_than_a_constant():
    train, test = paper_matrix(0).split(0.2, seed=0)
    errors = [
        score(model.fit(train.mask, train.values, train.scale), train, test).rmse
        for model in (ALS(), Constant(), Bias())
    ]
    assert errors[0] < 0.65 * errors[1]
    assert errors[2] == pytest.approx(errors[1], abs=0.01)


def test_als_settings_do_not_depend_on_the_unit_of_the_ratings(sparse_ratings):
    mask, values = sparse_ratings.mask, sparse_ratings.values
    small = ALS(sweeps=3).fit(mask, values, Scale(1, 5))
    large = ALS(sweeps=3).fit(mask, 10 * values, Scale(10, 50))
    assert small.chosen_ == large.chosen_
    np.testing.assert_allclose(
        10 * small.fitted_.predict(mask.users, mask.items), large.fitted_.predict(mask.users, mask.items)
    )


def test_als_on_pure_noise_keeps_no_factors():
    train, test = paper_matrix(1).split(0.2, seed=0)
    noise = np.random.default_rng(0).choice([1.0, 5.0], len(train))
    model = ALS().fit(train.mask, noise, train.scale)
    predicted = model.predict(test.mask.users, test.mask.items)
    assert np.abs(predicted - noise.mean()).mean() < 0.3


def _adam_oracle(mask, values, P, Q, rate, steps, penalty=0.0):
    """Full-batch Adam written with dense matrices, straight from the paper of Kingma and Ba."""
    W = np.zeros(mask.shape)
    R = np.zeros(mask.shape)
    W[mask.users, mask.items] = 1
    R[mask.users, mask.items] = values
    parameters = np.concatenate([P, Q])
    first, second, m = np.zeros_like(parameters), np.zeros_like(parameters), len(P)
    for t in range(1, steps + 1):
        P, Q = parameters[:m], parameters[m:]
        E = 2 * W * (P @ Q.T - R) / W.sum()
        g = np.concatenate([E @ Q, E.T @ P]) + penalty * parameters
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g**2
        parameters = parameters - rate * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    return parameters[:m], parameters[m:]


@pytest.mark.parametrize("penalty", [0.0, 0.01])
def test_full_batch_adam_agrees_with_the_dense_formula(sparse_ratings, penalty):
    mask = sparse_ratings.mask
    rng = np.random.default_rng(5)
    P, Q = rng.normal(0, 0.3, (mask.n_users, 4)), rng.normal(0, 0.3, (mask.n_items, 4))
    wanted = _adam_oracle(mask, sparse_ratings.values, P, Q, 0.02, 12, penalty)
    orders = np.stack([rng.permutation(len(sparse_ratings)) for _ in range(12)])
    factorisation.adam(mask.users, mask.items, sparse_ratings.values, orders, P, Q, 0.02, len(sparse_ratings), penalty)
    np.testing.assert_allclose(P, wanted[0], atol=1e-9)
    np.testing.assert_allclose(Q, wanted[1], atol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"rank": 3},
        {"epochs": 11},
        {"learning_rate": 0.02},
        {"batch_size": 32},
        {"start": "positive"},
        {"start_size": 0.2},
        {"centred": True},
        {"penalty": 0.05},
        {"random_state": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_of_the_factorisation_changes_the_result(sparse_ratings, change):
    mask, values, scale = sparse_ratings.mask, sparse_ratings.values, sparse_ratings.scale
    plain, changed = (MF(**{"epochs": 10, **extra}).fit(mask, values, scale) for extra in ({}, change))
    assert not np.allclose(
        plain.fitted_.predict(mask.users, mask.items), changed.fitted_.predict(mask.users, mask.items)
    )


def test_batches_cover_every_rating_once_an_epoch():
    """With one epoch and a batch that does not divide the ratings, the last, shorter batch still counts."""
    ratings = paper_matrix(0, n_users=20, n_items=10, density=0.5)
    mask, values = ratings.mask, ratings.values.copy()
    orders = np.arange(len(values))[None, :]
    found = []
    for last in (values[-1], values[-1] + 1):
        P, Q = np.full((20, 2), 0.1), np.full((10, 2), 0.1)
        values[-1] = last
        factorisation.adam(mask.users, mask.items, values, orders, P, Q, 0.1, 33, 0.0)
        found.append((P, Q))
    assert not np.array_equal(found[0][0], found[1][0])
