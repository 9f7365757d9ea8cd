"""What one person adds: integer vectors inside their bound whatever the ratings are, extremal people that reach it."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.one_rating import moved
from dpsr.certify.people import GRID, MOMENT, MOMENTS, MOST_NAMED, NAMES
from dpsr.linalg.own_regression import PeopleRows
from dpsr.privacy.vault.people import contributions as add
from dpsr.privacy.vault.people.contributions import ACTIVITY_REACH, coefficients_reach
from dpsr.types.item_side import ACTIVITY_BINS, CENTRE, activity_of, hashes

CELLS, T, K, D = 1 << 17, 240, 4, 2
"""Cells, those with second moments, coefficients, factors among them."""

SQUARED_BOUNDS = dict.fromkeys(["levels", "activity", "scores", "coefficients", NAMES], GRID**2) | {
    MOMENTS: MOMENT**4 // 2
}
QUESTIONS = list(SQUARED_BOUNDS)

_rng = np.random.default_rng(7)
FEATURES, PLACE = _rng.normal(size=(CELLS, K - 1)), np.where(np.arange(CELLS) < T, np.arange(CELLS), -1)
PRIOR = np.diag([0.5, 0.2, 0.1, 0.1])
ORDER = _rng.permutation(CELLS).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Person:
    """Rows on ascending cells, and what a regression may have said about them, right or absurd."""

    cells: np.ndarray
    y: np.ndarray
    z: np.ndarray
    h: np.ndarray
    f: np.ndarray
    W: np.ndarray
    V: np.ndarray


def person(n, seed=0, *, y=None, z=None, f=None, W=None, V=None, first=False):
    """Somebody with n rows; `first`: on the first n cells."""
    rng = np.random.default_rng(seed)
    cells = np.arange(n) if first else np.sort(rng.choice(CELLS if n > T else T, n, replace=False))
    root = 0.3 * rng.normal(size=(K, K))

    def filled(value, default):
        return default if value is None else np.full_like(default, value)

    return Person(
        cells.astype(np.int64),
        filled(y, rng.uniform(-1, 1, n)),
        filled(z, rng.normal(size=n)),
        rng.uniform(0, 1, n),
        filled(f, rng.normal(size=D)),
        filled(W, rng.normal(size=K)),
        filled(V, root @ root.T),
    )


def asked(name, people, kernels=add, most=MOST_NAMED):
    """The sums over some people, by the vault's kernel (or by another module of kernels)."""
    indptr = np.concatenate([[0], np.cumsum([len(one.cells) for one in people])]).astype(np.int64)

    def rows(field):
        return np.concatenate([getattr(one, field) for one in people])

    def stacked(field):
        return np.stack([getattr(one, field) for one in people])

    if name == "levels":
        out = np.zeros(5, np.int64)
        kernels.add_levels(indptr, rows("y"), out)
    elif name == "activity":
        out = np.zeros((ACTIVITY_BINS, 2), np.int64)
        kernels.add_activity(indptr, rows("y"), activity_of(np.diff(indptr)), out)
    elif name == "scores":
        out = np.zeros((CELLS, D + 2), np.int64)
        how = (FEATURES, np.array([1.5, 2.5]), 0.7, 2.0)
        kernels.add_scores(indptr, rows("cells"), rows("z"), rows("h"), stacked("f"), stacked("V"), *how, out)
    elif name == "coefficients":
        out = np.zeros(3 * K + K * (K + 1) // 2, np.int64)
        kernels.add_coefficients(indptr, stacked("W"), stacked("V"), np.zeros(K), PRIOR, coefficients_reach(K), out)
    elif name == MOMENTS:
        out = np.zeros((T, T), np.int64)
        kernels.add_second_moments(indptr, rows("cells"), rows("z"), PLACE, 0.1, out)
    else:
        out = np.zeros(CELLS, np.int64)
        kernels.add_names(indptr, rows("cells"), ORDER, most, out)
    return out


def squared_length(vector):
    """In Python's whole numbers, which do not overflow."""
    return sum(int(one) ** 2 for one in vector.ravel()[np.flatnonzero(vector)])


def fits(name, vector):
    return squared_length(vector) <= SQUARED_BOUNDS[name]


ABSURD = [None, np.nan, np.inf, -np.inf, 1e308, -1e300, 1e-300, 0.0]


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 60),
    seed=st.integers(0, 10_000),
    z=st.sampled_from(ABSURD),
    f=st.sampled_from(ABSURD),
    V=st.sampled_from(ABSURD),
    W=st.sampled_from(ABSURD),
)
def test_nobody_adds_more_than_the_bound_whatever_the_formulas_before_it_gave(name, n, seed, z, f, V, W):
    assert fits(name, asked(name, [person(n, seed, z=z, f=f, V=V, W=W)]))


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 10_000), at=st.integers(0, 39), wrong=st.sampled_from(ABSURD[1:]))
def test_one_absurd_number_among_sound_ones_is_no_way_out(name, n, seed, at, wrong):
    one = person(n, seed)
    for field in (one.z, one.h, one.y, one.f, one.W, one.V.reshape(-1)):
        field[at % len(field)] = wrong
    assert fits(name, asked(name, [one]))


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("n", [1, 2, T, 100_000])
@pytest.mark.parametrize("y", [-1.0, 0.0, 1.0])
def test_one_rating_equal_ratings_and_very_many_ratings_stay_inside(name, n, y):
    assert fits(name, asked(name, [person(n, y=y)]))
    assert fits(name, asked(name, [person(n, y=y, z=3 * y, W=y)]))


