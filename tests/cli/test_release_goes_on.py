"""A release on disk that was killed goes on with the charge it has paid: one charge, one release, and no dead end."""

import errno
import os
import shutil
import signal

import pytest
from pyarrow import csv
from small_ratings import options, write_csv

from dpsr.data import realistic
from dpsr.engine.work_folder import MARK
from dpsr.errors import DataError, LedgerError
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.noise import discrete_laplace
from dpsr.privacy.vault.journal import Journal
from dpsr.release import atomic


@pytest.fixture
def ledger(tmp_path):
    """All that is allowed is one release."""
    write_csv(tmp_path / "ratings.csv")
    return Ledger.create(str(tmp_path / "l.db"), "films", "2")


@pytest.fixture
def release(dpsr, tmp_path):
    def run(*more, book="l.db", out="r"):
        words = ["--engine", "disk", "--work", tmp_path / "w", "--ledger", tmp_path / book, *more]
        return dpsr("release", tmp_path / "ratings.csv", *options(tmp_path / out, epsilon="2"), *words)

    return run


class KilledError(BaseException):
    """As if the process had ended here."""


def killed_in(monkeypatch, owner, name, number=0, *, after=False):
    """The process ends when this is called for that time, before it does anything or when it has."""
    real, calls = getattr(owner, name), [0]

    def killed(*asked, **named):
        calls[0] += 1
        if calls[0] > number and not after:
            raise KilledError
        answer = real(*asked, **named)
        if calls[0] > number:
            raise KilledError
        return answer

    monkeypatch.setattr(owner, name, killed)


def paid(ledger):
    return ledger.budget().charges, ledger.budget().releases


@pytest.mark.parametrize("answers", [0, 1])
def test_a_killed_run_goes_on_with_what_it_has_paid(dpsr, release, ledger, tmp_path, monkeypatch, answers):
    """The second run was charged again, and refused where the budget was for one: what had been paid for was lost."""
    with monkeypatch.context() as during:
        killed_in(during, Journal, "keep", answers)
        with pytest.raises(KilledError):
            release()
    assert paid(ledger) == (1, 0)
    given = {path.name: path.read_bytes() for path in (tmp_path / "w").glob("answer-*.json")}
    assert len(given) == answers
    outcome = release()
    assert outcome.code == 0, outcome.err
    assert "Goes on from a run that was charged to films" in outcome.out
    assert "nothing more is charged" in outcome.out
    assert paid(ledger) == (1, 1)
    assert not (tmp_path / "w").exists()
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0


def test_a_run_that_is_killed_between_two_turns_of_sums_pays_once_and_asks_the_second_alone(
    dpsr, release, ledger, tmp_path, monkeypatch
):
    ratings = realistic(0, n_users=80, n_items=50, n_ratings=2_500)
    csv.write_csv(ratings.to_arrow(), tmp_path / "ratings.csv")
    drawn = []

    def draw(scale, n, noise):
        drawn.append(n)
        return discrete_laplace(scale, n, noise)

    monkeypatch.setattr("dpsr.privacy.vault.vault.discrete_laplace", draw)
    with monkeypatch.context() as during:
        killed_in(during, Journal, "keep", 2)
        with pytest.raises(KilledError):
            release()
    assert paid(ledger) == (1, 0)
    _, first, lost = drawn
    assert first + lost == ratings.mask.n_users + ratings.mask.n_items
    assert release().code == 0
    assert drawn[3:] == [lost]
    assert paid(ledger) == (1, 1)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_is_killed_while_it_is_charged_pays_once(release, ledger, monkeypatch, after):
    with monkeypatch.context() as during:
        killed_in(during, Ledger, "charge", after=after)
        with pytest.raises(KilledError):
            release()
    assert paid(ledger) == (int(after), 0)
    assert release().code == 0
    assert paid(ledger) == (1, 1)


def test_a_charge_pays_for_one_release(release, tmp_path, monkeypatch):
    """Killed between the ledger's record of a release and its place: nobody can tell whether anybody has that one."""
    write_csv(tmp_path / "ratings.csv")
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "4")
    with monkeypatch.context() as during:
        killed_in(during, Ledger, "record", after=True)
        with pytest.raises(KilledError):
            release()
    assert paid(ledger) == (1, 1)
    outcome = release()
    assert outcome.code == 0, outcome.err
    assert "2 is left of 4, 0 will be" in outcome.out
    assert paid(ledger) == (2, 2)


