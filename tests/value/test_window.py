"""The window of a sum: moments against plain sums and sampling, the width against brute force, turns and views."""

import numpy as np
import pyarrow as pa
import pytest

from dpsr.engine import MemoryTable
from dpsr.engine.incidence import ColumnStack, DividedIncidence, Division
from dpsr.types import Mask
from dpsr.value.levels import GRID, choose_window, tabulate, window_moments, with_variance
from dpsr.value.windows import CENTRES, ExpectedRatings, Scatter, around_expected, around_mean, in_turns, read_again


def family_of(n, variance=0.15, seed=0):
    y = np.linspace(-1, 1, n)
    return with_variance(y, np.random.default_rng(seed).normal(0, 0.3, n), variance, np.array([0.2]))


def moments_by_hand(family, point, c):
    """Oracle: sums over levels, one at a time."""
    p, m, v, step = family.table[point], family.means[point], family.variance[point], family.y[1] - family.y[0]
    mean = second = covariance = inside = 0.0
    for q, y in zip(p, family.y, strict=True):
        cut = min(max(y - m, -c), c)
        mean, second, covariance = mean + q * cut, second + q * cut**2, covariance + q * cut * (y - m)
        low, high = max(y - m - step / 2, -c), min(y - m + step / 2, c)
        inside += q * max(high - low, 0) / step
    return mean, max(covariance / v, inside), second - mean**2


@pytest.mark.parametrize("n", [2, 5, 10, 101])
@pytest.mark.parametrize("c", [0.1, 0.4, 1.0, 2.0])
def test_window_moments_are_those_of_a_plain_sum(n, c):
    family = family_of(n)
    for point in (8, 30, 41):
        np.testing.assert_allclose(window_moments(family, point, c), moments_by_hand(family, point, c), atol=1e-9)


def test_window_moments_are_those_of_a_large_sample():
    """Distribution test: and a window five per cent wider would be rejected."""
    family, point, c = family_of(101), 36, 0.35
    d = np.random.default_rng(1).choice(family.y, 200_000, p=family.table[point]) - family.means[point]
    cut = np.clip(d, -c, c)
    mean, _, variance = window_moments(family, point, c)
    assert cut.mean() == pytest.approx(mean, abs=4 * cut.std() / np.sqrt(len(cut)))
    assert cut.var() == pytest.approx(variance, rel=0.01)
    assert cut.var() != pytest.approx(window_moments(family, point, 1.05 * c)[2], rel=0.01)


@pytest.mark.parametrize("c", [0.2, 0.7, 1.3])
def test_for_two_levels_the_slope_is_the_derivative_of_the_clipped_mean(c):
    family = tabulate(np.array([-1.0, 1.0]), np.zeros(2), 0.0)
    for point in (15, 30, 45):
        cut = np.clip(family.y - family.means[point], -c, c)
        derivative = (family.table[point + 1] - family.table[point - 1]) @ cut / (2 * family.spacing)
        assert window_moments(family, point, c)[1] == pytest.approx(derivative, rel=1e-6)


def test_the_slope_is_never_below_the_derivative_under_a_tilt():
    family = family_of(11)
    for c in (0.2, 0.5, 1.0):
        for point in range(10, 50, 5):
            cut = np.clip(family.y - family.means[point], -c, c)
            derivative = (family.table[point + 1] - family.table[point - 1]) @ cut / (2 * family.spacing)
            assert window_moments(family, point, c)[1] >= derivative - 0.01


def test_on_a_fine_scale_the_slope_is_the_share_of_mass_inside_the_window():
    """Moving a Gaussian by dm moves the clipped mean by P[inside] dm."""
    family = with_variance(np.linspace(-1, 1, 201), np.zeros(201), 0.04, np.zeros(1))
    slope = window_moments(family, 30, 0.2)[1]
    assert slope == pytest.approx(0.6827, abs=0.01)


def test_a_window_as_wide_as_the_scale_clips_nothing():
    family = family_of(5)
    mean, slope, variance = window_moments(family, 33, 2.0)
    assert mean == pytest.approx(0, abs=1e-9)
    assert slope == pytest.approx(1)
    assert variance == pytest.approx(family.variance[33], rel=1e-6)


def loss_by_hand(family, point, epsilon, counts, t, c):
    _, slope, variance = moments_by_hand(family, point, c)
    total = 0.0
    for n in counts:
        if n > 0:
            error = (2 * (2 * c / epsilon) ** 2 / n**2 + variance / n) / slope**2
            total += n * t * error / (t + error)
    return total


