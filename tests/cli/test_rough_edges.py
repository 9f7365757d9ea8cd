"""What new users stumbled over: each sentence here was false once."""

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import forked
import in_turn
import numpy as np
import pytest
from small_ratings import options, write_csv

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.cli import terminal
from dpsr.data import realistic
from dpsr.errors import DataError, ParameterError, ReleaseError
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.report.card import card


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "ratings.csv")


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(str(tmp_path / "ledger.db"), "films", "3")


def typed(monkeypatch, *answers):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))


# -- what is said at the end and before


def test_a_release_as_published_is_not_offered_for_sharing(dpsr, csv, tmp_path):
    shown = " ".join(dpsr("release", csv, *options(tmp_path / "r"), "--method", "as-published").out.split())
    assert "table to share" not in shown
    assert "for experiments only, not to be shared" in shown
    assert "Does not keep epsilon = 0.1: Stage 1 as published costs 0.9393 in the worst case" in shown
    assert "Protects" not in shown


def test_a_missing_scale_is_shown_by_example(dpsr, csv, tmp_path):
    outcome = dpsr("release", csv, "--epsilon", "1", "--out", tmp_path / "r")
    assert outcome.code == 2
    assert "Example: dpsr release ratings.csv --scale 1:5:1" in outcome.err


def test_an_epsilon_is_explained_without_a_scale(dpsr):
    outcome = dpsr("explain", "--epsilon", "1")
    assert outcome.code == 0, outcome.err
    assert "73" in outcome.out
    assert "add --scale 1:5:1" in outcome.out
    assert "Guessing one of" not in outcome.out


def test_odds_that_nobody_could_count_are_not_cut_in_a_narrow_terminal(dpsr):
    shown = dpsr("explain", "--epsilon", "1.65").out
    assert "over 1e9" in shown, "twenty ratings: 2.1e14"
    assert "214,643" not in shown


def test_a_long_list_advises_only_what_the_command_has(dpsr, folder):
    shown = dpsr("recommend", folder, "--user", "1", "-n", "100000").out
    assert "--out" not in shown
    wide = realistic(0, n_users=30, n_items=90, n_ratings=400)
    with tempfile.TemporaryDirectory() as place:
        release = DPSR(1.0).fit(wide).save(Path(place) / "r")
        shown = dpsr("recommend", release, "--user", "1", "-n", "100000").out
    assert "more rows: --format csv prints them all." in shown
    assert "--out" not in shown


def test_a_rating_off_the_release_s_scale_is_told_that_scale(dpsr, folder):
    outcome = dpsr("recommend", folder, "--rated", "7=9")
    assert outcome.code == 2
    assert "the rating 9 is not on this release's scale: from 1 to 5 in steps of 1" in outcome.err
    assert "--snap" not in outcome.err


def test_memory_without_the_disk_is_not_passed_over(dpsr, csv, tmp_path):
    for extra in (["--memory", "1GB"], ["--work", tmp_path / "w"]):
        outcome = dpsr("release", csv, *options(tmp_path / "r"), *extra)
        assert outcome.code == 2
        assert "--engine disk" in outcome.err
        assert not (tmp_path / "r").exists()


def test_a_verification_against_the_ledger_does_not_send_one_to_the_ledger(dpsr, csv, tmp_path, ledger):
    book = tmp_path / "ledger.db"
    assert dpsr("release", csv, *options(tmp_path / "r"), "--ledger", book).code == 0
    shown = dpsr("verify", tmp_path / "r", "--ledger", book).out
    assert "the ledger recorded when it was released" in shown
    assert "Compare the manifest" not in shown


# -- files


