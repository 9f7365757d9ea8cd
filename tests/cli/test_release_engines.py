"""`dpsr release` on disk and on Spark, end to end, and what cannot be combined."""

import json
import os
import shutil
import sys

import forked
import numpy as np
import pytest
from in_turn import outcomes
from small_ratings import options, write_csv
from spark_cases import QUICK

from dpsr import load_release
from dpsr.pipeline.cards import redraw
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "ratings.csv")


@pytest.mark.parametrize("work", [True, False])
def test_a_release_on_disk_verifies_and_leaves_nothing_else(dpsr, csv, tmp_path, work):
    more = ["--work", tmp_path / "work"] if work else []
    outcome = dpsr("release", csv, *options(tmp_path / "r", epsilon="1"), "--engine", "disk", *more)
    assert outcome.code == 0, outcome.err
    assert "300 ratings" in outcome.out
    assert dpsr("verify", tmp_path / "r").code == 0
    found = load_release(tmp_path / "r")
    assert len(found.ratings) == 300
    assert np.isfinite(found.ratings).all()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r", "ratings.csv"]


def test_a_release_on_disk_is_charged_once(dpsr, csv, tmp_path):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "3")
    disk = ["--engine", "disk", "--ledger", tmp_path / "l.db"]
    assert dpsr("release", csv, *options(tmp_path / "r", epsilon="1"), *disk).code == 0
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 1)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0


def check_refused(outcome, tmp_path, words, left=("ratings.csv",)):
    assert outcome.code == 2
    said = " ".join(outcome.err.split())
    assert words in said
    assert "Traceback" not in said
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(left)


def test_too_little_memory_is_refused_with_the_least_that_would_do(dpsr, csv, tmp_path):
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", "disk", "--memory", "10MB")
    check_refused(outcome, tmp_path, "30 users and 20 items need at least 356 MB, --memory allows 10 MB")
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", "disk", "--memory", "360MB")
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("memory", ["much", "-1GB", "1TB", ""])
def test_an_amount_of_memory_that_is_none_is_refused(dpsr, csv, tmp_path, memory):
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", "disk", f"--memory={memory}")
    check_refused(outcome, tmp_path, "an amount of memory looks like 800MB or 1.5GB")


@pytest.mark.parametrize("engine", ["disk", "spark"])
def test_the_paper_as_published_is_refused_where_ratings_are_not_in_memory(dpsr, csv, tmp_path, engine):
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", engine, "--method", "as-published")
    check_refused(outcome, tmp_path, "so it runs in memory alone. Use --engine memory, or the repaired one")


