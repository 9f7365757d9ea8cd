"""`dpsr release --ledger`: charged first, refused when the budget is gone, never charged for what could not start."""

import base64
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from small_ratings import options, write_csv

from dpsr import DPSR, Ratings, Scale
from dpsr.errors import PrivacyError, ReleaseError
from dpsr.pipeline.account import Account
from dpsr.pipeline.estimator import listening
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.noise import NoiseSource


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "ratings.csv")


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(str(tmp_path / "ledger.db"), "films", "0.25")


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    cells = rng.choice(40, 30, replace=False)
    return Ratings.from_arrays(cells // 5, cells % 5, rng.integers(1, 6, 30), scale=Scale(1, 5))


def test_a_release_is_charged_recorded_and_said_before_and_after(dpsr, csv, tmp_path, ledger):
    outcome = dpsr(
        "release", csv, *options(tmp_path / "r"), "--ledger", tmp_path / "ledger.db", "--note", "for the web"
    )
    assert outcome.code == 0, outcome.err
    words = " ".join(outcome.out.split())
    assert "Charges films in ledger.db: epsilon = 0.25 is left of 0.25, 0.15 will be." in words
    assert "The ledger has epsilon = 0.15 left of 0.25 for films." in words
    _, charge, release = ledger.history()
    assert (charge.epsilon, charge.note, charge.method) == (Fraction(1, 10), "for the web", "default")
    assert release.certificate == hashlib.sha256((tmp_path / "r" / "certificate.json").read_bytes()).hexdigest()


def test_an_empty_address_is_a_variable_nobody_set_and_makes_no_release_without_a_charge(dpsr, csv, tmp_path):
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--ledger", "")
    assert (outcome.code, outcome.err.startswith("error: the address of a database is empty.")) == (2, True)
    assert not (tmp_path / "r").exists()


def test_an_environment_with_an_empty_address_makes_no_release_without_a_charge(dpsr, csv, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSR_LEDGER", "")
    outcome = dpsr("release", csv, *options(tmp_path / "r"))
    assert (outcome.code, outcome.err.startswith("error: the address of a database is empty.")) == (2, True)
    assert not (tmp_path / "r").exists()


def test_an_exhausted_ledger_refuses_in_a_sentence_and_leaves_nothing(dpsr, csv, tmp_path, ledger):
    for name in ("a", "b"):
        assert dpsr("release", csv, *options(tmp_path / name), "--ledger", tmp_path / "ledger.db").code == 0
    outcome = dpsr("release", csv, *options(tmp_path / "c"), "--ledger", tmp_path / "ledger.db")
    assert outcome.code == 2
    assert outcome.err.startswith(
        "error: 'films' has epsilon = 0.05 left of 0.25 (2 charges so far), and epsilon = 0.1"
    )
    assert "at most epsilon = 0.05" in outcome.err
    assert not (tmp_path / "c").exists()
    assert ledger.budget().charges == 2


def test_json_is_all_that_stdout_holds(dpsr, csv, tmp_path, ledger):
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--ledger", tmp_path / "ledger.db", "--json")
    record = json.loads(outcome.out)
    assert record["private"]
    assert record["epsilon"] <= 0.1
    assert record["budget"]["exact"] == {"epsilon": "1/4", "spent": "1/10", "left": "3/20"}
    assert record["charge"] == ledger.history()[1].charge
    assert record["certificate"] == ledger.history()[2].certificate
    assert "Protects the value" in outcome.err


def test_json_without_yes_is_refused_at_once(dpsr, csv, tmp_path):
    outcome = dpsr("release", csv, *options(tmp_path / "r")[:-1], "--json")
    assert outcome.code == 2
    assert "--yes" in outcome.err
    assert not outcome.out


def test_among_several_data_sets_one_is_named(dpsr, csv, tmp_path, ledger):
    Ledger.create(str(tmp_path / "ledger.db"), "books", "1")
    unnamed = dpsr("release", csv, *options(tmp_path / "r"), "--ledger", tmp_path / "ledger.db")
    assert unnamed.code == 2
    assert "--dataset" in unnamed.err
    named = dpsr("release", csv, *options(tmp_path / "r"), "--ledger", tmp_path / "ledger.db", "--dataset", "books")
    assert named.code == 0
    assert ledger.budget("books").charges == 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (["--method", "as-published"], "as published"),
        (["--scale", "1:3:1"], "not on the scale"),
        (["--scale", "5:1:1"], "lowest to its highest"),
        (["--epsilon", "nan"], "epsilon must be"),
        (["--epsilon", "1e-9"], "from 0.000001 to 30"),
        (["--dataset", "songs"], "no data set 'songs'"),
        (["--out", "ratings.csv"], "is a file"),
        (["--out", "other"], "not a release"),
        (["--out", "ratings.csv/r"], "is not a folder"),
        (["--out", "/proc/nothing/r"], "MB free"),
        (["--out", "x" * 250], "could not be written"),
        (["--out", ".."], "printable name"),
        (["--query", "select 1"], "--query"),
        (["--user", "nobody"], "no column is named"),
    ],
)
def test_what_can_be_refused_is_refused_before_the_charge(dpsr, csv, tmp_path, ledger, monkeypatch, change, word):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    outcome = dpsr("release", csv, *options("r"), "--force", "--ledger", "ledger.db", *change)
    assert outcome.code == 2
    assert word in outcome.err
    assert ledger.budget().charges == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_seeded_run_is_refused_before_the_charge(ratings, tmp_path, ledger):
    account = Account.open(str(tmp_path / "ledger.db"), None, 0.1)
    with pytest.raises(PrivacyError, match="seeded"):
        publish(ratings, DPSR(0.1, random_state=7), tmp_path / "r", account=account)
    assert ledger.budget().charges == 0


