"""One rating more or less: bounds against the worst neighbours that can be found, over the integer kernel itself."""

from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.one_rating import (
    CLIP,
    HIGHEST,
    LEVELS_RAMP,
    LIPSCHITZ,
    LOWEST,
    RAMP,
    SQUARED_BOUNDS,
    WIDTH,
    added,
    levels,
    levels_moves,
    moment_weight,
    replaced,
    scores,
    second_moments,
)
from dpsr.certify.people import GRID, MOMENT
from dpsr.errors import PrivacyError
from dpsr.privacy.vault.people.rating_vault import (
    _add_rating_levels,
    _add_rating_moments,
    _add_rating_scores,
)
from dpsr.types.item_side import CENTRE

SHRINK = 40.0
CELLS = 256


def asked(shrink=SHRINK, clip=CLIP, width=WIDTH):
    return {"bound": GRID, "clip": clip, "shrink": shrink, "width": width}


def contribution(cells, e, how):
    """What one person adds, by the kernel the vault uses."""
    out = np.zeros((CELLS, 2), np.int64)
    cells, e = np.array(cells, np.int64), np.array(e, np.float64)
    _add_rating_scores(np.array([0, len(cells)]), cells, e, how["clip"], how["shrink"], how["width"], out)
    return out


def squared_move(cells, e, cell, new, how):
    """How far one rating more moves the sums of somebody who has these: squared, in whole numbers."""
    move = contribution([*cells, cell], [*e, new], how) - contribution(cells, e, how)
    return int((move.astype(object) ** 2).sum())


def alike(n, value, new, how, *, together):
    """n ratings of one value on n cells; the new one joins one of them, or has a cell of its own."""
    return squared_move(list(range(n)), [value] * n, 0 if together else n, new, how)


@pytest.fixture(scope="module")
def worst():
    """The largest move found, for the usual settings: people with 0 to 200 ratings, values over all of their range."""
    how, found = asked(), 0
    for n, value in product((0, 1, 3, 12, 25, 50, 80, 120, 200), np.linspace(-2.4, 0.0, 25)):
        for new, together in product((-30.0, 1.5, 30.0), (False, n > 0)):
            found = max(found, alike(n, value, new, how, together=together))
    return found


def test_the_worst_neighbour_found_stays_below_the_bound_and_comes_near_it(worst):
    """The search is over ratings that all agree: they are moved in one direction. Signs are symmetric."""
    assert 0.8 * scores(asked()) < worst <= scores(asked())


def test_without_the_term_of_the_own_level_the_bound_would_be_exceeded(worst):
    """The planted error: g^2 alone, as if a rating moved nothing but itself."""
    assert worst > 1.04 * GRID**2


def test_eighty_ratings_that_agree_and_one_that_does_not_exceed_the_weight_of_one_rating():
    """An explicit example: the others end up where scores are steepest, and all of them give way."""
    assert alike(80, -1.3, 30.0, asked(), together=False) > 1.05 * GRID**2


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(-4, 4)), max_size=40),
    st.integers(0, 5),
    st.floats(-50, 50),
    st.sampled_from([asked(), asked(shrink=3.0), asked(shrink=0.5, clip=4.0, width=0.3), asked(shrink=0.0)]),
)
def test_random_neighbours_stay_below_the_bound_also_where_ratings_share_cells(others, cell, new, how):
    cells, e = [c for c, _ in others], [value for _, value in others]
    assert squared_move(cells, e, cell, new, how) <= scores(how)


def test_many_ratings_in_one_cell_do_not_add_up_their_moves():
    """Items may share a cell: if each rating there were added, 200 small moves would make a large one."""
    how = asked()
    same = [-0.45] * 200
    assert squared_move([0] * 200, same, 1, 30.0, how) <= scores(how)
    assert squared_move([0] * 200, same, 0, 30.0, how) <= scores(how)
    before, after = contribution(range(200), same, how), contribution(range(201), [*same, 30.0], how)
    added_up = (after - before)[:200].sum(0).astype(object)
    assert (added_up**2).sum() > 2 * scores(how)


