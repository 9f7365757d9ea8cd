"""A file that lists items: ids as the ratings spell them, titles where there are any."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsr.data.files.catalogue import read_catalogue
from dpsr.errors import DataError


def written(folder, text, name="items.csv"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("items.csv", "movieId,title,genres\n7,Heat,Crime\n3,Ronin,Action|Thriller\n"),
        ("items.csv", "id;name\n7;Heat\n3;Ronin\n"),
        ("items.csv", '7,"Heat"\n3,Ronin\n'),
        ("movies.dat", "7::Heat::Crime\n3::Ronin::Action\n"),
        ("items.tsv", "title\titem\nHeat\t7\nRonin\t3\n"),
        ("u.item", "7|Heat|01-Jan-1995\n3|Ronin|01-Jan-1998\n"),
    ],
)
def test_ids_and_titles_are_found_with_and_without_a_header(tmp_path, name, text):
    catalogue = read_catalogue(written(tmp_path, text, name))
    assert catalogue.ids.dtype == np.int64
    assert catalogue.ids.tolist() == [7, 3]
    assert catalogue.titles == ["Heat", "Ronin"]


def test_ids_that_are_not_all_integers_stay_text_and_a_missing_title_is_none(tmp_path):
    catalogue = read_catalogue(written(tmp_path, "sku;title\n007;\nA1;Ronin\n"))
    assert catalogue.ids.tolist() == ["007", "A1"]
    assert catalogue.titles == [None, "Ronin"]


def test_a_plain_list_of_ids_is_a_catalogue_without_titles(tmp_path):
    catalogue = read_catalogue(written(tmp_path, "10\n20\n\n30\n", "items.txt"))
    assert catalogue.ids.tolist() == [10, 20, 30]
    assert not catalogue.titled


def test_parquet_is_read_too(tmp_path):
    pq.write_table(pa.table({"item": ["a", "b"], "title": ["Heat", None]}), tmp_path / "items.parquet")
    catalogue = read_catalogue(tmp_path / "items.parquet")
    assert (catalogue.ids.tolist(), catalogue.titles) == (["a", "b"], ["Heat", None])


def test_titles_are_looked_up_by_id_whatever_the_order_and_the_type(tmp_path):
    catalogue = read_catalogue(written(tmp_path, "item,title\n7,Heat\n3,Ronin\n"))
    assert catalogue.titles_of(pa.array([3, 5, 7])) == ["Ronin", None, "Heat"]
    assert catalogue.titles_of(pa.array(["3", "x"])) == ["Ronin", None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,title\n7,Heat\n8,X\n7,Ronin\n", "row 4: the item '7' is listed again, as before at row 2"),
        ("item,title\n7,Heat\n,Ronin\n", "row 3: the item is missing"),
        ("item,title\n", "lists no items"),
        ("item,movie,title\n1,2,Heat\n", "more than one column could be the item"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_catalogue(written(tmp_path, text))
