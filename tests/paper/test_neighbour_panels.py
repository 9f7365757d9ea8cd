"""Neighbours panel by panel: the same bits, however the table and the catalogue are cut."""

import numpy as np
import pytest
from paper_stages import NOISY, blended, neighbours, table_of
from private_by_hand import make_private

from dpsr.engine import MemoryTable
from dpsr.engine.table import block_edges
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.neighbours import directions, item_neighbours, panels


@pytest.fixture(params=[1, 90], ids="blocks of {}".format)
def cut(request, monkeypatch):
    """Tables made inside are cut into blocks of one user, or of a few."""

    def table(private):
        with monkeypatch.context() as patch:
            patch.setattr("dpsr.engine.table.block_edges", lambda counts, *_: block_edges(counts, request.param))
            made = table_of(private)
            list(made.scan())  # cut here
        return made

    return table


def assert_same(cut, noisy, mask, k, room):
    """Items and similarities of a table in pieces and of one in one piece, bit for bit."""
    private = make_private(noisy, mask)
    pieces = cut(private)
    pieces.sum_bytes = room
    found, expected = item_neighbours(pieces, NOISY, private.scale, k=k), neighbours(private, k=k)
    np.testing.assert_array_equal(found.items, expected.items)
    assert found.similarities.tobytes() == expected.similarities.tobytes()
    return found


def stars(rng, shape):
    return rng.choice([1.0, 1.5, 2.0, 3.0, 4.5, 5.0], size=shape)


@pytest.mark.parametrize("room", [1, 8 * 700, 1 << 20], ids="room for {}".format)
def test_panels_give_the_neighbours_of_the_whole_table(cut, room):
    rng = np.random.default_rng(0)
    assert_same(cut, stars(rng, (80, 60)), rng.random((80, 60)) < 0.3, k=7, room=room)


def test_ties_go_to_the_lower_index_across_panels(cut):
    """Sixty clones of one column, more than anybody has room for, spread over several panels."""
    rng = np.random.default_rng(4)
    noisy, mask = stars(rng, (50, 80)), rng.random((50, 80)) < 0.6
    noisy[:, 10:70], mask[:, 10:70] = noisy[:, 10:11], mask[:, 10:11]
    found = assert_same(cut, noisy, mask, k=6, room=8 * 900)
    assert found.items[40].tolist() == [10, 11, 12, 13, 14, 15]
    assert found.items[12].tolist() == [10, 11, 13, 14, 15, 16]


@pytest.mark.parametrize("seed", range(3))
def test_two_values_and_hardly_any_raters_tie_everywhere(cut, seed):
    rng = np.random.default_rng(seed)
    assert_same(cut, rng.choice([1.0, 5.0], size=(25, 150)), rng.random((25, 150)) < 0.12, k=5, room=8 * 2_000)


def test_constant_columns_single_raters_and_items_nobody_rated_stay_alone(cut):
    rng = np.random.default_rng(6)
    noisy, mask = stars(rng, (40, 60)), rng.random((40, 60)) < 0.3
    noisy[:, 1::6] = 1 + 4 / 128 * 77  # a grid value that is no binary fraction of a sum
    mask[:, ::6] = False
    mask[:, 2::6] = False
    mask[7, 2::6] = True
    found = assert_same(cut, noisy, mask, k=4, room=8 * 500)
    for alone in range(3):
        assert (found.counts[alone::6] == 0).all()
    assert (found.counts[4::6] == 4).all()


def test_one_user_with_two_fifths_of_all_ratings(cut):
    rng = np.random.default_rng(5)
    noisy, mask = stars(rng, (61, 400)), rng.random((61, 400)) < 600 / 24_000
    mask[13] = True
    assert 0.35 < mask[13].sum() / mask.sum() < 0.45
    assert_same(cut, noisy, mask, k=8, room=8 * 20_000)


def test_a_table_of_constants_has_no_panels_and_no_neighbours(cut):
    found = assert_same(cut, np.full((9, 7), 3.7), np.ones((9, 7), bool), k=3, room=100)
    assert not found.counts.any()


@pytest.mark.parametrize("n", [0, 1, 2, 13, 500])
@pytest.mark.parametrize("room", [0, 8, 8 * 13, 8 * 1_000, 8 * 13_000, 1 << 40])
def test_panels_cover_every_name_once_and_keep_to_their_room(n, room):
    cuts = list(panels(n, room))
    assert [p for first, last in cuts for p in range(first, last)] == list(range(n))
    for first, last in cuts:
        assert 8 * (last - first) * last <= room or last == first + 1
        if last < n:
            assert 8 * (last + 1 - first) * (last + 1) > room, "one more would have fitted"


def test_a_hundred_thousand_items_take_some_forty_passes_with_a_gigabyte():
    assert 36 <= len(list(panels(100_000, 10**9))) <= 44


def test_directions_are_means_and_lengths_of_the_columns():
    rng = np.random.default_rng(7)
    noisy, mask = stars(rng, (30, 20)), rng.random((30, 20)) < 0.5
    private = make_private(noisy, mask)
    found = directions(MemoryTable(private.mask, {NOISY: private.values}), NOISY, private.scale)
    dense = np.where(mask, noisy, np.nan)
    np.testing.assert_allclose(found.centre, np.nanmean(dense, axis=0), rtol=1e-14)
    np.testing.assert_allclose(found.length, np.sqrt(np.nansum((dense - found.centre) ** 2, axis=0)), rtol=1e-14)
    assert (np.diff(mask.sum(axis=0)[found.order]) <= 0).all()


def test_a_table_in_pieces_is_blended_like_one_in_one_piece(cut):
    rng = np.random.default_rng(8)
    private = make_private(stars(rng, (60, 30)), rng.random((60, 30)) < 0.4)
    similar, table = neighbours(private, k=5), cut(private)
    blend_with_neighbours(table, NOISY, similar, private.scale, beta=0.4, blended="smoothed")
    np.testing.assert_array_equal(table["smoothed"], blended(private, similar, beta=0.4).values)
