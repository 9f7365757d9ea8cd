"""Ten thousand broken files: each is refused in one sentence, or released correctly; none is charged for nothing.

The command's own function is called, with a person at the keyboard who says yes to the first files of every family that
get as far as the question, and no to the others. A few files of every family go through the whole command line.
"""

import builtins
import contextlib
import csv
import hashlib
import io
import json
import random
import shutil

import pytest
import typer
from broken_files import FAMILIES, odd_numbers

from dpsr import Ratings, Scale, load_release
from dpsr.cli.reading import RatingsSource
from dpsr.cli.release import Method, release
from dpsr.errors import DpsrError
from dpsr.privacy.ledger.ledger import Ledger

FILES = 10_000
EACH = -(-FILES // len(FAMILIES))
AGREED, WHOLE = 5, 4


class Curator:
    """Somebody at the keyboard of a machine with a ledger."""

    def __init__(self, folder, patience):
        self.folder, self.patience, self.asked = folder, patience, 0
        self.ledger = Ledger.create(str(folder / "l.db"), "films", "100")

    def open_ledger(self, _):
        """The same real ledger each time: opening it takes longer than refusing a file."""
        return self.ledger

    def answer(self, *_):
        self.asked += 1
        return "y" if self.asked <= self.patience else "n"

    def try_to_release(self, path, *, scale="1:5:1", snap=False, timestamps=True, **options):
        """'refused', 'declined' or 'released', and what was said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                release(
                    RatingsSource(str(path)), scale, 0.5, self.folder / "out", method=Method.paper, snap=snap,
                    ledger=str(self.folder / "l.db"), another_file=True, timestamps=timestamps, **options,
                )  # fmt: skip
            except DpsrError as error:
                if "times were to be kept" not in str(error):
                    return "refused", str(error)
                return self.try_to_release(path, scale=scale, snap=snap, timestamps=False, **options)
            except typer.Exit as stop:
                return {1: "declined"}[stop.exit_code], said.getvalue()
        return "released", said.getvalue()


def plainly_read(path):
    """The table as Python's own csv module reads it, for files whose only oddity is in their numbers."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row and row != ["user", "item", "rating"]]
    return sorted(
        (user, item, round(float(value), 6)) for user, item, value in rows
    )  # a millionth of a step is allowed


def check_release(folder, path, scale, options):
    for name, facts in json.loads((folder / "manifest.json").read_text())["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == facts["sha256"]
    made = load_release(folder)
    assert made.certificate.private
    assert made.certificate.epsilon <= 0.5
    raw = Ratings.read(path, scale=scale, **options)
    assert made.mask.user_ids.equals(raw.mask.user_ids)
    assert made.mask.items.tolist() == raw.mask.items.tolist()
    return sorted(zip(*raw.to_arrow().select(["user", "item", "rating"]).to_pydict().values(), strict=True))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_broken_files_are_refused_in_a_sentence_or_released_correctly(family, tmp_path, monkeypatch):
    rng = random.Random(family.__name__)
    curator = Curator(tmp_path, AGREED)
    monkeypatch.setattr(builtins, "input", curator.answer)
    monkeypatch.setattr(Ledger, "open", curator.open_ledger)
    (tmp_path / "in").mkdir()
    outcomes = {"refused": 0, "declined": 0, "released": 0}
    for _ in range(EACH):
        name, content, *rest = family(rng)
        options = rest[0] if rest else {}
        path = tmp_path / "in" / name
        path.write_bytes(content)
        outcome, said = curator.try_to_release(path, **options)
        outcomes[outcome] += 1
        if outcome == "refused":
            assert said.isprintable(), content
            assert len(said) < 1_000, content
        if outcome == "released":
            scale = Scale.parse(options.pop("scale", "1:5:1"), snap=options.pop("snap", False))
            table = check_release(tmp_path / "out", path, scale, options)
            assert family is not odd_numbers or table == plainly_read(path)
            shutil.rmtree(tmp_path / "out")
        path.unlink()
        assert {entry.name for entry in tmp_path.iterdir()} == {"in", "l.db"}, content
    assert outcomes["refused"] >= EACH // 10, f"{outcomes}: this family breaks nothing"
    assert curator.ledger.budget().charges == curator.ledger.budget().releases == outcomes["released"]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_whole_command_line_says_the_same_without_a_traceback(family, dpsr, tmp_path):
    rng = random.Random(family.__name__)
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "100")
    for number in range(WHOLE):
        name, content, *rest = family(rng)
        (tmp_path / name).write_bytes(content)
        given = {"scale": "1:5:1", **(rest[0] if rest else {})}
        snap = ["--snap"] if given.pop("snap", False) else []
        options = [f"--{key}={value}" for key, value in given.items()]
        outcome = dpsr("release", tmp_path / name, "--epsilon", "0.5", "--out", tmp_path / f"out{number}", "--yes",
                       "--method", "paper", "--ledger", tmp_path / "l.db", "--another-file", *options,
                       *snap)  # fmt: skip
        assert outcome.code in (0, 2)
        assert "Traceback" not in outcome.err
        assert (tmp_path / f"out{number}").exists() == (outcome.code == 0)
        assert outcome.code == 0 or (outcome.err.startswith("error: ") and outcome.err.count("\n") == 1), content
    assert ledger.budget().charges == len(list(tmp_path.glob("out*")))
