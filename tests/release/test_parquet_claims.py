"""What a file says of its rows besides them is what they bear out: other readers believe it without looking."""

import base64
import struct

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import copied, resealed

from dpsr import DPSR
from dpsr.certify.folder import MalformedError
from dpsr.data import realistic
from dpsr.release.folder.parquet import Column, read_table
from dpsr.release.folder.parquet_pages import read_footer, read_header
from dpsr.release.folder.write import vectors, writer

COLUMNS = (Column("who", "id"), Column("whole", "whole"), Column("real", "real"), Column("single", "single"),
           Column("vector", "vector", width=3))  # fmt: skip


def table(rows, seed=0, texts=lambda k: f"u{k}"):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "who": pa.array([texts(k) for k in rng.integers(0, max(rows // 3, 1), rows)]),
            "whole": rng.integers(-9, 9, rows),
            "real": np.round(rng.normal(size=rows), 1) * rng.choice([-0.0, 1.0], rows),
            "single": rng.normal(size=rows).astype(np.float32),
            "vector": vectors(rng.normal(size=(rows, 3))),
        }
    )


def written(*tables):
    sink = pa.BufferOutputStream()
    with writer(sink, tables[0].schema) as file:
        for one in tables:
            file.write_table(one)
    return sink.getvalue().to_pybytes()


def in_footer(data, change):
    """The same file with another footer of the same length."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = change(data[-8 - size : -8])
    assert len(footer) == size
    assert footer != data[-8 - size : -8], "the forgery changes something"
    return data[: -8 - size] + footer + data[-8:]


@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        ([5], lambda k: f"u{k}"),
        ([1], lambda k: ""),
        ([70_000], lambda k: f"u{k}"),
        ([10, 3, 400], lambda k: f"{k}ü\U0001f600"),
        ([40], lambda k: "x" * 200 + str(k)),
        ([40], lambda k: "x" * 9_000 + str(k)),
    ],
    ids=["few", "empty text", "many pages", "row groups", "long texts", "longer than a range may be"],
)
def test_what_our_writer_says_of_rows_holds(parts, texts):
    rows = [table(n, seed, texts) for seed, n in enumerate(parts)]
    read = read_table(written(*rows), COLUMNS, sum(parts))
    assert read["real"].tolist() == pa.concat_tables(rows)["real"].to_pylist()


def packed(value, form):
    return struct.pack(form, value)


FORGERIES = {
    "a larger least real": (lambda t: packed(min(t["real"].to_pylist()), "<d"), lambda t: packed(99.0, "<d"), "real"),
    "a larger most whole": (lambda t: packed(max(t["whole"].to_pylist()), "<q"), lambda t: packed(99, "<q"), "whole"),
    "a single that is none": (lambda t: packed(max(t["single"].to_numpy()), "<f"), lambda t: b"raw!", "single"),
    "a vector's largest": (
        lambda t: packed(max(t["vector"].combine_chunks().flatten().to_numpy()), "<d"),
        lambda t: packed(0.0, "<d"),
        "vector",
    ),
    "a text that no row has": (lambda t: max(t["who"].to_pylist()).encode(), lambda t: b"r" * 2, "who"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_range_in_the_footer_that_is_not_that_of_its_rows_is_refused(name):
    rows = table(12)
    old, new, column = FORGERIES[name]
    forged = in_footer(written(rows), lambda footer: footer.replace(old(rows), new(rows)))
    with pytest.raises(MalformedError, match=f"the range that is stated of its column {column}"):
        read_table(forged, COLUMNS, 12)


@pytest.mark.parametrize("name", [name for name, (*_, column) in FORGERIES.items() if column != "who"])
def test_a_range_in_a_page_header_that_is_not_that_of_its_rows_is_refused(name):
    """Where a value stands last before the footer is the header of its data page: values stand in a dictionary before
    it."""
    rows = table(12)
    old, new, column = FORGERIES[name]
    data = written(rows)
    at = data.rindex(old(rows), 0, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
    forged = data[:at] + new(rows) + data[at + len(new(rows)) :]
    with pytest.raises(MalformedError, match=f"the range that is stated of its column {column}"):
        read_table(forged, COLUMNS, 12)


def other_arrow(rows):
    """The Arrow schema that travels along tells of another column."""
    stored = base64.b64encode(rows.schema.serialize().to_pybytes())
    fields = [pa.field("whOle", field.type) if field.name == "whole" else field for field in rows.schema]
    return stored, base64.b64encode(pa.schema(fields).serialize().to_pybytes())


SAID = {
    "who wrote it": (b"parquet-cpp-arrow version", b"u1 gave i5 five stars ver", "who wrote it"),
    "the name of the schema": (b"schema", b"raw: 5", "who wrote it"),
    "the path of a column": (b"\x05whole", b"\x05stars", "another path"),
}


@pytest.mark.parametrize("name", SAID)
def test_words_in_a_footer_that_dpsr_does_not_write_are_refused(name):
    old, new, words = SAID[name]
    data = written(table(12))

    def change(footer):
        at = footer.rindex(old) if name != "the name of the schema" else footer.index(old)
        return footer[:at] + new + footer[at + len(new) :]

    with pytest.raises(MalformedError, match=words):
        read_table(in_footer(data, change), COLUMNS, 12)


SECRET = b"u1 gave i5 five stars"


def with_text(data):
    """The same file; deep in its footer, where columns say how they are ordered, stands a text that readers skip."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    assert footer.endswith(b"\x1c\x00\x00\x00"), "the order of the last column is an empty structure"
    footer = footer[:-3] + b"\x18" + bytes([len(SECRET)]) + SECRET + b"\x00\x00\x00"
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def test_a_text_deep_in_a_footer_is_refused():
    forged = with_text(written(table(12)))
    assert pq.read_table(pa.BufferReader(forged)).num_rows == 12, "others read it as if nothing were there"
    with pytest.raises(MalformedError, match="notes nobody knows"):
        read_table(forged, COLUMNS, 12)


@pytest.mark.parametrize("at", [4, None], ids=["of a dictionary", "of data"])
def test_a_text_in_a_page_header_is_refused(at):
    data = written(table(12))
    _, groups = read_footer(data, most_bytes=1 << 20)
    at = at or groups[0][0].start + read_header(data, 4).header + read_header(data, 4).packed
    page = read_header(data, at)
    header = data[at : at + page.header]
    text = bytes([len(SECRET)]) + SECRET
    for forged in (header[:-1] + b"\x48" + text + b"\x00", header[:-2] + b"\x88" + text + b"\x00\x00"):
        with pytest.raises(MalformedError, match="a field nobody knows"):
            read_header(forged + data[at + page.header :], 0)


def test_an_arrow_schema_that_tells_of_other_columns_is_refused():
    rows = table(12)
    old, new = other_arrow(rows)
    with pytest.raises(MalformedError, match="tells Arrow of other columns"):
        read_table(in_footer(written(rows), lambda footer: footer.replace(old, new)), COLUMNS, 12)


def test_ratings_that_others_would_not_find_are_refused(tmp_path):
    """A folder whose table says that nobody rated below 4.9: polars finds no such row, and `verify` found no fault."""
    sound = DPSR(6.0).fit(realistic(3, n_users=40, n_items=30, n_ratings=500)).save(tmp_path / "sound")
    folder = copied(sound, tmp_path / "r")
    file = folder / "ratings.parquet"
    ratings = pq.read_table(file)["rating"].to_numpy()
    low, high = packed(ratings.min(), "<d"), packed(ratings.max(), "<d")
    forge = lambda footer: footer.replace(low, packed(4.9, "<d")).replace(high, packed(4.99, "<d"))  # noqa: E731
    file.write_bytes(in_footer(file.read_bytes(), forge))
    assert pl.scan_parquet(file).filter(pl.col("rating") < 4).collect().height == 0 < (ratings < 4).sum()
    found = resealed(folder)
    assert any("the range that is stated of its column rating" in words for words in found.fails)