class Watched(NoiseSource):
    """The system's randomness, which tells somebody before it gives any."""

    tell = None

    def stream(self):
        self.tell()
        return super().stream()


class WatchedDPSR(DPSR):
    """The real pipeline with the real noise, watched."""

    def _noise(self):
        Watched.tell()
        self.keys.append(source := Watched.system())
        return source

    keys: ClassVar = []


def test_no_noise_is_drawn_before_the_ledger_has_the_charge(ratings, tmp_path, ledger, monkeypatch):
    seen = []
    monkeypatch.setattr(Watched, "tell", staticmethod(lambda: seen.append(ledger.budget().spent_epsilon)))
    account = Account.open(str(tmp_path / "ledger.db"), None, 0.1)
    publish(ratings, WatchedDPSR(0.1), tmp_path / "r", account=account)
    assert len(seen) > 1
    assert set(seen) == {Fraction(1, 10)}
    key = WatchedDPSR.keys.pop()._key
    for file in (*(tmp_path / "r").iterdir(), tmp_path / "ledger.db"):  # and its key is nowhere
        for spelling in (key, key.hex().encode(), base64.b64encode(key)):
            assert spelling not in file.read_bytes()


def test_the_certificate_is_in_the_ledger_before_the_folder_is_visible(ratings, tmp_path, ledger, monkeypatch):
    """And what may stop a run is asked before either: nothing comes between record and rename."""
    seen, record = [], Ledger.record
    account = Account.open(str(tmp_path / "ledger.db"), None, 0.1)

    def look():
        seen.append((ledger.budget().releases, (tmp_path / "r").exists()))

    def recorded(*asked, **named):
        digest = record(*asked, **named)
        look()
        return digest

    monkeypatch.setattr(Ledger, "record", recorded)
    publish(ratings, DPSR(0.1), tmp_path / "r", account=account, last_call=look)
    assert seen == [(0, False), (1, False)]
    assert (tmp_path / "r").exists()


