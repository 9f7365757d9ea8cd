"""The table itself: canonical, coded, immutable, the same from every kind of frame."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.data import Ratings
from dpsr.data.coding import canonical_order
from dpsr.errors import DataError
from dpsr.types.coordinates import Scale

SCALE = Scale(1, 5)
COLUMNS = {
    "userId": ["bob", "ann", "bob", "Zoé"],
    "movieId": [7, 30, 30, 7],
    "rating": [4.0, 1.0, 2.0, 5.0],
    "timestamp": [40, 10, 20, 50],
}
CANONICAL = {
    "user": ["Zoé", "ann", "bob", "bob"],
    "item": [7, 30, 7, 30],
    "rating": [5.0, 1.0, 4.0, 2.0],
    "timestamp": [50, 10, 40, 20],
}
FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas with an index": pd.DataFrame(COLUMNS, index=[5, 5, 1, 0]),
    "pandas objects": pd.DataFrame(COLUMNS).astype({"userId": object}),
    "pandas categories": pd.DataFrame(COLUMNS).astype({"userId": "category", "movieId": "category"}),
    "pandas unused categories": pd.DataFrame(
        {**COLUMNS, "userId": pd.Categorical(COLUMNS["userId"], ["", "none", *"xyz", "Zoé", "bob", "ann"])}
    ),
    "pandas nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas dates": pd.DataFrame(COLUMNS).assign(timestamp=pd.to_datetime(COLUMNS["timestamp"], unit="s")),
    "pandas dates with a zone": pd.DataFrame(COLUMNS).assign(
        timestamp=pd.to_datetime(COLUMNS["timestamp"], unit="s", utc=True).tz_convert("Asia/Tokyo")
    ),
    "pandas mixed other column": pd.DataFrame({**COLUMNS, "junk": [1, "a", None, {}]}),
    "polars": pl.DataFrame(COLUMNS),
    "polars categories": pl.DataFrame(COLUMNS).with_columns(pl.col("userId").cast(pl.Categorical)),
    "polars dates": pl.DataFrame(COLUMNS).with_columns(pl.from_epoch("timestamp")),
    "arrow": pa.table(COLUMNS),
    "arrow batch": pa.record_batch(COLUMNS),
    "arrow in chunks": pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    "arrow dictionaries in chunks": pa.concat_tables(
        [pa.table(part).set_column(0, "userId", pa.array(part["userId"]).dictionary_encode())
         for part in ({k: v[:2] for k, v in COLUMNS.items()}, {k: v[2:] for k, v in COLUMNS.items()})]
    ),
    "arrow views": pa.table({**COLUMNS, "userId": pa.array(COLUMNS["userId"], pa.string_view())}),
    "arrow bytes": pa.table({**COLUMNS, "userId": [name.encode() for name in COLUMNS["userId"]]}),
    "whole floats": pa.table({**COLUMNS, "movieId": [7.0, 30.0, 30.0, 7.0]}),
    "small integers": pa.table({**COLUMNS, "movieId": pa.array(COLUMNS["movieId"], pa.uint8())}),
    "ratings as text": pa.table({**COLUMNS, "rating": ["4", "1", "2.0", " 5"]}),
    "integer ratings": pa.table({**COLUMNS, "rating": pa.array([4, 1, 2, 5], pa.int8())}),
}  # fmt: skip


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_gives_the_same_table(kind):
    ratings = Ratings.from_frame(FRAMES[kind], scale=SCALE)
    assert ratings.to_arrow().to_pydict() == CANONICAL
    assert (ratings.mask.user_ids.type, ratings.mask.item_ids.type) == (pa.string(), pa.int64())


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda c: pa.chunked_array([c])]
)
def test_every_kind_of_array_gives_the_same_table(make):
    users, items, values, times = (make(list(column)) for column in COLUMNS.values())
    ratings = Ratings.from_arrays(users, items, values, timestamps=times, scale=SCALE)
    assert ratings.to_arrow().to_pydict() == CANONICAL


def test_the_curator_gets_back_what_came_in():
    ratings = Ratings.from_frame(FRAMES["pandas"], scale=SCALE)
    again = Ratings.from_frame(ratings.to_frame(), scale=SCALE)
    assert again.to_arrow() == ratings.to_arrow()
    pd.testing.assert_frame_equal(again.to_frame(), ratings.to_frame())


def test_column_names_may_be_given_and_need_not_be_strings():
    frame = pd.DataFrame({0: [1, 2], 1: [1, 2], 2: [5, 4]})
    assert len(Ratings.from_frame(frame, scale=SCALE, user="0", item="1", rating="2")) == 2


def test_ids_ascend_as_numbers_or_as_bytes():
    ratings = Ratings.from_arrays([10, 9, -1], ["10", "9", "é"], [1, 2, 3], scale=SCALE)
    assert ratings.mask.user_ids.to_pylist() == [-1, 9, 10]
    assert ratings.mask.item_ids.to_pylist() == ["10", "9", "é"]


def test_unsigned_ids_beyond_64_signed_bits_become_strings():
    ratings = Ratings.from_arrays(np.array([2**64 - 1, 3], dtype=np.uint64), [1, 2], [1, 2], scale=SCALE)
    assert ratings.mask.user_ids.to_pylist() == ["18446744073709551615", "3"]


def test_nothing_can_be_written_to_and_repr_shows_no_value():
    ratings = Ratings.from_frame(FRAMES["arrow"], scale=SCALE)
    assert ratings.levels.dtype == np.uint16
    for column in (ratings.levels, ratings.mask.items, ratings.mask.indptr, ratings.mask.timestamps):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    assert repr(ratings) == "Ratings(4 ratings, 3 users, 2 items, scale 1:5:1)"


def test_the_arrays_given_stay_as_they_were():
    users, items, values = np.array([2, 1]), np.array([1, 2]), np.array([5.0, 4.0])
    Ratings.from_arrays(users, items, values, scale=SCALE)
    users[0], values[0] = 7, 1.0  # still writable, and unsorted
    assert (users.tolist(), items.tolist(), values.tolist()) == ([7, 1], [1, 2], [1.0, 4.0])


def test_continuous_values_are_put_on_the_grid_only_if_the_scale_says_so():
    snapping = Scale(0, 1, step=0.25, snap=True)
    assert Ratings.from_arrays([1, 2], [1, 2], [0.3, 0.9], scale=snapping).values.tolist() == [0.25, 1.0]


@pytest.mark.parametrize(("policy", "kept"), [("first", [1, 3]), ("last", [5, 4])])
def test_the_policy_for_duplicates_follows_the_order_of_the_input(policy, kept):
    arrays = ["b", "a", "b", "b", "a"], [2, 1, 2, 2, 1], [3, 1, 2, 4, 5]
    ratings = Ratings.from_arrays(*arrays, scale=SCALE, timestamps=[0, 1, 2, 3, 4], duplicates=policy)
    assert ratings.values.tolist() == kept
    assert ratings.mask.timestamps.tolist() == ([1, 0] if policy == "first" else [4, 3])


def test_the_earliest_repetition_is_the_one_reported():
    arrays = ["b", "b", "a", "a", "b"], [2, 3, 1, 1, 2], [3, 1, 2, 4, 5]
    with pytest.raises(DataError, match=r"position 3: user 'a' rates item '1' again, as before at position 2"):
        Ratings.from_arrays(*arrays, scale=SCALE)


TABLES = st.dictionaries(
    st.tuples(st.integers(-5, 12), st.text("aé\U0001f600Z9", min_size=1, max_size=3)), st.integers(1, 5), min_size=2
).filter(lambda cells: all(len({cell[side] for cell in cells}) > 1 for side in (0, 1)))


@settings(max_examples=150, deadline=None)
@given(TABLES, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_leaves_no_trace_and_every_rating_is_kept(cells, random):
    rows = [(user, item, value) for (user, item), value in cells.items()]
    table = Ratings.from_arrays(*map(list, zip(*rows, strict=True)), scale=SCALE).to_arrow()
    random.shuffle(rows)
    assert Ratings.from_arrays(*map(list, zip(*rows, strict=True)), scale=SCALE).to_arrow() == table
    expected = sorted(rows, key=lambda row: (row[0], row[1].encode()))
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_the_mask_is_valid_compressed_rows(cells):
    users, items = map(list, zip(*cells, strict=True))
    mask = Ratings.from_arrays(users, items, list(cells.values()), scale=SCALE).mask
    assert mask.indptr[0] == 0
    assert mask.indptr[-1] == mask.n_ratings == len(cells)
    assert (mask.user_counts > 0).all()
    assert (mask.item_counts > 0).all()
    for start, end in zip(mask.indptr[:-1], mask.indptr[1:], strict=True):
        assert (np.diff(mask.items[start:end]) > 0).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_packed_sorting_equals_a_stable_sort(cells):
    given_cells = np.array(cells, dtype=np.int64)
    expected = np.argsort(given_cells, kind="stable")
    for n_cells in (31, 2**62):  # the second leaves no room to pack
        order, ordered = canonical_order(given_cells.copy(), n_cells)
        np.testing.assert_array_equal(order, expected)
        np.testing.assert_array_equal(ordered, given_cells[expected])
