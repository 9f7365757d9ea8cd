"""One side of the hierarchy: kernels against numpy, posteriors against one dense Gaussian, covariances simulated."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import sqrtm

from dpsr.value.effects import EffectObservation
from dpsr.value.kernels import (
    Solved,
    add_normal_equations,
    covariances,
    known_products,
    packed_size,
    packed_times,
    root_and_product,
    solve_rows,
    tally_ratings,
)
from dpsr.value.side import Evidence, Prior, Rows, _geometric, congruence, posterior
from dpsr.value.sweep import _DIRECT, _normal, _partners

ROWS, OTHERS, FEATURES = 11, 8, 3


class Entries(NamedTuple):
    """Ratings of one side, row after row: pointers and the other side's codes."""

    ptr: np.ndarray
    idx: np.ndarray


class Partner(NamedTuple):
    """The other side: regressors, how many of them are uncertain factors, and their covariance."""

    x: np.ndarray
    k: int
    covariance: np.ndarray | None


def update_side(entries, target, weight, partner, prior, message):
    """Stage 3's update of the items: V first, then rows, then L; the prior learns in place."""
    n, d = len(entries.ptr) - 1, partner.x.shape[1]
    a, h = np.zeros((n, packed_size(d))), np.zeros((n, d))
    root = prior.root
    partners = _partners(partner.x, partner.covariance, root)
    to, idx = np.arange(n, dtype=np.int32), entries.idx.copy()  # of the kind that items have
    _normal(to, entries.ptr, idx, _DIRECT, target, weight, partners, a, h)
    rows = Rows(root, a, h, message.value, message.variance, prior.features, np.diff(entries.ptr) > 0)
    evidence = Evidence.none(prior)
    result = posterior(rows, prior, partner.k, evidence, weights_first=True)
    prior.learn_covariance(evidence)
    return result


def learned_covariance(prior, information, scatter):
    """One step for L from N = sum_i M_i and S."""
    rows, root = 100.0, prior.root
    back = np.linalg.inv(root)
    total = rows * np.eye(len(root)) - root.T @ information @ root  # U' N U = n I - sum B
    evidence = Evidence.none(prior)
    evidence.total[:], evidence.scatter[:], evidence.rows[:] = total, back @ scatter @ back.T, rows
    prior.learn_covariance(evidence)
    return prior.covariance


def entries_of(rng, rows=ROWS, others=OTHERS, most=6):
    """Ragged rows, the fourth of them empty."""
    sizes = rng.integers(1, most, rows)
    sizes[3] = 0
    idx = np.concatenate([rng.choice(others, size, replace=False) for size in sizes]).astype(np.int32)
    idx.setflags(write=False)  # as a mask's are, or the kernels would be compiled a second time
    return Entries(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), idx)


def positive(rng, d, scale=1.0):
    a = rng.normal(size=(d, d + 3))
    return scale * (a @ a.T) / (d + 3)


def lower(matrix):
    return matrix[np.tril_indices(len(matrix))]


@pytest.mark.parametrize("sorted_already", [True, False])
@pytest.mark.parametrize("most", [6, 80])
@pytest.mark.parametrize(("d", "k"), [(1, 0), (1, 1), (4, 2), (13, 8)])
def test_normal_equations_are_sums_over_each_rows_entries_added_where_they_belong(d, k, most, sorted_already):
    """Short rows are added one by one and long ones as a product; both land on what was there before.

    Uncertain partners add their covariance to the last k coordinates.
    """
    rng = np.random.default_rng(0)
    others = 2 * most
    entries = entries_of(rng, others=others, most=most)
    E = len(entries.idx)
    x, target, weight = rng.normal(size=(others, d)), rng.normal(size=E), rng.uniform(0.1, 3, E)
    covariance = np.stack([positive(rng, k) for _ in range(others)]) if k else np.zeros((others, 0, 0))
    places = np.arange(0 if sorted_already else E, dtype=np.int32)
    rng.shuffle(places)
    to = rng.permutation(20)[:ROWS].astype(np.int32)  # of the kind that fits hand over, or kernels are compiled anew
    a, h = np.ones((20, packed_size(d))), np.ones((20, d))
    packed = np.stack([lower(one) for one in covariance])
    pairs, lines = root_and_product(weight, target), np.hstack([x, packed]).astype(np.float32)
    add_normal_equations(to, entries.ptr, entries.idx.copy(), places, pairs, lines, d, a, h)
    untouched = np.setdiff1d(np.arange(20), to)
    assert (a[untouched] == 1).all()
    for i in range(ROWS):
        A, b = np.zeros((d, d)), np.zeros(d)
        for e in range(entries.ptr[i], entries.ptr[i + 1]):
            at, partner = e if sorted_already else places[e], entries.idx[e]
            row = x[partner]
            A, b = A + weight[at] * np.outer(row, row), b + weight[at] * target[at] * row
            A[d - k :, d - k :] += weight[at] * covariance[partner]
        np.testing.assert_allclose(a[to[i]], 1 + lower(A), rtol=1e-6, atol=3e-6 * np.abs(A).max(initial=1))
        np.testing.assert_allclose(h[to[i]], 1 + b, rtol=1e-6, atol=3e-6 * np.abs(A).max(initial=1))


