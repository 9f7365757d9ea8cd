"""Working folders: a paid release is never lost in one, raw blocks are for their owner alone and outlive no run."""

import hmac
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from forked import Forked
from small_ratings import options, write_csv

from dpsr.data import realistic
from dpsr.data.fingerprint import fingerprint
from dpsr.engine.raw import RawTable
from dpsr.engine.work_folder import MARK, RUN, chosen_folder, clear, clear_dead_runs, hidden_folder
from dpsr.errors import ReleaseError
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.vault.journal import Journal
from dpsr.release.atomic import atomic_folder


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "ratings.csv")


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(str(tmp_path / "l.db"), "films", "10")


def on_disk(csv, out, *more, epsilon="2"):
    return ["release", csv, *options(out, epsilon=epsilon), "--engine", "disk", *more]


# -- a paid release is never lost


@pytest.mark.parametrize(
    ("work", "out"),
    [
        ("w", "w/release"),
        ("w", "w"),
        ("w/inner", "w"),
        ("w", "link/release"),
        ("link", "w/release"),
        ("./a/../w", "w/r"),
    ],
)
def test_a_working_folder_and_a_release_inside_one_another_are_refused_before_the_charge(
    dpsr, csv, ledger, tmp_path, work, out
):
    if "link" in work + out:
        (tmp_path / "w").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "w")
    before = sorted(tmp_path.rglob("*"))
    outcome = dpsr(*on_disk(csv, tmp_path / out, "--work", f"{tmp_path}/{work}", "--ledger", tmp_path / "l.db"))
    assert outcome.code == 2
    assert "one lies inside the other" in " ".join(outcome.err.split())
    assert ledger.budget().charges == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_linked_working_folder_is_emptied_and_the_link_and_its_folder_stay(dpsr, csv, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "w").symlink_to(tmp_path / "real")
    outcome = dpsr(*on_disk(csv, tmp_path / "r", "--work", tmp_path / "w"))
    assert (outcome.code, outcome.err.count("Traceback")) == (0, 0), outcome.err
    assert (tmp_path / "w").is_symlink()
    assert list((tmp_path / "real").iterdir()) == []
    assert dpsr("verify", tmp_path / "r").code == 0


def test_a_link_that_leads_nowhere_yet_is_followed(dpsr, csv, tmp_path):
    (tmp_path / "w").symlink_to(tmp_path / "later")
    assert dpsr(*on_disk(csv, tmp_path / "r", "--work", tmp_path / "w")).code == 0
    assert not (tmp_path / "later").exists()


def test_only_files_with_our_names_are_deleted(tmp_path):
    folder = tmp_path / "w"
    folder.mkdir()
    theirs = [
        "thesis.tex",
        "part-00000.parquet",
        "items-00000.parquet",
        "level-00001.csv",
        "run.json.bak",
        "answer.json",
    ]
    ours = [
        "items-00000.block.parquet",
        "level-00012.block.partial",
        "run.json",
        "answer-003.json",
        "ingest.duckdb",
        MARK,
    ]
    for name in theirs + ours:
        (folder / name).write_text(name)
    (folder / "ingest.duckdb.sorting").mkdir()
    (folder / "ingest.duckdb.sorting" / "duckdb_temp_storage_DEFAULT-0.tmp").write_text("spilled")
    assert clear(folder) == []
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(theirs)


def test_what_a_marked_folder_holds_besides_is_never_deleted_because_the_folder_is_refused(dpsr, csv, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / MARK).touch()
    (tmp_path / "w" / "thesis.tex").write_text("years")
    outcome = dpsr(*on_disk(csv, tmp_path / "r", "--work", tmp_path / "w"))
    assert outcome.code == 2
    assert "holds files that are not from dpsr" in outcome.err
    assert (tmp_path / "w" / "thesis.tex").read_text() == "years"


