"""What people's own ratings meet, forged in a folder and resealed: refused in a sentence, or harmless."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import change_table, copied, rewrite

from dpsr import load_release
from dpsr.errors import ParameterError, ReleaseError


@pytest.fixture(scope="module")
def sound(with_readings, tmp_path_factory):
    return with_readings.release.save(tmp_path_factory.mktemp("sound") / "release")


@pytest.fixture
def folder(sound, tmp_path):
    return copied(sound, tmp_path / "r")


def without(*names):
    return lambda table: table.drop(list(names))


def one_number(table):
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * len(table), np.float32)), 2)
    return table.set_column(table.column_names.index("covariance"), "covariance", column)


def negative_variance(table):
    width = table.schema.field("covariance").type.list_size
    values = np.full((len(table), width), -1, np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), width)
    return table.set_column(table.column_names.index("covariance"), "covariance", column)


def negative_weight(table):
    column = pa.array(np.full(len(table), -1, np.float32))
    return table.set_column(table.column_names.index("weight"), "weight", column)


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("items.parquet", without("covariance"), "do not agree"),
        ("items.parquet", one_number, "is not of the"),
        ("items.parquet", negative_variance, "variance is negative"),
        ("ratings.parquet", without("noisy"), "not the other"),
        ("ratings.parquet", negative_weight, "weight is negative"),
    ],
)
def test_a_forged_table_is_refused(folder, file, change, words):
    found = change_table(
        folder, file, change, compression="snappy", data_page_version="1.0", version="2.6", write_page_index=False
    )
    assert any(words in line for line in found.fails), found.fails
    with pytest.raises(ReleaseError, match="not a readable release folder"):
        load_release(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record["personal"].update(widths=[1, 1, 1]), "coefficients an item has"),
        (lambda record: record["personal"].update(weights=[[1.0], [1.0, 2.0]]), "no matrix"),
        (lambda record: record["personal"].update(covariance=[[1.0]]), "not of rank"),
        (lambda record: record["personal"]["covariance"][0].__setitem__(0, -1.0), "covariance of people is none"),
        (lambda record: record["personal"].update(variance=-1.0), "variance"),
        (lambda record: record["personal"]["means"].reverse(), "ascending means"),
        (lambda record: record["personal"].update(effect_chances=[[1.0], [1.0, 2.0]]), "chances"),
        (lambda record: record["personal"].update(effect_chances=[[9e9], [0.0]]), "chances"),
        (lambda record: record["personal"].update(surprise=1), "surprise"),
        (lambda record: record.pop("personal"), "do not agree"),
    ],
)
def test_a_forged_prior_of_people_is_refused(folder, change, words):
    found = rewrite(folder, "model.json", lambda record: change(record) and None)
    assert any(words in line for line in found.fails), found.fails
    with pytest.raises(ReleaseError, match="not a readable release folder"):
        load_release(folder)


def test_a_folder_of_before_is_read_and_says_that_it_cannot_personalise(folder, with_readings):
    rewrite(folder, "model.json", lambda record: record.pop("personal") and None)
    options = {"compression": "snappy", "data_page_version": "1.0", "version": "2.6", "write_page_index": False}
    change_table(folder, "items.parquet", without("covariance"), **options)
    found = change_table(folder, "ratings.parquet", without("noisy", "weight"), **options)
    assert found.intact, found.fails
    with pytest.raises(ParameterError, match="Release anew with the default method"):
        load_release(folder).personalise(with_readings.train)


def test_noisy_readings_lie_around_the_ratings_and_no_raw_rating_is_among_the_columns(folder, with_readings):
    table = pq.read_table(folder / "ratings.parquet")
    assert table.column_names == ["user", "item", "rating", "noisy", "weight"]
    off = table["noisy"].to_numpy() - with_readings.train.values
    weight = table["weight"].to_numpy()
    assert abs(np.average(off, weights=weight)) < 0.1
    assert np.count_nonzero(off == 0) == 0
