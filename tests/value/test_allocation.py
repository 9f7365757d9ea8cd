"""How epsilon is shared and what is forecast: rounding on the safe side, and more budget never promises less."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpsr import DPSR, Scale
from dpsr.data.synthetic import realistic
from dpsr.engine import MemoryTable
from dpsr.engine.incidence import ITEM_SHARES, DividedIncidence, Division
from dpsr.errors import PrivacyError
from dpsr.evaluate.pipelines import fixed_share
from dpsr.types import Census, Mask
from dpsr.value import allocation
from dpsr.value.allocation import (
    Allocation,
    Components,
    allocate,
    best_tables,
    divide,
    explained_share,
    forecast,
    tables_in_sums,
)
from dpsr.value.design import OCTAVES, Side
from dpsr.value.expected import Prices, ShareTables, expected_error

STARS = Scale(1, 5)


def mask_of(m, n, N, seed=0):
    cells = np.sort(np.random.default_rng(seed).choice(m * n, N, replace=False))
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, n))
    return Mask.of_cells(cells, *ids)


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
    asked = np.concatenate([np.arange(1, 60, 9) / 100, np.arange(6, 40, 9) / 10, rng.uniform(0.001, 30, 5)])
    for epsilon in asked.tolist():
        s = allocate(MASKS[name], STARS, epsilon)
        total = Fraction(s.histogram) + Fraction(s.rest)
        assert total <= Fraction(epsilon)
        assert total >= Fraction(epsilon) * (1 - Fraction(1, 10**9))
        assert s.histogram > 0
        assert s.rest > 0 or s.histogram == epsilon, "where nothing else is bought, all of it buys the mean"


@pytest.mark.parametrize("name", MASKS)
def test_the_histogram_gets_what_places_the_mean_and_no_more_than_half_unless_the_mean_is_all_that_is_bought(name):
    mask = MASKS[name]
    for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0):
        shares = allocate(mask, STARS, epsilon)
        part = shares.histogram
        if shares.division is None:
            continue
        assert part <= 0.5 * epsilon
        assert part >= 0.02 * min(epsilon, 1.0)
        assert part == pytest.approx(min(max(400 / mask.n_ratings, 0.02 * min(epsilon, 1.0)), 0.5 * epsilon))


def test_a_division_is_made_of_shares_that_there_are():
    for mask in MASKS.values():
        for epsilon in (0.3, 2.0, 8.0):
            one = allocate(mask, STARS, epsilon).division
            if one is None:
                continue
            assert np.isin(one.item, ITEM_SHARES).all()
            assert (one.asked.min() >= 0, one.asked.max() <= 256) == (True, True)
            assert 0 <= one.light <= 0.1 * 256
            np.testing.assert_array_equal(one.item_class, np.floor(np.log2(np.maximum(mask.item_counts, 1))))


def test_a_division_takes_the_nearest_share_that_there_is():
    tables = best_tables(MASKS["people"], STARS, 0.7)[0]
    found = divide(MASKS["people"], tables).item
    shares = np.array(ITEM_SHARES)
    for wanted, share in zip(256 * tables.item.ravel(), found.ravel(), strict=True):
        assert abs(wanted - share) == np.abs(wanted - shares).min()
    with pytest.raises(PrivacyError, match="one of these shares"):
        Division.uniform((3, 3), 17)


@pytest.mark.parametrize(("users", "items"), [(20_000, 20), (20, 20_000)], ids=["few items", "few people"])
def test_a_side_of_few_rows_is_heard_though_it_needs_a_small_share_alone(users, items):
    """A fiftieth of every weight is enough for rows of thousands of ratings; rounded to nothing, they would be lost."""
    mask = mask_of(users, items, 260_000)
    division = allocate(mask, STARS, 0.7).division
    sizes = DividedIncidence(MemoryTable(mask), division).sizes()
    few = sizes.item if items < users else sizes.user
    assert few.min() > 20
    assert few.sum() < 0.1 * mask.n_ratings


def share_asked(mask, epsilon):
    """How many ratings are asked one by one."""
    division = allocate(mask, STARS, epsilon).division
    return 0.0 if division is None else np.mean([division.asks(block).mean() for block in MemoryTable(mask).scan()])


def test_more_ratings_are_asked_one_by_one_the_larger_the_budget_without_a_jump():
    shares = [share_asked(MASKS["many"], epsilon) for epsilon in (0.1, 0.5, 1.0, 1.2, 1.5, 2.0, 3.0, 6.0)]
    assert shares[0] == 0
    assert shares[-1] > 0.95
    assert (np.diff(shares) > -0.02).all()
    assert sum(0.05 < share < 0.95 for share in shares) >= 2


def test_where_four_in_five_are_asked_all_are():
    shares = [share_asked(MASKS["many"], epsilon) for epsilon in np.linspace(1.0, 3.0, 9).tolist()]
    assert any(0.6 < share < 0.81 for share in shares)
    assert all(share < 0.81 or share == 1 for share in shares)


def test_rows_with_few_ratings_leave_their_weight_to_partners_with_many():
    """One item that everybody rated, and people with two ratings: at a small budget their sums can tell nothing."""
    people, items = 400, 40
    cells = np.sort(np.concatenate([np.arange(people) * items, np.arange(people) * items + 1 + np.arange(people) % 39]))
    mask = Mask.of_cells(cells, *(pa.array(np.arange(size, dtype=np.int64)) for size in (people, items)))
    division = allocate(mask, STARS, 0.5).division
    assert division.item[division.item_class[0], division.user_class[0]] >= 15


def error_by_hand(mask, tables, prices, p):
    """Oracle: the docstring's formula, one pair of octaves at a time, octaves by the number of binary digits."""
    sides = []
    for counts in (mask.item_counts, mask.user_counts):
        place = [int(n).bit_length() - 1 for n in counts if n]
        sides.append({
            k: (place.count(k), sum(int(n) for n in counts if n and int(n).bit_length() - 1 == k)) for k in {*place}
        })  # fmt: skip
    N, s, light = mask.n_ratings, 0.6, tables.light
    var = 0.45 * 0.64 + 0.36 * 0.1

    def rows(side):
        """Of every octave: rows, share of ratings, information of sums, others that are asked."""
        own, other = (sides[0], sides[1]) if side == "item" else (sides[1], sides[0])
        for k, (n_rows, total) in own.items():
            n, A, Q, S, twice = total / n_rows - 1, 0.0, 0.0, 0.0, 0.0
            for o, (_, there) in other.items():
                a, b = (k, o) if side == "item" else (o, k)
                h = (1 - tables.pooled) * (tables.item[a, b] if side == "item" else 1 - tables.item[a, b])
                asked = tables.asked[a, b]
                A += n * there / N * h * (1 - asked + light * asked)
                Q += n * there / N * h**2 * (1 - asked + light**2 * asked)
                S += n * there / N * asked
                twice += n * there / N * h * light * asked
            told = (s * A) ** 2 / (prices.noise + var * Q + 1e-12) * (1 - prices.rho * twice / max(A, 1e-12))
            yield n_rows, total / N, told, S

    effects = (("item", p.item, p.item_slopes), ("user", p.user, p.user_slopes))
    V = p.residual + p.products + p.item_slopes + p.user_slopes + p.hidden
    V += sum(m * T / (1 + T * told) for side, T, _ in effects for _, m, told, _ in rows(side))
    i = 1 / (p.residual + V * (1 - prices.rho) / prices.rho) if prices.rho else 0.0
    error, shared = p.residual, 0.0
    for side, T, slopes in effects:
        for n_rows, m, told, S in rows(side):
            error += m * T / (1 + T * (told + S * i)) + m * slopes / (1 + slopes * S * i / 6)
            shared += n_rows * (told + S * i) / (1 + T * (told + S * i))
    for T in (p.hidden / 2, 3 * p.hidden / 2):
        R = {"item": 1.0, "user": 1.0}
        for _ in range(500):
            for side, other in (("item", "user"), ("user", "item")):
                x = [(m, T * S * i / 6 * R[other]) for _, m, _, S in rows(side)]
                R[side] = sum(m * known / (1 + known) for m, known in x)
        error += T / 2 * (1 - R["item"] * R["user"])
    asked = sum(ta * tb / N * tables.asked[a, b] for a, (_, ta) in sides[0].items() for b, (_, tb) in sides[1].items())
    reach, scatter = (tables.pooled**k * (N - asked + light**k * asked) / 121 for k in (1, 2))
    known = asked * i + (s * 3.0 * reach) ** 2 / (prices.noise + var * scatter + 1e-12)
    return error + p.features / (1 + p.features / 30 * shared) + p.products / (1 + p.products / 64 * known)


