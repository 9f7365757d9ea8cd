"""Stage 2 of the default: effects from noisy sums, against dense linear algebra, loops and simulation."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dpsr.engine.contrasts import contrast_map
from dpsr.engine.incidence import ITEM_SHARES, DividedIncidence, Division
from dpsr.types import Mask
from dpsr.value.design import Design
from dpsr.value.effects import (
    _COEFFICIENTS,
    _PSEUDO,
    FEW_ROUNDS,
    MORE_ROUNDS,
    ROUNDS,
    Effects,
    _Problem,
    learn_effects,
    own_observations,
)
from dpsr.value.laplace_noise import as_normal
from dpsr.value.noisy_sums import NoisySums, PooledSums, halves
from dpsr.value.priors import EFFECT, ridge

GAIN = 0.6


def design_of(m, n, density, seed=0, cold=False):
    rng = np.random.default_rng(seed)
    dense = rng.random((m, n)) < density
    if cold:
        dense[2], dense[:, 3] = False, False
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, n))
    return Design.of(Mask.of_cells(np.flatnonzero(dense.ravel()), *ids)), dense


@pytest.fixture
def small():
    """Twelve users, nine items, sums of any value, every rating and every hyper-parameter its own."""
    design, dense = design_of(12, 9, 0.4, cold=True)
    rng = np.random.default_rng(1)
    weights = divided(design, rng)
    sums = NoisySums(
        rng.normal(size=9), rng.uniform(0.5, 2, 9), rng.normal(size=12), rng.uniform(0.5, 2, 12), np.zeros(9),
        np.zeros(12), GAIN, weights,
    )  # fmt: skip
    q, d = design.z.shape[1], design.x.shape[1]
    effects = Effects(
        rng.normal(size=(q, d)), rng.normal(size=(q - 1, q - 1)), rng.normal(size=9), rng.normal(size=12),
        rng.uniform(5, 50, 10), 0.05, 0.08, rng.uniform(0.01, 0.05, 9), rng.uniform(0.01, 0.08, 12),
    )  # fmt: skip
    return design, weights_by_hand(weights, dense), sums, effects


def divided(design, rng):
    """Three classes on either side; some ratings are asked one by one and weigh 40 of 256 in the sums."""
    item, user = (rng.integers(0, 3, n).astype(np.uint8) for n in reversed(design.census.shape))
    division = Division(item, user, rng.choice(ITEM_SHARES, (3, 3)), rng.integers(0, 257, (3, 3)), 40)
    return DividedIncidence(design.table, division)


def weights_by_hand(weights, dense):
    """P and Q: the weight of every rating in its item's and in its user's sum, nothing where there is none."""
    codes = weights._division.codes(next(iter(weights._table.scan())))
    P, Q = np.zeros(dense.shape), np.zeros(dense.shape)
    P[dense], Q[dense] = weights._division.item_weights[codes] / 256, weights._division.user_weights[codes] / 256
    assert len({*(P + Q)[dense]}) == 2, "both kinds of ratings occur"
    return P, Q


def sums_by_hand(design, dense):
    """Oracle: H, one row per sum and one column per weight, item effect and user effect, rating by rating."""
    (P, Q), (m, n), q, d = dense, dense[0].shape, design.z.shape[1], design.x.shape[1]
    H = np.zeros((n + m, q * d + n + m))
    for u in range(m):
        for j in range(n):
            row = np.concatenate([np.kron(design.z[j], design.x[u]), np.eye(n)[j], np.eye(m)[u]])
            H[j] += GAIN * P[u, j] * row
            H[n + u] += GAIN * Q[u, j] * row
    return H


def flat(effects):
    return np.concatenate([effects.weights.ravel(), effects.item, effects.user])


def own_products(design, effects):
    """What every item's features tell together, by plain loops."""
    own, counts = design.z[:, 1:], design.item_counts
    values = np.array([f @ effects.products @ f for f in own])
    return values - counts @ values / counts.sum()


def with_levels(design, effects):
    """The same effects; those of items with what their features tell together."""
    return replace(effects, item=effects.item + own_products(design, effects))


def prior_precision(design, effects):
    groups = design.weight_groups.ravel()
    return np.concatenate([
        effects.ridge[groups],
        np.full(len(effects.item), 1 / effects.item_prior_variance),
        np.full(len(effects.user), 1 / effects.user_prior_variance),
    ])  # fmt: skip


