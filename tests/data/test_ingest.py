"""Ingestion on disk gives the table that `Ratings.read` gives, or the same sentence."""

import gzip
import random
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_files import BAD_FILES
from file_layouts import LAYOUTS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsr.data import Ratings, ingest
from dpsr.data.files import chunks
from dpsr.engine.raw import LEVEL
from dpsr.engine.table import TIMESTAMP
from dpsr.errors import DataError, DpsrError, ParameterError
from dpsr.types.coordinates import Scale

SCALE = Scale(1, 5)


def ingested(path, work, *, size=7, **options):
    work.mkdir(exist_ok=True)
    return ingest.ingest(path, work, scale=SCALE, block_size=lambda census: size, **options)


def check_equal(path, work, **options):
    """Ids, counts, order, levels and times are those of the reader in memory."""
    expected = Ratings.read(path, scale=SCALE, **options)
    raw = ingested(path, work, **options)
    mask, census = expected.mask, raw.table.census
    timed = [TIMESTAMP] if mask.timestamps is not None else []
    assert census.timed == bool(timed)
    assert census.user_ids.equals(mask.user_ids)
    assert census.item_ids.equals(mask.item_ids)
    np.testing.assert_array_equal(census.user_counts, np.diff(mask.indptr))
    np.testing.assert_array_equal(census.item_counts, np.bincount(mask.items, minlength=mask.n_items))
    blocks = list(raw.table.scan([LEVEL, *timed]))
    np.testing.assert_array_equal(np.concatenate([block.items for block in blocks]), mask.items)
    np.testing.assert_array_equal(np.concatenate([block.columns[LEVEL] for block in blocks]), expected.levels)
    if timed:
        times = np.concatenate([block.columns[TIMESTAMP] for block in blocks])
        np.testing.assert_array_equal(times, mask.timestamps)
    return raw


def complaint(read):
    with pytest.raises(DpsrError) as caught:
        read()
    return type(caught.value), str(caught.value)


def rows(n=200, *, users=15, items=30, seed=0):
    """Shuffled rows of distinct pairs."""
    rng = random.Random(seed)
    return [
        (c // items, c % items, rng.randint(1, 5), rng.randint(0, 10**9)) for c in rng.sample(range(users * items), n)
    ]


def text(table, delimiter=",", header="userId,movieId,rating,timestamp"):
    lines = [header] * bool(header) + [delimiter.join(map(str, row)) for row in table]
    return "\n".join(lines) + "\n"


@pytest.fixture(params=[None, 40], ids=["whole", "in chunks"])
def chunked(request, monkeypatch):
    """Files come whole or in several chunks."""
    if request.param is not None:
        monkeypatch.setattr(chunks, "CHUNK", request.param)
        parsing = chunks.parsing

        def small(*arguments):
            options = parsing(*arguments)
            options[0].block_size = 2500
            return options

        monkeypatch.setattr(chunks, "parsing", small)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if "json" not in name])
def test_every_text_layout_gives_the_readers_table(tmp_path, name):
    (tmp_path / name).write_bytes(LAYOUTS[name])
    check_equal(tmp_path / name, tmp_path / "work")


@pytest.mark.parametrize(
    ("spell", "timed"),
    [(int, True), ("u{}".format, False), ("{:03d}".format, True), (str, False)],
    ids=["int", "names", "zeros", "text"],
)
@pytest.mark.parametrize("kind", ["r.csv", "r.tsv", "r.dat", "r.csv.gz", "r.parquet"])
def test_shuffled_rows_of_any_ids_give_the_readers_table(tmp_path, chunked, kind, timed, spell):
    table = [(spell(u), i, r, *([t] if timed else [])) for u, i, r, t in rows()]
    path = tmp_path / kind
    names = ["userId", "movieId", "rating", "timestamp"][: len(table[0])]
    if kind == "r.parquet":
        pq.write_table(pa.table(dict(zip(names, map(list, zip(*table, strict=True)), strict=True))), path)
    else:
        mark = {"r.tsv": "\t", "r.dat": "::"}.get(kind, ",")
        content = text(table, mark, mark.join(names) if mark != "::" else "").encode()
        path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    check_equal(path, tmp_path / "work")


@pytest.mark.parametrize("keep", ["first", "last"])
def test_repeated_pairs_are_settled_as_the_reader_settles_them(tmp_path, chunked, keep):
    table = rows(120)
    again = [(u, i, 6 - r, t + 1) for u, i, r, t in table[::2]]
    mixed = table + again + again[::3]
    random.Random(1).shuffle(mixed)
    path = tmp_path / "r.csv"
    path.write_text(text(mixed))
    check_equal(path, tmp_path / "work", duplicates=keep)
    assert complaint(lambda: Ratings.read(path, scale=SCALE)) == complaint(lambda: ingested(path, tmp_path / "work"))


