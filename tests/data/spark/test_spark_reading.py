"""Files and frames on Spark: the same ids, levels and times as in memory, and the same refusals."""

import csv
import gzip
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import column, needs_spark

from dpsr import Interactions, Ratings, Scale
from dpsr.data.spark.files import spark_table_of_file
from dpsr.data.spark.frame import spark_table
from dpsr.engine.raw import LEVEL
from dpsr.engine.table import TIMESTAMP
from dpsr.errors import DataError, ParameterError

pytestmark = needs_spark

SCALE = Scale(1, 5)


@pytest.fixture
def session(lasting_spark):
    return lasting_spark


def check_equal(session, path, **named):
    """The ids and their types, who rated what, levels and times."""
    inside = Ratings.read(path, scale=SCALE, **named)
    there = spark_table_of_file(session, path, scale=SCALE, **named).table
    for found, expected in (
        (there.census.user_ids, inside.mask.user_ids),
        (there.census.item_ids, inside.mask.item_ids),
    ):
        assert found.type == expected.type
        assert found.to_pylist() == expected.to_pylist()
    np.testing.assert_array_equal(there.census.user_counts, inside.mask.census.user_counts)
    np.testing.assert_array_equal(there.census.item_counts, inside.mask.census.item_counts)
    assert there.census.timed == (inside.mask.timestamps is not None)
    expected = {LEVEL: inside.levels, **({TIMESTAMP: inside.mask.timestamps} if there.census.timed else {})}
    blocks = list(there.scan(list(expected)))  # at once: every scan takes several jobs
    np.testing.assert_array_equal(np.concatenate([block.items for block in blocks]), inside.mask.items)
    for name, values in expected.items():
        np.testing.assert_array_equal(np.concatenate([block.columns[name] for block in blocks]), values)
    return inside


def refusals(session, path, **named):
    """What Spark and memory say about the same file."""
    said = []
    for read in (Ratings.read, lambda *a, **k: spark_table_of_file(session, *a, **k)):
        with pytest.raises(DataError) as refused:
            read(path, scale=SCALE, **named)
        said.append(str(refused.value))
    assert "\n" not in said[1]
    return said


UNUSUAL = [
    "7", "007", "7.0", "+7", "-7", "07", "7e0", "0x7", "1_000", " 7", "7 ", "  ", "\t7", "99999999999999999999",
    "true", "TRUE", "null", "NULL", "NaN", "nan", "inf", "None", "NA", "2020-01-01",
    "a,b", 'say "hi"', '"', "it's", "back\\slash", "\\", "\\n", "line\nbreak", "#comment", "--", "a" * 1000,
    "ré", "re\u0301", "日本語", "😀", "\u00a0", "\u200b", "\ufeff", "\ufffd",
]  # fmt: skip


def write(path, rows, header=("user", "item", "rating"), **how):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **how).writerows([header, *rows] if header else rows)
    return path


def test_unusual_ids_are_read_as_in_memory_and_none_are_merged(session, tmp_path):
    rows = [(user, item, 1 + (a + b) % 5) for a, user in enumerate(UNUSUAL) for b, item in enumerate(("x", "007", "7"))]
    inside = check_equal(session, write(tmp_path / "r.csv", rows))
    assert sorted(inside.mask.user_ids.to_pylist()) == sorted(UNUSUAL)


