"""A file as it comes, a catalogue with titles, and settings that need not be repeated."""

import io
import json
import os
import stat
import subprocess
import sys
import tempfile

import forked
import pyarrow.parquet as pq
import pytest
from small_ratings import options, write_csv

from dpsr import DPSR, load_release
from dpsr.data import read_catalogue, realistic
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def semicolons(path):
    text = write_csv(path).read_text().replace(",", ";").splitlines()
    path.write_text("\n".join([text[0], *(line + ",5" if not line.endswith("5") else line for line in text[1:])]))
    return path


def test_a_spreadsheet_s_export_is_read_and_the_columns_are_said(dpsr, here):
    semicolons(here / "export.csv")
    outcome = dpsr("release", "export.csv", *options("r", scale="1:5:0.5"))
    assert outcome.code == 0, outcome.err
    assert "export.csv: 300 ratings, 30 users, 20 items." in outcome.out
    assert "Columns: user = 'userId', item = 'movieId', rating = 'rating'." in outcome.out
    assert "Columns: user = 'userId'" in dpsr("plan", "export.csv", "--scale", "1:5:0.5").out


def test_a_file_without_header_is_said_by_place(dpsr, here):
    lines = write_csv(here / "r.csv").read_text().splitlines()[1:]
    (here / "r.csv").write_text("\n".join(lines))
    assert "user = 'column 1', item = 'column 2', rating = 'column 3'" in dpsr("plan", "r.csv", "--scale", "1:5:1").out


def test_ratings_may_come_through_a_pipe(here):
    text = write_csv(here / "r.csv").read_text()
    command = [sys.executable, "-m", "dpsr", "release", "-", *options("out")]
    run = forked.run(command, text)
    assert run.returncode == 0, run.stderr
    assert "standard input: 300 ratings" in run.stdout
    assert load_release(here / "out").mask.n_ratings == 300
    unagreed = forked.run(command[:-1], text)
    assert unagreed.returncode == 2
    assert "--yes" in unagreed.stderr


