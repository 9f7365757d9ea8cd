"""A disk that is full, fills up, or may not be written to: nothing half-written, and no charge for nothing."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import forked
import numpy as np
import pytest
from small_ratings import options, write_csv

from dpsr import DPSR, Ratings, Scale
from dpsr.engine.work_folder import sync
from dpsr.errors import ReleaseError
from dpsr.pipeline.account import Account
from dpsr.pipeline.estimator import listening
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release.atomic import atomic_folder, check_target, clear_leftovers


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    cells = rng.choice(40, 30, replace=False)
    return Ratings.from_arrays(cells // 5, cells % 5, rng.integers(1, 6, 30), scale=Scale(1, 5))


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of a few megabytes."""
    mounted = []

    def mount(megabytes):
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a file system; a limit on file sizes is tested in its place")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_too_small_is_refused_before_the_charge(dpsr, tmp_path, small_disk):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")
    disk = small_disk(1)
    csv = write_csv(tmp_path / "ratings.csv")
    outcome = dpsr("release", csv, *options(disk / "r"), "--ledger", tmp_path / "l.db")
    assert outcome.code == 2
    assert "there are 1.0 MB free" in outcome.err
    assert ledger.budget().charges == 0
    assert not list(disk.iterdir())


def test_a_disk_that_fills_up_meanwhile_leaves_nothing_and_the_charge_stays(ratings, tmp_path, small_disk):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")
    disk = small_disk(8)

    def fill(stage):
        if stage == "Writing the folder":
            with open(disk / "other people's film", "wb") as film, pytest.raises(OSError):  # noqa: PT012
                while True:
                    film.write(bytes(4096))
                    film.flush()

    account = Account.open(str(tmp_path / "l.db"), None, 0.1)
    with listening(fill), pytest.raises(ReleaseError, match=r"No space left.*was charged.*stays spent"):
        publish(ratings, DPSR(0.1), disk / "r", account=account)
    assert [entry.name for entry in disk.iterdir()] == ["other people's film"]
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 0)