def test_expected_sums_are_sums_over_ratings_of_what_the_model_says(small):
    design, dense, sums, effects = small
    items, users = _Problem(design, sums).forward(effects)
    np.testing.assert_allclose(
        np.concatenate([items, users]), sums_by_hand(design, dense) @ flat(with_levels(design, effects)), atol=1e-10
    )


def test_one_step_solves_the_dense_normal_equations(small):
    """(H' R^-1 H + P) theta = H' R^-1 (T - what Q says), in the norm conjugate gradients minimise."""
    design, dense, sums, effects = small
    H = sums_by_hand(design, dense)
    R = np.concatenate([sums.item_variance, sums.user_variance])
    A = H.T @ (H / R[:, None]) + np.diag(prior_precision(design, effects))
    own = own_products(design, effects)
    exact = np.linalg.solve(A, H.T @ ((np.concatenate([sums.item_values, sums.user_values]) - of_items(H, own)) / R))
    new = _Problem(design, sums).solve(effects, effects.ridge, 0.06)
    found = flat(replace(new, item=new.item + own_products(design, new) - own))
    assert (found - exact) @ A @ (found - exact) <= 1e-5 * (exact @ A @ exact)
    for wrong in (0.95, 1.05):
        assert (found - wrong * exact) @ A @ (found - wrong * exact) > 1e-3 * (exact @ A @ exact)


def of_items(H, level):
    """What levels of items alone add to all sums."""
    return H[:, -12 - len(level) : -12] @ level


def pooled_by_hand(design, sums, dense):
    """Oracle: the rows of H for sums over all ratings, with the weights that are left of those of rows."""
    (P, Q), contrasts = dense, design.contrasts
    n, (m, n_items) = contrasts.n, P.shape
    H = np.zeros((n * n, design.z.shape[1] * design.x.shape[1] + n_items + m))
    for u in range(m):
        for j in range(n_items):
            k, line = int(contrasts.users[u]), int(contrasts.items[j])
            if P[u, j] + Q[u, j] == 0 or k == 0 or line == 0:
                continue
            row = np.concatenate([np.kron(design.z[j], design.x[u]), np.eye(n_items)[j], np.eye(m)[u]])
            weight = {192: 64, 30: 10}[round(256 * (P[u, j] + Q[u, j]))] / 256
            H[(abs(k) - 1) * n + abs(line) - 1] += GAIN * weight * np.sign(k) * np.sign(line) * row
    return H


def test_sums_over_all_ratings_are_a_third_family_of_the_same_normal_equations(small):
    """The same step with the third family, against the dense solution; without it the solution is another."""
    design, _, sums, effects = small
    mask = np.zeros((12, 9), dtype=bool)
    mask[next(iter(design.table.scan())).rows, next(iter(design.table.scan())).items] = True
    division = replace(sums.weights._division, pooled=64)
    weights = DividedIncidence(design.table, division)
    rng, dense, n = np.random.default_rng(3), weights_by_hand(weights, mask), design.contrasts.n
    through = contrast_map(design.table, division, design.contrasts, design.x, design.z)
    pooled = PooledSums.of(
        design.contrasts, through, rng.normal(size=n * n), noise=0.01, spread=0.1, gain=GAIN, one_slope=0.0
    )
    sums = replace(sums, weights=weights, pooled=pooled)
    H, third = sums_by_hand(design, dense), pooled_by_hand(design, sums, dense)
    np.testing.assert_allclose(pooled.forward(effects.weights, effects.item, effects.user), third @ flat(effects))
    H, own = np.vstack([H, third]), own_products(design, effects)
    R = np.concatenate([sums.item_variance, sums.user_variance, pooled.variance])
    A = H.T @ (H / R[:, None]) + np.diag(prior_precision(design, effects))
    T = np.concatenate([sums.item_values, sums.user_values, pooled.values])
    exact = np.linalg.solve(A, H.T @ ((T - of_items(H, own)) / R))

    def solved(sums):
        new = _Problem(design, sums).solve(effects, effects.ridge, 0.06)
        return flat(replace(new, item=new.item + own_products(design, new) - own))

    found, alone = solved(sums), solved(replace(sums, pooled=None))
    assert (found - exact) @ A @ (found - exact) <= 1e-5 * (exact @ A @ exact)
    assert (alone - exact) @ A @ (alone - exact) > 1e-2 * (exact @ A @ exact)