def test_what_is_no_number_moves_nothing_but_itself():
    how = asked()
    for wrong in (np.nan, np.inf, -np.inf):
        move = contribution([0, 1, 2], [0.3, -0.2, wrong], how)
        assert (move[2] == 0).all()
        assert squared_move([0, 1], [0.3, -0.2], 2, wrong, how) <= scores(how)


def test_without_own_levels_a_rating_moves_itself_alone_and_attains_the_bound():
    how = asked(shrink=0.0)
    assert scores(how) == GRID**2
    assert squared_move([0, 1, 2], [0.1, -0.5, 2.0], 3, 1e6, how) > 0.999 * GRID**2
    before, after = contribution([0, 1], [0.1, -0.5], how), contribution([0, 1, 3], [0.1, -0.5, 2.0], how)
    np.testing.assert_array_equal(before[:2], after[:2])


def test_the_steepest_place_is_below_the_constant_and_within_a_thousandth():
    """Oracle: the square's derivative by u = t^2 vanishes at u^2 + 14 u = 2 alone, and a grid finds nothing higher."""

    def steepness(u):
        return mpmath.sqrt((1 + u) ** -3 + 9 * u * (1 + u) ** -5)

    steepest = steepness(mpmath.sqrt(51) - 7)
    assert max(steepness(mpmath.mpf(i) / 500) for i in range(1_000)) <= steepest
    assert steepest < float(LIPSCHITZ) < steepest * 1.001


@pytest.mark.parametrize("shrink", [0.5, 3.0, 40.0, 1000.0])
def test_the_closed_form_is_the_largest_over_all_numbers_of_ratings(shrink):
    """Oracle: the sum in the text, term by term, for every n up to 5,000; real v may give a trace more."""
    how = asked(shrink=shrink)
    K = 2 * how["clip"] * float(LIPSCHITZ) / how["width"]
    n = np.arange(1, 5_001)
    d = GRID * K / (n + 1 + shrink) + np.sqrt(2)
    largest = float(((GRID + d) ** 2 + (n - 1) * d**2).max())
    assert largest <= scores(how) <= 1.02 * largest


def test_the_bound_falls_with_shrinkage_and_rises_with_the_clip():
    bounds = [scores(asked(shrink=s)) for s in (0.5, 4.0, 40.0, 400.0)]
    assert bounds == sorted(bounds, reverse=True)
    assert scores(asked(clip=1.0)) < scores(asked(clip=1.1))


def test_a_vector_that_is_replaced_moves_twice_its_length_and_a_weight_that_is_added_once():
    assert replaced({"bound": 7.0}) == 4 * 49
    assert added({"bound": 7.0}) == 49


def test_vectors_without_obtuse_angles_that_give_way_to_each_other_move_two_squared_lengths():
    """Activity: its sums are made of such vectors (tests of the vault's contributions)."""
    assert SQUARED_BOUNDS["activity"]({"bound": 7.0}) == 2 * 49
    assert SQUARED_BOUNDS["coefficients"]({"bound": 7.0}) == 4 * 49


@pytest.mark.parametrize("name", list(SQUARED_BOUNDS))
@pytest.mark.parametrize("bound", [0.0, -1.0, 0.5])
def test_a_bound_is_a_whole_number_above_zero(name, bound):
    with pytest.raises(PrivacyError, match="whole number above 0"):
        SQUARED_BOUNDS[name]({**asked(), "cells": 9.0, "ramp": 8.0, "bound": bound})


@pytest.mark.parametrize("missing", ["bound", "clip", "shrink", "width"])
def test_a_setting_that_is_missing_is_named(missing):
    with pytest.raises(PrivacyError, match=f"{missing} is missing"):
        scores({name: value for name, value in asked().items() if name != missing})


# --- levels ---

ASKED_LEVELS = {"bound": GRID, "ramp": LEVELS_RAMP}