def test_what_was_paid_for_is_not_released_without_a_record(dpsr, release, ledger, tmp_path, monkeypatch):
    """Without --ledger the same command released what a ledger had paid for, and the ledger knew of no release."""
    with monkeypatch.context() as during:
        killed_in(during, Journal, "keep", 1)
        with pytest.raises(KilledError):
            release()
    words = ["--engine", "disk", "--work", tmp_path / "w"]
    outcome = dpsr("release", tmp_path / "ratings.csv", *options(tmp_path / "r", epsilon="2"), *words)
    assert outcome.code == 2
    assert "Give the same --ledger, or an empty folder with --work" in " ".join(outcome.err.split())
    assert not (tmp_path / "r").exists()
    assert paid(ledger) == (1, 0)
    assert release().code == 0
    assert paid(ledger) == (1, 1)


def test_another_ledger_is_charged(release, ledger, tmp_path, monkeypatch):
    other = Ledger.create(str(tmp_path / "other.db"), "films", "2")
    with monkeypatch.context() as during:
        killed_in(during, Journal, "keep")
        with pytest.raises(KilledError):
            release()
    assert release(book="other.db").code == 0
    assert (paid(ledger), paid(other)) == ((1, 0), (1, 1))


def test_other_ratings_do_not_get_what_was_paid(release, ledger, tmp_path, monkeypatch):
    with monkeypatch.context() as during:
        killed_in(during, Journal, "keep")
        with pytest.raises(KilledError):
            release()
    csv = tmp_path / "ratings.csv"
    csv.write_text(csv.read_text().replace(",5\n", ",1\n"))
    outcome = release()
    assert outcome.code == 2
    assert "belongs to another run" in outcome.err
    assert paid(ledger) == (1, 0)
    assert not (tmp_path / "r").exists()


VALUE = ["--scale", "1:5:1", "--epsilon", "2"]
USER = [*VALUE, "--unit", "user", "--delta", "0.00001", "--items", "items.csv"]
CHANGED = {"a value": ",5\n", "a person": "\nu7,", "an item": "i19,"}
"""What is written otherwise in a file, at its first place."""


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (VALUE, "a value"),
        (VALUE, "a person"),
        (VALUE, "a row"),
        (VALUE, ["--epsilon", "1"]),
        (VALUE, ["--scale", "0:5:1"]),
        (VALUE, ["--method", "paper"]),
        ([*VALUE, "--method", "paper"], ["--method", "default"]),
        ([*VALUE, "--method", "paper"], "a value"),
        (USER, "a value"),
        (USER, "a row"),
        (USER, "an item"),
        (USER, ["--epsilon", "1"]),
        (USER, ["--delta", "0.00002"]),
    ],
)
def test_whatever_else_is_asked_gets_no_answer_of_a_killed_run_and_takes_nothing_from_it(
    dpsr, tmp_path, monkeypatch, words, change
):
    """Refused, in a sentence and without a charge; and the same command as before still goes on with what it paid."""
    monkeypatch.chdir(tmp_path)
    texts = {"items.csv": "movieId\n" + "".join(f"i{number},\n" for number in range(20))}
    texts["ratings.csv"] = write_csv(tmp_path / "ratings.csv").read_text()
    (tmp_path / "items.csv").write_text(texts["items.csv"])
    unit, delta = ("user", "0.1") if "user" in words else ("value", 0.0)
    ledger = Ledger.create("l.db", "films", "9", delta, unit=unit)
    more = ["--out", "r", "--yes", "--engine", "disk", "--work", "w", "--ledger", "l.db"]
    with monkeypatch.context() as during:
        killed_in(during, Journal, "keep", after=True)
        with pytest.raises(KilledError):
            dpsr("release", "ratings.csv", *words, *more)
    given = {path.name: path.read_bytes() for path in (tmp_path / "w").glob("answer-*.json")}
    assert len(given) == 1

    if change == "a row":
        rows = texts["ratings.csv"].splitlines()
        missing = next(f"u0,i{item}," for item in range(20) if not any(row.startswith(f"u0,i{item},") for row in rows))
        (tmp_path / "ratings.csv").write_text(f"{texts['ratings.csv']}{missing}3\n")
    elif isinstance(change, str):
        name, old = "items.csv" if change == "an item" else "ratings.csv", CHANGED[change]
        assert old in texts[name]
        new = {"a value": ",4\n", "a person": "\nu77,", "an item": "i20,"}[change]
        (tmp_path / name).write_text(texts[name].replace(old, new, -1 if change == "a person" else 1))
    otherwise = change if isinstance(change, list) else []
    outcome = dpsr("release", "ratings.csv", *words, *otherwise, *more)
    assert outcome.code == 2, outcome.out
    assert "the working folder belongs to another run" in outcome.err
    assert "Nothing was drawn" in outcome.err
    assert paid(ledger) == (1, 0)
    assert {path.name: path.read_bytes() for path in (tmp_path / "w").glob("answer-*.json")} == given

    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    outcome = dpsr("release", "ratings.csv", *words, *more)
    assert outcome.code == 0, outcome.err
    assert paid(ledger) == (1, 1)
    assert dpsr("verify", "r", "--ledger", "l.db").code == 0