def test_what_slopes_add_to_sums_over_all_ratings_counts_as_noise(small):
    design, _, sums, _ = small
    division = replace(sums.weights._division, pooled=64)
    through = contrast_map(design.table, division, design.contrasts, design.x, design.z)
    values = np.zeros(design.contrasts.n**2)
    with_slopes, without = (
        PooledSums.of(design.contrasts, through, values, noise=0.5, spread=0.2, gain=GAIN, one_slope=slope)
        for slope in (0.1, 0.0)
    )
    np.testing.assert_allclose(without.variance, 0.5 + 0.2 * through.squares)
    np.testing.assert_allclose(
        with_slopes.variance - without.variance, GAIN**2 * 0.1 * (through.user_slopes + through.item_slopes)
    )


def test_the_precision_of_the_weights_is_a_sum_of_kronecker_products(small):
    """Oracle: every sum's row of weights, over its variance with both effects integrated out."""
    design, dense, sums, effects = small
    q = effects.weights.size
    H = sums_by_hand(design, dense)[:, :q]
    (P, Q), spread, item, user = dense, [], effects.item_prior_variance, effects.user_prior_variance
    for j in range(9):
        spread.append(sums.item_variance[j] + GAIN**2 * (P[:, j].sum() ** 2 * item + (P[:, j] ** 2).sum() * user))
    for u in range(12):
        spread.append(sums.user_variance[u] + GAIN**2 * (Q[u].sum() ** 2 * user + (Q[u] ** 2).sum() * item))
    wanted = sum(np.outer(h, h) / s for h, s in zip(H, spread, strict=True))
    np.testing.assert_allclose(_Problem(design, sums)._gram(effects), wanted, rtol=1e-4, atol=1e-5)


def variances_by_hand(dense, sums, e):
    """Oracle: own sum with uncertain partners, the partners' own sums, and the prior; one row at a time."""
    P, Q = dense
    m, n = P.shape
    around_i = [sums.item_variance[j] + GAIN**2 * P[:, j] ** 2 @ e.user_posterior_variance for j in range(n)]
    around_u = [sums.user_variance[u] + GAIN**2 * Q[u] ** 2 @ e.item_posterior_variance for u in range(m)]
    own_i, own_u = (GAIN * P.sum(axis=0)) ** 2, (GAIN * Q.sum(axis=1)) ** 2
    items, users = [], []
    for j in range(n):
        other = sum((GAIN * Q[u, j]) ** 2 / (around_u[u] + own_u[u] * e.user_posterior_variance[u]) for u in range(m))
        items.append(1 / (own_i[j] / around_i[j] + other + 1 / e.item_prior_variance))
    for u in range(m):
        other = sum((GAIN * P[u, j]) ** 2 / (around_i[j] + own_i[j] * e.item_posterior_variance[j]) for j in range(n))
        users.append(1 / (own_u[u] / around_u[u] + other + 1 / e.user_prior_variance))
    return np.array(items), np.array(users)


def test_variances_and_hyper_parameters_follow_the_stated_fixed_point(small):
    design, dense, sums, effects = small
    default_ridge, default_share = np.array([3.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0]), 0.06
    new = _Problem(design, sums).solve(effects, default_ridge, default_share)
    items, users = variances_by_hand(dense, sums, effects)
    np.testing.assert_allclose(new.item_posterior_variance, items, rtol=1e-10)
    np.testing.assert_allclose(new.user_posterior_variance, users, rtol=1e-10)
    for effect, variance, old, share in (
        (new.item, items, effects.item_prior_variance, new.item_prior_variance),
        (new.user, users, effects.user_prior_variance, new.user_prior_variance),
    ):  # fmt: skip
        dof = sum(1 - v / old for v in variance)
        assert share == pytest.approx((sum(a * a for a in effect) + _PSEUDO * default_share) / (dof + _PSEUDO))
    groups = design.weight_groups.ravel()
    block = np.linalg.inv(_Problem(design, sums)._gram(effects) + np.diag(effects.ridge[groups]))
    assert set(groups) == {0, 1, 2, 3, 4, 5, 7, 8}, "a mask that shows nothing has no places"
    for g in sorted(set(groups) - {0}):
        mine = np.flatnonzero(groups == g)
        known = sum(1 - effects.ridge[g] * block[i, i] for i in mine)
        size = sum(new.weights.ravel()[i] ** 2 for i in mine)
        assert new.ridge[g] == pytest.approx((known + _COEFFICIENTS) / (size + _COEFFICIENTS / default_ridge[g]))
    assert new.ridge[0] == effects.ridge[0], "the constant keeps the prior of the noisy mean"