def levels_of(y, ramp=LEVELS_RAMP, cells=None):
    """What somebody with these ratings adds to levels, by the kernel the vault uses."""
    out, y = np.zeros(6, np.int64), np.array(y, np.float64)
    cells = np.arange(len(y)) if cells is None else np.array(cells, np.int64)
    _add_rating_levels(np.array([0, len(y)]), cells, y, float(ramp), out)
    return out


def squared_move_of_levels(y, new, ramp=LEVELS_RAMP):
    move = levels_of([*y, new], ramp) - levels_of(y, ramp)
    return int((move.astype(object) ** 2).sum())


def levels_of_the_text(y, ramp=LEVELS_RAMP):
    """Oracle: the module's five numbers and the sixth, in exact fractions."""
    x = [Fraction(one) - Fraction(CENTRE) for one in y]
    n = len(x)
    a = sum(x) / n
    W, c, q = sum((one - a) ** 2 for one in x), Fraction(ramp, n + ramp), Fraction(2, 5)
    return [c * n, c * n * a, q * c * n * a * a, q * c * W, q * c * (n - 1), Fraction(n, 10)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50), st.sampled_from([1, 16, 40]))
def test_levels_are_the_numbers_of_the_text(y, ramp):
    found, expected = levels_of(y, ramp), [GRID * float(one) for one in levels_of_the_text(y, ramp)]
    assert np.abs(found - expected).max() < 2


def test_ratings_lie_where_the_bound_of_levels_says():
    assert (-1 - CENTRE, 1 - CENTRE) == (LOWEST, HIGHEST)


@pytest.fixture(scope="module")
def worst_levels():
    """The largest move found: people with 0 to 60 ratings at both ends of the scale, or all at one place."""
    found = 0
    for n in (0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 30, 60):
        people = [[low] * (n - k) + [high] * k for k in {0, n // 2, n} for low, high in ((-1.0, 1.0), (0.25, -0.5))]
        found = max(found, *(squared_move_of_levels(y, new) for y, new in product(people, (-1.0, 0.25, 1.0))))
    return found


def test_the_worst_neighbour_of_levels_found_stays_below_the_bound_and_comes_near_it(worst_levels):
    """Every number has a bound of its own; no rating moves all of them so far at once."""
    assert 0.8 * levels(ASKED_LEVELS) < worst_levels <= levels(ASKED_LEVELS)


@pytest.mark.parametrize("n", [0, 2, 5, 16, 100])
def test_each_number_of_levels_moves_as_far_as_its_term_says(n):
    """By ratings that all agree and one at the other end: a term a hundredth smaller would be exceeded."""
    moves = [np.abs(levels_of([*[low] * n, new]) - levels_of([low] * n)) for low, new in product((-1.0, 1.0), repeat=2)]
    np.testing.assert_allclose(
        np.max(moves, axis=0) / GRID, np.array(levels_moves(n, LEVELS_RAMP), dtype=float), rtol=1e-4, atol=3e-6
    )


@pytest.mark.parametrize("forgotten", ["n a", "n a^2", "W", "that people have ratings already"])
def test_without_a_term_the_bound_of_levels_would_be_exceeded(forgotten, worst_levels):
    """Planted errors: a number is forgotten, or that the worst person has some ratings already."""
    moves = [list(levels_moves(n, LEVELS_RAMP)) for n in range(8 * LEVELS_RAMP + 1)]
    if forgotten == "that people have ratings already":
        moves = moves[:1]
    else:
        place = ["n", "n a", "n a^2", "W"].index(forgotten)
        moves = [[one for i, one in enumerate(these) if i != place] for these in moves]
    assert worst_levels > GRID**2 * max(float(sum(one * one for one in these)) for these in moves)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 1.0])), max_size=60),
    st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 1.0, 50.0, float("nan")])),
    st.sampled_from([1, 3, 16, 100]),
)
def test_random_neighbours_move_levels_by_at_most_the_bound(y, new, ramp):
    assert squared_move_of_levels(y, new, ramp) <= levels({"bound": GRID, "ramp": ramp})