@pytest.mark.parametrize("name", ["ratings.csv", "l.db", "notes"])
def test_replacing_a_release_never_deletes_what_somebody_put_beside_its_files(dpsr, csv, tmp_path, name):
    """The input, the ledger, a key: `--force` once deleted the folder with all that was in it."""
    assert dpsr("release", csv, *options(tmp_path / "r")).code == 0
    (tmp_path / "r" / name).write_text("precious")
    outcome = dpsr("release", csv, *options(tmp_path / "r"), "--force")
    assert outcome.code == 2
    assert f"holds more than a release, and '{name}' would be deleted with it" in " ".join(outcome.err.split())
    assert (tmp_path / "r" / name).read_text() == "precious"


@pytest.mark.parametrize("exchange", [True, False])
def test_what_is_put_into_a_release_while_it_is_replaced_is_kept_aside(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr("dpsr.release.atomic._exchange", lambda *_: False)
    for word in ("old", "new"):
        with atomic_folder(tmp_path / "r", overwrite=True) as draft:
            draft.mkdir()
            (draft / "manifest.json").write_text(word)
            if word == "new":
                (tmp_path / "r" / "ratings.csv").write_text("precious")
    (aside,) = tmp_path.glob("r.before.*")
    assert (aside / "ratings.csv").read_text() == "precious"
    assert (tmp_path / "r" / "manifest.json").read_text() == "new"


def test_the_demo_replaces_its_own_release_and_no_other(dpsr, csv, ledger, tmp_path):
    assert dpsr("release", csv, *options(tmp_path / "r"), "--ledger", tmp_path / "l.db").code == 0
    before = (tmp_path / "r" / "manifest.json").read_bytes()
    outcome = dpsr("demo", "--out", tmp_path / "r", "--force")
    assert outcome.code == 2
    assert "is not a release of the embedded sample" in " ".join(outcome.err.split())
    assert (tmp_path / "r" / "manifest.json").read_bytes() == before


# -- raw blocks at rest


def start(folder, *more, **how):
    command = [sys.executable, "-m", "dpsr", *map(str, on_disk("ratings.csv", "out/r", *more))]
    return Forked(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True, **how
    )


def at_the_question(folder, *more, start=Forked, **how):
    """A run that has read its ratings and waits for a yes: its blocks are on disk, and time does not matter."""
    command = [sys.executable, "-m", "dpsr", *map(str, on_disk("ratings.csv", "out/r", *more))]
    command.remove("--yes")
    process = start(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True, **how
    )
    said = ""
    while "[y/N]" not in said:
        letter = process.stdout.read(1)
        assert letter, process.stderr.read()
        said += letter
    return process


def hidden(folder):
    return [entry for entry in (folder / "out").iterdir() if entry.name.endswith(".work")]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("work", [None, "w", "mine"])
def test_blocks_are_for_their_owner_alone_whatever_the_umask(csv, tmp_path, work):
    (tmp_path / "mine").mkdir(mode=0o777)
    (tmp_path / "mine").chmod(0o777)
    process = at_the_question(tmp_path, *(["--work", work] if work else []), umask=0)
    (folder,) = [tmp_path / work] if work else hidden(tmp_path)
    try:
        assert mode(folder) == 0o700
        files = {entry.name: mode(entry) for entry in folder.iterdir()}
        assert {"items-00000.block.parquet", "level-00000.block.parquet", MARK} <= set(files)
        assert set(files.values()) == {0o600}
    finally:
        process.communicate("n\n")
    assert process.returncode == 1
    assert folder.exists() == (work == "mine"), "nothing was asked, so nothing is left to go on from"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_takes_its_raw_blocks_along(csv, ledger, tmp_path, number):
    process = at_the_question(tmp_path, "--ledger", "l.db")
    assert hidden(tmp_path)
    process.send_signal(number)
    _, complaint = process.communicate()
    assert process.returncode == 130, complaint
    assert "nothing was charged" in complaint
    assert not (tmp_path / "out").exists()
    assert ledger.budget().charges == 0


def test_a_hang_up_is_ignored_where_it_was_ignored_before(csv, tmp_path):
    """As under nohup."""
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = at_the_question(tmp_path, start=subprocess.Popen, **ignoring)
    process.send_signal(signal.SIGHUP)
    _, complaint = process.communicate("y\n")
    assert process.returncode == 0, complaint


def test_raw_blocks_of_a_run_killed_outright_are_removed_by_the_next_and_those_of_a_living_one_stay(
    dpsr, csv, tmp_path
):
    dead = at_the_question(tmp_path)
    dead.kill()
    dead.communicate()
    (left,) = hidden(tmp_path)
    assert any(left.glob("level-*"))
    living = at_the_question(tmp_path)
    try:
        assert not left.exists()
        (held,) = hidden(tmp_path)
        assert dpsr("release", csv, *options(tmp_path / "out" / "other"), "--engine", "memory").code == 0
        assert hidden(tmp_path) == [held]
        assert any(held.glob("level-*"))
    finally:
        living.kill()
        living.communicate()
    assert dpsr("release", csv, *options(tmp_path / "out" / "last"), "--engine", "memory").code == 0
    assert hidden(tmp_path) == []


def test_folders_that_only_look_like_ours_are_left_alone(tmp_path):
    unmarked = tmp_path / ".r.0123456789ab.work"
    unmarked.mkdir()
    (unmarked / "level-00000.block.parquet").write_text("not marked, so not ours")
    (tmp_path / ".r.0123456789ac.work").symlink_to(unmarked)
    foreign = tmp_path / ".r.0123456789ad.work"
    foreign.mkdir()
    (foreign / MARK).touch()
    (foreign / "letter.txt").write_text("dear")
    clear_dead_runs(tmp_path)
    assert any(unmarked.iterdir())
    assert [entry.name for entry in foreign.iterdir()] == ["letter.txt"]
    with hidden_folder(tmp_path / "r") as mine:
        clear_dead_runs(tmp_path)
        assert (mine / MARK).exists()
    assert not mine.exists()


def test_a_second_run_in_the_same_working_folder_is_refused(dpsr, csv, ledger, tmp_path):
    first = at_the_question(tmp_path, "--work", "w")
    try:
        before = sorted(entry.name for entry in (tmp_path / "w").iterdir())
        more = ["--work", tmp_path / "w", "--ledger", tmp_path / "l.db"]
        outcome = dpsr(*on_disk(csv, tmp_path / "r", *more))
        assert outcome.code == 2
        assert "another run is using the working folder" in " ".join(outcome.err.split())
        assert ledger.budget().charges == 0
        assert sorted(entry.name for entry in (tmp_path / "w").iterdir()) == before
    finally:
        first.communicate("y\n")
    assert first.returncode == 0
    assert not (tmp_path / "w").exists()


def test_a_run_that_was_told_to_end_after_an_answer_can_go_on(csv, tmp_path):
    process = start(tmp_path, "--work", "w")
    while process.poll() is None and not (tmp_path / "w" / "answer-000.json").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGHUP)
    process.communicate()
    if process.returncode == 0:  # it was too late
        return
    before = json.loads((tmp_path / "w" / "answer-000.json").read_text())
    again = start(tmp_path, "--work", "w")
    _, complaint = again.communicate()
    assert again.returncode == 0, complaint
    assert before["values"]
    assert not (tmp_path / "w").exists()


