"""How epsilon is shared and what is forecast: rounding on the safe side, and more budget never promises less."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpsr import DPSR, Scale
from dpsr.data.assemble import mask_of_cells
from dpsr.data.synthetic import realistic
from dpsr.errors import PrivacyError
from dpsr.value.allocation import Allocation, Components, allocate, explained_share, forecast

STARS = Scale(1, 5)


def mask_of(m, n, N, seed=0):
    cells = np.sort(np.random.default_rng(seed).choice(m * n, N, replace=False))
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, n))
    return mask_of_cells(cells, *ids)


MASKS = {
    "tiny": mask_of(3, 3, 5),
    "sparse": mask_of(400, 300, 500),
    "dense": mask_of(30, 20, 600),
    "people": realistic(0, n_users=200, n_items=150, n_ratings=6_000).mask,
    "many": mask_of(600, 400, 60_000),
}


@pytest.mark.parametrize("name", MASKS)
def test_the_parts_never_add_up_to_more_than_was_asked_and_leave_nothing_worth_having(name):
    """Exact fractions, decimal epsilons as people write them and random ones: a sum one bit too large is refused."""
    rng = np.random.default_rng(1)
    asked = np.concatenate([np.arange(1, 60, 2) / 100, np.arange(6, 40, 2) / 10, rng.uniform(0.001, 30, 25)])
    for epsilon in asked.tolist():
        s = allocate(MASKS[name], STARS, epsilon)
        total = Fraction(s.histogram) + Fraction(s.sums) + Fraction(s.ratings)
        assert total <= Fraction(epsilon)
        assert total >= Fraction(epsilon) * (1 - Fraction(1, 10**9))
        assert s.histogram > 0
        assert s.sums > 0 or s.histogram == epsilon, "where no sums are bought, all of it buys the mean"
        assert s.ratings == 0 or s.ratings >= 0.19


@pytest.mark.parametrize("name", MASKS)
def test_the_histogram_gets_what_places_the_mean_and_no_more_than_half_unless_the_mean_is_all_that_is_bought(name):
    mask = MASKS[name]
    for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0):
        shares = allocate(mask, STARS, epsilon)
        part = shares.histogram
        if not shares.sums:
            continue
        assert part <= 0.5 * epsilon
        assert part >= 0.02 * min(epsilon, 1.0)
        assert part == pytest.approx(min(max(400 / mask.n_ratings, 0.02 * min(epsilon, 1.0)), 0.5 * epsilon))


def test_item_weights_are_sixteenths_so_that_the_vault_does_not_round_them():
    for mask in MASKS.values():
        for epsilon in (0.05, 1.0, 8.0):
            w = allocate(mask, STARS, epsilon).item_weight
            assert w * 16 == int(w * 16)
            assert 5 / 16 <= w <= 11 / 16


def test_ratings_are_bought_at_large_budgets_and_only_sums_at_small_ones():
    assert allocate(MASKS["people"], STARS, 0.3).ratings == 0
    assert allocate(MASKS["people"], STARS, 5.0).ratings > 3


def error_by_hand(mask, sums, rho, item_weight, p):
    """Oracle: the formula of the module's docstring, rating by rating."""
    c, s, v = 0.8, 0.6, 0.45 * 0.8**2
    error, shared = 0.0, 0.0
    for counts, codes, weight, effect, slopes in (
        (mask.item_counts, mask.items, item_weight, p.item, p.item_slopes),
        (mask.user_counts, mask.users, 1 - item_weight, p.user, p.user_slopes),
    ):
        from_both, from_ratings = {}, {}
        for row in np.flatnonzero(counts):
            n = counts[row] - 1
            noise = 8 * (c / sums) ** 2 if sums else np.inf
            told = (weight * s * n) ** 2 / (noise + weight**2 * n * (v + s**2 * 0.1) + 1e-12)
            from_ratings[row] = n * rho / (p.residual + 0.1)
            from_both[row] = (1 - rho) * told + from_ratings[row]
            shared += from_both[row] / (1 + effect * from_both[row])
        for row in codes:
            error += effect / (1 + effect * from_both[row]) / mask.n_ratings
            error += slopes / (1 + slopes * from_ratings[row] / 10) / mask.n_ratings
    return p.residual + error + p.features / (1 + p.features / 30 * shared)


def mean_by_hand(mask, s):
    """Oracle: 10 half-widths squared from four bins, 8 from one sum, a typical variance of 0.13; shrunk."""
    noise = (77 if s.sums else 62) / (mask.n_ratings * s.histogram) ** 2
    return 0.8 * noise / (0.8 + noise)


