"""Folders by strangers: whatever is in them, commands answer in a sentence, and nothing steers the terminal."""

import json
import os
import resource
import subprocess
import sys

import forked
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import change_column, copied, resealed, rewrite

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.certify.folder import Entry, MalformedError, Manifest, sha256_of, write_manifest
from dpsr.data import realistic
from dpsr.errors import ReleaseError
from dpsr.release import verify
from dpsr.release.folder import examination, parquet
from dpsr.release.folder.parquet import Column, read_table

FILES = ("certificate.json", "items.parquet", "manifest.json", "model.json", "ratings.parquet", "users.parquet")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return DPSR(1.0).fit(realistic(3, n_users=40, n_items=30, n_ratings=500)).save(tmp_path_factory.mktemp("s") / "r")


@pytest.fixture
def release(sound, tmp_path):
    return copied(sound, tmp_path / "r")


# -- kinds of files


@pytest.mark.parametrize("name", [*FILES, "card.html"])
@pytest.mark.parametrize("kind", ["pipe", "link", "device", "folder"])
def test_a_file_of_another_kind_is_a_finding_and_is_not_waited_for(release, tmp_path, name, kind):
    (release / name).rename(tmp_path / "elsewhere")
    if kind == "pipe":
        os.mkfifo(release / name)
    elif kind == "folder":
        (release / name).mkdir()
    else:
        (release / name).symlink_to("/dev/zero" if kind == "device" else tmp_path / "elsewhere")
    assert any(name in words and "not a plain file" in words for words in verify(release).fails)
    with pytest.raises(ReleaseError, match="not a plain file"):
        load_release(release)


@pytest.mark.parametrize("name", [*FILES, "card.html", "signature.json"])
def test_a_huge_file_is_a_finding_and_is_not_read(release, name):
    """Sparse: a terabyte that takes no room on the disk."""
    with (release / name).open("ab") as file:
        file.truncate(1 << 40)
    if name not in ("manifest.json", "signature.json"):
        manifest = Manifest.from_bytes((release / "manifest.json").read_bytes())
        files = {**manifest.files, name: Entry(1 << 40, "0" * 64)}
        (release / "manifest.json").write_bytes(Manifest(files).to_bytes())
    assert any(name in words and "at most" in words for words in verify(release).fails)


def test_a_folder_of_a_hundred_thousand_files_is_a_short_list(release):
    for number in range(3_000):
        (release / f"x{number}").touch()
    found = verify(release)
    assert len(found.fails) < 30


def test_a_release_among_too_many_files_is_found_though_they_are_listed_first(release, monkeypatch):
    monkeypatch.setattr(examination, "names_in", lambda folder: {"x1", "x2"})
    assert any("x1" in words for words in verify(release).fails)


def test_names_that_would_steer_a_terminal_are_shown_without_doing_so(release):
    (release / "\x1b[2J\u202e[red]").write_text("x")
    for found in (verify(release), resealed(release)):
        assert all(words.isprintable() for words in found.fails)
        assert any("[red]" in words for words in found.fails)


@pytest.mark.parametrize("name", ["", "..", ".", "/etc/passwd", "a/b", "x" * 5000, "\x00", "certificate.json/"])
def test_a_manifest_names_files_of_its_own_folder_only(release, name):
    manifest = Manifest.from_bytes((release / "manifest.json").read_bytes())
    files = {**manifest.files, name: Entry(1, sha256_of(b"x"))}
    (release / "manifest.json").write_bytes(Manifest(files).to_bytes())
    assert any("no file that a release has" in words for words in verify(release).fails)


# -- tables larger than they look


def with_facts(release, **facts):
    def change(record):
        record["public"].update(facts)
        for part in record["parts"]:
            if part["kind"] == "sums" and part["name"] == "window sums":
                part["families"] = [["items", record["public"]["n_items"]], ["users", record["public"]["n_users"]]]

    return rewrite(release, "certificate.json", change)


def test_a_table_that_says_it_is_larger_than_memory_is_not_unpacked(release, monkeypatch):
    monkeypatch.setattr(parquet, "memory_of_machine", lambda: 20_000)
    assert any("MB of memory, and this machine has" in words for words in verify(release).fails)


def test_a_megabyte_that_stands_for_a_hundred_million_rows_is_refused_by_the_footer(release):
    ones = pa.table({"user": pa.array(np.ones(1_000_000, np.int64)), "item": pa.array(np.ones(1_000_000, np.int64)),
                     "rating": pa.array(np.ones(1_000_000))})  # fmt: skip
    with pq.ParquetWriter(release / "ratings.parquet", ones.schema) as file:
        for _ in range(100):
            file.write_table(ones)
    assert (release / "ratings.parquet").stat().st_size < 2_000_000
    assert any("100,000,000 rows, and 500 are stated" in words for words in resealed(release).fails)


def varint(number):
    """Thrift's zigzag varint."""
    number *= 2
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def lying(data, true, stated):
    """The same file with another number in its footer, of as many bytes."""
    assert len(varint(true)) == len(varint(stated))
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:at] + data[at:-8].replace(varint(true), varint(stated)) + data[-8:]


def test_a_footer_that_understates_its_pages_is_found_before_they_are_unpacked():
    """A reader makes room for what the pages hold, whatever the footer said: a million values here, or a billion."""
    true, stated = 1_000_000, 10_000
    ones = pa.table({"user": pa.array(np.ones(true, np.int64)), "item": pa.array(np.ones(true, np.int64)),
                     "rating": pa.array(np.ones(true))})  # fmt: skip
    sink = pa.BufferOutputStream()
    pq.write_table(ones, sink, row_group_size=true)
    data = lying(sink.getvalue().to_pybytes(), true, stated)
    assert pq.ParquetFile(pa.BufferReader(data)).metadata.num_rows == stated
    columns = (Column("user", "whole"), Column("item", "whole"), Column("rating", "real"))
    with pytest.raises(MalformedError, match="its pages do not hold what its footer declares"):
        read_table(data, columns, stated)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "brotli", "lz4"])