@pytest.mark.parametrize("n", [2, 5, 10, 101])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
def test_the_chosen_window_is_as_good_as_brute_force_finds(n, epsilon):
    """Within two per cent of the least loss over two hundred widths from three quarters of a deviation on."""
    family, point = family_of(n), 36
    counts = np.r_[0, np.geomspace(1, 300, 25)]
    chosen = choose_window(family, point, epsilon, counts, 0.02)
    deviation = np.sqrt(family.variance[point])
    widths = np.minimum(np.geomspace(0.75, 4.5, 200) * deviation, 2.0)
    best = min(loss_by_hand(family, point, epsilon, counts, 0.02, c) for c in widths)
    assert 0.75 * deviation * (1 - 1e-9) <= chosen <= 2.0
    assert loss_by_hand(family, point, epsilon, counts, 0.02, chosen) <= 1.02 * best


@pytest.mark.parametrize("n", [5, 101])
def test_of_the_widths_it_tries_the_best_is_taken(n):
    """Exactly, at every epsilon: a wrong factor at the noise would shift the choice somewhere."""
    family, point, counts = family_of(n), 33, np.r_[0, 1, 2, 5, 9, 20, 40, 77, 150]
    tried = np.minimum(np.geomspace(0.75, 4.5, 10) * np.sqrt(family.variance[point]), 2.0)
    chosen = set()
    for epsilon in np.geomspace(0.02, 20, 25):
        best = min(tried, key=lambda c, e=epsilon: loss_by_hand(family, point, e, counts, 0.03, c))
        assert choose_window(family, point, epsilon, counts, 0.03) == pytest.approx(best)
        chosen.add(float(best))
    assert len(chosen) > 2


def test_the_window_is_narrower_the_smaller_epsilon():
    family, counts = family_of(101), np.geomspace(1, 300, 25)
    widths = [choose_window(family, 36, e, counts, 0.02) for e in (0.01, 0.1, 0.5, 2.0, 10.0, 100.0)]
    assert (np.diff(widths) >= 0).all()
    assert widths[-1] > 1.5 * widths[0]


@pytest.fixture(scope="module")
def busy_and_others():
    """Forty people, of whom four rated nearly all of sixty items and the others two or three."""
    rng = np.random.default_rng(3)
    dense = rng.random((40, 60)) < 0.05
    dense[:4] |= rng.random((4, 60)) < 0.9
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in dense.shape)
    return MemoryTable(Mask.of_cells(np.flatnonzero(dense.ravel()), *ids))


def weights_of(table, item=96):
    return DividedIncidence(table, Division.uniform(table.census.shape, item))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_every_sum_is_in_one_turn_and_rows_that_are_known_best_come_first(busy_and_others, epsilon):
    sizes = weights_of(busy_and_others).sizes()
    turns = in_turns(busy_and_others.census, sizes, epsilon)
    for side, weight in (("items", sizes.item), ("users", sizes.user)):
        parts = [getattr(turn.rows, side) for turn in turns]
        np.testing.assert_array_equal(np.sum(parts, axis=0), 1)
        if len(turns) == 2 and parts[0].any() and parts[1].any():
            assert weight[parts[0]].min() > weight[parts[1]].max()
    known = 0.12 * (0.6 * sizes.user) ** 2 / (8 * (0.8 / epsilon) ** 2) >= 8
    wanted = known if 0 < known.sum() < 40 else np.ones(40, dtype=bool)
    np.testing.assert_array_equal(turns[0].rows.users, wanted)


@pytest.mark.parametrize("epsilon", [1e-3, 1e3])
def test_where_all_rows_are_known_alike_all_sums_are_asked_at_once(busy_and_others, epsilon):
    """A second turn would wait for the first one's answer, and hear nothing from it or say nothing new."""
    (turn,) = in_turns(busy_and_others.census, weights_of(busy_and_others).sizes(), epsilon)
    assert turn.rows.items.all()
    assert turn.rows.users.all()
    assert turn.least_width == 0.75


def some_expectation(table):
    """Means all over the scale and beyond, as user rows times item rows."""
    rng, (m, n) = np.random.default_rng(4), table.census.shape
    left, right = rng.normal(0, 0.5, (m, 3)), rng.normal(0, 0.7, (n, 3))
    return ExpectedRatings(family_of(10), ColumnStack((left[:, :1], left[:, 1:])), right), left @ right.T


def alike(family, table):
    """Scatter of ratings that all have one family."""
    m, n = table.census.shape
    return Scatter(family, family, np.zeros(m), np.zeros(n))