@pytest.mark.parametrize("ramp", [1, 2, 16, 100])
def test_every_term_of_levels_falls_beyond_the_numbers_of_ratings_that_are_tried(ramp):
    beyond = [levels_moves(n, ramp) for n in (*range(8 * ramp, 8 * ramp + 200), 10**5, 10**9)]
    for before, after in pairwise(beyond):
        assert all(later <= earlier for earlier, later in zip(before, after, strict=True))


def test_what_lies_outside_the_scale_is_cut_and_ratings_outside_the_list_do_not_count():
    """The ends of some scales are a rounding outside: 1.0000000000000002."""
    y = [0.5, np.nan, np.inf, -7.0, np.nextafter(1, 2)]
    np.testing.assert_array_equal(levels_of(y), levels_of([0.5, 0.0, 1.0, -1.0, 1.0]))
    np.testing.assert_array_equal(levels_of(y, cells=[0, -1, -1, -1, 3]), levels_of([0.5, 1.0]))
    assert not levels_of([]).any()


def test_a_hundred_thousand_ratings_at_both_ends_move_no_further():
    y = [-1.0, 1.0] * 50_000
    assert squared_move_of_levels(y, 1.0) <= levels(ASKED_LEVELS)


def test_what_rounding_adds_to_levels_is_in_the_bound():
    moves = max(sum(float(one) ** 2 for one in levels_moves(n, LEVELS_RAMP)) for n in range(130))
    assert moves < levels(ASKED_LEVELS) / GRID**2 < moves * 1.0001


@pytest.mark.parametrize("ramp", [0, -1, 0.5, 5_000])
def test_a_ramp_is_a_whole_number_of_ratings_and_not_too_large(ramp):
    with pytest.raises(PrivacyError):
        levels({"bound": GRID, "ramp": ramp})


# --- second moments ---


def asked_moments(cells, **how):
    return {**asked(), "bound": MOMENT**2, "cells": cells, "ramp": RAMP, **how}


def moments(cells, e, T, how):
    """What one person adds to second moments over the first T cells."""
    out, place = np.zeros((T, T), np.int64), np.where(np.arange(CELLS) < T, np.arange(CELLS), -1)
    weights = np.array([moment_weight(n, int(how["ramp"])) for n in range(T + 1)], np.int64)
    cells, e = np.array(cells, np.int64), np.array(e, np.float64)
    shrink = (how["clip"], how["shrink"], how["width"])
    _add_rating_moments(np.array([0, len(cells)]), cells, e, place, *shrink, weights, out)
    return out


def squared_move_of_moments(cells, e, cell, new, T, how):
    move = moments([*cells, cell], [*e, new], T, how) - moments(cells, e, T, how)
    return int((move.astype(object) ** 2).sum())


def moments_of_the_text(n, how):
    """Oracle: the module's formula for somebody with n cells, in 40 digits, with the weights that are used."""
    b, weights = mpmath.mpf(how["bound"]), [mpmath.mpf(moment_weight(k, int(how["ramp"]))) / 2**20 for k in (n, n + 1)]
    moved = 2 * mpmath.mpf(how["clip"]) / (mpmath.mpf(how["width"]) * (n + 1 + mpmath.mpf(how["shrink"])))
    moved += 1 / mpmath.sqrt(b)
    new = b * weights[1] * mpmath.sqrt(n) + n + 1
    old = b * n * (weights[0] * mpmath.sqrt(2) * moved + (weights[0] - weights[1]) / mpmath.sqrt(2)) + n + 1
    return new**2 + old**2


