"""What the peers compute, each piece against a plain version of itself."""

from __future__ import annotations

import numpy as np
import pytest

from dpsr.data import Ratings, realistic
from dpsr.evaluate import Bias, rmse
from dpsr.evaluate.baselines import item_knn, svdpp
from dpsr.evaluate.baselines.base import by_items
from dpsr.evaluate.peers import adaptive, dp_als_tuned, dp_sgd
from dpsr.evaluate.peers import mcsherry_mironov as covariance
from dpsr.evaluate.peers.dp_als_tuned import PublishedDPALS, TunedDPALS
from dpsr.evaluate.peers.dp_sgd import shrink_columns
from dpsr.evaluate.peers.least_squares import clip_rows, noise_ridge, normal_equations, ridge_solve, unit_values
from dpsr.evaluate.peers.noisy_ratings import channel_of
from dpsr.evaluate.peers.objective import public_vectors
from dpsr.evaluate.registry import build
from dpsr.types import Scale


@pytest.fixture(scope="module")
def ratings():
    return realistic(6, n_users=30, n_items=20, n_ratings=250)


def dense(ratings, values):
    matrix = np.full(ratings.mask.shape, np.nan)
    matrix[ratings.mask.users, ratings.mask.items] = values
    return matrix


def test_unit_values_lie_between_minus_one_and_one_at_the_ends_of_the_scale():
    ratings = Ratings.from_arrays([0, 0, 1], [0, 1, 2], [0.5, 2.75, 5], scale=Scale(0.5, 5, 0.25))
    np.testing.assert_allclose(unit_values(ratings), [-1, 0, 1])


def test_normal_equations_are_those_of_the_dense_matrix_by_users_and_by_items(ratings):
    y, mask = unit_values(ratings), ratings.mask
    matrix, rng = dense(ratings, y), np.random.default_rng(0)
    P, Q, by_item = rng.normal(size=(30, 3)), rng.normal(size=(20, 3)), by_items(mask)
    for found, rows, other in (
        (normal_equations(mask.indptr, mask.items, y, Q), matrix, Q),
        (normal_equations(by_item.ptr, by_item.users, y[by_item.places], P), matrix.T, P),
    ):
        for a, row in enumerate(rows):
            seen = ~np.isnan(row)
            np.testing.assert_allclose(found[0][a], other[seen].T @ other[seen], atol=1e-12)
            np.testing.assert_allclose(found[1][a], other[seen].T @ row[seen], atol=1e-12)


def test_ridge_solutions_solve_their_equations():
    rng = np.random.default_rng(0)
    x, right, ridge = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 3)), rng.uniform(0.1, 2, (4, 3))
    gram = np.einsum("anp,anq->apq", x, x)
    found = ridge_solve(gram, right, ridge)
    for a in range(4):
        np.testing.assert_allclose((gram[a] + np.diag(ridge[a])) @ found[a], right[a])


def test_the_ridge_grows_with_the_noise_and_walls_off_rows_without_ratings():
    gram = np.stack([10 * np.eye(2), np.zeros((2, 2))])
    quiet, loud = noise_ridge(gram, 0.1, 0.5, 0.0), noise_ridge(gram, 0.1, 0.5, 100.0)
    np.testing.assert_allclose(quiet[0], 0.2)
    np.testing.assert_allclose(loud[0], (0.1 + 10) / 0.5)
    assert (loud[1] > 1e9).all()


def test_clipped_rows_are_never_longer_and_short_ones_stay():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(clip_rows(rows, 1.0), [[0.6, 0.8], [0.3, 0.4], [0, 0]])


def test_public_vectors_are_no_longer_than_one_and_do_not_read_values(ratings):
    x = public_vectors(ratings.mask, 4)
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    assert (x[:, 0] > 0).all()