def test_scores_are_compared_with_what_a_fitted_mean_leaves_to_be_expected():
    """E[((z - eta) w)^2] = w - w^2 v, the variance v at most nine tenths of 1 / w; sums of any number of ratings."""
    rng = np.random.default_rng(4)
    for n in (0, 1, 4096, 10_001):
        before, after, z = rng.normal(size=(3, n))
        w, variance = rng.uniform(0.1, 9, n), rng.uniform(0, 1, n)
        expected = w - w**2 * np.minimum(variance, 0.9 / w)
        kinds = ((z - after) * w) ** 2, expected, (after - before) ** 2, variance, after, after**2, w, w**2
        found = tally_ratings(before, after, z, w, variance)
        np.testing.assert_allclose(found, [kind.sum() for kind in kinds], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("rows", "d", "k"), [(1, 1, 0), (64, 5, 2), (130, 20, 8)])
def test_rows_are_solved_as_numpy_solves_them(rows, d, k):
    """B, B t, the diagonal and the last coordinates of U B U', and the sum of B over active rows."""
    rng = np.random.default_rng(2)
    evidence, root = (
        np.stack([positive(rng, d, 10.0 ** (i % 3)) for i in range(rows)]),
        np.triu(rng.normal(size=(d, d))),
    )
    weight, pull, h, active = (
        rng.uniform(0, 9, rows),
        rng.normal(size=rows),
        rng.normal(size=(rows, d)),
        rng.random(rows) < 0.7,
    )
    out = Solved.of(np.empty((rows, d), np.float32), np.empty((rows, packed_size(k)), np.float32))
    packed = np.stack([lower(one) for one in evidence])
    solve_rows(packed, np.eye(d, dtype=np.float32), root.astype(np.float32), weight, pull, h, active, out)
    B = np.linalg.inv(evidence + np.eye(d) + weight[:, None, None] * np.outer(root[0], root[0]))
    whole = root @ B @ root.T
    close = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(out.covariance, [lower(one) for one in B], **close)
    np.testing.assert_allclose(out.mean, np.einsum("npq,nq->np", B, h + pull[:, None] * root[0]), **close)
    np.testing.assert_allclose(out.variance, np.einsum("npp->np", whole), **close)
    np.testing.assert_allclose(out.corner, [lower(one[d - k :, d - k :]) for one in whole], **close)
    np.testing.assert_allclose(out.total.sum(axis=0), lower(B[active].sum(axis=0)), **close)


@pytest.mark.parametrize("rows", [1, 256, 700])
def test_products_of_features_with_what_is_known_are_summed_as_numpy_sums_them(rows):
    rng = np.random.default_rng(3)
    f, B = rng.normal(size=(rows, 4)), np.stack([positive(rng, 5) for _ in range(rows)])
    found = known_products(f, np.stack([lower(one) for one in B]).astype(np.float32), 3)
    products, known = (
        np.stack([lower(one) for one in many]) for many in (np.einsum("ip,iq->ipq", f, f), np.eye(3) - B[:, :3, :3])
    )
    np.testing.assert_allclose(found, products.T @ known, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 7, 64, 130])