def some_tables(seed, light, pooled=0.0):
    rng = np.random.default_rng(seed)
    return ShareTables(rng.random((OCTAVES, OCTAVES)), rng.random((OCTAVES, OCTAVES)), light, pooled)


def expected(mask, tables, prices, p=None):
    p = p or Components()
    items, users = Side.of(mask.item_counts, p.item, p.item_slopes), Side.of(mask.user_counts, p.user, p.user_slopes)
    return expected_error(items, users, tables, prices, p.shares)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("light", "pooled"), [(0.0, 0.0), (0.1, 0.0), (0.1, 0.2)])
def test_the_expected_error_is_the_stated_formula(name, light, pooled):
    tables, prices = some_tables(3, light, pooled), Prices(4.0, 0.3)
    found, _ = expected(MASKS[name], tables, prices)
    assert found == pytest.approx(error_by_hand(MASKS[name], tables, prices, Components()), rel=1e-9)
    assert expected(MASKS[name], tables, Prices(4.0, 0.0))[0] > found - 1e-12


@pytest.mark.parametrize("structure", [0.0, 0.3])
def test_the_expected_error_knows_tastes_that_the_mask_does_not_show(structure):
    """Dense rows with little noise: there the fixed point is quick, and tastes are found."""
    parts, prices = Components().with_structure(structure), Prices(4.0, 0.9)
    tables = some_tables(5, 0.1)
    found, _ = expected(MASKS["many"], tables, prices, parts)
    assert found == pytest.approx(error_by_hand(MASKS["many"], tables, prices, parts), rel=1e-6)
    assert found > expected(MASKS["many"], tables, prices)[0], "what does not show is harder to learn"


