"""A taste that the mask makes smooth: its variance from pairs of ratings, everybody's coefficients, and the release."""

import numpy as np
import pyarrow as pa
import pytest

from dpsr import DPSR, Ratings, Scale
from dpsr.types import Mask
from dpsr.value.taste_kernels import pair_sums, tastes

D, Q, ITEMS = 6, 3, 40
TYPICAL = 0.05
_rng = np.random.default_rng(5)
FEATURES, FITTED = _rng.normal(size=(ITEMS, D)) / np.sqrt(D), _rng.normal(size=(ITEMS, Q))
PRIOR = np.diag([0.3, 0.1, 0.05])


class People:
    """People with so many ratings each, their coefficients fitted as a sweep does: what is left, and its weights."""

    def __init__(self, people, n, tau, seed):
        rng = np.random.default_rng(seed)
        self.indptr = np.arange(people + 1) * n
        self.items = np.concatenate([rng.permutation(ITEMS)[:n] for _ in range(people)]).astype(np.int32)
        self.items.setflags(write=False)  # as a mask's are, or the kernels would be compiled a second time
        self.weight = rng.uniform(1.0, 4.0, people * n)
        self.off = np.empty(people * n)
        for mine in self.rows:
            w, K, Z = self.weight[mine], FEATURES[self.items[mine]], FITTED[self.items[mine]]
            c, t = np.linalg.cholesky(PRIOR) @ rng.normal(size=Q), np.sqrt(tau) * rng.normal(size=D)
            y = Z @ c + K @ t + rng.normal(size=n) / np.sqrt(w)
            self.off[mine] = y - Z @ np.linalg.solve(np.linalg.inv(PRIOR) + Z.T * w @ Z, Z.T @ (w * y))

    @property
    def rows(self):
        return [slice(a, b) for a, b in zip(self.indptr[:-1], self.indptr[1:], strict=True)]

    def sums(self, precision=None, step=1):
        precision = np.asfortranarray(np.linalg.inv(PRIOR) if precision is None else precision)
        return pair_sums(self.indptr, self.items, 0, step, self.off, self.weight, FEATURES, FITTED, precision, TYPICAL)

    def one_by_one(self):
        """The same, written as it is defined: matrices in full, pairs in two loops."""
        found = pairs = 0.0
        for mine in self.rows:
            w, K, Z = np.diag(self.weight[mine]), FEATURES[self.items[mine]], FITTED[self.items[mine]]
            P = w - w @ Z @ np.linalg.inv(np.linalg.inv(PRIOR) + Z.T @ w @ Z) @ Z.T @ w
            s, alike, shown = w @ self.off[mine], K @ K.T, P @ K @ K.T @ P
            share = 1 / (1 + TYPICAL * np.sum((K.T @ P @ K) ** 2) / np.trace(K.T @ P @ K)) ** 2
            for e in range(len(s)):
                for f in range(len(s)):
                    if e != f:
                        found += share * (s[e] * s[f] - P[e, f]) * alike[e, f]
                        pairs += share * shown[e, f] * alike[e, f]
        return found, pairs


@pytest.mark.parametrize("n", [2, 5, 12])
def test_pairs_are_counted_as_they_are_defined_with_few_ratings_and_with_many(n):
    people = People(7, n, 0.05, seed=n)
    np.testing.assert_allclose(people.sums()[:2], people.one_by_one(), rtol=1e-9)


@pytest.mark.parametrize("tau", [0.0, 0.05, 0.3])
def test_the_variance_is_found_without_bias_although_what_is_left_was_fitted(tau):
    found, pairs, _ = People(4000, 15, tau, seed=1).sums()
    assert found / pairs == pytest.approx(tau, abs=0.01 + 0.08 * tau)


def test_without_what_was_fitted_it_would_be_too_small():
    """A planted error: coefficients taken for known."""
    found, pairs, _ = People(4000, 15, 0.05, seed=1).sums(precision=1e9 * np.eye(Q))
    assert found / pairs < 0.04