def test_products_of_an_items_features_follow_from_what_sums_of_items_leave(small):
    """Oracle: generalised least squares over items, effects integrated out, features and users at the new means."""
    design, dense, sums, effects = small
    new = _Problem(design, sums).solve(effects, np.full(10, 7.0), 0.06)
    (P, _), own, counts = dense, design.z[:, 1:], design.item_counts
    K = np.array([np.kron(f, f) for f in own])
    K = K - counts @ K / counts.sum()
    W = (design.z @ new.weights @ design.x.T).T
    gram, right = effects.ridge[-1] * np.eye(K.shape[1]), np.zeros(K.shape[1])
    for j in range(9):
        p, reach = P[:, j], GAIN * P[:, j].sum()
        spread = sums.item_variance[j] + reach**2 * effects.item_prior_variance
        spread += GAIN**2 * p @ p * effects.user_prior_variance
        gram += reach**2 * np.outer(K[j], K[j]) / spread
        right += reach * (sums.item_values[j] - GAIN * p @ (W[:, j] + new.user)) / spread * K[j]
    wanted = np.linalg.solve(gram, right)
    np.testing.assert_allclose(new.products.ravel(), wanted, atol=1e-4 * np.abs(wanted).max())
    known = K.shape[1] - effects.ridge[-1] * np.trace(np.linalg.inv(gram))
    assert new.ridge[-1] == pytest.approx((known + _COEFFICIENTS) / (wanted @ wanted + _COEFFICIENTS / 7.0), rel=1e-3)


def test_sums_are_heard_given_what_everything_else_says_of_them(small):
    """Oracle: a form's mean and variance without its own sum, and what Laplace's law tells of it."""
    design, dense, sums, e = small
    laplace = replace(sums, item_scale=np.sqrt(sums.item_variance / 3), user_scale=np.sqrt(sums.user_variance / 5))
    problem = _Problem(design, laplace)
    problem.hear(laplace, e)
    (P, Q), H = dense, sums_by_hand(design, dense)
    forms = H @ flat(with_levels(design, e))
    items, users = variances_by_hand(dense, laplace, e)
    rows = [(j, P[:, j], items[j], e.user_posterior_variance, "item") for j in range(9)]
    rows += [(u, Q[u], users[u], e.item_posterior_variance, "user") for u in range(12)]
    for k, (i, weight, posterior, partners, side) in enumerate(rows):
        value, variance, scale = (getattr(laplace, f"{side}_{name}")[i] for name in ("values", "variance", "scale"))
        open_ = GAIN**2 * weight**2 @ partners
        reach = (GAIN * weight.sum()) ** 2
        believed = reach / (1 / posterior - reach / (variance + open_)) + open_
        mean = forms[k] + believed / variance * (forms[k] - value)
        wanted = as_normal(*(np.array([x]) for x in (value, variance, scale, mean, believed)))
        heard = getattr(problem.sums, f"{side}_values")[i], getattr(problem.sums, f"{side}_variance")[i]
        assert heard == pytest.approx((wanted[0][0], wanted[1][0]), rel=1e-9)
    assert not np.allclose(problem.sums.item_values, sums.item_values)