def test_hidden_tastes_are_worth_nothing_below_a_threshold_and_much_above_it():
    parts, half = Components().with_structure(0.0), np.full((OCTAVES, OCTAVES), 0.5)
    open_ = [
        expected(MASKS["many"], ShareTables(half, np.ones_like(half), 0.0, 0.0), Prices(1e9, rho), parts)[0]
        - expected(MASKS["many"], ShareTables(half, np.ones_like(half), 0.0, 0.0), Prices(1e9, rho), NO_TASTE)[0]
        for rho in (0.02, 0.05, 0.9)
    ]
    assert open_[:2] == pytest.approx([0.0, 0.0], abs=1e-3), "as much as if there were no tastes, only more noise"
    assert open_[2] < -0.05


NO_TASTE = Components(residual=0.65, products=0.0, user_slopes=0.0, item_slopes=0.0)


def test_structure_moves_tastes_between_what_shows_and_what_is_hidden():
    usual = Components()
    half = usual.with_structure(0.5)
    assert half.hidden == pytest.approx(0.075)
    assert (half.products, half.user_slopes) == (usual.products / 2, usual.user_slopes / 2)
    assert usual.with_structure(1.0) == usual


def test_some_of_the_ratings_asked_one_by_one_are_dealt_whatever_their_counts():
    """Else slopes would be learned on one kind of partner and used on another."""
    tables, _ = best_tables(MASKS["people"], STARS, 1.7)
    items, users = (Side.of(c, 0.1, 0.1).mass for c in (MASKS["people"].item_counts, MASKS["people"].user_counts))
    mean = items @ tables.asked @ users
    assert 0 < mean < 1
    assert tables.asked.min() >= 0.4 * (1 - mean) * mean - 1e-9


def census_of(times):
    """So many copies of 400 people with 150 ratings each, of 300 items with 200."""
    users, items = np.full(400 * times, 150), np.full(300 * times, 200)
    return Census(pa.array(np.arange(len(users))), pa.array(np.arange(len(items))), users, items)


def promised(mask, epsilon, monkeypatch):
    """By how much less error than sums alone the best division with ratings asked one by one is expected to have."""
    with monkeypatch.context() as anything:
        anything.setattr(allocation, "_WORTH", -1.0)
        return tables_in_sums(mask, epsilon)[1] - best_tables(mask, STARS, epsilon)[1]


