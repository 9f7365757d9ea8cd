"""Every layout that can be read gives the same table."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_layouts import CANONICAL, LAYOUTS, ROWS, text

from dpsr.data import Ratings
from dpsr.data.files.pairs import read_pairs
from dpsr.data.files.read import columns_in, columns_taken
from dpsr.errors import DataError
from dpsr.types.coordinates import Scale

SCALE = Scale(1, 5)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_text_layout_gives_the_same_table(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(LAYOUTS[name])
    ratings = Ratings.read(path, scale=SCALE)
    assert ratings.to_arrow().to_pydict() == CANONICAL
    assert ratings.mask.user_ids.type == ratings.mask.item_ids.type == pa.int64()


@pytest.mark.parametrize("name", ["ratings.parquet", "ratings.pq", "parquet_by_its_first_bytes.bin"])
@pytest.mark.parametrize("string_ids", [False, True])
def test_parquet_gives_the_table_that_was_written(tmp_path, name, string_ids):
    columns = dict(zip(["userId", "movieId", "rating", "timestamp"], map(list, zip(*ROWS, strict=True)), strict=True))
    if string_ids:
        columns["userId"] = [str(user) for user in columns["userId"]]
    pq.write_table(pa.table({**columns, "title": ["a", "b", "c", "d"]}), tmp_path / name)
    table = Ratings.read(tmp_path / name, scale=SCALE).to_arrow().to_pydict()
    expected = {(str(u) if string_ids else u, i, float(r), t) for u, i, r, t in ROWS}
    assert set(zip(*table.values(), strict=True)) == expected
    assert table["user"] == sorted(table["user"])


def test_a_decimal_comma_is_a_decimal_point_where_no_comma_separates(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("Benutzer;item;rating\n1;1;3,5\n1;2;0,5\n2;1;5\n")
    ratings = Ratings.read(path, scale="0.5:5:0.5", user="Benutzer")
    assert ratings.values.tolist() == [3.5, 0.5, 5.0]


def test_a_day_is_its_first_second(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,timestamp\n1,1,3,1970-01-02\n2,2,4,1969-12-31\n")
    assert Ratings.read(path, scale=SCALE).mask.timestamps.tolist() == [86_400, -86_400]


@pytest.mark.parametrize("odd", ["31/01/2020", "2020-13-01", "2020-01-31 25:00"])
def test_a_date_that_no_calendar_has_or_two_would_read_differently_is_refused(tmp_path, odd):
    path = tmp_path / "ratings.csv"
    path.write_text(f"user,item,rating,timestamp\n1,1,3,1970-01-02\n2,2,4,{odd}\n")
    with pytest.raises(DataError, match="ISO dates"):
        Ratings.read(path, scale=SCALE)


def test_one_json_array_is_told_what_to_do(tmp_path):
    path = tmp_path / "ratings.json"
    path.write_text('[{"user": 1, "item": 2, "rating": 3}]')
    with pytest.raises(DataError, match="one object a line"):
        Ratings.read(path, scale=SCALE)


@pytest.mark.parametrize(("delimiter", "given"), [(";", ";"), ("|", "|"), ("\t", "\\t"), (" ", " "), ("::", "::")])
def test_a_delimiter_can_be_given(tmp_path, delimiter, given):
    path = tmp_path / "ratings.txt"
    path.write_bytes(text(delimiter, delimiter.join(["user", "item", "rating", "time"])))
    assert Ratings.read(path, scale=SCALE, delimiter=given).to_arrow().to_pydict() == CANONICAL


def test_columns_can_be_named_and_other_columns_are_not_even_decoded(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"title,who,what,how\nNo\xebl,ann,x,5\nAm\xe9lie,bob,y,1\n")
    ratings = Ratings.read(path, scale=SCALE, user="who", item="what", rating="how")
    assert ratings.to_arrow().to_pydict() == {"user": ["ann", "bob"], "item": ["x", "y"], "rating": [5.0, 1.0]}


def test_quoted_fields_may_hold_delimiters_quotes_and_line_breaks(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text('user,item,rating,text\n"a, b","say ""hi""",5,"two\nlines"\nc,d,1,""\n')
    table = Ratings.read(path, scale=SCALE).to_arrow().to_pydict()
    assert table["user"] == ["a, b", "c"]
    assert table["item"] == ['say "hi"', "d"]


def test_quotes_mean_nothing_between_double_colons(tmp_path):
    path = tmp_path / "ratings.dat"
    path.write_text('"a::x::5\nb"::y::1\n')
    assert Ratings.read(path, scale=SCALE).to_arrow().to_pydict()["user"] == ['"a', 'b"']