def test_own_messages_are_what_a_sum_says_with_everything_else_at_its_posterior(small):
    design, (P, Q), sums, e = small
    items, users = own_observations(design, sums, e)
    W, own = (design.z @ e.weights @ design.x.T).T, own_products(design, e)
    for j in range(9):
        p = P[:, j]
        if not p.any():
            assert (items.value[j], items.variance[j]) == (0, 1e12)
            continue
        rest = sums.item_values[j] - GAIN * p @ (W[:, j] + e.user + own[j])
        variance = sums.item_variance[j] + GAIN**2 * p**2 @ e.user_posterior_variance
        assert items.value[j] == pytest.approx(rest / (GAIN * p.sum()))
        assert items.variance[j] == pytest.approx(variance / (GAIN * p.sum()) ** 2)
    for u in range(12):
        q = Q[u]
        if not q.any():
            assert (users.value[u], users.variance[u]) == (0, 1e12)
            continue
        rest = sums.user_values[u] - GAIN * q @ (W[u] + e.item + own)
        variance = sums.user_variance[u] + GAIN**2 * q**2 @ e.item_posterior_variance
        assert users.value[u] == pytest.approx(rest / (GAIN * q.sum()))
        assert users.variance[u] == pytest.approx(variance / (GAIN * q.sum()) ** 2)


def simulated(m, n, density, item_variance, user_variance, noise, seed):
    """Sums of ratings that have effects and nothing else, with Gaussian noise of a stated variance."""
    design, dense = design_of(m, n, density, seed)
    rng = np.random.default_rng(seed + 1)
    item, user = rng.normal(0, np.sqrt(item_variance), n), rng.normal(0, np.sqrt(user_variance), m)
    eta = (user[:, None] + item) * dense
    half = GAIN / 2
    sums = NoisySums(
        half * eta.sum(axis=0) + rng.normal(0, np.sqrt(noise), n), np.full(n, noise),
        half * eta.sum(axis=1) + rng.normal(0, np.sqrt(noise), m), np.full(m, noise), np.zeros(n), np.zeros(m),
        GAIN, DividedIncidence(design.table, halves(design)),
    )  # fmt: skip
    return design, dense, sums, item, user


def test_planted_effects_are_recovered_when_the_noise_is_tiny():
    design, dense, sums, item, user = simulated(60, 50, 0.3, 0.04, 0.02, 1e-5, 2)
    e, _ = learn_effects(design, sums, ridge(0.25, 1e-4), 0.25)
    found = (design.z @ e.weights @ design.x.T).T + e.user[:, None] + e.item
    truth = user[:, None] + item
    assert np.std((found - truth)[dense]) < 0.12 * np.std(truth[dense])


def test_effects_shrink_to_nothing_when_the_noise_is_huge():
    design, _, sums, _, _ = simulated(60, 50, 0.3, 0.04, 0.02, 1e-2, 3)
    deaf = replace(sums, item_variance=np.full(50, 1e12), user_variance=np.full(60, 1e12))
    e, _ = learn_effects(design, deaf, ridge(0.25, 1e-4), 0.25)
    assert max(np.abs(flat(e))) < 1e-6
    assert 0 < e.item_prior_variance <= EFFECT * 0.25 * (1 + 1e-6), "nothing was learned, so the prior decides"
    assert e.item_prior_variance == pytest.approx(e.user_prior_variance)
    np.testing.assert_allclose(e.item_posterior_variance, e.item_prior_variance, rtol=1e-3)


@pytest.mark.parametrize(("item", "user"), [(0.1, 0.01), (0.01, 0.1), (0.04, 0.04)])
def test_variance_components_are_found_within_a_factor(item, user):
    """They start from one and the same value, 0.03."""
    design, _, sums, _, _ = simulated(300, 250, 0.12, item, user, 0.05, 4)
    e, _ = learn_effects(design, sums, ridge(0.25, 1e-4), 0.25)
    assert item / 1.5 < e.item_prior_variance < item * 1.5
    assert user / 1.5 < e.user_prior_variance < user * 1.5


def test_a_start_is_near_what_more_rounds_find():
    """Within a quarter of what is uncertain about effects anyway, which two rounds are not; and not the same."""
    design, _, sums, _, _ = simulated(300, 250, 0.12, 0.1, 0.01, 1.0, 4)
    exact, start = (learn_effects(design, sums, ridge(0.25, 1e-4), 0.25, rounds=n)[0] for n in (ROUNDS, FEW_ROUNDS))
    off = np.concatenate([start.item - with_levels(design, exact).item, start.user - exact.user])
    variance = np.concatenate([exact.item_posterior_variance, exact.user_posterior_variance])
    assert 0 < np.mean(off**2) < np.mean(variance) / 16
    for side in ("item_prior_variance", "user_prior_variance"):
        assert getattr(exact, side) / 1.25 < getattr(start, side) < getattr(exact, side) * 1.25


