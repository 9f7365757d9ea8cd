"""Hashes of places: those of whole numbers by hand, of a table however it is cut, and fair."""

import numpy as np
import pytest

from dpsr.data import realistic
from dpsr.engine import MemoryTable
from dpsr.engine.place_hash import hashed_place, hashed_places


def by_hand(place):
    """SplitMix64's two multiplications, in whole numbers."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        place = (place ^ (place >> shift)) * factor % 2**64
    return place


@pytest.mark.parametrize("place", [0, 1, 2, 12_345, 2**31, 2**40 + 7, 2**63, 2**64 - 1])
def test_a_hash_is_the_one_by_hand_of_one_place_and_of_many(place):
    assert int(hashed_place(np.uint64(place))) == by_hand(place)
    assert hashed_place(np.array([place, 1], dtype=np.uint64)).tolist() == [by_hand(place), by_hand(1)]


@pytest.mark.parametrize("offset", [0, 0x9E3779B97F4A7C15])
def test_hashes_of_a_table_do_not_depend_on_how_it_is_cut(offset):
    mask = realistic(0, n_users=50, n_items=30, n_ratings=600).mask
    tables = (MemoryTable(mask, block_ratings=size) for size in (10**6, 64))
    whole, parts = ([hashed_places(block, offset) for block in table.scan([])] for table in tables)
    assert len(whole) == 1 < len(parts)
    assert np.concatenate(parts).tolist() == whole[0].tolist() == [by_hand((p + offset) % 2**64) for p in range(600)]


def test_upper_bits_are_fair_and_another_offset_has_nothing_to_do_with_them():
    places = np.arange(1 << 20, dtype=np.uint64)
    first, second = (hashed_place(places + np.uint64(offset)) >> np.uint64(63) for offset in (0, 0x9E3779B97F4A7C15))
    for bits in (first, second, first ^ second, first[1:] ^ first[:-1]):
        assert abs(bits.mean() - 0.5) < 5 / 2**11  # five deviations