def test_a_charge_that_is_refused_leaves_no_raw_block(release, ledger, tmp_path, monkeypatch):
    """Somebody else spent the budget while the ratings were read."""

    def refused(*asked, **named):
        raise LedgerError("the budget is spent.")

    monkeypatch.setattr(Ledger, "charge", refused)
    assert release().code == 2
    assert not (tmp_path / "w").exists()
    assert paid(ledger) == (0, 0)


def test_a_working_folder_that_is_full_is_named_and_what_was_paid_is_not_lost(release, ledger, tmp_path, monkeypatch):
    """It was the release that could not be written, by the message."""

    replace = os.replace

    def full(draft, path):
        if path.name == "answer-001.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(draft, path)

    with monkeypatch.context() as during:
        during.setattr(os, "replace", full)
        outcome = release()
    assert outcome.code == 2
    assert "the working folder could not be written: No space left on device" in outcome.err
    assert "The same command goes on from the working folder, without another charge" in outcome.err
    assert release().code == 0
    assert paid(ledger) == (1, 1)


def test_a_working_folder_that_somebody_deleted_is_not_said_to_be_there(release, ledger, tmp_path, monkeypatch):
    def deleted(*asked):
        shutil.rmtree(tmp_path / "w")
        raise DataError("a block is missing.")

    with monkeypatch.context() as during:
        during.setattr(Journal, "keep", deleted)
        outcome = release()
    assert outcome.code == 2
    assert "was charged before that and stays spent." in outcome.err
    assert "goes on" not in outcome.err


def test_an_interrupt_says_that_the_same_command_goes_on(release, ledger, tmp_path, monkeypatch):
    def interrupted(*asked):
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(Journal, "keep", interrupted)
        outcome = release()
    assert outcome.code == 130
    assert "was charged before that and stays spent. The same command goes on from the working folder" in outcome.err
    assert release().code == 0
    assert paid(ledger) == (1, 1)


def test_a_second_signal_does_not_silence_what_the_first_has_cost(release, ledger, monkeypatch):
    """As a machine that shuts down sends them: it came while the ledger was asked, and the last line said nothing."""
    real = Ledger.was_charged

    def asked(*facts):
        signal.raise_signal(signal.SIGHUP)
        return real(*facts)

    with monkeypatch.context() as during:
        during.setattr(Journal, "keep", lambda *_: signal.raise_signal(signal.SIGTERM))
        during.setattr(Ledger, "was_charged", asked)
        outcome = release()
    assert outcome.code == 130
    assert "epsilon = 2 of 'films' was charged before that and stays spent. The same command goes on" in outcome.err
    assert release().code == 0
    assert paid(ledger) == (1, 1)


