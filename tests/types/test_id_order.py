"""The order of ids follows from each id alone, whatever else is in the file."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsr.types.id_order import IdOrder, natural_key

IDS = ["-3", "9", "10", "200", "A 2", "A 10", "B", "tt0009", "tt0100", "tt1", "é"]
ids = st.one_of(st.integers(-50, 50).map(str), st.from_regex(r"[ab]{0,2}[0-9]{0,3}[ab]?", fullmatch=True))


def test_numbers_come_by_size_and_numbers_in_text_too():
    assert sorted([*IDS[5:], *IDS[:5]], key=natural_key) == [*IDS[:7], "tt1", "tt0009", "tt0100", "é"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_places_are_odd_in_order_and_even_between(kind):
    order = IdOrder(pa.array([10, 9, 300]).cast(kind))
    np.testing.assert_array_equal(order.places(), [3, 1, 5])
    np.testing.assert_array_equal(order.places(["9", "10", "11", "1000", "x", "-1"]), [1, 3, 4, 6, 6, 0])
    np.testing.assert_array_equal(order.places([300, 8, 9]), [5, 0, 1])


def test_two_spellings_of_one_number_have_one_place():
    order = IdOrder(pa.array(["007", "7", "8", "x"]))
    np.testing.assert_array_equal(order.places(), [1, 1, 3, 5])
    np.testing.assert_array_equal(order.places(["0008", "07"]), [3, 1])


def test_an_order_of_nothing_has_one_place():
    np.testing.assert_array_equal(IdOrder(pa.array([], pa.string())).places(["a", "b"]), [0, 0])


@given(mine=st.lists(ids, min_size=2, max_size=6, unique=True), others=st.lists(ids, max_size=6, unique=True))
def test_other_ids_in_a_file_do_not_change_which_of_two_comes_first(mine, others):
    """An odd id of somebody else makes all ids text; 9 lies before 10 all the same."""
    alone = IdOrder(pa.array(mine)).places()
    together = IdOrder(pa.array(list(dict.fromkeys([*others, *mine])))).places(mine)
    np.testing.assert_array_equal(np.sign(alone[:, None] - alone), np.sign(together[:, None] - together))


def test_a_number_of_any_length_is_an_id():
    long = "9" * 5_000
    assert sorted([f"a{long}", "a1", long[:40]], key=natural_key) == [long[:40], "a1", f"a{long}"]


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, unique=True))
def test_numbers_have_one_order_as_numbers_as_texts_and_with_leading_zeros(numbers):
    texts = [f"{'-' if one < 0 else ''}{abs(one):09d}" for one in numbers]
    orders = [IdOrder(pa.array(one)).places().tolist() for one in (numbers, list(map(str, numbers)), texts)]
    assert orders[0] == orders[1] == orders[2] == [2 * sorted(numbers).index(one) + 1 for one in numbers]


def test_digits_of_another_alphabet_are_text():
    assert IdOrder(pa.array(["٣", "4"])).places().tolist() == [3, 1]