def shown(family, centre, c, eta):
    """Oracle: the mean of a clipped rating whose own mean is eta, between the two means of the family beside it.

    It rises by the slope of the window at its centre.
    """
    clipped, point = [min(max(y - centre, -c), c) for y in family.y], int(np.abs(family.means - centre).argmin())
    means = [sum(p * x for p, x in zip(law, clipped, strict=True)) for law in family.table]
    tilt = (means[point + 1] - means[point - 1]) / (family.means[point + 1] - family.means[point - 1])
    steeper = window_moments(family, point, c)[1] - tilt
    return np.interp(eta, family.means, means) + steeper * (np.clip(eta, *family.means[[0, -1]]) - centre)


def read_by_hand(mask, scatter, eta, view, windows, c):
    """Rating by rating, with weights of 3/8 and 5/8 and a mean of 0.1."""
    items, users = np.zeros(mask.n_items), np.zeros(mask.n_users)
    for u, j, window in zip(mask.users, mask.items, windows, strict=True):
        unsure, centre = scatter.users[u] + scatter.items[j], view.centres[window]
        known, unknown = (shown(family, centre, c, eta[u, j]) for family in (scatter.known, scatter.unknown))
        at_mean = (1 - unsure) * known + unsure * unknown - view.gain * (eta[u, j] - 0.1)
        items[j] += 0.375 * at_mean
        users[u] += 0.625 * at_mean
    return items, users


def uneven_scatter():
    """The less is known of a row, the more its ratings scatter."""
    rng = np.random.default_rng(8)
    return Scatter(family_of(10), family_of(10, variance=0.3), rng.random(40) / 2, rng.random(60) / 2)


def test_a_rating_is_seen_through_the_window_around_what_is_expected_of_it(busy_and_others):
    """Oracle: rating by rating; at the centres nothing is closer."""
    table, mask, scatter = busy_and_others, busy_and_others.mask, uneven_scatter()
    expected, eta = some_expectation(table)
    view, at_mean = around_expected(table, weights_of(table), expected, scatter, 0.1, 0.3, "choice")
    np.testing.assert_array_equal(view.centres, expected.around.means[CENTRES])
    moments = np.array([window_moments(expected.around, int(point), 0.3) for point in CENTRES])
    nearest = [int(np.abs(view.centres - eta[u, j]).argmin()) for u, j in zip(mask.users, mask.items, strict=True)]
    near_an_end = np.abs(view.centres[nearest]) > 0.85
    off = np.abs(view.centres[table["choice"]] - eta[mask.users, mask.items])
    best = np.abs(view.centres[nearest] - eta[mask.users, mask.items])
    assert (off <= best + expected.around.spacing).all()
    assert near_an_end.any()
    seen = moments[table["choice"]]
    assert view.gain == pytest.approx(seen[:, 1].mean())
    assert view.spread == pytest.approx(seen[:, 2].mean())
    items, users = read_by_hand(mask, scatter, eta, view, table["choice"], 0.3)
    np.testing.assert_allclose(at_mean.items, items)
    np.testing.assert_allclose(at_mean.users, users)


def test_sums_are_read_again_where_ratings_are_expected_by_now(busy_and_others):
    """Oracle: rating by rating. Windows stay where they are, one or several; nothing is asked and no column changes."""
    table, mask, scatter = busy_and_others, busy_and_others.mask, uneven_scatter()
    weights, (before, eta) = weights_of(table), some_expectation(table)
    several, _ = around_expected(table, weights, before, scatter, 0.1, 0.3, "choice")
    chosen = table["choice"].copy()
    now = ExpectedRatings(before.around, before.left, 0.5 * before.right + 0.1)
    eta = eta / 2 + 0.1 * np.hstack([*before.left.parts]).sum(axis=1)[:, None]
    one = around_mean(family_of(10), 0.1, 0.4)
    for view, windows, c in ((several, chosen, 0.3), (one, 0 * chosen, 0.4)):
        again = read_again(view, table, weights, now, scatter, 0.1)
        items, users = read_by_hand(mask, scatter, eta, view, windows, c)
        np.testing.assert_allclose(again.items, items)
        np.testing.assert_allclose(again.users, users)
    np.testing.assert_array_equal(table["choice"], chosen)


def test_one_window_is_the_case_in_which_the_mean_is_expected_everywhere(busy_and_others):
    """Where the mean of all is one of the centres, both views read the same."""
    table, family = busy_and_others, family_of(10)
    weights, mean = weights_of(table), float(family.means[CENTRES[11]])
    nobody = ColumnStack((np.ones((40, 1)),))
    expected = ExpectedRatings(family, nobody, np.full((60, 1), mean))
    seen, at_mean = around_expected(table, weights, expected, alike(family, table), mean, 0.4, "c")
    plain, sizes = around_mean(family, mean, 0.4), weights.sizes()
    assert (seen.gain, seen.spread) == pytest.approx((plain.gain, plain.spread))
    np.testing.assert_allclose(at_mean.items, plain.level * sizes.item)
    np.testing.assert_allclose(at_mean.users, plain.level * sizes.user)