def test_leading_zeros_are_part_of_an_id_and_usual_integers_are_integers(session, tmp_path):
    rows = [(user, item, 3) for user in ("007", "7", "0") for item in (10, 9, -2)]
    inside = check_equal(session, write(tmp_path / "r.csv", rows))
    assert inside.mask.user_ids.to_pylist() == ["0", "007", "7"]
    assert inside.mask.item_ids.to_pylist() == [-2, 9, 10]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("u.data", "1\t10\t3\t881250949\n2\t10\t4\t881250950\n1\t11\t5\t0\n"),
        ("ratings.dat", '1::10::3::9\n2::"a::4::8\n1::11::5::7\n'),
        ("bom.csv", "\ufeffuser,item,rating\n1,10,3\n2,10,4\n2,11,4\n"),
        ("crlf.csv", "user,item,rating\r\n1,10,3\r\n2,10,4\r\n2,11,4\r\n"),
        ("cr.csv", "user,item,rating\r1,10,3\r2,10,4\r2,11,4\r"),
        ("empty_lines.csv", "\n\nuser,item,rating\n\n1,10,3\n2,10,4\n\n2,11,4\n\n"),
        ("spaces.csv", "user,item,rating\n 1,10 , 3\n2,10, 4.0 \n2,11,4e0\n"),
        ("names.csv", "user,item,rating,user.name,note?,a`b\n1,10,3,x,y,z\n2,10,4,,,\n2,11,4,x,y,z\n"),
        ("twins.csv", "user,item,rating,x,x,X\n1,10,3,x,y,z\n2,10,4,x,y,z\n2,11,4,x,y,z\n"),
        ("quotes.csv", 'user,item,rating\n5" disk,10,3\n"5"" disk",11,4\n"",x\n'.replace('"",x\n', '"a",11,4\n')),
    ],
)
def test_layouts_are_read_as_in_memory(session, tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    check_equal(session, tmp_path / name)


def test_a_compressed_file_is_read_as_in_memory(session, tmp_path):
    with gzip.open(tmp_path / "r.csv.gz", "wt") as file:
        file.write("user,item,rating,timestamp\n01,10,3,5\n1,10,4,6\n1,11,4,7.9\n")
    check_equal(session, tmp_path / "r.csv.gz")
    (tmp_path / "r.csv.zst").write_bytes(pa.compress(b"user,item,rating\n1,2,3\n", codec="zstd", asbytes=True))
    with pytest.raises(DataError, match=r"gzip and bzip2, not \.zst\. Decompress it, or use --engine disk"):
        spark_table_of_file(session, tmp_path / "r.csv.zst", scale=SCALE)


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 1, 2], pa.int32()),
        pa.array([3, 1, 2], pa.uint64()),
        pa.array([3, 1, 2**64 - 1], pa.uint64()),
        pa.array([3.0, 1.0, 2.0]),
        pa.array(["3", "1", "007"]),
        pa.array([b"3", b"1", b"\xc3\xa9"]),
        pa.array(["b", "a", "c"]).dictionary_encode(),
    ],
    ids=str,
)
def test_typed_ids_are_read_as_in_memory(session, tmp_path, ids):
    times = pa.array([datetime(2020, 1, day, 12, 30, tzinfo=UTC) for day in (1, 2, 3)], pa.timestamp("us", "UTC"))
    table = pa.table({"user": ids, "item": ids.take([1, 2, 0]), "rating": [1.0, 2.0, 5.0], "timestamp": times})
    pq.write_table(table, tmp_path / "r.parquet")
    check_equal(session, tmp_path / "r.parquet")


@pytest.mark.parametrize(
    "row",
    ["u3,i3,nine", "u3,i3,7", "u3,i3,", ",i3,3", "u3,,3", "u3,i3,nan", "u3,i3,\"3,5\"", f"{'u' * 1001},i3,3"],
)  # fmt: skip
def test_bad_values_are_refused_in_the_words_of_memory(session, tmp_path, row):
    (tmp_path / "r.csv").write_text(f"user,item,rating\nu1,i1,1\nu2,i2,2\n{row}\n")
    inside, there = refusals(session, tmp_path / "r.csv")
    assert there == inside.replace("row 4", "one of its rows")


@pytest.mark.parametrize("row", [b"u3,i3", b"u3,i3,3,4", b"u3,\xff\xfe,3", b"u3,i\xe9,3"])
def test_rows_that_are_none_are_refused_in_the_words_of_memory(session, tmp_path, row):
    (tmp_path / "r.csv").write_bytes(b"user,item,rating\nu1,i1,1\nu2,i2,2\n" + row + b"\n")
    inside, there = refusals(session, tmp_path / "r.csv")
    assert there == inside


