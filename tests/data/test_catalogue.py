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


def test_ids_stand_in_the_column_that_ratings_call_their_items(tmp_path):
    text = "wine,colour\nRioja,red\nBarolo,red\n"
    pq.write_table(pa.table({"wine": ["Rioja", "Barolo"], "colour": ["red", "red"]}), tmp_path / "items.parquet")
    for path in (written(tmp_path, text), tmp_path / "items.parquet"):
        catalogue = read_catalogue(path, also="wine")
        assert (catalogue.ids.tolist(), catalogue.titles) == (["Rioja", "Barolo"], [None, None])
    assert read_catalogue(written(tmp_path, "Rioja\nBarolo\n"), also="wine").ids.tolist() == ["Rioja", "Barolo"]


def test_ids_of_words_and_numbers_below_a_header_stay(tmp_path):
    assert read_catalogue(written(tmp_path, "item,title\nA1,Heat\n2,Ronin\n")).ids.tolist() == ["A1", "2"]


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
        ("nr;wine\n7;Rioja\n3;Barolo\n", "no column is the item; the columns are 'nr', 'wine'. Call the column of ids"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_catalogue(written(tmp_path, text))