def test_ratings_scatter_the_more_the_less_is_known_of_their_rows(busy_and_others):
    """By all that was believed of both effects where nothing is known of them; where they are known, not at all."""
    table, mask = busy_and_others, busy_and_others.mask
    asked = []

    def around(variance):
        asked.append(variance)
        return family_of(10, variance)

    users, items = np.linspace(0, 0.02, 40), np.linspace(0, 0.03, 60)
    scatter = Scatter.of(users, items, most=0.05, residual=0.1, around=around)
    assert asked == pytest.approx([0.1, 0.1 + 0.05])
    unsure = scatter.unsure(next(iter(table.scan())))
    np.testing.assert_allclose(unsure, (users[mask.users] + items[mask.items]) / 0.05)
    assert unsure.max() <= 1


def test_of_ratings_that_scatter_more_a_window_sees_less_of_the_tail():
    """Where a few hate what most like, more of the mean lies outside a window the wider ratings scatter."""
    y = np.linspace(-1, 1, 11)
    log_base = np.where(y < 0, -1.5, 0.0) - (y - 0.5) ** 2
    near, far = (with_variance(y, log_base, variance, np.array([0.4])) for variance in (0.08, 0.2))
    point = near.nearest(np.array([0.4]))[0]
    assert window_moments(far, int(point), 0.2)[0] > window_moments(near, int(point), 0.2)[0] + 0.01


def test_sums_of_ratings_where_they_are_expected_say_the_mean(busy_and_others):
    """Distribution test: levels drawn around what is expected, summed through the windows, are read as they were drawn.

    Reading them around the mean of all, or without the slope, is off by more than twenty deviations.
    """
    table, mask, rng, half = busy_and_others, busy_and_others.mask, np.random.default_rng(5), 0.35
    expected, eta = some_expectation(table)
    eta = np.clip(eta, -0.7, 0.7)
    family, weights, runs = expected.around, weights_of(table), 400
    view, _ = around_expected(table, weights, expected, alike(family, table), 0.1, half, "choice")
    inside = np.abs(some_expectation(table)[1][mask.users, mask.items]) < 0.7
    points = family.nearest(eta[mask.users, mask.items])
    centres = view.centres[table["choice"]]
    total = np.zeros(runs)
    for e in np.flatnonzero(inside):
        y = rng.choice(family.y, size=runs, p=family.table[points[e]])
        total += np.clip(y - centres[e], -half, half)
    moments = np.array([window_moments(family, int(point), half) for point in CENTRES])[table["choice"]]
    at_mean = (moments[:, 0] - view.gain * (centres - 0.1))[inside].sum()
    said, true = (total - at_mean) / view.gain, (family.means[points[inside]] - 0.1).sum()
    assert abs(said.mean() - true) < 5 * said.std() / np.sqrt(runs) + 0.02 * inside.sum()
    assert abs((total - moments[inside, 0].sum()).mean() / view.gain - true) > 20 * said.std() / np.sqrt(runs)


def test_what_is_read_where_ratings_are_is_right_where_a_window_is_far_from_linear(busy_and_others):
    """Distribution test: ratings that lie far from a narrow window around the mean of all.

    Read where they are, sums say their mean; read as if a rating in the window moved on like one outside, they are off
    by more than twenty deviations.
    """
    table, mask, rng, half, runs = busy_and_others, busy_and_others.mask, np.random.default_rng(6), 0.25, 400
    family, weights, (m, n) = family_of(10), weights_of(table), busy_and_others.census.shape
    view = around_mean(family, 0.1, half)
    point = int(family.nearest(np.array([0.6]))[0])
    far = ColumnStack((np.where(np.arange(m) < 4, family.means[point], 0.1)[:, None],))
    expected = ExpectedRatings(family, far, np.ones((n, 1)))
    at_mean = read_again(view, table, weights, expected, alike(family, table), 0.1)
    busy = np.flatnonzero(mask.users == 0)
    true = 0.625 * len(busy) * (family.means[point] - 0.1)
    drawn = np.clip(rng.choice(family.y, (runs, len(busy)), p=family.table[point]) - view.centres[0], -half, half)
    total = 0.625 * drawn.sum(axis=1)
    again, linear = (total - at_mean.users[0]) / view.gain, (total - 0.625 * len(busy) * view.level) / view.gain
    error = again.std() / np.sqrt(runs)
    assert abs(again.mean() - true) < 5 * error
    assert abs(linear.mean() - true) > 20 * error


def test_centres_are_spread_over_the_family():
    assert len(CENTRES) == 20
    assert CENTRES[0] == 1
    assert CENTRES[-1] == GRID - 3