class KilledError(BaseException):
    """As if the process had ended here."""


def killed_at_deletion(monkeypatch, number):
    """From now on the process ends when so many files of working folders are deleted."""
    from dpsr.engine import work_folder

    delete, done = work_folder._delete, [0]

    def killed(entry):
        counts = not entry.name.startswith(work_folder.STORE)  # which is cleared before
        if counts and done[0] == number:
            raise KilledError
        delete(entry)
        done[0] += counts

    monkeypatch.setattr(work_folder, "_delete", killed)


NAMES = ["answer-000.json", "answer-001.json", RUN, "symbol-00000.block.parquet", "level-00000.block.parquet"]


@pytest.mark.parametrize("number", range(len(NAMES) + 1))
def test_a_folder_whose_clearing_was_killed_is_never_gone_on_from(tmp_path, monkeypatch, number):
    folder = tmp_path / "w"
    folder.mkdir()
    for name in (*NAMES, MARK):
        (folder / name).write_text(name)
    with monkeypatch.context() as during:
        killed_at_deletion(during, number)
        if number < len(NAMES):
            with pytest.raises(KilledError):
                clear(folder)
        else:
            clear(folder)
    left = sorted(place.name for place in folder.iterdir())
    assert len(left) == (len(NAMES) - number + 1 if number < len(NAMES) else 0)
    with chosen_folder(folder):
        found = sorted(place.name for place in folder.iterdir())
        assert found == (left if number == 0 else [MARK])


