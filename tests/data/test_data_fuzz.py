"""Whatever a file holds, reading it gives a valid table or one sentence, never a traceback."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsr.data import Ratings
from dpsr.errors import DpsrError
from dpsr.types.coordinates import Scale

SCALE = Scale(1, 5)
NAMES = ["r.csv", "r.tsv", "u.data", "ratings.dat", "r.txt", "r.parquet", "r.csv.gz", "r"]
QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))

ROWS = "".join(f"{user},{item},{1 + (user * item) % 5},{1000 + user}\n" for user in range(6) for item in range(4))
TEXTS = [
    ("userId,movieId,rating,timestamp\n" + ROWS).encode(),
    ROWS.replace(",", "\t").encode(),
    ROWS.replace(",", "::").encode(),
    ('user,item,rating,note\n"a, b",x,5,"two\nlines"\nç,"say ""hi""",1,\n').encode(),
]


def parquet_bytes(compression):
    sink = pa.BufferOutputStream()
    columns = {
        "user": [*"abcabc"],
        "item": [1, 1, 1, 2, 2, 2],
        "rating": [1.0, 2, 3, 4, 5, 1],
        "timestamp": [*range(6)],
    }
    pq.write_table(pa.table(columns), sink, compression=compression)
    return sink.getvalue().to_pybytes()


PARQUETS = [parquet_bytes("snappy"), parquet_bytes("none")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def check(folder, name, content, **options):
    path = folder / name
    path.write_bytes(content)
    ratings, complaint = None, ""
    try:
        ratings = Ratings.read(path, scale=SCALE, **options)
    except DpsrError as error:
        complaint = str(error)
    assert complaint.isprintable()
    assert len(complaint) < 1500
    if ratings is not None:
        check_table(ratings)


def check_table(ratings):
    mask = ratings.mask
    assert len(ratings) == mask.indptr[-1] == len(mask.items) >= 1
    assert ratings.levels.max() < SCALE.n_levels
    cells = mask.users.astype(np.int64) * mask.n_items + mask.items
    assert (np.diff(cells) > 0).all()
    for ids in (mask.user_ids, mask.item_ids):
        ids.validate(full=True)
        assert ids.null_count == 0
        assert ids.to_pylist() == sorted(set(ids.to_pylist()), key=lambda i: i.encode() if isinstance(i, str) else i)


def mutated(originals):
    place, removed = st.floats(0, 1, exclude_max=True), st.sampled_from([0, 1, 1, 2, 6])
    added = st.one_of(st.sampled_from([b"", b"1", b"3", b"a"]), st.binary(max_size=6))
    return st.builds(
        _mutate, st.sampled_from(originals), st.lists(st.tuples(place, removed, added), min_size=1, max_size=4)
    )


def _mutate(content, edits):
    """Each edit removes some bytes at a place and puts others there."""
    for where, removed, added in edits:
        place = int(where * (len(content) + 1))
        content = content[:place] + added + content[place + removed :]
    return content


FRAGMENTS = st.sampled_from(
    ["user", "item", "rating", "timestamp", "1", "2", "5", "9", "-1", "1e999", "nan", "", " ", ",", ",", ",", "\t",
     "::", ";", "\n", "\n", "\n", "\r", '"', '""', "\0", "\x1f", "\x1b[0m", "é", "\ufeff", "\u2028", "\x85", "007",
     "9" * 30, "x" * 1200]
)  # fmt: skip


@settings(QUICK, max_examples=250)
@given(st.sampled_from(NAMES), st.binary(max_size=200))
def test_random_bytes(folder, name, content):
    check(folder, name, content)


def mostly(usual, odd):
    """One in twenty or so is odd: tables that are nearly right reach further than noise."""
    return st.integers(0, 19).flatmap(lambda die: odd if die == 0 else st.sampled_from(usual))


FIELDS = st.tuples(
    mostly(["1", "2", "a"], FRAGMENTS), mostly(["x", "yy", "3"], FRAGMENTS), mostly([*"12345"], FRAGMENTS)
)
HEADERS = st.sampled_from([[], ["user,item,rating"], ["", "movieId,rating,userId"], ['"user",item,stars']])


@settings(QUICK, max_examples=400)
@given(
    st.sampled_from(NAMES[:5]),
    HEADERS,
    st.lists(FIELDS, max_size=8),
    st.sampled_from([",", "\t", "::", ";"]),
    st.booleans(),
)
def test_random_tables(folder, name, header, rows, delimiter, given):
    lines = header + [",".join(row) for row in rows]
    content = "\n".join(lines).replace(",", delimiter)
    check(folder, name, content.encode(), delimiter=delimiter if given else None, duplicates="first")


@settings(QUICK, max_examples=350)
@given(st.sampled_from(NAMES[:5]), mutated(TEXTS))
def test_mutated_text(folder, name, content):
    check(folder, name, content, duplicates="last")


@settings(QUICK, max_examples=350)
@given(mutated(PARQUETS))
def test_mutated_parquet(folder, content):
    check(folder, "r.parquet", content, duplicates="last")