def test_the_clipped_gradient_is_the_sum_of_clipped_derivatives(ratings):
    """Oracle: numerical derivatives of each rating's loss over all parameters, clipped one by one."""
    mask, y = ratings.mask, unit_values(ratings)
    rows = np.random.default_rng(0).normal(0, 0.3, (50, 3))
    chosen = np.arange(0, len(y), 25)
    found = dp_sgd.clipped_gradient(mask.users[chosen], mask.items[chosen], y[chosen], rows, 30, 0.5)

    def loss(at, x):
        u, j = mask.users[at], 30 + mask.items[at]
        return 0.5 * (y[at] - x[u, 0] - x[j, 0] - x[u, 1:] @ x[j, 1:]) ** 2

    expected = np.zeros_like(rows)
    for at in chosen:
        gradient = np.zeros_like(rows)
        for place in np.ndindex(*rows.shape):
            up, down = rows.copy(), rows.copy()
            up[place] += 1e-6
            down[place] -= 1e-6
            gradient[place] = -(loss(at, up) - loss(at, down)) / 2e-6
        expected += gradient * min(1, 0.5 / np.linalg.norm(gradient))
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_the_covariance_is_the_dense_one_above_its_diagonal(ratings, monkeypatch):
    monkeypatch.setattr(covariance, "LIMIT", 12)
    mask, y = ratings.mask, unit_values(ratings)
    pairs = covariance.CovarianceItems.of(mask)
    e, h = covariance.user_centred(mask, y)
    matrix = dense(ratings, y)
    seen = ~np.isnan(matrix)
    own = np.nansum(matrix, axis=1) / (seen.sum(axis=1) + covariance.BETA)
    np.testing.assert_allclose(h, own)
    E = np.where(seen, np.clip(matrix - own[:, None], -0.5, 0.5), 0)[:, pairs.items]
    weight = 1 / np.sqrt(np.maximum(seen[:, pairs.items].sum(axis=1), 1))
    full = (E * weight[:, None]).T @ E
    assert len(pairs.items) == 12
    np.testing.assert_allclose(covariance.half_covariance(mask, pairs, e), full[np.triu_indices(12, 1)], atol=1e-12)
    np.testing.assert_allclose(
        covariance.symmetric(covariance.half(full), 12), full - np.diag(np.diag(full)), atol=1e-12
    )


def test_item_neighbours_are_the_most_similar_ones(ratings):
    mask = ratings.mask
    residual = ratings.values - Bias().fit(mask, ratings.values, ratings.scale).predict(mask.users, mask.items)
    found, weights = item_knn.similar_items(mask, residual, 10.0, 5)
    matrix = dense(ratings, residual)
    for j in range(20):
        similarity = np.zeros(20)
        for i in range(20):
            both = ~np.isnan(matrix[:, i]) & ~np.isnan(matrix[:, j])
            a, b = matrix[both, i], matrix[both, j]
            if i != j and a @ b > 0:
                similarity[i] = both.sum() / (both.sum() + 10) * (a @ b) / np.sqrt((a @ a) * (b @ b))
        best = np.sort(similarity)[::-1][:5]
        np.testing.assert_allclose(weights[j], best, atol=1e-12)
        np.testing.assert_allclose(similarity[found[j]][weights[j] > 0], weights[j][weights[j] > 0])


def test_a_neighbourhood_predicts_damped_averages_of_the_users_own_residuals(ratings):
    model = item_knn.ItemKNN().fit(ratings.mask, ratings.values, ratings.scale)
    users, items = np.array([3, 3, 7, 3]), np.array([2, 5, 2, 9])
    own = dense(ratings, model.residual)
    for u, j, found in zip(users, items, model.predict(users, items), strict=True):
        rated = ~np.isnan(own[u, model.items[j]])
        weights = np.where(rated, model.weights[j], 0)
        term = weights @ np.where(rated, own[u, model.items[j]], 0) / (model.damp + weights.sum())
        assert found == pytest.approx(model.base(np.array([u]), np.array([j]))[0] + term)


def test_svdpp_steps_follow_the_gradient_of_its_objective():
    """One user, one rating: every parameter moves along its own derivative."""
    indptr, items = np.array([0, 1]), np.array([0], dtype=np.int32)
    b, c, P, Q, Y = np.array([0.1]), np.array([-0.2]), np.array([[0.3]]), np.array([[0.5]]), np.array([[0.7]])
    before = [x.copy() for x in (b, c, P, Q, Y)]
    svdpp._epoch(indptr, items, np.array([1.0]), np.array([0]), b, c, P, Q, Y, 0.01, 0.02)
    error = 1.0 - 0.1 + 0.2 - 0.5 * (0.3 + 0.7)
    slopes = [error, error, error * 0.5, error * 1.0, error * 0.5]
    for new, old, slope in zip((b, c, P, Q, Y), before, slopes, strict=True):
        np.testing.assert_allclose(new, old + 0.01 * (slope - 0.02 * old))


def test_svdpp_folds_the_implicit_part_into_its_users(ratings):
    mask, rng = ratings.mask, np.random.default_rng(0)
    b, c, P, Q, Y = (rng.normal(size=shape) for shape in (30, 20, (30, 2), (20, 2), (20, 2)))
    users, items = svdpp._folded(mask, b, c, P, Q, Y)
    u, j = 4, int(mask.items[mask.indptr[4]])
    rated = mask.items[mask.indptr[u] : mask.indptr[u + 1]]
    expected = b[u] + c[j] + Q[j] @ (P[u] + Y[rated].sum(axis=0) / np.sqrt(len(rated)))
    assert users[u] @ items[j] == pytest.approx(expected)