def test_named_columns_and_delimiters_are_passed_on(tmp_path):
    path = tmp_path / "r.txt"
    path.write_text(text(rows(50), ";", "who;what;how;when"))
    named = {"user": "who", "item": "what", "rating": "how", "timestamp": "when", "delimiter": ";"}
    check_equal(path, tmp_path / "work", **named)


FIELD = st.text(st.characters(codec="utf-8", exclude_characters='\r\n",\x00'), min_size=1, max_size=4)


@given(st.lists(st.tuples(FIELD, FIELD, st.integers(1, 5)), min_size=2, max_size=30), st.integers(1, 40))
@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
def test_any_table_gives_the_readers_table_or_its_sentence(tmp_path_factory, table, size):
    folder = tmp_path_factory.mktemp("any")
    path = folder / "r.csv"
    path.write_text(text(table, header="user,item,rating"), encoding="utf-8")
    try:
        Ratings.read(path, scale=SCALE)
    except DataError:
        said = complaint(lambda: ingested(path, folder / "work", size=size))
        assert said == complaint(lambda: Ratings.read(path, scale=SCALE))
    else:
        check_equal(path, folder / "work")


@pytest.mark.parametrize("case", [case for case in BAD_FILES if "million" not in case and "endless" not in case])
def test_a_bad_file_gets_the_sentence_of_the_reader(tmp_path, case):
    name, content, _ = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    found, expected = (
        complaint(partial(read, tmp_path / name))
        for read in (lambda path: ingested(path, tmp_path / "work"), lambda path: Ratings.read(path, scale=SCALE))
    )
    assert found == expected
    assert not list((tmp_path / "work").iterdir())


def test_rows_are_counted_across_chunks(tmp_path, chunked):
    table = rows(150)
    for broken in ((99, 99, "good", 1), ("", 99, 1, 1), (99, "x" * 2000, 1, 1), (99, 99, 9, 1), (99, 99, 1, "now")):
        path = tmp_path / "r.csv"
        path.write_text(text([*table[:130], broken, *table[130:]]))
        said = complaint(lambda: ingested(path, tmp_path / "work"))  # noqa: B023
        assert said == complaint(lambda: Ratings.read(path, scale=SCALE))  # noqa: B023
        assert "row 132" in said[1]


def test_nothing_stays_in_the_folder_but_blocks(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(text(rows()))
    raw = ingested(path, tmp_path / "work", size=50)
    columns = ("items", LEVEL, TIMESTAMP)
    expected = {f"{name}-{number:05d}.block.parquet" for name in columns for number in range(raw.table.n_blocks)}
    assert raw.table.n_blocks > 3
    assert {entry.name for entry in (tmp_path / "work").iterdir()} == expected


def test_what_a_killed_run_left_does_not_disturb_the_next(tmp_path):
    path, work = tmp_path / "r.csv", tmp_path / "work"
    path.write_text(text(rows()))
    work.mkdir()
    with duckdb.connect(str(work / "ingest.duckdb")) as base:
        base.execute("create table raw as select 1 as user")
    (work / "items-00000.partial").write_bytes(b"half")
    check_equal(path, work)


def test_duckdb_is_held_to_its_memory_and_its_folder(tmp_path, monkeypatch):
    seen = {}
    connect = duckdb.connect

    def watched(store, config):
        base = connect(store, config=config)
        for name in ("memory_limit", "temp_directory"):
            seen[name] = base.execute(f"select current_setting('{name}')").fetchall()[0][0]
        return base

    monkeypatch.setattr(duckdb, "connect", watched)
    path = tmp_path / "r.csv"
    path.write_text(text(rows()))
    ingested(path, tmp_path / "work", memory=200 << 20)
    assert seen["memory_limit"] == "190.7 MiB"  # DuckDB's megabyte has a million bytes: on the safe side
    assert seen["temp_directory"].startswith(str(tmp_path / "work"))


def test_too_little_memory_for_the_sort_is_one_sentence(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(text(rows(20_000, users=300, items=100)))
    with pytest.raises(DataError, match=r"could not hold the sorted ratings.*Nothing was released.*--memory"):
        ingested(path, tmp_path / "work", memory=2 << 20)
    assert not list((tmp_path / "work").iterdir())


def test_an_unknown_policy_for_duplicates_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="duplicates is one of error, first, last, found 'mean'"):
        ingested(tmp_path / "r.csv", tmp_path / "work", duplicates="mean")