def test_a_table_packed_in_another_way_is_refused(release, codec):
    pq.write_table(pq.read_table(release / "users.parquet"), release / "users.parquet", compression=codec)
    assert any("packed by Snappy" in words for words in resealed(release).fails)


def test_pages_of_another_kind_are_refused(release):
    table = pq.read_table(release / "users.parquet")
    pq.write_table(table, release / "users.parquet", data_page_version="2.0")
    assert any("a page is of another kind" in words for words in resealed(release).fails)


def test_bytes_between_the_columns_are_found(release):
    """Raw ratings could be kept where no reader looks."""
    data = (release / "users.parquet").read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    (release / "users.parquet").write_bytes(data[:footer] + b"1,2,5\n" * 10 + data[footer:])
    assert pq.read_table(release / "users.parquet").num_rows == 40, "nothing else notices"
    assert any("bytes that belong to no column" in words for words in resealed(release).fails)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    users, items = np.divmod(np.arange(60), 6)
    ratings = Ratings.from_arrays([f"u{u:02}" for u in users], items, np.arange(60) % 5 + 1, scale=Scale(1, 5))
    folder = DPSR(1.0).fit(ratings).save(tmp_path / "r")
    assert verify(folder).intact

    def spoiled(ids):
        texts = pa.array([text.as_py().encode().replace(b"7", b"\xff") for text in ids])
        return pa.StringArray.from_buffers(len(texts), *texts.buffers()[1:])

    found = change_column(folder, "users.parquet", "user", spoiled)
    assert any("its pages cannot be read" in words for words in found.fails)


def test_one_long_id_repeated_takes_its_room_once(tmp_path):
    """Forty thousand times a megabyte would be forty gigabytes; it is one dictionary entry, and refused as a repeat."""
    users, items = np.divmod(np.arange(60), 6)
    ratings = Ratings.from_arrays([f"u{u:02}" for u in users], items, np.arange(60) % 5 + 1, scale=Scale(1, 5))
    folder = DPSR(1.0).fit(ratings).save(tmp_path / "r")
    side, n = pq.read_table(folder / "users.parquet"), 40_000
    ids = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x" * 1_000_000]))
    grown = side.take(pa.array(np.zeros(n, np.int64))).set_column(0, "user", ids)
    pq.write_table(grown, folder / "users.parquet")
    assert (folder / "users.parquet").stat().st_size < 3_000_000
    assert any("no two the same" in words for words in with_facts(folder, n_users=n).fails)


# -- the commands, in processes of their own with little memory


def run(*arguments, megabytes=3_000):
    """A command as a shell would see it; it may not take more than this much memory."""
    command = [sys.executable, "-m", "dpsr", *map(str, arguments)]
    process = forked.Forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    resource.prlimit(process.pid, resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    shown, complaint = process.communicate(timeout=300)
    return subprocess.CompletedProcess(command, process.returncode, shown, complaint)


def test_a_bomb_does_not_exhaust_a_command(release):
    """A terabyte as a card, a hundred million rows as ratings: refused within the memory of any machine."""
    test_a_megabyte_that_stands_for_a_hundred_million_rows_is_refused_by_the_footer(release)
    with (release / "card.html").open("ab") as file:
        file.truncate(1 << 40)
    outcome = run("verify", release)
    assert outcome.returncode == 1, outcome.stderr
    assert "FAILS" in outcome.stdout
    assert "Traceback" not in outcome.stderr


def test_counts_that_a_kernel_would_have_trusted_are_a_sentence(release, tmp_path):
    """`card` and `recommend --all` once read and wrote outside their arrays here, and died."""

    def wild(values):
        counts = values.to_numpy().copy()
        counts[0], counts[1] = 2**40, counts[0] + counts[1] - 2**40
        return counts

    change_column(release, "users.parquet", "n_ratings", wild)
    (release / "card.html").unlink()
    write_manifest(release)
    for arguments in (
        ["card", release, "--out", tmp_path / "c.html"],
        ["recommend", release, "--all", "--out", tmp_path / "l.csv"],
        ["compare", release, release],
    ):
        outcome = run(*arguments)
        assert outcome.returncode == 2, outcome.stderr
        assert outcome.stderr.count("\n") == 1
        assert "do not add up" in outcome.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"r"}


def test_reasons_in_colours_do_not_reach_the_terminal(release, tmp_path):
    """Markup is printable, so a certificate may hold it; a terminal shows it as text. Escape sequences are refused."""

    def marked(record):
        record.update(private=False, reasons=["[bold red]x[/bold red] [link=http://evil]y[/link] \\"])

    rewrite(release, "certificate.json", marked)
    (release / "NOT_PRIVATE.txt").write_text(
        "NOT PRIVATE. Do not share this folder.\n* [bold red]x[/bold red] [link=http://evil]y[/link] \\\n"
    )
    (release / "card.html").unlink()
    assert resealed(release).intact
    for arguments in (["verify", release], ["recommend", release, "--user", "1"], ["compare", release]):
        environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "200"}
        command = [sys.executable, "-m", "dpsr", *map(str, arguments)]
        shown = forked.run(command, env=environment)
        assert "\x1b]8;" not in shown.stdout + shown.stderr, "no link was made"
        assert "[bold red]x[/bold red]" in shown.stdout + shown.stderr
    assert json.loads(run("verify", release, "--json").stdout)["reasons"][0].startswith("[bold red]")