LIMITED = """
import resource, sys
import forked
import numpy as np
from dpsr import DPSR, Ratings, Scale
from dpsr.engine.work_folder import sync
from dpsr.errors import ReleaseError
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.pipeline.estimator import listening
from pathlib import Path

def limit(stage):
    if stage == "Writing the folder":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))

cells = np.arange(30)
ratings = Ratings.from_arrays(cells // 5, cells % 5, 1 + cells % 5, scale=Scale(1, 5))
account = Account.open(sys.argv[1] + "/l.db", None, 0.1)
try:
    with listening(limit):
        publish(ratings, DPSR(0.1), Path(sys.argv[1]) / "sub" / "r", account=account)
except ReleaseError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("size", [100, 1500])
def test_a_write_that_is_cut_short_leaves_nothing_and_the_charge_stays(tmp_path, size):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")
    run = forked.run([sys.executable, "-c", LIMITED, tmp_path, str(size)])
    assert run.returncode == 1, run.stderr
    assert "File too large" in run.stderr
    assert "stays spent" in run.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["l.db"]
    assert ledger.budget().charges == 1


def test_a_folder_without_permission_is_refused_before_anything_is_read():
    """As somebody who is not root: root may write everywhere."""
    locked = Path(tempfile.mkdtemp())
    me = os.geteuid()
    try:
        locked.chmod(0o555)
        os.seteuid(65534 if me == 0 else me)
        with pytest.raises(ReleaseError, match="nothing may be written in"):
            check_target(locked / "r")
    finally:
        os.seteuid(me)
        locked.rmdir()


def test_a_release_that_is_in_its_place_is_not_called_unwritten(ratings, tmp_path, monkeypatch):
    """A network disk that cannot force the folder above to disk: the release was there, paid for, and denied."""
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")

    def stubborn(entry):
        if entry == tmp_path:
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(entry)

    monkeypatch.setattr("dpsr.release.atomic.sync", stubborn)
    done = publish(ratings, DPSR(0.1), tmp_path / "r", account=Account.open(str(tmp_path / "l.db"), None, 0.1))
    assert done.folder == tmp_path / "r"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r"]
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 1)


# -- how a folder comes into its place


def fill(draft, word):
    draft.mkdir()
    (draft / "manifest.json").write_text(word)


def leftover(target, number="0" * 12):
    root = target.parent / f".{target.name}.{number}.partial"
    root.mkdir()
    return root


def test_the_draft_of_a_killed_run_is_removed_and_that_of_a_living_one_stays(tmp_path):
    target = tmp_path / "r"
    dead = leftover(target)
    (dead / "r").mkdir()
    others = [tmp_path / ".r.old.partial", tmp_path / ".rr.000000000000.partial", tmp_path / ".r.000000000000.txt"]
    for other in others:
        other.mkdir()
    (tmp_path / ".r.111111111111.partial").symlink_to(tmp_path / ".r.old.partial")
    with atomic_folder(target) as draft:
        living = draft.parent
        clear_leftovers(target)
        assert living.exists()
        fill(draft, "new")
    assert not dead.exists()
    assert all(other.exists() for other in others)
    assert (target / "manifest.json").read_text() == "new"


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_another_run_is_writing_is_refused_before_the_charge(ratings, tmp_path, overwrite):
    """Two equal commands at once were both charged, and one of them came too late for its place."""
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")
    account = Account.open(str(tmp_path / "l.db"), None, 0.1)
    with atomic_folder(tmp_path / "r") as draft:
        with pytest.raises(ReleaseError, match=r"another run is writing the release r\. Wait until it ends"):
            publish(ratings, DPSR(0.1), tmp_path / "r", account=account, overwrite=overwrite)
        fill(draft, "first")
    assert ledger.budget().charges == 0
    assert (tmp_path / "r" / "manifest.json").read_text() == "first"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r"]


def test_a_place_that_was_taken_a_moment_ago_is_refused_before_the_charge(ratings, tmp_path, monkeypatch):
    """The other run ended after this one had looked at the place, and before it looked for others at work."""
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")
    account = Account.open(str(tmp_path / "l.db"), None, 0.1)

    def ended(path, mine):
        fill(path, "first")

    monkeypatch.setattr("dpsr.release.atomic._refuse_second", ended)
    with pytest.raises(ReleaseError, match="the folder r exists already"):
        publish(ratings, DPSR(0.1), tmp_path / "r", account=account)
    assert ledger.budget().charges == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "r"]


@pytest.mark.parametrize("inside", [[], ["r"]])
def test_the_draft_of_a_run_killed_at_its_very_end_is_removed_by_the_same_command(dpsr, tmp_path, inside):
    """The release is in its place, or has changed places with the old one; the command is refused, and tidies up."""
    csv = write_csv(tmp_path / "ratings.csv")
    assert dpsr("release", csv, *options(tmp_path / "r")).code == 0
    root = leftover(tmp_path / "r")
    for name in inside:
        fill(root / name, "old")
    blocks = tmp_path / ".r.000000000000.work"  # raw ones, if it was killed before they were deleted
    blocks.mkdir()
    for name in ("dpsr-work", "level-00000.block.parquet"):
        (blocks / name).write_bytes(b"made by dpsr, which removes it\n")
    assert dpsr("release", csv, *options(tmp_path / "r")).code == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r", "ratings.csv"]


def test_a_release_that_a_killed_run_had_moved_aside_is_put_back(tmp_path):
    target = tmp_path / "r"
    root = leftover(target)
    fill(root / "replaced", "old")
    fill(root / "r", "new")
    with pytest.raises(ReleaseError, match="exists already"), atomic_folder(target):
        raise AssertionError("unreachable")
    assert (target / "manifest.json").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("exchange", [True, False])
def test_replacing_a_release_leaves_the_new_one_and_nothing_else(tmp_path, monkeypatch, exchange):
    """On systems that cannot exchange two folders, the old one steps aside."""
    if not exchange:
        monkeypatch.setattr("dpsr.release.atomic._exchange", lambda *_: False)
    for word in ("old", "new"):
        with atomic_folder(tmp_path / "r", overwrite=True) as draft:
            fill(draft, word)
    assert (tmp_path / "r" / "manifest.json").read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_names_that_are_patterns_mean_themselves(tmp_path):
    innocent = leftover(tmp_path / "rx")
    with atomic_folder(tmp_path / "r*") as draft:
        fill(draft, "new")
    assert innocent.exists()
