"""A killed run goes on with the answers it gave, draws no symbol twice, and never writes its key."""

import json
import os
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from forked import Forked, run

from dpsr import DPSR, load_release
from dpsr.data import realistic
from dpsr.data.ingest import ingest
from dpsr.engine import BlockResult
from dpsr.engine.incidence import Division, RowSums, Turns
from dpsr.errors import PrivacyError
from dpsr.pipeline.value import RELEASED
from dpsr.privacy.channels import randomised_response
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault
from dpsr.privacy.vault.journal import Journal

KILLS = 4


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    table = realistic(0, n_users=150, n_items=80, n_ratings=5_000).to_arrow().to_pydict()
    path = tmp_path_factory.mktemp("journal") / "r.csv"
    rows = [f"{u},{i},{r}" for u, i, r in zip(*(table[name] for name in ("user", "item", "rating")), strict=True)]
    path.write_text("\n".join(["user,item,rating", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def scale(csv):
    return realistic(0, n_users=150, n_items=80, n_ratings=5_000).scale


def command(csv, scale, folder, epsilon="2"):
    return [
        sys.executable, "-m", "dpsr", "release", str(csv), "--scale", str(scale), "--epsilon", epsilon,
        "--engine", "disk", "--memory", "600MB", "--work", str(folder / "work"), "--out", str(folder / "out"), "--yes",
    ]  # fmt: skip


def kept(work):
    """What was answered: noisy statistics and symbols."""
    return {path.name: path.read_bytes() for kind in ("answer-*.json", "symbol-*.parquet") for path in work.glob(kind)}


def wait_for(process, work, found, seconds):
    """Until the folder holds what is waited for, and a little longer."""
    while process.poll() is None and not found(work):
        time.sleep(0.005)
    time.sleep(seconds)


def test_a_run_that_is_killed_again_and_again_ends_with_the_answers_it_gave(csv, scale, tmp_path):
    rng, work, out = random.Random(0), tmp_path / "work", tmp_path / "out"
    waits = [
        lambda work: any(work.glob("items-*")),
        lambda work: (work / "answer-000.json").exists(),
        lambda work: (work / "answer-001.json").exists(),
        lambda work: any(work.glob("symbol-*")),
    ]
    before, killed = {}, 0
    for number in range(KILLS):
        process = Forked(command(csv, scale, tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(process, work, waits[number], rng.random() * 0.02)
        process.kill()
        _, said = process.communicate()
        if out.exists():  # on a busy machine the kill may come too late
            if killed:
                break
            shutil.rmtree(out)
            continue
        assert process.returncode == -9, said
        killed += 1
        found = kept(work)
        assert {name: found.get(name) for name in before} == before, "an answer changed or vanished"
        before = found
    assert killed
    assert process.returncode != 0 or not work.exists()
    if not out.exists():
        done = run(command(csv, scale, tmp_path))
        assert done.returncode == 0, done.stderr
        assert not work.exists()
    receipts = [json.loads(content)["part"] for name, content in sorted(before.items()) if name.endswith("json")]
    parts = json.loads((out / "certificate.json").read_text())["parts"]
    assert [part["epsilon"] for part in parts][: len(receipts)] == [receipt["epsilon"] for receipt in receipts]
    assert load_release(out).certificate.epsilon <= 2


def asked(raw, folder, noise, claim=None):
    vault = Vault(raw, 1.0, noise=noise, journal=Journal(folder, claim or {"run": 1}))
    counts = vault.histogram(np.arange(raw.scale.n_levels), epsilon=0.3)
    sums = vault.divided_sums(3.0, 1.0, division=Division.uniform(vault.census.shape, 128), epsilon=0.4)
    return vault, [counts.values, *(one.values for one in sums)]


@pytest.fixture
def raw(csv, scale, tmp_path):
    (tmp_path / "work").mkdir()
    return ingest(csv, tmp_path / "work", scale=scale, block_size=lambda census: 1_000)


def test_answers_are_given_once_whatever_the_key(raw, tmp_path):
    first, answers = asked(raw, tmp_path / "work", NoiseSource.system())
    second, again = asked(raw, tmp_path / "work", NoiseSource.system())
    for one, other in zip(answers, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert first.certificate().parts == second.certificate().parts
    (tmp_path / "elsewhere").mkdir()
    _, fresh = asked(raw, tmp_path / "elsewhere", NoiseSource.system())
    assert any((one != other).any() for one, other in zip(answers, fresh, strict=True))


def test_sums_of_a_turn_that_was_had_are_not_drawn_again(raw, tmp_path):
    """A run that is killed between turns of sums has the first turn's answer as it was, and draws the second."""
    half = RowSums(np.arange(raw.table.census.n_items) % 2 == 0, np.arange(raw.table.census.n_users) % 2 == 0)
    turns = half, RowSums(~half.items, ~half.users)

    def ask(number):
        vault = Vault(raw, 1.0, noise=NoiseSource.system(), journal=Journal(tmp_path / "work", {"run": 1}))
        division = Division.uniform(vault.census.shape, 128)
        return [
            vault.divided_sums(3.0, 1.0, division=division, epsilon=0.4, rows=turns[n])[0].values for n in range(number)
        ]

    (killed,), whole, again = ask(1), ask(2), ask(2)
    np.testing.assert_array_equal(killed, whole[0])
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_sums_than_those_that_were_answered_are_refused(raw, tmp_path):
    """A part does not say which sums a turn asked, nor of whom: another version, or another processor, might differ in
    that alone. What the folder has would pass for others, and its own would be asked again."""
    census = raw.table.census
    even = RowSums(np.arange(census.n_items) % 2 == 0, np.arange(census.n_users) % 2 == 0)
    division, alike = (Division.uniform(census.shape, 128, asked=100, light=40) for _ in range(2))
    others = Division.uniform(census.shape, 128, asked=101, light=40)

    def ask(rows, division):
        vault = Vault(raw, 1.0, noise=NoiseSource.system(), journal=Journal(tmp_path / "work", {"run": 1}))
        return vault.divided_sums(3.0, 1.0, division=division, epsilon=0.4, rows=rows)[0].values

    first = ask(even, division)
    for rows, whom in ((RowSums(~even.items, even.users), division), (RowSums.all(census), division), (even, others)):
        with pytest.raises(PrivacyError, match="the answer to another question"):
            ask(rows, whom)
    np.testing.assert_array_equal(ask(even, alike), first)


def test_other_shares_of_turns_than_those_that_were_drawn_are_refused(raw, tmp_path):
    """A rating of an earlier turn could be in a later one then, and be asked again."""

    def choose(block):
        return BlockResult({"choice": np.zeros(len(block.items), np.uint8)})

    def ask(*shares):
        vault = Vault(raw, 1.0, noise=NoiseSource.system(), journal=Journal(tmp_path / "work", {"run": 1}))
        vault.table.run(choose, writes=["choice"])
        vault.symbols({0: randomised_response(raw.scale, 0.5)}, choice="choice", symbol="turn_a", turns=Turns(shares))

    ask(100, 156)
    ask(100, 156)
    with pytest.raises(PrivacyError, match="the answer to another question"):
        ask(99, 157)


def test_the_key_is_in_no_file_of_the_working_folder(raw, tmp_path, monkeypatch):
    noise = NoiseSource.system()
    monkeypatch.setattr(NoiseSource, "system", lambda: noise)
    DPSR(2.0).fit_table(raw, Journal(tmp_path / "work", {"run": 1}))
    files = [path.read_bytes() for path in (tmp_path / "work").iterdir()]
    assert any(path.name.startswith("symbol-") for path in (tmp_path / "work").iterdir())
    for spelling in (noise._key, noise._key.hex().encode(), noise._key[:8], noise._key[-8:]):
        assert not any(spelling in content for content in files)


def test_symbols_that_were_drawn_stay_and_only_lost_ones_are_drawn(raw, tmp_path):
    work = tmp_path / "work"
    DPSR(2.0).fit_table(raw, Journal(work, {"run": 1}))
    before = kept(work)
    lost = sorted(name for name in before if name.startswith("symbol"))[3]
    (work / lost).unlink()
    DPSR(2.0).fit_table(raw, Journal(work, {"run": 1}))
    after = kept(work)
    assert {name for name in before if before[name] != after[name]} == {lost}


class KilledError(Exception):
    """As if the process had ended here."""


def test_a_run_that_is_killed_between_two_turns_of_sums_ends_as_one_that_was_not(raw, tmp_path, monkeypatch):
    """Under a seed, whose streams for what had been answered are passed over; nothing else is drawn again."""
    folders = whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in folders:
        folder.mkdir()
    parts, values = sums_of_a_release(raw, Journal(whole, {"run": 1}))
    with monkeypatch.context() as during:
        during.setattr(Journal, "keep", ended_at(Journal.keep, 3))
        with pytest.raises(KilledError):
            sums_of_a_release(raw, Journal(killed, {"run": 1}))
    before, noise = kept(killed), NoiseSource.seeded(0)
    assert sorted(before) == ["answer-000.json", "answer-001.json"]
    for _ in before:
        noise.stream()
    monkeypatch.setattr(DPSR, "_noise", lambda _: noise)
    again, found = sums_of_a_release(raw, Journal(killed, {"run": 1}))
    assert again == parts
    assert len(parts[1].steps) > 1
    np.testing.assert_array_equal(found, values)
    assert kept(killed) == kept(whole)
    assert kept(killed).items() > before.items()
    assert noise._asked == 3


def sums_of_a_release(raw, journal):
    """What a release on so much that sums are all it asks states of its questions, and its ratings."""
    made = DPSR(1.5, random_state=0).fit_table(raw, journal)
    return made.certificate.parts, np.concatenate([block.columns[RELEASED] for block in made.table.scan([RELEASED])])


def ended_at(real, number):
    """The same method, until the process ends when it is called for that time."""
    calls = []

    def ending(*asked, **named):
        calls.append(asked)
        if len(calls) == number:
            raise KilledError
        return real(*asked, **named)

    return ending


@pytest.mark.parametrize("turn", ["turn_a", "turn_b", "turn_c"])
def test_a_run_that_is_killed_in_any_turn_goes_on_and_asks_no_rating_twice(raw, tmp_path, monkeypatch, turn):
    """Turns are for larger sets; here because so many are many. Killed while the third block of a turn is drawn."""
    monkeypatch.setattr("dpsr.value.allocation._ENOUGH", 1_000)
    work, write, number = tmp_path / "work", type(raw.table).write, [0]

    def killed(table, name, *rest):
        number[0] += name == turn
        if number[0] == 3:
            raise KilledError
        write(table, name, *rest)

    monkeypatch.setattr(type(raw.table), "write", killed)
    with pytest.raises(KilledError):
        DPSR(2.0).fit_table(raw, Journal(work, {"run": 1}))
    monkeypatch.setattr(type(raw.table), "write", write)
    before = in_turns(work)
    assert sum(name.startswith(turn) for name in before) == 2
    done = DPSR(2.0).fit_table(raw, Journal(work, {"run": 1}))
    after = in_turns(work)
    assert {name: after[name] for name in before} == before, "an answer changed or vanished"
    assert len({name.partition("-")[0] for name in after if name.startswith("turn_")}) == 3
    assert done.certificate.epsilon <= 2


def in_turns(work):
    """What was answered, turn by turn; the column of symbols is made from it."""
    return {path.name: path.read_bytes() for kind in ("answer-*.json", "turn_*.parquet") for path in work.glob(kind)}


def test_the_folder_of_another_run_is_refused(raw, tmp_path):
    asked(raw, tmp_path / "work", NoiseSource.system())
    before = kept(tmp_path / "work")
    with pytest.raises(PrivacyError, match=r"belongs to another run.*Nothing was drawn.*empty folder"):
        asked(raw, tmp_path / "work", NoiseSource.system(), {"run": 2})
    assert kept(tmp_path / "work") == before


def test_the_id_of_a_charge_is_on_disk_under_its_name_before_the_ledger_is_asked(tmp_path, monkeypatch):
    """The file was forced to disk and its name was not: a power cut took it, and the charge was paid for nothing."""
    journal, force, names = Journal(tmp_path, {"run": 1}), os.fsync, []

    def forced(handle):
        if os.path.samestat(os.fstat(handle), tmp_path.stat()):
            names.append({place.name for place in tmp_path.iterdir()})
        force(handle)

    monkeypatch.setattr(os, "fsync", forced)
    journal.note_charge("0" * 32)
    assert names == [{"run.json", "charge.json"}]


def test_a_question_that_was_not_the_one_answered_is_refused(raw, tmp_path):
    asked(raw, tmp_path / "work", NoiseSource.system())
    vault = Vault(raw, 1.0, noise=NoiseSource.system(), journal=Journal(tmp_path / "work", {"run": 1}))
    with pytest.raises(PrivacyError, match="the answer to another question"):
        vault.histogram(np.arange(raw.scale.n_levels), epsilon=0.31)


def stopped(csv, scale, folder):
    """A run killed after its first answer; where the kill came too late, another one."""
    while True:
        process = Forked(command(csv, scale, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(process, folder / "work", lambda work: (work / "answer-000.json").exists(), 0)
        process.kill()
        code = process.wait()
        if not (folder / "out").exists():
            assert code == -9
            return kept(folder / "work")
        shutil.rmtree(folder / "out")


def refused(words, folder, before):
    done = run(words)
    assert done.returncode == 2
    assert "belongs to another run" in " ".join(done.stderr.split())
    assert kept(folder / "work") == before
    assert not (folder / "out").exists()


def test_a_changed_command_is_refused_and_the_answers_stay_and_more_memory_is_no_change(csv, scale, tmp_path):
    mine = tmp_path / "r.csv"
    mine.write_text(csv.read_text())
    before = stopped(mine, scale, tmp_path)
    refused(command(mine, scale, tmp_path, epsilon="3"), tmp_path, before)
    facts, text = mine.stat(), mine.read_text()
    head, _, last = text.rstrip("\n").rpartition(",")
    mine.write_text(f"{head},{'1' if float(last) == 5 else '5'}{last[1:]}\n")  # one value, as many bytes, as old
    os.utime(mine, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (mine.stat().st_size, mine.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    refused(command(mine, scale, tmp_path), tmp_path, before)
    mine.write_text(text)
    again = command(mine, scale, tmp_path)  # memory cuts other blocks once there are enough ratings; here the same ones
    done = run([*again[:-1], "--memory", "900MB", "--yes"])
    assert done.returncode == 0, done.stderr