@pytest.mark.parametrize("mask", [mask_of(60, 50, 1_000), MASKS["people"], MASKS["many"], census_of(1), census_of(40)])
def test_ratings_are_asked_one_by_one_where_they_promise_enough(mask, monkeypatch):
    """A sixtieth of the variance on large sets, and less where sums of few ratings must be learned as well."""
    enough = 0.016 / (1 + 5_000 / mask.n_ratings)

    def asks(epsilon):
        return bool(best_tables(mask, STARS, epsilon)[0].asked.any())

    for epsilon in (0.7, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0):
        assert asks(epsilon) == (promised(mask, epsilon, monkeypatch) > enough)
    low, high = 0.7, 3.0
    assert not asks(low)
    assert asks(high)
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if asks(middle) else (middle, high)
    assert promised(mask, high, monkeypatch) == pytest.approx(enough, rel=0.02)


def test_a_thousand_ratings_are_asked_for_a_promise_that_is_too_little_for_a_million(monkeypatch):
    few, many = mask_of(60, 50, 1_000), census_of(40)
    assert promised(few, 2.0, monkeypatch) < promised(many, 0.9, monkeypatch) < 0.016
    assert best_tables(few, STARS, 2.0)[0].asked.any()
    assert not best_tables(many, STARS, 0.9)[0].asked.any()


def test_a_fixed_share_of_nobody_is_the_best_that_sums_alone_can_do():
    """Also where the rule would ask everybody, whose weights are divided for something else."""
    mask, none = MASKS["many"], fixed_share(0.0, 0.0, MASKS["many"], STARS, 3.0)
    assert allocate(mask, STARS, 3.0).asks_ratings
    assert not none.asks_ratings
    best = divide(mask, tables_in_sums(mask, none.rest)[0])
    np.testing.assert_array_equal(none.division.item, best.item)
    assert none.division.pooled == best.pooled


def test_the_gradient_is_that_of_the_expected_error():
    """Central differences, one pair of octaves at a time, where no rating is in both answers."""
    mask, tables, prices, step = MASKS["people"], some_tables(4, 0.0), Prices(4.0, 0.3), 1e-5
    _, gains = expected(mask, tables, prices)
    items, users = (Side.of(c, 0.1, 0.1).mass for c in (mask.item_counts, mask.user_counts))
    for a, b in [(int(a), int(b)) for a in np.flatnonzero(items) for b in np.flatnonzero(users)][::3]:
        for field, gain in (("item", gains.to_item - gains.to_user), ("asked", gains.one_by_one - gains.in_sums)):
            moved = []
            for side in (1, -1):
                table = getattr(tables, field).copy()
                table[a, b] += side * step
                moved.append(expected(mask, tables._replace(**{field: table}), prices)[0])
            slope = (moved[1] - moved[0]) / (2 * step) / (items[a] * users[b])
            assert gain[a, b] == pytest.approx(slope, rel=1e-3, abs=1e-7)


def test_sums_over_all_ratings_are_bought_where_so_many_ratings_feed_them():
    """They cost every row the same and tell more the more ratings there are; without tastes in the mask, nothing."""
    weights = [allocate(census_of(times), STARS, 0.5).division.pooled for times in (1, 5, 40)]
    assert weights[0] == 0
    assert 0 < weights[2] < weights[1], "with more ratings a smaller weight tells as much"
    assert allocate(census_of(40), STARS, 0.5, Components().with_structure(0.0)).division.pooled == 0
    assert allocate(census_of(40), STARS, 5.0).division.pooled == 0, "everybody is asked, nobody is left for them"


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 6.0])
def test_no_fixed_share_promises_more_than_the_rule(epsilon):
    for name in ("people", "many", "sparse"):
        mask = MASKS[name]
        tables, error = best_tables(mask, STARS, epsilon)
        half, light = np.full((OCTAVES, OCTAVES), 0.5), min(0.1, 0.2 / epsilon)
        assert error == pytest.approx(expected(mask, tables, _prices(epsilon, tables.light))[0], abs=2e-3)
        for asked in (0.0, 0.3, 0.6, 1.0):
            fixed = ShareTables(half, np.full_like(half, asked), light if asked else 0.0, 0.0)
            assert error <= expected(mask, fixed, _prices(epsilon, fixed.light))[0] + WORTH


WORTH = 0.018 + 3e-4
"""What ratings asked one by one must promise, and what a few steps do not find."""


def _prices(epsilon, light):
    return Prices(8 * (0.8 / epsilon) ** 2, explained_share(STARS, (1 - light) * epsilon) if light else 0.0)


