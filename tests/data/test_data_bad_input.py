"""Bad input gets one sentence that names the file, the row and the remedy."""

import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bad_files import BAD_FILES, HEAD

from dpsr.data import Ratings
from dpsr.errors import DataError, ParameterError, ScaleError
from dpsr.types.coordinates import Scale

SCALE = Scale(1, 5)


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_with_file_row_and_remedy(tmp_path, case):
    name, content, pattern = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=pattern) as caught:
        Ratings.read(tmp_path / name, scale=SCALE)
    message = str(caught.value)
    assert message.startswith(name)
    assert str(tmp_path) not in message
    assert len(message) < 600
    assert message.isprintable()


SECRET = "7361"


@pytest.mark.parametrize(
    "text",
    [
        f"user,item,rating\n1,1,5\n2,2,{SECRET}\n",
        f"user,item,rating\n1,1,5\n2,2,{SECRET}.5\n",
        f"user,item,rating\n1,1,5\n2,2,-{SECRET}\n",
        f"user,item,rating\n1,1,5\n2,2,{SECRET} stars\n",
        f"user,item,rating\n1,1,5\n2,2,'{SECRET},5'\n",
        f"user,item,rating\n1,1,5\n2,2,4,{SECRET}\n",
        f'user,item,rating\n1,1,"5\n2,2,{SECRET}\n',
        f"1,1,{SECRET},0,0\n2,2,5,0,0\n",
        f"1 {SECRET}\n",
        f'user,item,rating\n1,"1,{SECRET}\n2,2,5\n{"3,3,5" * 300}\n4,"5",5\n',
        f'user,item,rating\n1,"1,{SECRET}\n2,2",5\n1,"1,{SECRET}\n2,2",5\n',
    ],
)
def test_no_message_about_a_bad_file_quotes_a_rating(tmp_path, text):
    """Messages are pasted into tickets and logs, and the value of a rating is what is protected."""
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(DataError) as refused:
        Ratings.read(tmp_path / "r.csv", scale=SCALE)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("second", [7361, 7361.5, "7361", 7361 << 70, [7361], {"stars": 7361}])
def test_no_message_about_bad_arrays_quotes_a_rating(second):
    with pytest.raises(DataError) as refused:
        Ratings.from_arrays([1, 2], [1, 2], [1, second], scale=SCALE)
    assert not {SECRET, str(7361 << 70)} & set(re.split(r"[^0-9]", str(refused.value)))


def test_a_value_off_the_scale_is_a_scale_error(tmp_path):
    (tmp_path / "r.csv").write_bytes(HEAD + b"2,20,6\n")
    with pytest.raises(ScaleError):
        Ratings.read(tmp_path / "r.csv", scale=SCALE)


def test_a_path_without_a_readable_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"^no\.csv does not exist\. Check the path"):
        Ratings.read(tmp_path / "no.csv", scale=SCALE)
    with pytest.raises(DataError, match=r"is a folder. Name one file"):
        Ratings.read(tmp_path, scale=SCALE)
    with pytest.raises(DataError, match=r"cannot be opened"):
        Ratings.read("nul\0.csv", scale=SCALE)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"not a regular file. Save the ratings to a file"):
        Ratings.read(tmp_path / "pipe.csv", scale=SCALE)


@pytest.mark.parametrize("field", ["\x1b[31mred\x1b[0m", "\u202eevil", "x" * 5000, "\x07bell", "a\x00b"])
def test_what_is_quoted_is_short_and_cannot_drive_a_terminal(tmp_path, field):
    path = tmp_path / "r.csv"
    path.write_text(f"user,item,rating\na,x,1\nb,y,{field}\n")
    with pytest.raises(DataError, match=r"row 3: the rating is not a number") as caught:
        Ratings.read(path, scale=SCALE)
    assert str(caught.value).isprintable()
    path.write_text(f"user,item,rating,timestamp\na,x,1,1\nb,y,1,{field}\n")
    with pytest.raises(DataError, match=r"row 3: timestamp '") as caught:
        Ratings.read(path, scale=SCALE)
    assert str(caught.value).isprintable()
    assert len(str(caught.value).split("'")[1]) <= 58


def test_column_names_and_file_names_are_quoted_safely_too(tmp_path):
    path = tmp_path / "r\x1b[2J.csv"
    path.write_text(",".join([f"\x1b[3{n}m{'y' * 500}" for n in range(500)]) + "\n")
    with pytest.raises(DataError, match=r"and 488 more") as caught:
        Ratings.read(path, scale=SCALE)
    assert str(caught.value).isprintable()
    assert "y" * 60 not in str(caught.value)


