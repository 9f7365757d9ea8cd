"""What one person who does not rate adds: whole numbers inside their bound, extremal people that reach it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.people import COUNTS, GRID, INTERACTIONS, PRESENCE, PersonPart, RatingPart
from dpsr.certify.people import PRESENCE_GRID as STEP
from dpsr.privacy.vault.people import presence as add
from dpsr.types.item_side import ACTIVITY_BINS
from dpsr.types.likes_side import LEAST_STRENGTH, MOST_STRENGTH, strengths

T, CELLS = 30, 40
PLACE = np.where(np.arange(CELLS) < T, np.arange(CELLS), -1)
CENTRE = np.random.default_rng(1).dirichlet(np.ones(T))
FAVOUR = (CENTRE / CENTRE.max()) ** 0.25
BOUNDS = {INTERACTIONS: GRID**2, COUNTS: GRID**2, PRESENCE: STEP**4 // 2}


def asked(name, people, kernels=add, centre=CENTRE, favour=FAVOUR):
    """The sums over people, each a dictionary from cells to strengths."""
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in people])]).astype(np.int64)
    cells = np.array([cell for one in people for cell in sorted(one)], np.int64)
    x = np.array([one[cell] for one in people for cell in sorted(one)], np.float64)
    if name == INTERACTIONS:
        out = np.zeros(ACTIVITY_BINS, np.int64)
        kernels.add_numbers(indptr, cells, PLACE, out)
    elif name == COUNTS:
        out = np.zeros(T, np.int64)
        kernels.add_counts(indptr, cells, x, PLACE, out)
    else:
        out = np.zeros((T, T), np.int64)
        kernels.add_second_moments(indptr, cells, x, PLACE, centre, favour, out)
        out = np.triu(out, 1)
    return out


def squared(sums):
    return sum(int(value) ** 2 for value in sums.ravel())


def person(n, seed=0):
    rng = np.random.default_rng(seed)
    return {int(cell): float(rng.uniform(0.5, 2)) for cell in rng.choice(CELLS, n, replace=False)}


@pytest.mark.parametrize("name", BOUNDS)
@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.integers(0, CELLS - 1), st.floats(allow_nan=True, allow_infinity=True), max_size=CELLS))
def test_whatever_somebody_did_they_add_no_more_than_the_bound(name, one):
    assert squared(asked(name, [one])) <= BOUNDS[name]


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 39])
def test_real_neighbours_differ_by_no_more_than_the_bound_and_one_interaction_by_no_more_than_its_own(name, n):
    """A person more or less at the unit user; one interaction more, less or stronger at every unit."""
    crowd, one = [person(k, k) for k in (2, 5, 20)], person(n, 3)
    base = asked(name, crowd)
    part = PersonPart(name, 1, 1, BOUNDS[name])
    assert squared(asked(name, [*crowd, one]) - base) <= part.squared_sensitivity("user")
    limit = part.squared_sensitivity("rating")
    with_one = asked(name, [*crowd, one])
    for cell in range(CELLS):
        other = {key: value for key, value in one.items() if key != cell} if cell in one else {**one, cell: 2.0}
        stronger = {**one, cell: 0.5}
        for neighbour in (other, stronger):
            assert squared(asked(name, [*crowd, neighbour]) - with_one) <= limit


def test_the_limit_of_second_moments_at_the_unit_rating_covers_what_neighbours_at_the_unit_user_may_move():
    """One interaction replaces a contribution by another: squares 4, in either kind of receipt."""
    part = RatingPart(PRESENCE, 1, 1, {"bound": STEP**2})
    assert part.squared_sensitivity("rating") == 4 * (STEP**4 // 2)
    assert PersonPart(PRESENCE, 1, 1, STEP**4 // 2).squared_sensitivity("rating") == 4 * (STEP**4 // 2)
    assert RatingPart(COUNTS, 1, 1, {"bound": GRID}).squared_sensitivity("rating") == GRID**2
    assert RatingPart(INTERACTIONS, 1, 1, {"bound": GRID}).squared_sensitivity("rating") == 2 * GRID**2


def test_extremal_people_reach_the_bounds():
    """One item, everything in one octave, and two items without a centre: r r' is all above the diagonal."""
    assert squared(asked(COUNTS, [{0: 1.0}])) > 0.99999 * GRID**2
    assert squared(asked(INTERACTIONS, [person(20)])) == GRID**2
    flat, none = np.ones(T), np.zeros(T)
    assert squared(asked(PRESENCE, [{0: 1.0, 1: 1.0}], centre=none, favour=flat)) > 0.999 * BOUNDS[PRESENCE]
    many = asked(PRESENCE, [dict.fromkeys(range(T), 1.0)], centre=none, favour=flat)
    assert squared(many) > 0.99 * BOUNDS[PRESENCE]