def test_a_header_alone_is_refused(session, tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\n")
    _, there = refusals(session, tmp_path / "r.csv")
    assert "no ratings" in there


def test_pairs_rated_twice_are_counted_shown_and_refused_with_what_to_do(session, tmp_path):
    rows = [(f"u{a}", f"i{b}", 3) for a in range(4) for b in range(4)]
    rows += [("u2", "i1", 5), ("u2", "i1", 4), ("u0", "i3", 3)]
    with pytest.raises(DataError) as refused:
        spark_table_of_file(session, write(tmp_path / "r.csv", rows), scale=SCALE)
    assert "r.csv: pairs of user and item rated more than once: 2, with 3 ratings too many" in str(refused.value)
    assert "the first is user 'u0' and item 'i3'" in str(refused.value)
    assert "--engine disk with --duplicates first or last" in str(refused.value)
    assert "dropDuplicates" in str(refused.value)


def test_the_same_pair_in_two_spellings_is_a_pair_rated_twice(session):
    frame = session.createDataFrame(
        pa.table({"user": [1.0, 2.0, -0.0, 0.0], "item": [1, 2, 3, 3], "rating": [1, 2, 3, 4]})
    )
    with pytest.raises(DataError, match=r"rated more than once: 1, .*user '0' and item '3'"):
        spark_table(session, frame, scale=SCALE)


def test_columns_of_a_frame_may_have_any_name(session):
    frame = session.createDataFrame(pa.table({"a.b": [1, 2], "c`d": ["x", "y"], "e f": [1.0, 5.0]}))
    table = spark_table(session, frame, scale=SCALE, user="a.b", item="c`d", rating="e f").table
    assert table.census.item_ids.to_pylist() == ["x", "y"]
    assert column(table, LEVEL).tolist() == [0, 4]


def test_interactions_of_a_spark_frame_are_those_of_its_rows(session):
    rows = {"user": ["ann", "bob", "ann", "bob"], "item": [1, 1, 1, 7], "weight": [2.0, 1.0, 0.5, 3.0]}
    likes = Interactions.from_frame(session.createDataFrame(pa.table(rows)))
    assert likes.to_arrow().to_pydict() == {
        "user": ["ann", "bob", "bob"],
        "item": [1, 1, 7],
        "weight": [2.5, 1.0, 3.0],
    }


def test_ratings_of_a_spark_frame_are_those_of_its_rows(session):
    rows = pa.table({"userId": ["ann", "bob", "ann"], "movie": [7, 1, 1], "stars": [2.0, 1.0, 5.0], "at": [3, 2, 1]})
    frame, named = session.createDataFrame(rows), {"timestamp": "at", "scale": SCALE}
    assert Ratings.from_frame(frame, **named).to_arrow() == Ratings.from_frame(rows, **named).to_arrow()


def test_a_spark_frame_has_no_first_and_no_last_of_a_pair(session):
    frame = session.createDataFrame(pa.table({"user": [1, 1], "item": [2, 2], "rating": [1.0, 5.0]}))
    for which in ("first", "last"):
        with pytest.raises(ParameterError, match=f"none of a pair is its {which}.*dropDuplicates"):
            Ratings.from_frame(frame, scale=SCALE, duplicates=which)
    with pytest.raises(DataError, match="again"):
        Ratings.from_frame(frame, scale=SCALE)


@pytest.mark.parametrize("rating", ["assert_true(rating = '5', rating)", "CAST(rating AS DOUBLE)"])
def test_what_spark_cannot_collect_is_one_sentence_that_quotes_no_row(session, rating):
    rows = session.createDataFrame(pa.table({"user": ["ann"], "item": ["heat"], "rating": ["secret 4"]}))
    with pytest.raises(DataError, match="Spark gave up") as refused:
        Ratings.from_frame(rows.selectExpr("user", "item", f"{rating} AS rating"), scale=SCALE)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)