def mean_by_hand(mask, s):
    """Oracle: 10 half-widths squared from four bins, 8 from one sum, a typical variance of 0.13; shrunk."""
    noise = (62 if s.division is None else 77) / (mask.n_ratings * s.histogram) ** 2
    return 0.8 * noise / (0.8 + noise)


@pytest.mark.parametrize("name", MASKS)
def test_the_mean_is_bought_alone_exactly_where_that_promises_more(name):
    """Both sides of the rule; where no information reaches anybody, one is what everything else leaves."""
    mask, alone = MASKS[name], []
    for epsilon in np.geomspace(0.001, 5, 14).tolist():
        s = allocate(mask, STARS, epsilon)
        alone.append(s.division is None)
        if alone[-1]:
            assert (s.histogram, s.rest) == (epsilon, 0.0)
            usual = Allocation(epsilon / 2, epsilon / 2, "divided")
            _, error = best_tables(mask, STARS, epsilon / 2)
            assert 1 + mean_by_hand(mask, s) < error + mean_by_hand(mask, usual) + 1e-4
        else:
            _, error = best_tables(mask, STARS, s.rest)
            assert error + mean_by_hand(mask, s) <= 1 + mean_by_hand(mask, Allocation(epsilon, 0.0, None)) + 1e-4
    assert alone == sorted(alone, reverse=True), "once more than the mean is worth buying it stays so"
    assert alone[0]
    assert not alone[-1] or name == "tiny", "five ratings tell nothing but their mean"


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_forecast_is_the_expected_error_and_its_parts_add_up(epsilon):
    mask, p = MASKS["sparse"], Components()
    s = allocate(mask, STARS, epsilon)
    found = forecast(mask, STARS, epsilon)
    error = 1.0 if s.division is None else best_tables(mask, STARS, s.rest)[1]
    assert found.share == pytest.approx(np.sqrt(error + mean_by_hand(mask, s)), rel=1e-6)
    assert found.unknowable == p.residual
    clear = ShareTables(np.full((OCTAVES, OCTAVES), 0.5), np.ones((OCTAVES, OCTAVES)), 0.0, 0.0)
    best = error_by_hand(mask, clear, Prices(0.0, 1.0), p)
    assert found.unknowable + found.learning == pytest.approx(best, rel=1e-6)
    assert found.noise >= 0


@pytest.mark.parametrize("name", MASKS)
def test_more_epsilon_never_forecasts_a_worse_share(name):
    shares = [f.share for f in DPSR.plan(MASKS[name], STARS, np.geomspace(0.01, 25, 20).tolist())]
    assert max(np.diff(shares)) <= 2e-4, "what a few steps do not find is less than that"
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
    taste = Components(residual=0.28, features=0.06, item=0.05, user=0.05, user_slopes=0.27, item_slopes=0.27)
    usual, other = (DPSR.plan(MASKS["many"], STARS, [10.0], c)[0].share for c in (None, taste))
    assert other < usual


@pytest.mark.parametrize("epsilon", [0, -1.0, np.inf, np.nan])
def test_no_epsilon_that_is_none_is_planned_for(epsilon):
    with pytest.raises(PrivacyError, match="epsilon"):
        allocate(MASKS["tiny"], STARS, epsilon)


def test_ratings_are_asked_in_turns_where_there_are_many_and_channels_hide_something():
    """Then the sums have next to nothing of them; all at once on few, and where channels hide hardly a thing."""
    many = allocate(census_of(40), STARS, 3.0)
    assert many.turns.number > 1
    assert sum(many.turns.shares) == 256
    assert many.division.light == 1
    for few_or_clear in (allocate(even_census(152), STARS, 3.0), allocate(census_of(40), STARS, 12.0)):
        assert few_or_clear.turns.number == 1
        assert few_or_clear.division.light > 1


@pytest.mark.parametrize(("each", "light"), [(292, 17), (308, 1)])
def test_the_sums_have_next_to_nothing_from_thirty_thousand_ratings_on(each, light):
    """A fifth of epsilon = 3 over three before: below, sums are what the first turn's channels rest on."""
    several = allocate(even_census(each), STARS, 3.0)
    assert several.turns.number == 3
    assert several.division.light == light


def even_census(each):
    """A hundred people with so many ratings each, of 400 items that all have as many."""
    return Census(pa.array(np.arange(100)), pa.array(np.arange(400)), np.full(100, each), np.full(400, each // 4))
