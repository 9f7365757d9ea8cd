"""Canaries: distinctive ratings go in, and no file of the release holds them, their sums, or any hash of them.

The scale has 1001 levels and epsilon is tiny, so that what comes out is noise: an exact raw figure in it would be there
by leak and not by chance. The same scan is tried on folders with a planted leak, which it must find.
"""

import base64
import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_ratings import options

from dpsr import Ratings, Scale
from dpsr.privacy.ledger.ledger import Ledger

ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    rng = np.random.default_rng(11)
    cells = rng.choice(40 * 30, 500, replace=False)
    values = rng.integers(0, 1001, 500)
    path = tmp_path_factory.mktemp("canary") / "strictly-confidential.csv"
    rows = [f"user{c // 30},item{c % 30},{v}" for c, v in zip(cells, values, strict=True)]
    path.write_text("\n".join(["user,item,rating", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def raw(source):
    return Ratings.read(source, scale=Scale(0, 1000))


@pytest.fixture
def folder(dpsr, source, tmp_path):
    Ledger.create(str(tmp_path / "l.db"), "canaries", "1")
    outcome = dpsr("release", source, *options(tmp_path / "r", epsilon="0.02", scale="0:1000:1"),
                   "--ledger", tmp_path / "l.db")  # fmt: skip
    assert outcome.code == 0, outcome.err
    return tmp_path / "r"


def contents(folder):
    """Every file as bytes, and every Parquet column decompressed: its buffers and its numbers as text."""
    for file in sorted(folder.iterdir()):
        yield file.name, file.read_bytes()
        if file.suffix == ".parquet":
            for name, column in zip(pq.read_schema(file).names, pq.read_table(file).columns, strict=True):
                for chunk in column.chunks:
                    for buffer in chunk.buffers():
                        yield f"{file.name}:{name}", b"" if buffer is None else buffer.to_pybytes()


def numbers(folder):
    """Every floating-point number of the release, with the place it stands in."""
    for file in sorted(folder.glob("*.parquet")):
        table = pq.read_table(file)
        for name in table.column_names:
            column = table[name].combine_chunks()
            column = column.flatten() if hasattr(column.type, "list_size") else column
            if str(column.type) == "double":
                yield f"{file.name}:{name}", column.to_numpy()
    for file in sorted(folder.glob("*.json")):
        found = []
        json.loads(file.read_text(), parse_float=lambda text, found=found: found.append(float(text)))
        yield file.name, np.array(found)


def encodings(raw, source):
    """The secret in many spellings: as the file, as the column in both orders, as text."""
    given = np.array([float(line.split(",")[2]) for line in source.read_text().splitlines()[1:]])
    yield source.read_bytes()
    yield source.read_text().strip().encode()
    for values in (raw.values, given):
        for kind in ("<f8", ">f8", "<f4", "<i8", "<i4", "<u2", "<i2"):
            yield values.astype(kind).tobytes()
        for end in ("\n", ",", " "):
            yield end.join(str(int(value)) for value in values).encode()
            yield end.join(str(value) for value in values).encode()
        yield json.dumps(values.tolist()).encode()


def fingerprints(raw, source):
    """Every hash of every spelling, as bytes, hexadecimal and base64."""
    for secret in encodings(raw, source):
        digests = [hashlib.new(name, secret).digest() for name in ALGORITHMS]
        digests += [function(secret).to_bytes(4, "big") for function in (zlib.crc32, zlib.adler32)]
        for digest in digests:
            if len(digest) > 4:  # four raw bytes occur by chance
                yield digest
            yield digest.hex().encode()
            yield digest.hex().upper().encode()
            yield base64.b64encode(digest).rstrip(b"=")


def leaks(folder, raw, source):
    """What of the secret is in the folder."""
    needles = {*fingerprints(raw, source), *encodings(raw, source)}
    needles |= {raw.values[k : k + 12].tobytes() for k in range(0, len(raw) - 12)}  # any twelve ratings in a row
    found = [where for where, content in contents(folder) for needle in needles if needle in content]
    return found + [where for where, values in numbers(folder) if np.isin(values, sorted(statistics(raw))).any()]


def statistics(raw):
    """Exact sums and means of all, of every user and of every item."""
    mask, values = raw.mask, raw.values
    figures = {values.sum(), values.mean(), values.std(), values.var()}
    for labels, counts in ((mask.users, mask.user_counts), (mask.items, mask.item_counts)):
        sums = np.bincount(labels, values, len(counts))
        figures |= {*sums, *(sums[counts > 3] / counts[counts > 3])}
    return {float(figure) for figure in figures} - {0.0, 500.0, 1000.0}  # the scale's own ends and middle are public


def test_no_canary_sum_or_hash_is_in_any_file(folder, raw, source):
    assert not leaks(folder, raw, source)
    for where, content in contents(folder):
        assert source.name.encode() not in content, where
        assert b"random_state" not in content, where
        assert where.endswith(".html") or b"seed" not in content.lower(), where  # a page may explain the word


def test_released_ratings_agree_with_the_canaries_no_more_often_than_chance(folder, raw):
    released = pq.read_table(folder / "ratings.parquet")["rating"].to_numpy()
    agree = int(np.sum(np.abs(released - raw.values) < 0.5))
    assert agree <= 8, "by chance one in a thousand of 500 agrees; more than 8 would happen once in 10^7 releases"


@pytest.mark.parametrize("leak", ["hash of the file", "hash of the column", "column", "mean", "item mean"])
def test_a_planted_leak_is_found(folder, raw, source, leak):
    facts = json.loads((folder / "model.json").read_text())
    if leak == "hash of the file":
        facts["input"] = hashlib.sha256(source.read_bytes()).hexdigest()
    elif leak == "hash of the column":
        facts["input"] = base64.b64encode(hashlib.md5(raw.values.astype("<i4").tobytes()).digest()).decode()
    elif leak == "mean":
        facts["overall"] = float(raw.values.mean())
    elif leak == "item mean":
        facts["user_mean"][0] = float(raw.values[raw.mask.items == 3].mean())
    else:
        table = pq.read_table(folder / "ratings.parquet")
        pq.write_table(table.append_column("raw", [raw.values]), folder / "ratings.parquet")
    (folder / "model.json").write_text(json.dumps(facts))
    assert leaks(folder, raw, source)


def test_there_are_no_pickles_and_only_known_kinds_of_file(folder):
    for file in folder.iterdir():
        head = file.read_bytes()[:2]
        assert not (head[:1] == b"\x80" and head[1:] in {b"\x02", b"\x03", b"\x04", b"\x05"}), file.name
        assert file.suffix in {".json", ".parquet", ".html", ".txt"}
    for where, content in contents(folder):
        assert b"pickle" not in content.lower(), where
        assert b"\x80\x04\x95" not in content, where
        assert b"\x80\x05\x95" not in content, where


def test_the_terminal_shows_no_canary(dpsr, raw, source, tmp_path):
    outcome = dpsr("release", source, *options(tmp_path / "r", epsilon="0.02", scale="0:1000:1"), "--json")
    shown = {float(word) for word in (outcome.out + outcome.err).replace(",", " ").split() if _is_number(word)}
    assert not shown & statistics(raw)
    assert str(Path(source).parent) not in outcome.out + outcome.err


def _is_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return True