def test_an_audit_reads_a_database(dpsr, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as base:
        base.execute("create table ratings (user, item, rating)")
        cells = np.random.default_rng(0).choice(600, 500, replace=False)
        base.executemany("insert into ratings values (?, ?, ?)", [(int(c) // 20, int(c) % 20, 3) for c in cells])
    address = f"sqlite:///{tmp_path / 'shop.db'}"
    unasked = dpsr("audit", address, "--scale", "1:5:1", "--epsilon", "1")
    assert "--query" in unasked.err
    assert "does not exist" not in unasked.err
    query = ["--query", "select * from ratings", "--scale", "1:5:1", "--epsilon", "1", "--method", "paper"]
    asked = dpsr("audit", address, *query)
    assert asked.code == 0, asked.err


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_one_may_not_read_is_called_that():
    """Root may read everything, so that the question is asked by nobody."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        path = Path(place) / "ratings.csv"
        path.write_text("user,item,rating\n1,2,3\n")
        path.chmod(0o000)
        nobody = 65534 if os.getuid() == 0 else None
        code = "import os, sys; os.setuid(int(sys.argv[2])) if sys.argv[2] != 'None' else 0\n"
        code = f"from dpsr.data.files.read import existing\nfrom pathlib import Path\n{code}existing(Path(sys.argv[1]))"
        run = forked.run([sys.executable, "-c", code, path, str(nobody)])
    assert "ratings.csv may not be read by you" in run.stderr
    assert "complete" not in run.stderr


def test_errors_of_the_library_name_its_own_arguments(tmp_path, folder):
    release = load_release(folder)
    release.save(tmp_path / "r")
    with pytest.raises(ReleaseError, match=r"overwrite=True \(or --force\)"):
        release.save(tmp_path / "r")
    release.recommend_all(tmp_path / "lists.csv")
    with pytest.raises(ReleaseError, match=r"overwrite=True \(or --force\)"):
        release.recommend_all(tmp_path / "lists.csv")
    with pytest.raises(ParameterError, match=r"fold_in\(items, values\) \(or --rated ITEM=RATING\)"):
        release.recommend("nobody")


# -- one median


def test_a_card_has_one_median(tmp_path):
    """An even number of people, some without ratings after a split: three definitions would give three numbers."""
    users, items = [], []
    for user, n in enumerate([1, 2, 3, 6, 7, 8]):
        users += [user] * n
        items += range(n)
    ratings = Ratings.from_arrays(users, items, [3] * len(users), scale=Scale(1, 5))
    release = DPSR(1.0).fit(ratings).release
    page = re.sub(r"<[^>]+>", " ", card(release.contents))
    words = " ".join(page.split())
    assert "median 3, most 8" in words
    assert re.search(r"The median user 3 ", words)
    assert "median activity, 3 ratings" in words


# -- the ledger


def test_looking_at_a_ledger_does_not_wait_for_numerical_libraries(tmp_path, ledger):
    heavy = ("numpy", "scipy", "pyarrow", "numba", "sqlalchemy", "duckdb")
    code = (
        "import sys; sys.argv = ['dpsr', 'ledger', 'show', '--ledger', 'ledger.db']\n"
        "from dpsr.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "films" in run.stdout
    assert run.stdout.splitlines()[-1] == "[]"


def released(dpsr, csv, tmp_path, name, *extra):
    return dpsr("release", csv, *options(tmp_path / name), "--ledger", tmp_path / "ledger.db", *extra)


def test_the_same_ratings_under_two_names_are_refused_in_a_script_and_asked_about_otherwise(
    dpsr, csv, tmp_path, ledger, monkeypatch
):
    Ledger.create(str(tmp_path / "ledger.db"), "movies", "3")
    assert released(dpsr, csv, tmp_path, "a", "--dataset", "films").code == 0
    again = released(dpsr, csv, tmp_path, "b", "--dataset", "movies")
    assert again.code == 2
    assert "charged to 'films' before" in again.err
    assert "--same-data" in again.err
    assert ledger.budget("movies").charges == 0
    typed(monkeypatch, "no")
    words = options(tmp_path / "b")[:-1]
    asked = dpsr("release", csv, *words, "--ledger", tmp_path / "ledger.db", "--dataset", "movies")
    assert asked.code == 1
    assert "Go on all the same?" in asked.out
    assert ledger.budget("movies").charges == 0
    assert released(dpsr, csv, tmp_path, "b", "--dataset", "movies", "--same-data").code == 0


def test_another_file_under_the_same_name_is_refused_in_a_script_and_asked_about_otherwise(
    dpsr, csv, tmp_path, ledger, monkeypatch
):
    assert released(dpsr, csv, tmp_path, "a").code == 0
    assert released(dpsr, csv, tmp_path, "b").code == 0, "the same file again is what a budget is for"
    grown = write_csv(tmp_path / "grown.csv", n=310)
    again = released(dpsr, grown, tmp_path, "c")
    assert again.code == 2
    assert "other ratings before" in again.err
    assert "--another-file" in again.err
    typed(monkeypatch, "y", "y")
    words = [*options(tmp_path / "c")[:-1], "--ledger", tmp_path / "ledger.db"]
    assert dpsr("release", grown, *words).code == 0
    assert released(dpsr, grown, tmp_path, "d").code == 0, "now it is known"
    assert released(dpsr, write_csv(tmp_path / "more.csv", n=320), tmp_path, "e", "--another-file").code == 0
    assert ledger.budget().charges == 5


def test_a_corrected_value_is_not_another_file(dpsr, csv, tmp_path, ledger):
    assert released(dpsr, csv, tmp_path, "a").code == 0
    text = csv.read_text().splitlines()
    user, item, value = text[1].split(",")
    text[1] = f"{user},{item},{6 - int(value)}"
    csv.write_text("\n".join([text[0], *reversed(text[1:])]) + "\n")
    assert released(dpsr, csv, tmp_path, "b").code == 0


# -- times


@pytest.fixture
def timed(tmp_path):
    path = tmp_path / "timed.csv"
    realistic(0, n_users=40, n_items=30, n_ratings=400, timestamps=True).to_frame().to_csv(path, index=False)
    return path


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_times_stay_at_home_unless_they_are_asked_for(dpsr, timed, tmp_path, engine):
    outcome = dpsr("release", timed, *options(tmp_path / "r"), "--engine", engine)
    assert outcome.code == 0, outcome.err
    assert "When they did is left out (--timestamps keeps it)" in " ".join(outcome.out.split())
    release = load_release(tmp_path / "r")
    assert release.mask.timestamps is None
    assert release.certificate.public["has_timestamps"] is False


def test_times_that_are_asked_for_are_released_with_a_warning(dpsr, timed, tmp_path):
    outcome = dpsr("release", timed, *options(tmp_path / "r"), "--timestamps")
    assert "Timestamps are released as they are" in outcome.out
    assert load_release(tmp_path / "r").mask.timestamps is not None


def test_a_fit_in_python_leaves_times_out_too():
    ratings = realistic(0, n_users=40, n_items=30, n_ratings=400, timestamps=True)
    for model in (DPSR(1.0), DPSR.paper(1.0)):
        assert model.fit(ratings).release.mask.timestamps is None
        assert model.fit(ratings, timestamps=True).release.mask.timestamps is not None


def test_times_that_are_not_there_are_not_kept_in_silence_at_a_charge(dpsr, csv, ledger, tmp_path):
    """The release was made, charged, and said that `--timestamps` keeps times."""
    paid = ["--ledger", tmp_path / "ledger.db", "--timestamps"]
    outcome = dpsr("release", csv, *options(tmp_path / "r"), *paid)
    assert (outcome.code, (tmp_path / "r").exists()) == (2, False)
    assert "the ratings have none: no column was taken for them" in outcome.err
    assert "--timestamp COLUMN" in outcome.err
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--timestamps", "--unit", "user", "--delta", "1e-3")
    assert (outcome.code, (tmp_path / "r").exists()) == (2, False)
    assert "no times can be kept" in outcome.err
    assert ledger.budget("films").left_epsilon == 3
    untimed = realistic(0, n_users=30, n_items=20, n_ratings=200)
    with pytest.raises(DataError, match="the ratings have none"):
        DPSR(1.0).fit(untimed, ledger=tmp_path / "ledger.db", timestamps=True)
    assert ledger.budget("films").left_epsilon == 3


def test_the_width_of_a_terminal_cuts_no_history(tmp_path, ledger, monkeypatch, dpsr):
    ledger.charge("films", "0.1", method="default", fingerprint="ab" * 32)
    monkeypatch.setattr(terminal.out, "_width", 80)
    run = subprocess.run(
        [sys.executable, "-m", "dpsr", "ledger", "history", "--ledger", tmp_path / "ledger.db"],
        capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}, check=True,
    )  # fmt: skip
    assert "ab" * 32 in run.stdout
    assert "…" not in run.stdout


def test_an_encoding_without_the_characters_ends_no_command_and_changes_no_id(tmp_path, csv):
    csv.write_text(csv.read_text().replace("\nu", "\nü🎬"), encoding="utf-8")
    made = DPSR(1.0).fit(Ratings.read(csv, scale="1:5:1")).save(tmp_path / "für")
    words = ["recommend", str(made), "--user", "ü🎬0", "-n", "1"]
    commands = json.dumps([words, [*words, "--json"], [*words, "--format", "csv"]])
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(Path(in_turn.__file__).parent)}
    run = subprocess.run([sys.executable, "-m", "in_turn", commands], capture_output=True, env=environment, check=True)
    said = run.stdout.split(f"{in_turn.ENDED} 0\n".encode())
    assert len(said) == 4
    assert "ü\\U0001f3ac0".encode("cp1252") in said[0]
    assert json.loads(said[1].decode())[0]["user"] == "ü🎬0"
    assert '"ü🎬0",1,' in said[2].decode()