@pytest.mark.parametrize("work", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_when_the_release_is_recorded_is_too_late(
    dpsr, release, ledger, tmp_path, monkeypatch, number, work
):
    """The folder was discarded between its record and its place: paid for, said not to be there, and gone."""
    real = Ledger.record

    def recorded(*asked, **named):
        digest = real(*asked, **named)
        signal.raise_signal(number)
        return digest

    monkeypatch.setattr(Ledger, "record", recorded)
    words = [*options(tmp_path / "r", epsilon="2"), "--ledger", tmp_path / "l.db"]
    outcome = release() if work else dpsr("release", tmp_path / "ratings.csv", *words)
    assert outcome.code == 0, outcome.err
    assert paid(ledger) == (1, 1)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0


@pytest.mark.parametrize("recorded", [True, False])
def test_a_record_whose_answer_is_lost_is_looked_up(release, ledger, tmp_path, monkeypatch, recorded):
    """A server that ends while it commits: the release was recorded, and thrown away as if it had not been."""
    real = Ledger.record

    def unanswered(*asked, **named):
        if recorded:
            real(*asked, **named)
        raise LedgerError("the ledger cannot be used: the connection was closed.")

    with monkeypatch.context() as during:
        during.setattr(Ledger, "record", unanswered)
        outcome = release()
    assert outcome.code == (0 if recorded else 2), outcome.err
    assert (tmp_path / "r").exists() == recorded
    assert paid(ledger) == (1, int(recorded))
    if not recorded:
        assert "The same command goes on from the working folder, without another charge" in outcome.err
        assert release().code == 0
        assert paid(ledger) == (1, 1)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_record_that_nobody_can_ask_about_is_decided_by_the_next_run(
    dpsr, release, ledger, tmp_path, monkeypatch, recorded
):
    """The server ends while it commits, and stays away: what it had recorded was deleted, and charged once more."""
    real = Ledger.record

    def gone(*asked, **named):
        raise LedgerError("the ledger cannot be used: nobody is there.")

    def unanswered(*asked, **named):
        if recorded:
            real(*asked, **named)
        for name in ("history", "was_charged"):
            during.setattr(Ledger, name, gone)
        gone()

    with monkeypatch.context() as during:
        during.setattr(Ledger, "record", unanswered)
        outcome = release()
    assert outcome.code == 2
    assert "The same command finds out later whether it was recorded" in outcome.err
    assert "may have been charged. The same command goes on from the working folder" in outcome.err
    assert not (tmp_path / "r").exists()
    outcome = release()
    assert ("only its rename was missing" in outcome.err) == recorded
    assert outcome.code == (2 if recorded else 0), outcome.err
    assert paid(ledger) == (1, 1)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r", "ratings.csv"]


def die_at_the_rename(monkeypatch, path, number=1):
    """The process ends when the release is to get its place: nobody tidies up, and its lock is gone with it."""
    real, tried = os.rename, []

    def died(draft, target):
        tried.extend([target] if target == path else [])
        if target == path and len(tried) == number:
            raise KilledError
        real(draft, target)

    monkeypatch.setattr(os, "rename", died)
    monkeypatch.setattr("dpsr.release.atomic._discard", lambda *_: None)


@pytest.mark.parametrize("work", [True, False])
@pytest.mark.parametrize("empty", [True, False])
def test_a_release_that_was_killed_between_record_and_rename_gets_its_place(
    dpsr, release, ledger, tmp_path, monkeypatch, work, empty
):
    """It was thrown away by the next run, which was charged once more, and refused where the budget was for one."""
    if empty:
        (tmp_path / "r").mkdir()

    def run():
        words = [*options(tmp_path / "r", epsilon="1"), "--ledger", tmp_path / "l.db"]
        return release() if work else dpsr("release", tmp_path / "ratings.csv", *words)

    with monkeypatch.context() as during:
        die_at_the_rename(during, tmp_path / "r")
        with pytest.raises(KilledError):
            run()
    assert paid(ledger) == (1, 1)
    assert not (tmp_path / "r" / "manifest.json").exists()
    blocks = tmp_path / ".r.0123456789ab.work"  # of a run on disk that chose no folder
    blocks.mkdir()
    (blocks / MARK).write_text("made by dpsr, which removes it\n")
    (blocks / "level-00000.block.parquet").touch()
    outcome = run()
    assert outcome.code == 2
    assert "the release r had been charged and recorded when its run was killed" in outcome.err
    assert "It is in its place now, and nothing more was charged" in outcome.err
    assert paid(ledger) == (1, 1)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r", "ratings.csv"], "no raw block is left"
    assert "the folder r exists already" in run().err


@pytest.mark.parametrize("exchange", [True, False])
def test_a_release_that_was_killed_before_it_replaced_another_gets_its_place_when_that_is_allowed(
    dpsr, tmp_path, monkeypatch, exchange
):
    """Also where two folders cannot change places in one step, and the older one had been moved aside."""
    write_csv(tmp_path / "ratings.csv")
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "2")

    def run(*more):
        words = [*options(tmp_path / "r", epsilon="1"), "--ledger", tmp_path / "l.db", *more]
        return dpsr("release", tmp_path / "ratings.csv", *words)

    assert run().code == 0
    older = (tmp_path / "r" / "manifest.json").read_bytes()
    with monkeypatch.context() as during:
        if exchange:
            killed_in(during, atomic, "_exchange")
            during.setattr(atomic, "_discard", lambda *_: None)
        else:
            during.setattr(atomic, "_exchange", lambda *_: False)
            die_at_the_rename(during, tmp_path / "r", number=2)
        with pytest.raises(KilledError):
            run("--force")
    assert paid(ledger) == (2, 2)
    if exchange:
        outcome = run()
        assert outcome.code == 2
        assert "the release that was to replace it had been charged and recorded" in outcome.err
        assert (tmp_path / "r" / "manifest.json").read_bytes() == older
    outcome = run("--force")
    assert outcome.code == 2
    assert "It is in its place now, and nothing more was charged" in outcome.err
    assert (tmp_path / "r" / "manifest.json").read_bytes() != older
    assert paid(ledger) == (2, 2)
    assert dpsr("verify", tmp_path / "r", "--ledger", tmp_path / "l.db").code == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r", "ratings.csv"]