def test_disjoint_people_reach_twice_the_squared_bound_of_counts_between_them():
    """So no smaller factor than 2 would be right where strengths are given."""
    strong, weak = {0: 2.0, 1: 1e-3}, {1: 1e-3}
    assert squared(asked(COUNTS, [strong]) - asked(COUNTS, [weak])) > 1.99 * GRID**2


def test_second_moments_are_those_of_exact_arithmetic():
    """Oracle: fractions, people one by one, products as Python's whole numbers."""
    people = [person(n, n) for n in (2, 3, 7, 25, 1)]
    expected = np.zeros((T, T), dtype=object)
    for one in people:
        mine = {cell: Fraction(value) for cell, value in one.items() if cell < T}
        if len(mine) < 2:
            continue
        n = sum(mine.values())
        real = [Fraction(FAVOUR[j]) * (mine.get(j, Fraction(0)) - n * Fraction(CENTRE[j])) for j in range(T)]
        pairs = sum(r * r for r in real) ** 2 - sum(r**4 for r in real)
        c = STEP * min(float(pairs) ** -0.25, 1 / max(abs(float(r)) for r in real))
        v = [int(c * (1 - 1e-9) * float(r)) for r in real]
        assert sum(x * x for x in v) ** 2 - sum(x**4 for x in v) <= STEP**4
        expected += np.outer(np.array(v, dtype=object), np.array(v, dtype=object))
    np.testing.assert_array_less(np.abs(asked(PRESENCE, people) - np.triu(expected, 1)), 4 * STEP)


@pytest.mark.parametrize("name", BOUNDS)
def test_sums_are_those_of_single_people_in_any_order_and_any_panels(name, monkeypatch):
    people = [person(n, seed) for seed, n in enumerate([3, 0, 1, 40, 17, 2, 0, 25])]
    single = sum(asked(name, [one]) for one in people)
    np.testing.assert_array_equal(asked(name, people[::-1]), single)
    monkeypatch.setattr(add, "_PANEL", 2 * T)  # two people at a time
    np.testing.assert_array_equal(asked(name, people), single)


class Plain:
    """The kernels as Python runs them, so that errors can be planted."""

    def __getattr__(self, name):
        found = getattr(add, name)
        return getattr(found, "py_func", found)


@pytest.mark.parametrize("name", [COUNTS, PRESENCE])
def test_a_scale_five_per_cent_too_large_that_nobody_measures_would_be_found(name, monkeypatch):
    """The planted error: the extremal person is then longer than the bound."""
    monkeypatch.setattr(add, "SAFE", 1.05)
    monkeypatch.setattr(add, "enforce_length", lambda vector, n, most: None)
    monkeypatch.setattr(add, "enforce_pairs", lambda vector: None)
    monkeypatch.setattr(add, "grid_steps", lambda value, most: int(value))
    monkeypatch.setattr(add, "fill_rows", add.fill_rows.py_func)
    one = {0: 1.0, 1: 1.0}
    assert squared(asked(name, [one], Plain(), np.zeros(T), np.ones(T))) > BOUNDS[name]


@pytest.mark.parametrize("name", [COUNTS, PRESENCE])
def test_with_the_enforcement_even_such_a_scale_is_harmless(name, monkeypatch):
    monkeypatch.setattr(add, "SAFE", 1.05)
    monkeypatch.setattr(add, "fill_rows", add.fill_rows.py_func)
    one = {0: 1.0, 1: 1.0}  # one cell alone is cut by its own bound: two are longer than both
    assert 0 < squared(asked(name, [one], Plain(), np.zeros(T), np.ones(T))) <= BOUNDS[name]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-STEP, STEP), min_size=1, max_size=40))
def test_enforced_pairs_are_inside_their_bound_and_left_alone_if_they_were(values):
    v = np.array(values, np.int64)
    add.enforce_pairs(v)
    square, fourth = sum(int(x) ** 2 for x in v), sum(int(x) ** 4 for x in v)
    assert square**2 - fourth <= STEP**4
    before = sum(x * x for x in values) ** 2 - sum(x**4 for x in values)
    assert (v.tolist() == values) == (before <= STEP**4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=30))
def test_strengths_are_bounded_next_to_the_persons_own_mean_and_one_where_all_weigh_the_same(weights):
    x = strengths(np.array([0, len(weights)]), np.array(weights))
    assert ((x >= LEAST_STRENGTH) & (x <= MOST_STRENGTH)).all()
    assert strengths(np.array([0, 3]), np.full(3, weights[0])).tolist() == pytest.approx([1.0] * 3)


def test_strengths_do_not_depend_on_the_unit_of_the_weights_nor_on_anybody_else():
    weights = np.array([1.0, 2.0, 7.0, 3.0, 3.0])
    both = strengths(np.array([0, 3, 5]), weights)
    np.testing.assert_allclose(strengths(np.array([0, 3]), 60 * weights[:3]), both[:3])
    np.testing.assert_array_equal(strengths(np.array([0, 2]), weights[3:]), both[3:])