def test_its_error_is_what_estimates_scatter_by_where_there_is_no_taste():
    runs = np.array([People(60, 10, 0.0, seed).sums() for seed in range(150)])
    assert np.mean(runs[:, 2]) == pytest.approx(np.var(runs[:, 0]), rel=0.35)


def test_every_so_manieth_person_is_looked_at_and_one_rating_is_no_pair():
    people = People(30, 8, 0.05, seed=2)
    assert people.sums(step=40)[1] < people.sums(step=3)[1] < people.sums()[1]
    assert not People(9, 1, 0.05, seed=0).sums().any()


def test_tastes_solve_the_normal_equations_of_every_person():
    people, tau = People(20, 12, 0.2, seed=3), 0.1
    found = tastes(people.indptr, people.items, people.off, people.weight, FEATURES.astype(np.float32), tau)
    for t, mine in zip(found, people.rows, strict=True):
        w, K = people.weight[mine], FEATURES[people.items[mine]]
        expected = np.linalg.solve(np.eye(D) / tau + K.T * w @ K, K.T @ (w * people.off[mine]))
        np.testing.assert_allclose(t, expected, atol=1e-3 * np.abs(expected).max())


GENRES = 24


def genres(taste, seed=0, m=300, per_genre=12, n=48):
    """People meet items of a few of many genres, and like or dislike each of these."""
    rng, items = np.random.default_rng(seed), GENRES * per_genre
    likes = rng.normal(size=(m, GENRES))
    odds = np.exp(1.6 * rng.normal(size=(m, GENRES)))[:, np.arange(items) % GENRES]
    cells = np.concatenate(
        [u * items + rng.choice(items, n, replace=False, p=odds[u] / odds[u].sum()) for u in range(m)]
    )
    cells = np.sort(cells)
    score = 4.5 + taste * likes[cells // items, cells % items % GENRES] + 1.2 * rng.normal(size=len(cells))
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, items))
    return Ratings(Mask.of_cells(cells, *ids), np.rint(score.clip(0, 9)).astype(np.uint16), Scale(1, 10))


@pytest.fixture(scope="module")
def fitted():
    train, test = genres(taste=1.0).split(0.2, seed=0)
    return train, test, DPSR(8.0, random_state=1).fit(train).release_


def test_a_taste_for_small_groups_of_items_is_released_behind_the_other_columns(fitted):
    _, _, release = fitted
    assert release.model.rank > release.model.personal.widths.rank
    added = np.diag(release.model.user_covariance)[release.model.personal.widths.rank :]
    assert (added > 0).all()
    assert len(set(added)) == 1


def test_predictions_of_rated_cells_are_what_the_release_says_of_them(fitted):
    train, _, release = fitted
    predicted = release.model.predict(train.mask.users, train.mask.items)
    np.testing.assert_allclose(release.ratings, predicted, atol=1e-6)


def test_it_makes_predictions_of_other_cells_better(fitted):
    _, test, release = fitted
    model, known = release.model, release.model.personal.widths.rank

    def rmse(columns):
        u, j = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
        guess = np.einsum("ed,ed->e", model.user_factors[u, :columns], model.item_factors[j, :columns])
        return np.sqrt(np.mean((model.scale.clip(guess) - test.values) ** 2))

    assert rmse(model.rank) < 0.99 * rmse(known)


def test_a_mask_with_genres_and_ratings_without_taste_for_them_release_no_such_column():
    model = DPSR(8.0, random_state=1).fit(genres(taste=0.0)).release_.model
    assert model.rank == model.personal.widths.rank


def test_a_mask_without_structure_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("dpsr.value.assembly.item_features", None)
    rng = np.random.default_rng(0)
    cells = np.flatnonzero(rng.random(200 * 150) < 0.1)
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (200, 150))
    ratings = Ratings(Mask.of_cells(cells, *ids), rng.integers(0, 5, len(cells)).astype(np.uint16), Scale(1, 5))
    model = DPSR(5.0, random_state=0).fit(ratings).release_.model
    assert model.rank == model.personal.widths.rank