@pytest.mark.parametrize("name", MASKS)
def test_the_mean_is_bought_alone_exactly_where_that_promises_more(name):
    """Both sides of the rule; where no information reaches anybody, one is what everything else leaves."""
    mask, alone = MASKS[name], []
    for epsilon in np.geomspace(0.001, 5, 30).tolist():
        s = allocate(mask, STARS, epsilon)
        alone.append(s == Allocation(epsilon, 0.0, 0.0, 0.5))
        if alone[-1]:
            usual = replace(s, histogram=epsilon / 2, sums=epsilon / 2)
            errors = [error_by_hand(mask, usual.sums, 0.0, w / 16, Components()) for w in (5, 8, 11)]
            assert 1 + mean_by_hand(mask, s) < min(errors) + mean_by_hand(mask, usual) + 1e-4
        else:
            error = error_by_hand(mask, s.sums, explained_share(STARS, s.ratings), s.item_weight, Components())
            assert error + mean_by_hand(mask, s) <= 1 + mean_by_hand(mask, Allocation(epsilon, 0.0, 0.0, 0.5)) + 1e-4
    assert alone == sorted(alone, reverse=True), "once more than the mean is worth buying it stays so"
    assert alone[0]
    assert not alone[-1] or name == "tiny", "five ratings tell nothing but their mean"


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_forecast_is_the_stated_formula_and_its_parts_add_up(epsilon):
    mask, p = MASKS["sparse"], Components()
    s = allocate(mask, STARS, epsilon)
    found = forecast(mask, STARS, epsilon)
    total = error_by_hand(mask, s.sums, explained_share(STARS, s.ratings), s.item_weight, p) + mean_by_hand(mask, s)
    assert found.share == pytest.approx(np.sqrt(total), rel=1e-6)
    assert found.unknowable == p.residual
    assert found.unknowable + found.learning == pytest.approx(error_by_hand(mask, 1e3, 1.0, 0.5, p), rel=1e-6)
    assert found.noise >= 0


def test_the_allocation_is_the_best_of_all_that_are_tried():
    mask = MASKS["people"]
    for epsilon in (0.5, 1.5, 3.0):
        s = allocate(mask, STARS, epsilon)
        chosen = error_by_hand(mask, s.sums, explained_share(STARS, s.ratings), s.item_weight, Components())
        rest = epsilon - s.histogram
        for sums in (*(b for b in (0.2, 0.45, 1.0) if b < rest - 0.2), rest):
            rho = explained_share(STARS, rest - sums)
            for weight in (5 / 16, 0.5, 11 / 16):
                assert chosen <= error_by_hand(mask, sums, rho, weight, Components()) + 2e-4


@pytest.mark.parametrize("name", MASKS)
def test_more_epsilon_never_forecasts_a_worse_share(name):
    shares = [f.share for f in DPSR.plan(MASKS[name], STARS, np.geomspace(0.01, 25, 60).tolist())]
    assert max(np.diff(shares)) <= 1e-4, "ties within 1e-4 go to the smaller budget for sums"
    assert min(shares) > 0
    assert max(shares) <= np.sqrt(1.8), "the middle of the scale is the worst constant to end with"
    assert shares[0] > shares[-1] + 1e-3 or name == "tiny"


def test_more_ratings_of_the_same_people_never_forecast_a_worse_share():
    shares = [forecast(mask_of(100, 80, N), STARS, 1.0).share for N in (200, 800, 3200, 7900)]
    assert (np.diff(shares) < 0).all()


@pytest.mark.parametrize("n_levels", [2, 3, 5, 10, 101])
def test_the_share_a_channel_explains_grows_with_epsilon_from_nothing_to_nearly_all(n_levels):
    scale = Scale(0, n_levels - 1)
    shares = [explained_share(scale, e) for e in (0.0, *np.geomspace(0.001, 30, 50))]
    assert shares[0] == 0
    assert (np.diff(shares) >= 0).all()
    assert 0.98 < shares[-1] <= 1
    assert explained_share(scale, 0.02) == pytest.approx(4 * explained_share(scale, 0.01)), "quadratic at the origin"


def test_the_share_a_channel_explains_depends_on_the_number_of_levels_alone():
    assert explained_share(Scale(1, 5), 1.3) == explained_share(Scale(-10, 10, step=5), 1.3)


def test_for_two_levels_the_share_is_that_of_randomised_response():
    """Oracle: rho = Var(E[y | s]) / Var(y) of the exact two-by-two table, at a tabulated epsilon."""
    weight = np.exp(-((np.array([-1.0, 1.0]) - 0.3) ** 2) / 2)
    p = weight / weight.sum()
    for epsilon in (0.5, 1.0, 3.0):
        keep = np.exp(epsilon) / (1 + np.exp(epsilon))
        joint = p[:, None] * np.array([[keep, 1 - keep], [1 - keep, keep]])
        guess = (joint[1] - joint[0]) / joint.sum(axis=0)
        mean = p[1] - p[0]
        rho = joint.sum(axis=0) @ (guess - mean) ** 2 / (1 - mean**2)
        assert explained_share(Scale(0, 1), epsilon) == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize(
    "changes", [{"residual": 0.6}, {"item": -0.1, "user": 0.41}, {"residual": 0.0, "user": 0.69}, {"features": np.nan}]
)
def test_components_that_are_no_shares_are_refused(changes):
    with pytest.raises(PrivacyError, match="add up to one"):
        replace(Components(), **changes)


def test_components_change_the_plan():
    taste = Components(residual=0.3, features=0.06, item=0.05, user=0.05, user_slopes=0.27, item_slopes=0.27)
    usual, other = (DPSR.plan(MASKS["many"], STARS, [10.0], c)[0].share for c in (None, taste))
    assert other < usual


@pytest.mark.parametrize("epsilon", [0, -1.0, np.inf, np.nan])
def test_no_epsilon_that_is_none_is_planned_for(epsilon):
    with pytest.raises(PrivacyError, match="epsilon"):
        allocate(MASKS["tiny"], STARS, epsilon)