def test_a_release_that_was_replaced_is_not_put_back(dpsr, tmp_path, monkeypatch):
    """Killed when the two had changed places: the draft is the older one, which the ledger recorded, too."""
    write_csv(tmp_path / "ratings.csv")
    ledger, words = Ledger.create(str(tmp_path / "l.db"), "films", "3"), options(tmp_path / "r", epsilon="1")

    def run(*more):
        return dpsr("release", tmp_path / "ratings.csv", *words, "--ledger", tmp_path / "l.db", *more)

    assert run().code == 0
    with monkeypatch.context() as during:
        killed_in(during, atomic, "_swap_in", 1, after=True)  # the first is that of the draft
        during.setattr(atomic, "_discard", lambda *_: None)
        with pytest.raises(KilledError):
            run("--force")
    newer = (tmp_path / "r" / "manifest.json").read_bytes()
    assert any(tmp_path.glob(".r.*.partial/r"))
    assert "the folder r exists already. Choose another name" in run().err
    assert (tmp_path / "r" / "manifest.json").read_bytes() == newer
    assert not any(tmp_path.glob(".r.*"))
    assert run("--force").code == 0
    assert paid(ledger) == (3, 3)


@pytest.mark.parametrize("change", ["unrecorded", "another ledger", "a byte", "a file more"])
def test_no_other_draft_gets_a_place(dpsr, tmp_path, monkeypatch, change):
    write_csv(tmp_path / "ratings.csv")
    ledger, words = Ledger.create(str(tmp_path / "l.db"), "films", "9"), options(tmp_path / "r", epsilon="1")
    other = Ledger.create(str(tmp_path / "other.db"), "films", "9")

    def run(*more, book="l.db"):
        return dpsr("release", tmp_path / "ratings.csv", *words, "--ledger", tmp_path / book, *more)

    with monkeypatch.context() as during:
        die_at_the_rename(during, tmp_path / "r")
        if change == "unrecorded":
            during.setattr(Ledger, "record", lambda *_, **__: "")
        with pytest.raises(KilledError):
            run()
    (draft,) = tmp_path.glob(".r.*.partial/r")
    if change == "a byte":
        (draft / "card.html").write_text((draft / "card.html").read_text() + " ")
    elif change == "a file more":
        (draft / "ratings.csv").write_text("ann,i1,5")
    before = ledger.budget().charges
    outcome = run(book="other.db" if "ledger" in change else "l.db")
    assert not any(tmp_path.glob(".r.*"))
    assert outcome.code == 0, outcome.err
    assert (other if "ledger" in change else ledger).budget().charges == (1 if "ledger" in change else before + 1)


def test_raw_ratings_of_a_release_that_is_in_its_place_are_deleted(release, ledger, tmp_path, monkeypatch):
    """Killed when only the working folder was left to clear: going on from it would have been a second charge."""
    with monkeypatch.context() as during:
        during.setattr("dpsr.engine.work_folder.clear", lambda folder: [])
        assert release().code == 0
    assert (tmp_path / "w" / "run.json").exists()
    outcome = release()
    assert outcome.code == 2
    assert "the folder r exists already" in outcome.err
    assert "raw ratings" not in outcome.err
    assert not (tmp_path / "w").exists()
    assert paid(ledger) == (1, 1)