@pytest.mark.parametrize("d", [1, 2, 7, 20])
def test_covariances_are_numpys_inverses_of_evidence_prior_and_observation_seen_through_the_root(d, rows):
    rng = np.random.default_rng(1)
    evidence = np.stack([positive(rng, d, 10.0 ** (k % 5)) for k in range(rows)])
    prior, root, weight = np.eye(d) + 0.1 * positive(rng, d), np.triu(rng.normal(size=(d, d))), rng.uniform(0, 9, rows)
    out = np.empty((rows, packed_size(d)), np.float32)
    packed = np.stack([lower(one) for one in evidence])
    covariances(packed, prior.astype(np.float32), root.astype(np.float32), weight, out)
    for found, one, w in zip(out, evidence, weight, strict=True):
        exact = lower(root @ np.linalg.inv(one + prior + w * np.outer(root[0], root[0])) @ root.T)
        np.testing.assert_allclose(found, exact, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize("width", [1, 3, 6])
def test_packed_matrices_are_multiplied_by_vectors_that_may_end_early(width):
    rng = np.random.default_rng(3)
    full, x, out = np.stack([positive(rng, 6) for _ in range(4)]), rng.normal(size=(4, width)), np.ones((4, 6))
    packed_times(np.stack([lower(one) for one in full]).astype(np.float32), x, out)
    np.testing.assert_allclose(out, 1 + np.einsum("iab,ib->ia", full[:, :, :width], x), atol=1e-5)


def test_a_congruence_of_packed_matrices_is_one_of_full_ones():
    rng = np.random.default_rng(4)
    root, full = rng.normal(size=(5, 5)), positive(rng, 5)
    np.testing.assert_allclose(congruence(root) @ lower(full), lower(root @ full @ root.T), rtol=1e-5)


def test_the_root_of_a_prior_is_upper_triangular_so_that_factors_stay_last():
    root = Problem(1, 5, 2, 2).prior.root
    np.testing.assert_allclose(root @ root.T, Problem(1, 5, 2, 2).start)
    np.testing.assert_array_equal(root, np.triu(root))


class Problem:
    """A small side: `dx` coefficients with prior means, the rest without, the last `k` on uncertain factors."""

    def __init__(self, seed, d, dx, k, groups=None):
        rng = np.random.default_rng(seed)
        self.entries, self.d, self.dx, self.k = entries_of(rng), d, dx, k
        E = len(self.entries.idx)
        self.target, self.weight = rng.normal(size=E), rng.uniform(0.3, 3, E)
        self.message = EffectObservation(rng.normal(size=ROWS), rng.uniform(0.2, 2, ROWS))
        self.features = np.column_stack([np.ones(ROWS), rng.normal(size=(ROWS, FEATURES - 1))])
        groups = np.zeros((FEATURES, dx), dtype=np.int64) if groups is None else groups
        ridge = rng.uniform(0.5, 4, groups.max() + 1)
        self.start = positive(rng, d, 0.7)
        self.ridge = ridge.copy()
        self.prior = Prior.of(self.features, groups, ridge, ridge.copy(), self.start.copy())
        x = rng.normal(size=(OTHERS, d))
        self.uncertain = [positive(rng, k, 0.5) for _ in range(OTHERS)] if k else None
        packed = np.stack([lower(one) for one in self.uncertain]).astype(np.float32) if k else None
        self.partner = Partner(x, k, packed)

    def row(self, i):
        """Oracle: A_i and h_i, entry by entry."""
        A, h, k = np.zeros((self.d, self.d)), np.zeros(self.d), self.k
        for e in range(self.entries.ptr[i], self.entries.ptr[i + 1]):
            o, w = self.entries.idx[e], self.weight[e]
            x = self.partner.x[o]
            A += w * np.outer(x, x)
            h += w * self.target[e] * x
            if k:
                A[-k:, -k:] += w * self.uncertain[o]
        A[0, 0] += 1 / self.message.variance[i]
        h[0] += self.message.value[i] / self.message.variance[i]
        return A, h

    def joint(self, ridge):
        """Oracle: precision and right-hand side of (vec V, b_1, ..., b_n) together, nothing integrated out."""
        q, dx, d, Li = FEATURES, self.dx, self.d, np.linalg.inv(self.start)
        size = q * dx
        J, r = np.zeros((size + ROWS * d,) * 2), np.zeros(size + ROWS * d)
        J[:size, :size] += np.diag(ridge[self.prior.groups].ravel())
        for i in range(ROWS):
            at = slice(size + i * d, size + (i + 1) * d)
            B = np.zeros((d, size + ROWS * d))  # b_i - E V' f_i
            B[:, at] = np.eye(d)
            for p in range(dx):
                for f in range(q):
                    B[p, f * dx + p] -= self.features[i, f]
            J += B.T @ Li @ B
            A, h = self.row(i)
            J[at, at] += A
            r[at] += h
        return J, r, size

    def update(self):
        return update_side(self.entries, self.target, self.weight, self.partner, self.prior, self.message)


@pytest.mark.parametrize(("d", "dx", "k"), [(3, 3, 0), (5, 2, 0), (5, 3, 2), (4, 1, 2)])
def test_weights_and_rows_are_the_mean_of_the_joint_gaussian_posterior(d, dx, k):
    """Generalised least squares with rows integrated out is the same as solving for everything at once."""
    problem = Problem(2, d, dx, k)
    J, r, size = problem.joint(problem.ridge)
    exact = np.linalg.solve(J, r)
    found = problem.update()
    np.testing.assert_allclose(problem.prior.weights.ravel(), exact[:size], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.mean.ravel(), exact[size:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("d", "dx", "k"), [(3, 3, 0), (5, 3, 2)])
def test_every_row_is_its_prior_and_its_evidence_weighed_by_their_precision(d, dx, k):
    """b_i = C_i (h_i + L^-1 E V' f_i) with the V that was learned, several ridges learned too."""
    groups = np.array([[0] + [1] * (dx - 1), [1] * dx, [2] * dx])
    problem = Problem(3, d, dx, k, groups)
    found = problem.update()
    Li = np.linalg.inv(problem.start)
    for i in range(ROWS):
        A, h = problem.row(i)
        C = np.linalg.inv(Li + A)
        centre = np.concatenate([problem.features[i] @ problem.prior.weights, np.zeros(d - dx)])
        np.testing.assert_allclose(found.mean[i], C @ (h + Li @ centre), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.variance[i], np.diag(C), rtol=1e-4)
        np.testing.assert_allclose(found.factor_covariance[i], lower(C[d - k :, d - k :]), rtol=1e-4, atol=1e-5)
    assert problem.prior.ridge[0] == problem.ridge[0], "group 0 keeps its prior"
    assert (problem.prior.ridge[1:] != problem.ridge[1:]).all()


def test_a_row_without_ratings_or_message_is_its_prior():
    problem = Problem(4, 4, 2, 0)
    problem.message = EffectObservation(np.zeros(ROWS), np.full(ROWS, 1e12))
    found = problem.update()
    np.testing.assert_allclose(found.mean[3, :2], (problem.features @ problem.prior.weights)[3], atol=1e-8)
    np.testing.assert_allclose(found.mean[3, 2:], 0, atol=1e-8)
    np.testing.assert_allclose(found.variance[3], np.diag(problem.start), rtol=1e-6)


def test_the_covariance_step_is_fed_with_the_information_and_scatter_of_the_active_rows():
    problem = Problem(5, 4, 2, 0)
    again = Problem(5, 4, 2, 0)
    found = problem.update()
    Li, information, scatter = np.linalg.inv(problem.start), np.zeros((4, 4)), np.zeros((4, 4))
    for i in range(ROWS):
        if problem.entries.ptr[i] < problem.entries.ptr[i + 1]:
            C = np.linalg.inv(Li + problem.row(i)[0])
            information += Li - Li @ C @ Li
            off = found.mean[i] - np.r_[problem.features[i] @ problem.prior.weights, 0, 0]
            scatter += np.outer(off, off)
    wanted = learned_covariance(again.prior, information, scatter)
    np.testing.assert_allclose(problem.prior.covariance, wanted, rtol=1e-5)


@pytest.mark.parametrize("d", [1, 3, 9])
def test_the_geometric_step_solves_its_matrix_equation(d):
    rng = np.random.default_rng(6)
    N, S = positive(rng, d) + 0.1 * np.eye(d), positive(rng, d)
    L = _geometric(N, S)
    np.testing.assert_allclose(L @ N @ L, S, atol=1e-10)
    np.testing.assert_allclose(L, L.T, atol=1e-10)
    assert np.linalg.eigvalsh(L).min() > 0


def test_a_covariance_step_goes_twice_as_far_as_the_minorise_maximise_step():
    """Along the geodesic from L through G, with G N G = S and both counting the pseudo-rows: G L^-1 G."""
    rng = np.random.default_rng(11)
    problem = Problem(8, 4, 2, 0)
    L, pseudo = problem.start, 10 + 4
    Li = np.linalg.inv(L)
    information = 60 * Li + positive(rng, 4)
    scatter = 80 * L + positive(rng, 4, 0.1)
    N, S = information + pseudo * Li, scatter + pseudo * L
    root = sqrtm(N).real
    G = np.linalg.inv(root) @ sqrtm(root @ S @ root).real @ np.linalg.inv(root)
    np.testing.assert_allclose(
        learned_covariance(problem.prior, information, scatter), G @ Li @ G, rtol=1e-4, atol=1e-6
    )
    assert distance(G, L) > 0.05, "a single step would be seen"


def test_one_covariance_step_is_bounded_symmetric_and_positive():
    rng = np.random.default_rng(7)
    for scale in (1e-9, 1.0, 1e9):
        problem = Problem(8, 5, 2, 0)
        new = learned_covariance(problem.prior, 50 * positive(rng, 5), scale * positive(rng, 5))
        ratio = np.linalg.eigvals(np.linalg.solve(problem.start, new)).real
        assert ratio.min() > 0.25 - 1e-4
        assert ratio.max() < 4 + 1e-4
        np.testing.assert_array_equal(new, new.T)


def simulated_rows(rng, truth, rows, each, noise):
    d = len(truth)
    b = rng.multivariate_normal(np.zeros(d), truth, rows)
    x = rng.normal(size=(60, d))
    entries = Entries(np.arange(0, rows * each + 1, each), rng.integers(0, 60, rows * each).astype(np.int32))
    owner = np.repeat(np.arange(rows), each)
    target = np.einsum("ed,ed->e", x[entries.idx], b[owner]) + rng.normal(0, np.sqrt(noise), rows * each)
    return entries, target, np.full(rows * each, 1 / noise), Partner(x, 0, None)


def distance(a, b):
    """The geodesic distance between covariances: a factor counts the same at every size."""
    return float(np.sqrt(np.sum(np.log(np.linalg.eigvals(np.linalg.solve(a, b)).real) ** 2)))


@pytest.mark.parametrize("factor", [0.05, 3.0])
def test_the_covariance_moves_to_the_truth_from_below_and_from_above(factor):
    rng = np.random.default_rng(9)
    truth = positive(rng, 3, 0.4) + 0.15 * np.eye(3)
    entries, target, weight, partner = simulated_rows(rng, truth, 1500, 5, 0.2)
    prior = Prior.of(np.ones((1500, 1)), np.zeros((1, 1), dtype=np.int64), np.ones(1), np.ones(1), factor * np.eye(3))
    message = EffectObservation(np.zeros(1500), np.full(1500, 1e12))
    way = [distance(prior.covariance, truth)]
    for _ in range(12):
        update_side(entries, target, weight, partner, prior, message)
        way.append(distance(prior.covariance, truth))
    assert way[1] < way[0]
    assert way[2] < way[1]
    assert way[-1] < 0.3
    assert distance(1.5 * truth, truth) > 0.3, "half as much again would be rejected"


def test_the_pseudo_rows_decide_where_there_is_no_evidence():
    rng = np.random.default_rng(10)
    entries, _, weight, partner = simulated_rows(rng, np.eye(3), 40, 2, 1.0)
    start = positive(rng, 3)
    prior = Prior.of(np.ones((40, 1)), np.zeros((1, 1), dtype=np.int64), np.ones(1), np.ones(1), start.copy())
    for _ in range(5):
        deaf = update_side(
            entries, np.zeros(80), 1e-9 * weight, partner, prior, EffectObservation(np.zeros(40), np.full(40, 1e12))
        )
    np.testing.assert_allclose(prior.covariance, start, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(deaf.mean, 0, atol=1e-9)
