"""One rating more or less: bounds against the worst neighbours that can be found, over the integer kernel itself."""

from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.one_rating import LIPSCHITZ, SQUARED_BOUNDS, added, replaced, scores
from dpsr.errors import PrivacyError
from dpsr.privacy.vault.people.contributions import GRID
from dpsr.privacy.vault.people.rating_vault import CLIP, WIDTH, _add_rating_scores

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


@pytest.mark.parametrize("name", list(SQUARED_BOUNDS))
@pytest.mark.parametrize("bound", [0.0, -1.0, 0.5])
def test_a_bound_is_a_whole_number_above_zero(name, bound):
    with pytest.raises(PrivacyError, match="whole number above 0"):
        SQUARED_BOUNDS[name]({**asked(), "bound": bound})


@pytest.mark.parametrize("missing", ["bound", "clip", "shrink", "width"])
def test_a_setting_that_is_missing_is_named(missing):
    with pytest.raises(PrivacyError, match=f"{missing} is missing"):
        scores({name: value for name, value in asked().items() if name != missing})


@pytest.mark.parametrize("wrong", [{"clip": 0.0}, {"width": 0.0}, {"shrink": -1.0}])
def test_settings_that_would_turn_the_bound_off_are_refused(wrong):
    with pytest.raises(PrivacyError, match="positive clip and width"):
        scores({**asked(), **wrong})