def test_denoising_removes_a_column_of_noise_and_keeps_one_of_signal():
    rng = np.random.default_rng(0)
    variance = np.full((500, 2), 0.04)
    signal = np.column_stack([rng.normal(0, 1, 500), np.zeros(500)])
    noisy = signal + 0.2 * rng.standard_normal((500, 2))
    clean = shrink_columns(noisy, variance)
    np.testing.assert_allclose(clean[:, 0], noisy[:, 0] * 1 / 1.04, rtol=0.02)
    assert np.abs(clean[:, 1]).max() < 0.3 * np.abs(noisy[:, 1]).max()


def test_adaptive_weights_have_length_one_for_everybody_and_favour_rare_items(ratings):
    mask = ratings.mask
    counts = np.arange(1.0, mask.n_items + 1)
    some = np.arange(mask.n_items) % 2 == 0
    for among in (None, some):
        weights = adaptive.adaptive_weights(mask, counts, 0.5, among)
        inside = np.ones(len(ratings), dtype=bool) if among is None else among[mask.items]
        lengths = np.bincount(mask.users, weights**2, minlength=mask.n_users)
        np.testing.assert_allclose(lengths[np.unique(mask.users[inside])], 1.0)
        assert not weights[~inside].any()
    user = mask.users == mask.users[0]
    np.testing.assert_allclose(
        adaptive.adaptive_weights(mask, counts, 0.5)[user] * counts[mask.items[user]] ** 0.25,
        np.sqrt(1 / np.sum(counts[mask.items[user]] ** -0.5)),
    )


def test_noisy_item_statistics_are_the_weighted_sums_of_a_plain_loop(ratings):
    mask, rng = ratings.mask, np.random.default_rng(1)
    weights, target, x = rng.random(len(ratings)), rng.normal(0, 1, len(ratings)), rng.normal(0, 1, (mask.n_users, 3))
    expected = np.zeros((mask.n_items, 9))
    for w, t, u, j in zip(weights, target, mask.users, mask.items, strict=True):
        outer = w * np.outer(x[u], x[u])
        expected[j] += np.concatenate([outer[np.triu_indices(3)], w * np.clip(t, -1, 1) * x[u]])
    np.testing.assert_allclose(adaptive.item_statistics(mask, weights, target, x), expected)


def test_without_noise_items_are_solved_as_least_squares_does(ratings):
    mask, rng = ratings.mask, np.random.default_rng(2)
    x, target = rng.normal(0, 1, (mask.n_users, 2)), rng.uniform(-1, 1, len(ratings))
    statistics = adaptive.item_statistics(mask, np.ones(len(ratings)), target, x)
    v = adaptive.solved_items(statistics, 2, np.full((mask.n_items, 2), 0.5))
    for j in range(mask.n_items):
        mine = mask.items == j
        a, y = x[mask.users[mine]], target[mine]
        np.testing.assert_allclose(v[j], np.linalg.solve(a.T @ a + 0.5 * np.eye(2), a.T @ y))


def test_dp_als_as_published_without_noise_is_alternating_least_squares():
    """With hardly any noise, a small ridge and a bound that cuts nobody it comes near the factorisation without."""
    train, test = realistic(8, n_users=400, n_items=60, n_ratings=12_000).split(0.2, seed=0)
    cells = test.mask.users, test.mask.items
    peer = PublishedDPALS(1e5, 1e-5, 0, 0, rank=4, rounds=8, ridge=20.0, bound=3.0).fit(train)
    bias = Bias().fit(train.mask, train.values, train.scale)
    assert rmse(test.values, peer.predict(*cells)) < 1.03 * rmse(test.values, bias.predict(*cells))


def test_tuned_dp_als_takes_the_setting_that_predicts_held_back_ratings_best(ratings, monkeypatch):
    wanted = {"rank": 16, "bound": 0.5, "rounds": 4, "ridge": 25.0}
    asked = []

    def error(candidate, rest, held):
        asked.append(candidate)
        assert len(rest) + len(held) == len(ratings)
        return -sum(getattr(candidate, name) == value for name, value in wanted.items())

    monkeypatch.setattr(dp_als_tuned, "_error", error)
    peer = TunedDPALS(1.0).fit(ratings)
    assert {name: getattr(peer.chosen_, name) for name in wanted} == wanted
    assert len(asked) == 9
    assert "not charged" in peer.protection.note


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noisy_ratings_are_noised_one_by_one_at_the_exact_price_of_their_table(noise, ratings):
    channel = channel_of(noise, ratings.scale, 1.0, 1e-5)
    table = channel.probabilities
    if noise == "laplace":
        worst = max(np.log(table[x] / table[y]).max() for x in range(5) for y in range(5))
        assert 0.999 <= worst <= 1 + 1e-9
    else:
        worst = max(np.maximum(table[x] - np.exp(1.0) * table[y], 0).sum() for x in range(5) for y in range(5))
        assert 0.99e-5 <= worst <= 1.0001e-5
    peer = build(f"{noise}-als", 1.0, 1e-5, 0).fit(ratings)
    assert peer.protection.epsilon <= 1
    assert peer.protection.delta <= 1e-5