def test_a_start_takes_noise_for_normal_and_looks_for_no_products():
    """Sweeps find out later what an answer that was far off meant; nothing they rest on may have decided it."""
    design, _, sums, _, _ = simulated(60, 50, 0.3, 0.04, 0.02, 1e-2, 2)
    laplace = replace(sums, item_scale=np.full(50, 0.05), user_scale=np.full(60, 0.05))
    start, heard = learn_effects(design, laplace, ridge(0.25, 1e-4), 0.25, rounds=FEW_ROUNDS)
    assert heard is laplace
    assert not start.products.any()
    found, heard = learn_effects(design, laplace, ridge(0.25, 1e-4), 0.25)
    assert np.abs(heard.item_values - laplace.item_values).max() > 0.001
    assert found.products.any()


def test_effects_are_learned_on_when_sums_are_read_otherwise():
    """Sums move by more than their noise: what was begun is near the new fixed point sooner than what is not."""
    design, _, sums, _, _ = simulated(300, 250, 0.12, 0.1, 0.01, 0.2, 4)
    sums = replace(sums, item_scale=np.full(250, 0.3), user_scale=np.full(300, 0.3))
    items, users = np.split(np.random.default_rng(5).normal(0, 0.5, 550), [250])
    again = replace(sums, item_values=sums.item_values + items, user_values=sums.user_values + users)

    def learned(sums, **given):
        return learn_effects(design, sums, ridge(0.25, 1e-4), 0.25, **given)

    begun = learned(sums)
    found = {"on": learned(again, rounds=MORE_ROUNDS, begun=begun), "anew": learned(again, rounds=MORE_ROUNDS)}
    exact, _ = learned(again)
    variance = np.mean(np.concatenate([exact.item_posterior_variance, exact.user_posterior_variance]))
    level = with_levels(design, exact).item
    off = {
        way: np.mean(np.concatenate([with_levels(design, e).item - level, e.user - exact.user]) ** 2) / variance
        for way, (e, _) in {**found, "begun": begun}.items()
    }
    assert off["on"] < 1 / 16 < 1 < off["begun"], "a quarter of what is uncertain anyway; not where it set out from"
    assert off["on"] < off["anew"] / 4
    for side in ("item_prior_variance", "user_prior_variance"):
        assert getattr(exact, side) / 1.25 < getattr(found["on"][0], side) < getattr(exact, side) * 1.25


def test_variances_are_honest_about_the_error_of_the_effects():
    """Distribution test: squared errors average to the stated posterior variance, centred within each side."""
    ratios = []
    for seed in range(10, 13):
        design, _, sums, item, user = simulated(200, 160, 0.12, 0.05, 0.05, 1.0, seed)
        e, _ = learn_effects(design, sums, ridge(0.25, 1e-4), 0.25)
        shared = (design.z @ e.weights)[:, 0]
        ratios.append(np.var(e.item + shared - item) / e.item_posterior_variance.mean())
        ratios.append(np.var(e.user + (design.x @ e.weights[0]) - user) / e.user_posterior_variance.mean())
    assert 0.6 < np.mean(ratios) < 1.6


def test_noise_that_is_laplace_is_read_as_what_it_is():
    """Effects are nearer to the truth than where the same sums are taken for normal observations."""
    errors = []
    for seed in range(20, 24):
        design, _, sums, item, user = simulated(300, 250, 0.1, 0.05, 0.05, 1e-9, seed)
        rng, law = np.random.default_rng(seed), 1.0
        items, users = sums.item_values + rng.laplace(0, law, 250), sums.user_values + rng.laplace(0, law, 300)
        known, ones = {"item_variance": np.full(250, 2 * law**2), "user_variance": np.full(300, 2 * law**2)}, np.ones
        noisy = replace(sums, item_values=items, user_values=users, **known)
        laplace = replace(noisy, item_scale=law * ones(250), user_scale=law * ones(300))
        for one in (laplace, noisy):
            e, _ = learn_effects(design, one, ridge(0.25, 1e-4), 0.25)
            found = (design.z @ e.weights @ design.x.T).T + e.user[:, None] + e.item + own_products(design, e)
            errors.append(np.mean((found - item - user[:, None]) ** 2))
    assert np.mean(errors[::2]) < 0.97 * np.mean(errors[1::2])
