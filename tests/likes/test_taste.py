"""Taste from noisy second moments: what is planted is found, what is not there is not, and scores are what they say."""

from dataclasses import replace

import numpy as np
import pytest

from dpsr.likes.evidence import BAR, STRENGTHS, TasteEvidence, taste_evidence
from dpsr.likes.forecast import favour_of
from dpsr.likes.scores import by_factors, by_items, mean_of, weighed
from dpsr.likes.taste import STRONGEST, Moments, Taste, _Cells, leading, learn_taste, modelled
from dpsr.linalg.own_regression import PeopleRows
from dpsr.types.likes_side import LikesSide

T, K = 80, 3


def planted(noise, strength=0.4, seed=0, people=0.0):
    """Second moments of K axes of taste with this noise, and the loadings."""
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.full(T, 3.0))
    favour = favour_of(centre)
    v = rng.normal(size=(T, K)) * np.sqrt(strength / np.arange(1, K + 1))
    squares = 4_000.0
    a = np.sqrt(squares) * (centre * favour)[:, None] * v
    E = np.triu(rng.normal(size=(T, T)) * noise, 1)
    values = a @ a.T + E + E.T
    np.fill_diagonal(values, 0)
    return Moments(values, noise, people, squares, centre, favour), v


def aligned(found, v):
    """How much of the planted moments the posterior explains."""
    moments, target = found
    L = modelled(moments, target)
    a = moments.scale[:, None] * v
    off = ~np.eye(T, dtype=bool)
    return 1 - ((L - a @ a.T)[off] ** 2).sum() / ((a @ a.T)[off] ** 2).sum()


def test_planted_taste_is_found_and_the_less_noise_the_better():
    found = []
    for noise in (0.3, 0.1, 0.01):
        moments, v = planted(noise)
        found.append(aligned((moments, learn_taste(moments, 1.0)), v))
    assert found == sorted(found)
    assert found[-1] > 0.98