def test_the_papers_release_on_disk_is_charged_verifies_and_says_how_it_was_made(dpsr, csv, tmp_path):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "3")
    more = ["--engine", "disk", "--memory", "1GB", "--method", "paper", "--ledger", tmp_path / "l.db"]
    outcome = dpsr("release", csv, *options(tmp_path / "r", epsilon="1"), *more, "--work", tmp_path / "work")
    assert outcome.code == 0, outcome.err
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 1)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0
    found = load_release(tmp_path / "r")
    assert (found.method, found.settings["n_neighbors"], found.certificate.private) == ("paper", 15, True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r", "ratings.csv"]


def test_a_database_is_refused(dpsr, csv, tmp_path):
    more = ["--engine", "disk", "--query", "select * from ratings"]
    outcome = dpsr("release", f"sqlite:///{tmp_path}/x.db", *options(tmp_path / "r"), *more)
    check_refused(outcome, tmp_path, "rows in a database are read into memory. Use --engine memory")


def test_a_bad_row_leaves_nothing(dpsr, csv, tmp_path):
    csv.write_text(csv.read_text() + "u1,i1,nine\n")
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", "disk")
    check_refused(outcome, tmp_path, "row 302: the rating is not a number")


def test_a_folder_with_other_peoples_files_is_never_used_or_deleted(dpsr, csv, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", "disk", "--work", tmp_path / "home")
    check_refused(outcome, tmp_path, "holds files that are not from dpsr", ("ratings.csv", "home"))
    assert [entry.name for entry in (tmp_path / "home").iterdir()] == ["letter.txt"]


def check_card(folder):
    """The page that came with the release is the one that is drawn from its files."""
    redraw(folder, folder.parent / "again.html")
    assert (folder / "card.html").read_text("utf-8") == (folder.parent / "again.html").read_text("utf-8")


@pytest.mark.parametrize("method", ["default", "paper"])
def test_a_release_on_disk_has_its_card(dpsr, csv, tmp_path, method):
    disk = ["--engine", "disk", "--method", method]
    assert dpsr("release", csv, *options(tmp_path / "r", epsilon="1"), *disk).code == 0
    check_card(tmp_path / "r")


needs_java = pytest.mark.skipif(
    "CI" not in os.environ and shutil.which("java") is None, reason="Spark needs Java, which is not installed"
)


def words_on_spark(folder, *more):
    out = options(str(folder / "r"), epsilon="1")
    return ["release", str(folder / "ratings.csv"), *out, "--engine", "spark", *map(str, more)]


def on_spark(csv, tmp_path, **environment):
    command = [sys.executable, "-m", "dpsr", *words_on_spark(tmp_path)]
    return forked.run(command, env={**os.environ, "COLUMNS": "200", **environment})


@pytest.fixture(scope="module")
def in_turn_on_spark(tmp_path_factory):
    """A release and a refusal, in one process after the other, for Java takes long to start.

    Spark generates its code here, as users have it.
    """
    folders = {name: tmp_path_factory.mktemp(name) for name in ("good", "bad")}
    defaults = tmp_path_factory.mktemp("defaults")
    (defaults / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in QUICK.items() if "codegen" not in name)
    )
    environment = {**os.environ, "COLUMNS": "200", "SPARK_CONF_DIR": str(defaults), forked.SERVER: forked.server()}
    for folder in folders.values():
        write_csv(folder / "ratings.csv")
    with (folders["bad"] / "ratings.csv").open("a") as file:
        file.write("u1,i1,4\n" * 2)
    Ledger.create(str(folders["bad"] / "l.db"), "films", "3")
    words = [words_on_spark(folders["good"]), words_on_spark(folders["bad"], "--ledger", folders["bad"] / "l.db")]
    run = forked.run([sys.executable, "-m", "in_turn", json.dumps(words)], env=environment)
    assert run.returncode == 0, run.stderr
    found = dict(zip(folders, outcomes(run.stderr), strict=True))
    return {name: (folder, found[name]) for name, folder in folders.items()}


def check_refused_on_spark(run, tmp_path, words, left=("ratings.csv",)):
    """One line after the name of the stage, and nothing else, not even from Java."""
    assert run.returncode == 2
    assert [line for line in run.stderr.splitlines() if not line.endswith("...")] == run.stderr.splitlines()[-1:]
    assert words in run.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(left)


def check_released_on_spark(dpsr, folder, said, method):
    assert dpsr("verify", folder / "r").code == 0
    assert load_release(folder / "r").method == method
    assert len(load_release(folder / "r").ratings) == 300
    check_card(folder / "r")
    assert [line for line in said.splitlines() if not line.endswith("...")] == [], "Spark speaks for itself"


@pytest.mark.spark
@needs_java
def test_a_release_on_spark_verifies(dpsr, in_turn_on_spark):
    folder, run = in_turn_on_spark["good"]
    assert run.returncode == 0, run.stderr
    check_released_on_spark(dpsr, folder, run.stderr, "default")


@pytest.mark.spark
@needs_java
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_papers_release_in_a_session_that_runs_verifies(dpsr, csv, tmp_path, lasting_spark):
    run = dpsr(*words_on_spark(tmp_path, "--method", "paper"))
    assert run.code == 0, run.err
    assert lasting_spark.range(3).count() == 3, "it is left running"
    check_released_on_spark(dpsr, tmp_path, run.err, "paper")


@pytest.mark.spark
@needs_java
def test_a_bad_rating_on_spark_is_one_sentence_and_costs_nothing(in_turn_on_spark):
    folder, run = in_turn_on_spark["bad"]
    check_refused_on_spark(run, folder, "user 'u1' and item 'i1'", ("ratings.csv", "l.db"))
    assert "ratings.csv: pairs of user and item rated more than once: 1, with " in run.stderr
    assert Ledger.open(str(folder / "l.db")).budget().charges == 0


def test_spark_without_java_says_what_to_install(csv, tmp_path):
    run = on_spark(csv, tmp_path, PATH="", JAVA_HOME="")
    check_refused_on_spark(run, tmp_path, "Spark needs Java, and no java command was found. Install a Java 17 runtime")
    assert "apt-get install openjdk-17-jre-headless" in run.stderr
    assert "--engine memory or --engine disk" in run.stderr


def test_a_java_that_does_not_start_is_quoted(csv, tmp_path):
    pytest.importorskip("pyspark") if "CI" not in os.environ else None
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'Error: this Java is too old' >&2\nexit 1\n")
    java.chmod(0o755)
    run = on_spark(csv, tmp_path, JAVA_HOME=str(java.parents[1]))
    words = (
        "Spark did not start: Error: this Java is too old. Spark 4 needs Java 17 or newer. Install a Java 17 runtime"
    )
    check_refused_on_spark(run, tmp_path, words, ("ratings.csv", "old"))


def test_which_of_several_ratings_to_keep_is_not_for_spark(dpsr, csv, tmp_path):
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--engine", "spark", "--duplicates", "last")
    check_refused(outcome, tmp_path, "Spark knows no first and last of several rows. Use --engine disk")