@settings(max_examples=120, deadline=None)
@given(
    n=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    seeds=st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)),
    y=st.tuples(*[st.sampled_from([*ABSURD, -1.0, -0.999, 0.25, 0.999, 1.0, 50.0, -50.0])] * 2),
)
def test_no_two_activities_have_an_obtuse_angle_so_that_one_more_rating_moves_two_squared_bounds(n, seeds, y):
    """Also if their ratings were none: what was no rating once is the reason why the angle is enforced."""
    one, other = (asked("activity", [person(k, seed, y=at)]) for k, seed, at in zip(n, seeds, y, strict=True))
    assert sum(int(a) * int(b) for a, b in zip(one.ravel(), other.ravel(), strict=True)) >= 0
    assert squared_length(one - other) <= moved({"bound": float(GRID)})


def test_two_squared_bounds_are_attained_by_somebody_whose_octave_becomes_another_one():
    one, more = (asked("activity", [person(n, y=-1.0)]) for n in (1, 2))
    assert squared_length(one - more) == pytest.approx(moved({"bound": float(GRID)}), rel=1e-5)


def test_only_rounding_is_cut_from_ratings_of_the_scale():
    """From the lowest level to the highest nothing but a step or two is lost: a is not clipped."""
    for y in np.linspace(-1, 1, 41):
        a = y - CENTRE
        found = asked("activity", [person(3, y=y)]).sum(axis=0)
        c = GRID / max(np.sqrt(1 + a * a), ACTIVITY_REACH)
        assert found == pytest.approx([c, c * a], abs=3)