def test_what_goes_wrong_after_the_charge_says_that_it_stays_spent(ratings, tmp_path, ledger):
    account = Account.open(str(tmp_path / "ledger.db"), None, 0.1)

    def stage(name):
        if name == "Writing the folder":
            raise ReleaseError("the disk is gone.")

    with (
        pytest.raises(ReleaseError, match=r"disk is gone.*epsilon = 0.1 of 'films' was charged.*stays spent"),
        listening(stage),
    ):
        publish(ratings, DPSR(0.1), tmp_path / "r", account=account)
    assert ledger.budget().charges == 1
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_two_runs_to_one_target_do_not_overwrite_each_other(ratings, tmp_path, ledger):
    """The second is refused; what comes to the place in another way stays."""
    account = Account.open(str(tmp_path / "ledger.db"), None, 0.1)

    def meanwhile():
        with pytest.raises(ReleaseError, match="another run is writing the release r"):
            DPSR(1.0).fit(ratings).save(tmp_path / "r")
        DPSR(1.0).fit(ratings).save(tmp_path / "elsewhere").rename(tmp_path / "r")

    with pytest.raises(ReleaseError, match="not empty"):
        publish(ratings, DPSR(0.1), tmp_path / "r", account=account, last_call=meanwhile)
    assert json.loads((tmp_path / "r" / "certificate.json").read_text())["nominal"] == 1.0


# -- dpsr ledger


def test_the_ledger_commands_set_show_and_tell(dpsr, tmp_path):
    book = tmp_path / "l.db"
    made = dpsr("ledger", "init", "--ledger", book, "--dataset", "films", "--epsilon", "3", "--note", "the board")
    assert made.code == 0, made.err
    Ledger.open(str(book)).charge("films", "0.1", method="default")
    assert "2.9" in dpsr("ledger", "show", "--ledger", book).out
    shown = json.loads(dpsr("ledger", "show", "--ledger", book, "--json").out)
    assert shown[0]["exact"] == {"epsilon": "3", "spent": "1/10", "left": "29/10"}
    told = dpsr("ledger", "history", "--ledger", book).out
    assert "the board" in told
    assert "charge" in told
    events = json.loads(dpsr("ledger", "history", "--ledger", book, "--dataset", "films", "--json").out)
    assert [(event["kind"], event["epsilon"]) for event in events] == [("budget", "3"), ("charge", "1/10")]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["show", "--ledger", "missing.db"], "ledger init"),
        (["init", "--ledger", "l.db", "--dataset", "films", "--epsilon", "1"], "set once"),
        (["init", "--ledger", "l.db", "--dataset", "films2", "--epsilon", "much"], "finite number"),
        (["history", "--ledger", "l.db", "--dataset", "songs"], "no data set"),
        (["show", "--ledger", "oracle://scott:tiger@host/db"], "SQLite's or PostgreSQL's"),
    ],
)
def test_ledger_refusals_are_one_sentence(dpsr, tmp_path, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    Ledger.create("l.db", "films", "1")
    outcome = dpsr("ledger", *arguments)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert word in outcome.err
    assert "tiger" not in outcome.err


def test_a_stranger_in_the_history_cannot_paint_the_terminal(dpsr, tmp_path):
    Ledger.create(str(tmp_path / "l.db"), "films", "1", who="[red]eve\x1b[2J", note="[bold]x[/bold]\x1b[2J")
    told = dpsr("ledger", "history", "--ledger", tmp_path / "l.db").out
    assert "\x1b[2J" not in told
    assert "[red]eve" in told
    assert "[bold]x[/bold]" in told


def test_the_ledger_can_be_named_by_the_environment(dpsr, csv, tmp_path, ledger, monkeypatch):
    monkeypatch.setenv("DPSR_LEDGER", str(Path(tmp_path / "ledger.db")))
    assert dpsr("release", csv, *options(tmp_path / "r")).code == 0
    assert "0.15" in dpsr("ledger", "show").out