def test_double_colons_are_found_wherever_a_block_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("dpsr.data.columns.BLOCK", 7)
    path = tmp_path / "ratings.dat"
    path.write_text(
        "".join(f"{user}::{'1' * item}::{1 + (user + item) % 5}\n" for user in range(99) for item in (1, 2, 3))
    )
    ratings = Ratings.read(path, scale=SCALE)
    assert ratings.mask.shape == (99, 3)
    assert ratings.levels.tolist() == [(user + item) % 5 for user in range(99) for item in (1, 2, 3)]


@pytest.mark.parametrize("odd", ["007", "9223372036854775808", "-0", "+1", "1.0", " 1"])
def test_one_id_that_is_not_spelt_like_an_integer_keeps_the_column_as_text(tmp_path, odd):
    path = tmp_path / "ratings.csv"
    path.write_text(f"user,item,rating\n7,1,5\n{odd},2,4\n")
    assert Ratings.read(path, scale=SCALE).mask.user_ids.to_pylist() == sorted(["7", odd])


def test_the_largest_and_smallest_integers_are_integers(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(f"user,item,rating\n{2**63 - 1},1,5\n{-(2**63)},2,4\n")
    assert Ratings.read(path, scale=SCALE).mask.user_ids.to_pylist() == [-(2**63), 2**63 - 1]


def test_ids_that_spell_null_are_ids(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\nNA,null,5\nNaN,N/A,4\n")
    assert Ratings.read(path, scale=SCALE).mask.user_ids.to_pylist() == ["NA", "NaN"]


def test_ratings_may_have_spaces_decimals_and_exponents(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\na,x, 5.0\na,y,2e0\nb,x,+3\nb,y,4.\n")
    assert Ratings.read(path, scale=SCALE).values.tolist() == [5, 2, 3, 4]


def test_fractions_of_a_second_are_rounded_down_and_times_can_be_left_out(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,timestamp\na,x,5,10.9\nb,y,2,-0.5\n")
    assert Ratings.read(path, scale=SCALE).mask.timestamps.tolist() == [10, -1]
    path.write_text("user,item,rating,timestamp\na,x,5,yesterday\nb,y,2,today\n")
    assert Ratings.read(path, scale=SCALE, timestamp="").mask.timestamps is None


def test_all_columns_that_are_not_found_are_asked_for_at_once(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("Nutzer;Film;Bewertung\n1;1;3\n2;2;4\n")
    with pytest.raises(DataError, match=r"the user or the rating; .*with user=.*--user COLUMN --rating"):
        Ratings.read(path, scale=SCALE)


def test_a_log_of_purchases_is_told_how_it_is_read(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"customer": 1, "sku": "A", "event": "buy"}\n{"customer": 2, "sku": "B", "event": "buy"}\n')
    with pytest.raises(DataError, match=r"no column looks like the rating; .*have no rating.*--likes --unit user"):
        Ratings.read(path, scale=SCALE)


JSON = '{"user": "a", "item": 1, "rating": 5}\n{"user": "b", "item": 2, "rating": 3}\n'


@pytest.mark.parametrize("name", ["ratings.txt", "standard input", "ratings.csv"])
def test_json_lines_are_known_by_how_they_begin(tmp_path, name):
    """Through a pipe they have no name; pieces of the first object were shown as the names of columns."""
    path = tmp_path / name
    path.write_text(JSON)
    assert Ratings.read(path, scale=SCALE).values.tolist() == [5, 3]
    assert columns_taken(path) == {"user": "user", "item": "item", "rating": "rating"}
    with pytest.raises(DataError, match="is JSON, of which ratings alone are read"):
        list(read_pairs(path))


@pytest.mark.parametrize("name", ["ratings.json", "standard input"])
@pytest.mark.parametrize("reader", [columns_taken, columns_in, lambda path: Ratings.read(path, scale=SCALE)])
def test_an_array_is_named_before_its_columns_are_looked_for(tmp_path, name, reader):
    path = tmp_path / name
    path.write_text(f"[\n{JSON.replace('}', '},', 1)}]")
    with pytest.raises(DataError, match="is one JSON array"):
        reader(path)


@pytest.mark.parametrize(
    ("pack", "advice"),
    [(gzip.compress, "(gunzip)"), (bz2.compress, "(bunzip2)"), (lzma.compress, "by xz, which is not read")],
)
def test_what_is_compressed_and_not_called_so_may_be_unpacked(tmp_path, pack, advice):
    """What came through a pipe was told to let its name end in .gz; xz was read as text."""
    path = tmp_path / "standard input"
    path.write_bytes(pack(b"user,item,rating\n1,1,5\n2,2,3\n"))
    with pytest.raises(DataError, match="standard input is compressed") as refused:
        Ratings.read(path, scale=SCALE)
    assert advice in str(refused.value)