EXTREMAL = {
    "levels": person(50, y=-1.0),
    "activity": person(50, y=-1.0),
    "scores": person(30, z=1e4),
    "coefficients": person(30, W=30.0),
    MOMENTS: person(T, z=100.0, first=True),
    NAMES: person(1),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_extremal_person_reaches_ninety_nine_per_cent_of_the_bound(name):
    length = squared_length(asked(name, [EXTREMAL[name]]))
    assert 0.99**2 * SQUARED_BOUNDS[name] <= length <= SQUARED_BOUNDS[name]


@pytest.mark.parametrize("most", [1, 7, 100, MOST_NAMED])
@pytest.mark.parametrize("k", [2, 100, MOST_NAMED, 100_000])
def test_many_names_share_the_weight_of_one(k, most):
    weights = asked(NAMES, [person(k)], most=most)
    assert 0.99 * GRID**2 <= squared_length(weights) <= GRID**2
    assert np.count_nonzero(weights) == min(k, most)


class Planted:
    """The kernels as plain Python, in whose module something was changed."""

    def __getattr__(self, name):
        return getattr(add, name).py_func


SCALED = [name for name in QUESTIONS if name != NAMES]


@pytest.mark.parametrize("name", SCALED)
def test_five_per_cent_more_without_the_enforcement_is_noticed_by_these_tests(name, monkeypatch):
    """The planted error: a scale 5 % too large, and nobody who measures the integers."""
    monkeypatch.setattr(add, "SAFE", 1.05)
    monkeypatch.setattr(add, "enforce_length", lambda vector, n, most: None)
    monkeypatch.setattr(add, "grid_steps", lambda value, most: int(value))
    assert not fits(name, asked(name, [EXTREMAL[name]], Planted()))


@pytest.mark.parametrize("name", SCALED)
def test_with_the_enforcement_even_a_scale_five_per_cent_too_large_is_harmless(name, monkeypatch):
    monkeypatch.setattr(add, "SAFE", 1.05)
    found = asked(name, [EXTREMAL[name]], Planted())
    assert 0.2 * SQUARED_BOUNDS[name] / 4 < squared_length(found) <= SQUARED_BOUNDS[name]


@pytest.mark.parametrize("name", SCALED)
def test_compiled_and_plain_kernels_agree(name):
    """Oracle: the same lines, run by Python."""
    people = [person(n, n) for n in (1, 2, 9)]
    np.testing.assert_array_equal(asked(name, people), asked(name, people, Planted()))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_sum_is_that_of_single_people_in_any_order_and_any_blocks(name):
    people = [person(n, seed) for seed, n in enumerate([3, 0, 1, 40, 17, 2, 0, 25])]
    single = sum(asked(name, [one]) for one in people)
    np.testing.assert_array_equal(asked(name, people), single)
    np.testing.assert_array_equal(asked(name, people[::-1]), single)
    np.testing.assert_array_equal(asked(name, people[:3]) + asked(name, people[3:]), single)


def test_scores_are_the_weighted_residuals_products_and_slopes_of_the_text():
    """Oracle: the formulas of `add_scores` with plain arrays, for one person above and one below the floor."""
    for n, small in ((20, 1.0), (1, 0.01)):
        one = person(n, 5)
        one.z[:] *= small
        one.f[:] *= small
        unit, alpha, floor = np.array([1.5, 2.5]), 0.7, 2.0
        phi = np.column_stack([np.ones(n), FEATURES[one.cells]])
        pull = phi @ one.V[K - D :].T * unit
        score = one.z[:, None] * one.f - pull
        total = (one.z**2).sum() + (score**2).sum() + n * alpha**2
        w = 1 / np.sqrt(max(total, floor))
        x, g = w * one.z, w * score
        bend = x**2 + (g * x[:, None] * one.f).sum(1) if total > floor else 0.0
        slope = np.clip(1 - bend, 0, 1) * (1 - one.h)
        expected = GRID * np.column_stack([x, g, alpha * w * slope])
        found = asked("scores", [one])[one.cells]
        assert (np.abs(found - expected) <= 1.01).all()
        assert (np.abs(found) <= np.abs(expected) + 1e-6).all()  # towards zero


def test_levels_are_the_mean_and_the_variance_of_the_text():
    one = person(9, 3)
    a, v, nu = one.y.mean() - 0.25, one.y.var(ddof=1), 8 / 10
    expected = GRID * np.array([1, a, a * a, nu * v, nu]) / 1.5
    assert np.abs(asked("levels", [one]) - expected).max() <= 1.01


def test_second_moments_are_products_above_the_diagonal_and_a_single_cell_has_none():
    one = person(6, 2)
    x = np.trunc(MOMENT * (1 - 1e-9) * one.z / np.sqrt((one.z**2 + 0.1).sum())).astype(int)
    expected = np.zeros((T, T), int)
    expected[np.ix_(one.cells, one.cells)] = np.outer(x, x)
    np.testing.assert_array_equal(asked(MOMENTS, [one]), np.triu(expected, 1))
    assert not asked(MOMENTS, [person(1)]).any()


@pytest.mark.parametrize("items", [[3, 3], [3, 3, 3, 5], [0, 5, 0, 5, 2, 2, 2, 2]])
def test_items_of_one_name_count_once(items):
    """7, 07 and 007 are three items and one name: three weights on it would be longer than the bound."""
    out, names = np.zeros(6, dtype=np.int64), sorted(set(items))
    add.add_names(np.array([0, len(items)]), np.array(items), np.arange(6), 4096, out)
    assert np.flatnonzero(out).tolist() == names
    assert out[names] == pytest.approx(GRID / np.sqrt(len(names)), rel=1e-5)
    assert (out.astype(object) ** 2).sum() <= GRID**2


def test_which_items_of_somebody_count_for_names_does_not_depend_on_others():
    """Somebody with 5,000 items: the same 4,096 of them, whoever else is there."""
    one, others = person(5_000, 1), [person(n, n) for n in (3, 2_000)]
    alone = asked(NAMES, [one])
    np.testing.assert_array_equal(asked(NAMES, [others[0], one, others[1]]) - asked(NAMES, others), alone)
    counted = np.flatnonzero(alone)
    assert len(counted) == MOST_NAMED
    left_out = np.setdiff1d(one.cells, counted)
    assert ORDER[counted].max() < ORDER[left_out].min()


def test_the_order_of_items_follows_from_their_ids_alone():
    """More items in the file leave the order of the others as it is."""
    few = pa.array([f"film {i}" for i in range(100)])
    many = pa.array([f"film {i}" for i in range(1_000)])
    np.testing.assert_array_equal(np.argsort(hashes(few)), [i for i in np.argsort(hashes(many)) if i < 100])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(-1, 6), st.floats(-1, 1)), max_size=12), max_size=4))
def test_rows_are_the_means_of_each_person_and_cell(people):
    """Oracle: a dictionary for each person."""
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in people])]).astype(np.int64)
    cells = np.array([c for one in people for c, _ in one], np.int64)
    y = np.array([v for one in people for _, v in one], np.float64)
    found = PeopleRows.by_cell(indptr, cells, y)
    for u, one in enumerate(people):
        mine = slice(found.indptr[u], found.indptr[u + 1])
        by_cell = {c: [v for d, v in one if d == c] for c in sorted({c for c, _ in one if c >= 0})}
        assert found.cells[mine].tolist() == list(by_cell)
        np.testing.assert_allclose(found.y[mine], [np.mean(v) for v in by_cell.values()], atol=1e-12)