def test_a_given_column_must_exist_and_have_one_role(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(HEAD)
    with pytest.raises(
        DataError, match=r"no column is named 'who'; the columns are 'userId', 'movieId', 'rating'.*--user"
    ):
        Ratings.read(path, scale=SCALE, user="who")
    with pytest.raises(DataError, match=r"'userId' is named as user and as item.*--item COLUMN"):
        Ratings.read(path, scale=SCALE, item="userId")
    with pytest.raises(DataError, match=r"no column is named 'when'"):
        Ratings.read(path, scale=SCALE, timestamp="when")


def test_a_wrong_name_is_said_before_what_was_not_found(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("Kundennr.,Wein,Note\na,b,1\n")
    with pytest.raises(DataError, match=r"no column is named 'Kundennr'; the columns are 'Kundennr\.'"):
        Ratings.read(path, scale=SCALE, user="Kundennr", item="Wein")


@pytest.mark.parametrize("delimiter", ["", ";;", "a", '"', "\n", "é", "1"])
def test_a_delimiter_that_cannot_be_one_is_refused(tmp_path, delimiter):
    (tmp_path / "r.csv").write_bytes(HEAD)
    with pytest.raises(ParameterError, match=r"a delimiter is one punctuation mark"):
        Ratings.read(tmp_path / "r.csv", scale=SCALE, delimiter=delimiter)


def test_an_unknown_policy_for_duplicates_is_refused():
    with pytest.raises(ParameterError, match=r"duplicates is one of error, first, last, found 'mean'"):
        Ratings.from_arrays([1, 2], [1, 2], [1, 2], scale=SCALE, duplicates="mean")


BAD_ARRAYS = {
    "lengths": (([1, 2], [1], [1, 2]), "equal lengths, found 2 users, 1 items, 2 values"),
    "mixed ids": (([1, "a"], [1, 2], [1, 2]), "'users' cannot be read as one column"),
    "big ids": (([1, 2**70], [1, 2], [1, 2]), "beyond 64 bits are given as strings"),
    "two dimensions": (([1, 2], np.ones((2, 2)), [1, 2]), "'items' cannot be read as one column"),
    "a number": ((3, [1], [1]), "'users' cannot be read as one column"),
    "NaN": (([1, 2], [1, 2], np.array([1, np.nan])), "the arrays, position 1: the rating is not a finite number"),
    "None": ((["a", None], [1, 2], [1, 2]), "position 1: the user is missing"),
    "words": (([1, 2], [1, 2], ["1", "two"]), "position 1: the rating is not a number"),
    "off scale": (([1, 2], [1, 2], [1, 9]), "position 1: the rating is not on the scale"),
    "empty": (([], [], []), "the arrays: there are no ratings"),
    "empty strings": ((["", "a"], [1, 2], [1, 2]), "position 0: the user is missing"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_refused_with_the_position(case):
    arrays, pattern = BAD_ARRAYS[case]
    with pytest.raises(DataError, match=pattern):
        Ratings.from_arrays(*arrays, scale=SCALE)


def test_something_that_is_no_frame_is_refused():
    with pytest.raises(DataError, match=r"takes a pandas, polars or Spark DataFrame.*found 'dict'.*from_arrays"):
        Ratings.from_frame({"user": [1]}, scale=SCALE)
    twice = pd.DataFrame([[1, 1, 1, 1]], columns=["user", "user", "item", "rating"])
    with pytest.raises(DataError, match=r"two columns are named 'user'"):
        Ratings.from_frame(twice, scale=SCALE, user="user")
    with pytest.raises(DataError, match=r"the frame, position 1: the user is missing"):
        Ratings.from_frame(pd.DataFrame({"user": [1, np.nan], "item": [1, 2], "rating": [1, 2]}), scale=SCALE)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_what_an_array_masks_is_missing_and_not_what_stands_below_the_mask(part):
    columns = [np.array([1, 2, 3]), np.array([1, 2, 3]), np.array([1, 2, 3])]
    columns[part] = np.ma.array(columns[part], mask=[False, True, False])
    with pytest.raises(DataError, match=r"position 1: the (user|item|rating) is missing"):
        Ratings.from_arrays(*columns, scale=SCALE)


def test_frames_of_other_shapes_are_told_what_to_call():
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [5, 1]})
    with pytest.raises(DataError, match=r"Its index is 'user', 'item': reset_index\(\) makes columns of that"):
        Ratings.from_frame(frame.set_index(["user", "item"]), scale=SCALE)
    pl = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"found 'LazyFrame': collect\(\) it first"):
        Ratings.from_frame(pl.LazyFrame({"user": [1]}), scale=SCALE)
    bare = frame.set_axis([0, 1, 2], axis=1)
    assert len(Ratings.from_frame(bare, user=0, item=1, rating=2, scale=SCALE).to_arrow()) == 2


@pytest.mark.parametrize("kind", ["time64[us]", "duration[s]", "duration[ns]"])
def test_a_time_of_day_or_a_duration_is_no_time(kind):
    times = pa.array([60, 120], pa.int64()).cast(kind)
    table = pa.table({"user": [1, 2], "item": [1, 2], "rating": [5, 1], "timestamp": times})
    with pytest.raises(DataError, match=r"the timestamp column has type .*, or leave times out"):
        Ratings.from_frame(table, scale=SCALE)


def test_a_rating_outside_a_scale_that_snaps_is_not_told_to_snap():
    with pytest.raises(ScaleError, match=r"is outside the scale 1:5:1\. Declare") as refused:
        Ratings.from_arrays([1, 2], [1, 2], [1.2, 6], scale=Scale(1, 5, snap=True))
    assert "--snap" not in str(refused.value)