def test_answers_left_of_a_release_that_is_there_are_not_those_of_the_next(dpsr, csv, tmp_path, monkeypatch):
    """Killed while the working folder is cleared: other ratings would have had the old answers, without a word."""
    work = ["--work", tmp_path / "w"]
    with monkeypatch.context() as during:
        killed_at_deletion(during, 1)
        with pytest.raises(KilledError):
            dpsr(*on_disk(csv, tmp_path / "r", *work))
    assert (tmp_path / "r" / "manifest.json").exists()
    assert any((tmp_path / "w").glob("answer-*.json"))
    csv.write_text(csv.read_text().replace(",5\n", ",1\n"))
    answered, found = Journal.answered, []
    monkeypatch.setattr(Journal, "answered", lambda *asked: found.append(answered(*asked)) or found[-1])
    outcome = dpsr(*on_disk(csv, tmp_path / "other", *work))
    assert outcome.code == 0, outcome.err
    assert found
    assert all(answer is None for answer in found)
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("number", [0, 1, 5])
def test_raw_ratings_left_beside_a_release_that_is_there_are_deleted_or_named(dpsr, csv, tmp_path, monkeypatch, number):
    """Killed when the release was in its place: the same command found it there, and said nothing of the blocks."""
    work = ["--work", tmp_path / "w"]
    with monkeypatch.context() as during:
        killed_at_deletion(during, number)
        with pytest.raises(KilledError):
            dpsr(*on_disk(csv, tmp_path / "r", *work))
    assert any((tmp_path / "w").glob("level-*"))
    outcome = dpsr(*on_disk(csv, tmp_path / "r", *work))
    said = " ".join(outcome.err.split())
    assert outcome.code == 2
    assert "the folder r exists already" in said
    assert (tmp_path / "w").exists() == (number == 0)
    assert ("holds raw ratings of a run that was killed: give another --out" in said) == (number == 0)
    if number == 0:
        assert dpsr(*on_disk(csv, tmp_path / "other", *work)).code == 0
        assert not (tmp_path / "w").exists()


def test_a_target_that_exists_says_nothing_of_the_folder_of_a_living_run(dpsr, csv, tmp_path):
    assert dpsr("release", csv, *options(tmp_path / "r")).code == 0
    living = at_the_question(tmp_path, "--work", "w")
    try:
        outcome = dpsr(*on_disk(csv, tmp_path / "r", "--work", tmp_path / "w"))
        assert outcome.code == 2
        assert "raw ratings" not in outcome.err
        assert any((tmp_path / "w").glob("level-*"))
    finally:
        living.communicate("n\n")


# -- the fingerprint of what was read


def test_a_fingerprint_changes_with_any_rating_and_with_its_key_and_not_with_the_blocks():
    ratings = realistic(0, n_users=30, n_items=20, n_ratings=300, timestamps=True)
    key, raw = os.urandom(32), RawTable.of(ratings)
    mine = fingerprint(raw, key)
    assert fingerprint(RawTable.of(ratings), key) == mine
    assert not hmac.compare_digest(fingerprint(raw, os.urandom(32)), mine)
    for column in ("levels", "timestamps"):
        other = realistic(0, n_users=30, n_items=20, n_ratings=300, timestamps=True)
        array = other.levels if column == "levels" else other.mask.timestamps
        array.setflags(write=True)
        array[117] = 1 - min(int(array[117]), 1)
        assert fingerprint(RawTable.of(other), key) != mine


def test_an_old_release_that_is_no_folder_of_ours_is_not_replaced(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "manifest.json").write_text("{}")
    (tmp_path / "r" / "sub").mkdir()
    with pytest.raises(ReleaseError, match="'sub' would be deleted"), atomic_folder(tmp_path / "r", overwrite=True):
        raise AssertionError("unreachable")