def test_what_came_through_the_pipe_of_a_killed_run_is_removed_by_the_next(here):
    """Raw ratings stayed among the temporary files for good."""
    text, environment = write_csv(here / "r.csv").read_text(), {**os.environ, "TMPDIR": str(here / "tmp")}
    (here / "tmp").mkdir()
    command = [sys.executable, "-m", "dpsr", "release", "-", *options("out")]
    process = forked.Forked(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    process.stdin.write(text * 1_000)
    process.stdin.flush()
    while not any(file.stat().st_size for file in (here / "tmp").rglob("standard input")):
        assert process.poll() is None, process.stderr.read()
    process.kill()
    process.communicate()
    (left,) = (here / "tmp").iterdir()
    assert (stat.S_IMODE(left.stat().st_mode), any(left.iterdir())) == (0o700, True)
    run = forked.run(command, text, env=environment)
    assert run.returncode == 0, run.stderr
    assert not any((here / "tmp").iterdir())


def test_a_pipe_that_finds_no_place_is_said_in_a_sentence(dpsr, here, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(here / "gone"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(write_csv(here / "r.csv").read_bytes())))
    outcome = dpsr("release", "-", *options("out"))
    assert outcome.code == 2
    assert "standard input could not be kept: No such file or directory. Nothing was spent. Set TMPDIR" in outcome.err


# -- titles


@pytest.fixture
def catalogue(here):
    rows = [f"i{k};Film Nr. {k}" for k in range(20) if k != 3]
    (here / "items.csv").write_text("\n".join(["item;title", *rows]))
    return here / "items.csv"


def test_titles_stand_in_lists_and_on_the_card_and_survive_verification(dpsr, here, catalogue):
    write_csv(here / "r.csv")
    assert dpsr("release", "r.csv", *options("out"), "--items", "items.csv").code == 0
    assert "Film Nr. " in (here / "out" / "card.html").read_text("utf-8")
    checked = dpsr("verify", "out")
    assert checked.code == 0, checked.out
    rows = json.loads(dpsr("recommend", "out", "--user", "u3", "-n", "20", "--json").out)
    for row in rows:
        assert row["title"] == (None if row["item"] == "i3" else f"Film Nr. {row['item'][1:]}")
    assert "Film Nr." in dpsr("recommend", "out", "--user", "u3").out
    assert dpsr("recommend", "out", "--all", "--out", "all.parquet").code == 0
    assert pq.read_table(here / "all.parquet").column_names == ["user", "rank", "item", "score", "title"]
    assert load_release("out").fold_in(["i1"], [5], n=2).titles is not None


def test_a_release_without_titles_gets_them_when_it_is_shown(dpsr, here, catalogue):
    write_csv(here / "r.csv")
    assert dpsr("release", "r.csv", *options("out")).code == 0
    assert "title" not in dpsr("recommend", "out", "--user", "u3").out
    assert "Film Nr." in dpsr("recommend", "out", "--user", "u3", "--items", "items.csv").out


def test_titles_in_python(here):
    ratings = realistic(0, n_users=30, n_items=20, n_ratings=200)
    (here / "items.csv").write_text("\n".join(["item,title", *(f"{k},Film {k}" for k in range(1, 21))]))
    model = DPSR(1.0).fit(ratings).with_titles("items.csv")
    found = model.recommend(1, n=3).to_pandas()
    assert found["title"].tolist() == [f"Film {item}" for item in found["item"]]
    again = load_release(model.save(here / "r"))
    assert again.recommend([1, 2], n=3).to_arrow()["title"].to_pylist()[:3] == found["title"].tolist()
    assert again.with_titles(read_catalogue("items.csv")).titles == again.titles


# -- dpsr.toml


def test_settings_reach_only_the_commands_that_mean_the_same_by_them(dpsr, here, catalogue):
    """`items` is a file where a release is made; `plan --items` is a number."""
    write_csv(here / "r.csv")
    text = (here / "r.csv").read_text().splitlines()
    (here / "r.csv").write_text("\n".join(["Kunde,Wein,Note", *text[1:]]) + "\n")
    columns = '[columns]\nuser = "Kunde"\nitem = "Wein"\nrating = "Note"\n'
    (here / "dpsr.toml").write_text(f'scale = "1:5:1"\nitems = "{catalogue}"\n{columns}')
    planned = dpsr("plan", "r.csv")
    assert planned.code == 0, planned.err
    assert dpsr("release", "r.csv", "--epsilon", "0.1", "--out", "r", "--yes").code == 0
    lists = dpsr("personalise", "r", "r.csv", "--out", "lists.parquet")
    assert lists.code == 0, "it reads the same ratings, so it knows their columns"


def test_what_is_always_the_same_stands_in_a_file(dpsr, here):
    semicolons(here / "export.csv")
    text = (here / "export.csv").read_text().replace("userId", "Kunde").replace("rating", "Note")
    (here / "export.csv").write_text(text)
    (here / "dpsr.toml").write_text(
        'scale = "1:5:0.5"\nledger = "book.db"\ndataset = "films"\n[columns]\nuser = "Kunde"\nrating = "Note"\n'
    )
    assert dpsr("ledger", "init", "--epsilon", "1").code == 0
    outcome = dpsr("release", "export.csv", "--epsilon", "0.1", "--out", "r", "--yes")
    assert outcome.code == 0, outcome.err
    assert "Settings of dpsr.toml: scale = 1:5:0.5" in outcome.err
    assert "user = 'Kunde'" in outcome.out
    assert Ledger.open("book.db").budget("films").charges == 1
    assert dpsr("plan", "export.csv").code == 0
    assert dpsr("describe", "export.csv").code == 0
    assert "films" in dpsr("ledger", "show").out
    wrong = dpsr("release", "export.csv", "--epsilon", "0.1", "--out", "r2", "--yes", "--scale", "1:2:1")
    assert "not on the scale 1:2:1" in wrong.err, "the command line comes first"
    assert dpsr("verify", "r").code == 0, "and whoever verifies is not told which ledger to trust"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("scale = 5", "scale is '5', and must be text in quotes"),
        ('colour = "red"', "holds 'colour', which nobody reads"),
        ('[columns]\nusers = "u"', "holds 'users'"),
        ("scale =", "cannot be read"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(dpsr, here, text, word):
    write_csv(here / "r.csv")
    (here / "dpsr.toml").write_text(text)
    outcome = dpsr("plan", "r.csv", "--scale", "1:5:1")
    assert outcome.code == 2
    assert word in outcome.err


def test_a_pipe_sees_no_line_wider_than_80_columns_but_what_people_wrote(here):
    write_csv(here / "r.csv")
    environment = {**os.environ, "COLUMNS": "80"}
    run = forked.run([sys.executable, "-m", "dpsr", "release", "r.csv", *options("out")], env=environment)
    assert run.returncode == 0
    assert max(len(line) for line in run.stdout.splitlines() if "SHA-256" not in line) <= 80


def test_predictions_name_ids_in_the_type_they_came_in(dpsr, folder, here):
    (here / "pairs.csv").write_text("user,item\n42,7\n1,7\n")
    rows = json.loads(dpsr("predict", folder, "pairs.csv", "--json").out)
    assert [(row["user"], row["item"]) for row in rows] == [(42, 7), (1, 7)]
    (here / "mixed.csv").write_text("user,item\n42,7\nnobody,7\n")
    rows = json.loads(dpsr("predict", folder, "mixed.csv", "--json").out)
    found = [(row["user"], row["item"], row["basis"]) for row in rows]
    assert found == [("42", 7, "model"), ("nobody", 7, "item mean")]


def test_a_column_called_date_is_not_taken_for_the_time_and_how_to_name_it_is_said(dpsr, here):
    """Dates are spelt in too many ways to be guessed, and a release leaves them out anyway."""
    (here / "d.csv").write_text("customer;item;score;date\na;x;3,5;2025-01-31\nb;x;4,0;2025-02-01\n")
    assert "none found (--timestamp COLUMN)" in dpsr("describe", "d.csv").out
    assert "2025-01-31" in dpsr("describe", "d.csv", "--timestamp", "date").out


def test_a_description_says_which_columns_were_taken_and_reads_a_pipe(dpsr, here):
    write_csv(here / "r.csv")
    assert "Columns: user = 'userId', item = 'movieId', rating = 'rating'." in dpsr("describe", "r.csv").out
    command = [sys.executable, "-m", "dpsr", "describe", "-"]
    run = forked.run(command, (here / "r.csv").read_text())
    assert "300" in run.stdout


def test_settings_may_begin_with_the_mark_of_a_windows_editor(dpsr, here):
    write_csv(here / "ratings.csv")
    (here / "dpsr.toml").write_bytes('\ufeffscale = "1:5:1"\r\n'.encode())
    assert dpsr("plan", "ratings.csv").code == 0