def with_an_inverse_for_every_cell(moments, strength, sweeps=10):
    """Oracle: the same sweeps, each cell with the inverse of its own matrix, its mean and its covariance taken out."""
    d = moments.deviations
    q, A = moments.scale / d, moments.values / np.outer(d, d)
    values, vectors = moments.start
    prior = strength * STRONGEST / np.arange(1, len(values) + 1)
    a = vectors * np.sqrt(np.clip(values, 1e-9, prior * (q @ q)))
    S = np.zeros((len(A), len(values), len(values)))
    for _ in range(sweeps):
        for block in np.array_split(np.arange(len(A)), max(1, min(8, len(A) // 25))):
            gram, right = a.T @ a + S.sum(0), A[block] @ a
            for j in block:
                own = np.outer(a[j], a[j]) + S[j]
                S[j] = np.linalg.inv(gram - own + np.diag(1 / (prior * q[j] ** 2)))
            a[block] = np.einsum("jab,jb->ja", S[block], right)
    return Taste(a / q[:, None], S / (q * q)[:, None, None])


@pytest.mark.parametrize("noise", [0.2, 0.05])
def test_the_posterior_is_the_one_with_an_inverse_for_every_cell_but_for_a_trace(noise):
    moments, _ = planted(noise)
    plain, fast = with_an_inverse_for_every_cell(moments, 0.3), learn_taste(moments, 0.3)
    L = modelled(moments, plain)
    assert np.linalg.norm(modelled(moments, fast) - L) < 0.005 * np.linalg.norm(L)
    known, expected = (np.einsum("j,jab->ab", moments.centre, one.covariances) for one in (fast, plain))
    assert np.linalg.norm(known - expected) < 0.01 * np.linalg.norm(expected)


def test_posteriors_of_a_block_are_inverses_with_the_own_mean_taken_out():
    """Oracle: an inverse for every cell; and its own mean left in would be found."""
    rng = np.random.default_rng(0)
    others, a, c = rng.normal(size=(30, 4)), rng.normal(size=(5, 4)), rng.uniform(0.1, 3, 5)
    gram, prior = others.T @ others + a.T @ a, 1 / np.arange(1, 5)
    cells, right = _Cells.of(gram, prior, a, c), rng.normal(size=(5, 4))
    S = np.array([np.linalg.inv(gram - np.outer(a[j], a[j]) + c[j] * np.diag(1 / prior)) for j in range(5)])
    np.testing.assert_allclose(cells.covariances, S, atol=1e-12)
    np.testing.assert_allclose(cells.spread, S.sum(0), atol=1e-12)
    np.testing.assert_allclose(cells.means(right), np.einsum("jab,jb->ja", S, right), atol=1e-12)
    left_in = np.linalg.inv(gram + c[0] * np.diag(1 / prior))
    assert np.abs(cells.covariances[0] - left_in).max() > 1e-4


def test_where_there_is_no_taste_the_posterior_shrinks_to_nothing_and_the_evidence_says_so():
    rng = np.random.default_rng(1)
    moments, _ = planted(0.1)
    E = np.triu(rng.normal(size=(T, T)) * 0.1, 1)
    silent = replace(moments, values=E + E.T)
    loud = (modelled(moments, learn_taste(moments, 0.3)) ** 2).sum()
    assert (modelled(silent, learn_taste(silent, 0.3)) ** 2).sum() < 0.05 * loud
    assert taste_evidence(moments).weight == 1.0
    assert taste_evidence(silent).weight < 1.0


def silent(seed, noise=0.3, people=200.0):
    """Moments of noise alone, of those deviations that are believed."""
    rng = np.random.default_rng(100 + seed)
    moments = replace(planted(noise)[0], people=people)
    E = np.triu(rng.normal(size=(T, T)), 1) * np.outer(moments.deviations, moments.deviations)
    return moments.with_values(E + E.T, noise, people)


def test_fits_of_noise_alone_are_normal_around_zero_with_the_variance_that_is_stated():
    """The bar means what it says; half of the variance, a planted error, would be found."""
    found = np.array([taste_evidence(silent(seed)).deviations for seed in range(30)])
    assert (np.abs(found.mean(axis=0)) < 1.0).all(), found.mean(axis=0)
    assert (found.std(axis=0) < 1.35).all(), found.std(axis=0)
    assert found.std(axis=0).max() > 0.75
    assert found.max() < BAR


def test_with_one_fresh_noise_alone_a_taste_that_shows_would_be_missed():
    """Why pairs: the same moments judged by one Q, as before, have no gain that stands out of its own deviation."""
    moments, _ = planted(1.2, seed=0)
    evidence = taste_evidence(moments)
    d, t = np.outer(moments.deviations, moments.deviations), 0.4
    Z = np.triu(np.random.default_rng(7).normal(size=(T, T)), 1)
    Z = (Z + Z.T) * d
    half = moments.with_values(moments.values + t * Z, moments.noise * np.sqrt(1.16), 0.0)
    L = modelled(half, learn_taste(half, 1.0, sweeps=8)) / d
    fit, size = (np.triu(x, 1).sum() for x in ((moments.values - Z / t) / d * L, L * L / 2))
    assert max(evidence.deviations) > BAR > fit / np.sqrt(2 * size * (1 + t**-2))


def test_evidence_takes_the_strongest_prior_with_half_of_the_best_square_and_the_weight_of_its_deviations():
    def of(*deviations, size=25.0):
        return TasteEvidence(tuple(z * np.sqrt(4 * 1.25 * size) for z in deviations), (size,) * 3, 80, 4)

    np.testing.assert_allclose(of(1.0, 2.0, 0.5).deviations, (1.0, 2.0, 0.5))
    assert of(8.0, 10.0, 7.2).strength == STRENGTHS[2]
    assert of(8.0, 10.0, 7.0).strength == STRENGTHS[1]
    assert of(8.0, 10.0, 7.0).weight == 1.0
    assert of(0.1, BAR / 2, 0.0).weight == pytest.approx(0.5)
    nothing = of(-3.0, 0.0, -10.0)
    assert (nothing.strength, nothing.weight) == (None, 0.0)
    empty = TasteEvidence((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 80, 4)
    assert (empty.strength, empty.weight) == (None, 0.0)
    assert TasteEvidence((0.0, 600.0, 0.0), (1.0, 10.0, 1.0), 80, 4).plenty, "590 / 7.25 nats are in Q"
    assert not TasteEvidence((0.0, 580.0, 0.0), (1.0, 10.0, 1.0), 80, 4).plenty


def test_leading_eigenvectors_are_those_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    for n in (40, 400):
        A = rng.normal(size=(n, n))
        A = A + A.T + 60 * np.outer(A[0], A[0]) / (A[0] @ A[0])
        values, vectors = leading(A, 3)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:3], rtol=1e-3)
        assert vectors.shape == (n, 3)
        assert (np.linalg.norm(A @ vectors - vectors * values, axis=0) < 2e-4 * values).all()


def rows(x):
    """One person's strengths over all cells."""
    cells = np.flatnonzero(x)
    return PeopleRows(np.array([0, len(cells)]), cells, x[cells])


def lifts(side, x):
    """What a person's score is next to popularity, on all cells."""
    return (side.people(rows(x)) @ side.items(np.arange(T)).T)[0] / side.popularity - 1


@pytest.fixture(scope="module")
def learned():
    moments, _ = planted(0.05, people=500.0)
    rng = np.random.default_rng(3)
    x = np.zeros(T)
    x[rng.choice(T, 12, replace=False)] = rng.uniform(0.5, 2, 12)
    return moments, learn_taste(moments, 1.0), np.linspace(1, 0.1, T), x


def test_factors_are_the_linear_posterior_of_taste_with_uncertain_loadings(learned):
    """Oracle: the formula with matrices, no axis dropped or turned."""
    moments, taste, popularity, x = learned
    p, V, n = moments.centre, taste.loadings, x.sum()
    H = (V * p[:, None]).T @ V + np.einsum("j,jab->ab", p, taste.covariances)
    f = np.linalg.solve(np.eye(V.shape[1]) + n * H, V.T @ (x - n * p))
    side = by_factors(popularity, np.arange(T), moments, taste)
    np.testing.assert_allclose(lifts(side, x), V @ f, atol=2e-3)


def test_item_item_scores_are_those_of_the_closed_form_with_an_empty_diagonal(learned):
    """Oracle: EASE with a dense inverse, for the cells that the person does not have."""
    moments, taste, popularity, x = learned
    A = moments.scale[:, None] * taste.loadings
    D = np.maximum(moments.diagonal - (A * A).sum(1), 0.2 * moments.diagonal)
    P = np.linalg.inv(A @ A.T + np.diag(D))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    n = x.sum()
    r = moments.favour * (x - n * moments.centre)
    expected = (r @ B) / (moments.favour * n * moments.centre)
    side = by_items(popularity, np.arange(T), moments, taste)
    missing = x == 0
    np.testing.assert_allclose(lifts(side, x)[missing], expected[missing], atol=1e-3)


def test_the_diagonal_left_in_would_be_found(learned):
    """The planted error: without the offset the closed form is another one."""
    moments, taste, popularity, x = learned
    side = by_items(popularity, np.arange(T), moments, taste)
    wrong = replace(side, offset=0 * side.offset)
    assert np.abs(lifts(side, x) - lifts(wrong, x)).max() > 1e-2


def test_the_mean_of_two_sides_has_the_mean_of_their_scores(learned):
    moments, taste, popularity, x = learned
    one, other = (make(popularity, np.arange(T), moments, taste) for make in (by_factors, by_items))
    np.testing.assert_allclose(lifts(mean_of(one, other), x), (lifts(one, x) + lifts(other, x)) / 2, atol=1e-9)


def test_who_did_nothing_frequent_has_popularity_and_cells_that_are_not_frequent_keep_theirs(learned):
    moments, taste, popularity, x = learned
    half = np.arange(T // 2)
    some = Moments(moments.values[:40, :40], 0.05, 500.0, 4_000.0, moments.centre[:40], moments.favour[:40])
    side = by_factors(popularity, half, some, Taste(taste.loadings[:40], taste.covariances[:40]))
    outside = np.where(np.arange(T) >= 40, x + 1, 0.0)
    assert not lifts(side, outside).any()
    assert not lifts(LikesSide.of_popularity(popularity), x).any()
    assert not lifts(side, x)[40:].any()
    assert lifts(side, x)[:40].any()


def test_a_weight_takes_its_part_of_what_taste_adds(learned):
    moments, taste, popularity, x = learned
    side = by_items(popularity, np.arange(T), moments, taste)
    np.testing.assert_allclose(lifts(weighed(side, 0.25), x), 0.25 * lifts(side, x), atol=1e-12)
    factors = by_factors(popularity, np.arange(T), moments, taste)
    np.testing.assert_allclose(weighed(factors, 0.25).loadings, 0.5 * factors.loadings)