@pytest.mark.parametrize("T", [1, 2, 9, 60])
@pytest.mark.parametrize("shrink", [5.0, 40.0, 400.0])
def test_the_bound_of_second_moments_is_the_largest_of_the_text_every_term_included(T, shrink):
    """Half of the clip, or none of what weights lose, would pass all neighbours that were found."""
    how = asked_moments(T, shrink=shrink)
    with mpmath.workdps(40):
        largest = max(moments_of_the_text(n, how) for n in range(T + 1))
        assert largest <= second_moments(how) <= largest * (1 + mpmath.mpf("1e-5"))


@pytest.mark.parametrize("T", [2, 24, 150])
def test_what_rounding_adds_to_second_moments_is_in_the_bound(T):
    """On a coarse grid, where the digits of the constants do not hide it."""
    how = {**asked_moments(T), "bound": 1 << 10}
    with mpmath.workdps(40):
        largest = max(moments_of_the_text(n, how) for n in range(T + 1))
        assert largest <= second_moments(how) <= largest * (1 + mpmath.mpf("0.01"))


@pytest.mark.parametrize("T", [2, 24, 150])
def test_one_rating_moves_second_moments_by_at_most_the_bound_and_comes_near_it(T):
    """People with ratings of one large value, or of opposite ones, everywhere; the new one has the last cell."""
    how, found = asked_moments(T), 0
    for n in {0, 1, min(5, T - 1), T // 2, T - 1}:
        for value, new in product((0.4, 2.0, 1e6), (1e6, -1e6)):
            alike, mixed = [value] * n, [value, -value] * n
            found = max(found, squared_move_of_moments(range(n), alike, n, new, T, how))
            found = max(found, squared_move_of_moments(range(n), mixed[:n], n, new, T, how))
    assert 0.5 * second_moments(how) < found <= second_moments(how)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.floats(-4, 4)), max_size=60),
    st.integers(0, 30),
    st.floats(-50, 50),
    st.sampled_from([asked_moments(25), asked_moments(25, shrink=1.0), asked_moments(25, ramp=1)]),
)
def test_random_neighbours_move_second_moments_by_at_most_the_bound_cells_shared_or_not(others, cell, new, how):
    cells, e = [c for c, _ in others], [value for _, value in others]
    assert squared_move_of_moments(cells, e, cell, new, 25, how) <= second_moments(how)


def test_the_pairs_of_the_new_cell_alone_are_a_bound_that_is_exceeded():
    """The planted error: that the others get a new weight is forgotten. Nine ratings, all at an end of the scale."""
    new_pairs = max(MOMENT**4 * n / (n + 1 + RAMP) for n in range(9))
    assert squared_move_of_moments(range(8), [1e6] * 8, 8, -1e6, 9, asked_moments(9)) > new_pairs


def test_second_moments_are_weighted_products_where_a_person_has_one_rating():
    """Oracle: the text, for somebody with two ratings in one of the cells and one outside."""
    cells, e, T, how = [3, 0, 5, 5, 9], [0.5, -1.0, 2.0, 0.1, 0.7], 8, asked_moments(8)
    m = np.clip(e, -CLIP, CLIP).sum() / (5 + how["shrink"])
    z = np.array([e[1], e[0]]) - m
    x = z / np.sqrt(z**2 + WIDTH**2)
    found = moments(cells, e, T, how)
    assert found[0, 3] == pytest.approx(MOMENT**2 * x[0] * x[1] / np.sqrt(2 + RAMP), rel=1e-3)
    assert np.count_nonzero(found) == 1


@pytest.mark.parametrize("wrong", [{"cells": 5_000}, {"cells": 0}, {"ramp": 0}, {"shrink": 0.0}, {"clip": 0.0}])
def test_second_moments_without_a_bound_are_refused(wrong):
    with pytest.raises(PrivacyError):
        second_moments({**asked_moments(9), **wrong})


@pytest.mark.parametrize("wrong", [{"clip": 0.0}, {"width": 0.0}, {"shrink": -1.0}])
def test_settings_that_would_turn_the_bound_off_are_refused(wrong):
    with pytest.raises(PrivacyError, match="positive clip and width"):
        scores({**asked(), **wrong})
