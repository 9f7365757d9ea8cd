"""`dpsr keys`, `dpsr release --sign` and `dpsr verify --signer`: from a key to a folder somebody vouches for."""

import json
import os
import pty
import sys

import pytest
from small_ratings import options, write_csv

from dpsr.certify.signature import read_public_key


@pytest.fixture
def keys(dpsr, tmp_path):
    for name in ("officer", "stranger"):
        assert dpsr("keys", "new", "--out", tmp_path / name, "--no-passphrase").code == 0
    return tmp_path


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "ratings.csv")


def test_a_new_key_is_said_with_its_fingerprint(dpsr, tmp_path):
    outcome = dpsr("keys", "new", "--out", tmp_path / "officer", "--no-passphrase")
    assert outcome.code == 0, outcome.err
    assert read_public_key(tmp_path / "officer.pub").fingerprint in outcome.out
    record = json.loads(dpsr("keys", "new", "--out", tmp_path / "other", "--no-passphrase", "--json").out)
    assert record["fingerprint"] == read_public_key(tmp_path / "other.pub").fingerprint


def test_a_key_that_exists_is_never_overwritten(dpsr, keys):
    before = (keys / "officer").read_bytes()
    outcome = dpsr("keys", "new", "--out", keys / "officer", "--no-passphrase")
    assert outcome.code == 2
    assert "exists already" in outcome.err
    assert (keys / "officer").read_bytes() == before


def test_a_release_is_signed_as_it_is_made_and_verified_by_the_public_key(dpsr, keys, csv):
    made = dpsr("release", csv, *options(keys / "r"), "--sign", keys / "officer")
    assert made.code == 0, made.err
    outcome = dpsr("verify", keys / "r", "--signer", keys / "officer.pub")
    assert outcome.code == 0, outcome.out
    assert f"holds  signed by the key {read_public_key(keys / 'officer.pub').fingerprint}" in outcome.out
    assert "the very folder that that key signed" in outcome.out
    refused = dpsr("verify", keys / "r", "--signer", keys / "stranger.pub")
    assert refused.code == 1
    assert "FAILS  there is no signature by the key" in refused.out
    plain = dpsr("verify", keys / "r")
    assert plain.code == 0
    assert "note   a signature by the key" in plain.out


def test_an_officer_signs_after_looking(dpsr, keys, csv):
    assert dpsr("release", csv, *options(keys / "r")).code == 0
    assert dpsr("verify", keys / "r", "--signer", keys / "officer.pub").code == 1
    outcome = dpsr("keys", "sign", keys / "r", "--key", keys / "officer", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(dpsr("verify", keys / "r", "--signer", keys / "officer.pub", "--json").out)
    assert record["accepted"]
    assert json.loads(outcome.out) == {"manifest_sha256": record["manifest_sha256"], "signer": record["signers"][0]}
    assert "Signed by the key" in dpsr("keys", "sign", keys / "r", "--key", keys / "officer").out


def test_the_release_and_verify_print_the_same_digest_of_the_manifest(dpsr, keys, csv):
    record = json.loads(dpsr("release", csv, *options(keys / "r"), "--json").out)
    assert record["manifest"] == json.loads(dpsr("verify", keys / "r", "--json").out)["manifest_sha256"]
    assert f"SHA-256 of the manifest: {record['manifest']}" in dpsr("verify", keys / "r").out
    words = " ".join(dpsr("release", csv, *options(keys / "again")).out.split())
    assert "SHA-256 of its manifest, which stands for the whole folder: " in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "r", "--signer", "nowhere.pub"], "is missing"),
        (["verify", "r", "--signer", "officer"], "not a public key"),
        (["keys", "sign", "r", "--key", "officer.pub"], "is the public half of a key"),
        (["keys", "sign", "nowhere", "--key", "officer"], "not a readable release folder"),
        (["keys", "new", "--out", "third"], "nobody can be asked here"),
    ],
)
def test_refusals_are_one_sentence(dpsr, keys, csv, monkeypatch, arguments, words):
    monkeypatch.chdir(keys)
    assert dpsr("release", csv, *options(keys / "r")).code == 0
    outcome = dpsr(*arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_key_that_cannot_be_used_is_refused_before_anything_is_charged(dpsr, keys, csv):
    assert dpsr("ledger", "init", "--ledger", keys / "l.db", "--dataset", "films", "--epsilon", "1").code == 0
    for key in ("nowhere", "officer.pub"):
        outcome = dpsr("release", csv, *options(keys / "r"), "--ledger", keys / "l.db", "--sign", keys / key)
        assert outcome.code == 2
    refused = dpsr("release", csv, *options(keys / "r"), "--method", "as-published", "--sign", keys / "officer")
    assert refused.code == 2
    assert "nobody signs" in refused.err
    assert json.loads(dpsr("ledger", "show", "--ledger", keys / "l.db", "--json").out)[0]["charges"] == 0
    assert not (keys / "r").exists()


def test_scripts_leave_the_passphrase_in_the_environment(dpsr, csv, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSR_KEY_PASSPHRASE", "correct horse")
    assert dpsr("keys", "new", "--out", tmp_path / "k").code == 0
    assert b"ENCRYPTED" in (tmp_path / "k").read_bytes()
    assert dpsr("release", csv, *options(tmp_path / "r"), "--sign", tmp_path / "k").code == 0
    assert dpsr("verify", tmp_path / "r", "--signer", tmp_path / "k.pub").code == 0
    monkeypatch.setenv("DPSR_KEY_PASSPHRASE", "battery staple")
    assert "does not open" in dpsr("keys", "sign", tmp_path / "r", "--key", tmp_path / "k").err
    monkeypatch.delenv("DPSR_KEY_PASSPHRASE")
    assert "DPSR_KEY_PASSPHRASE" in dpsr("keys", "sign", tmp_path / "r", "--key", tmp_path / "k").err


def typed(arguments, answers):
    """Run the command on a terminal of its own, and type; what the terminal showed and the exit code."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.pop("DPSR_KEY_PASSPHRASE", None)
        os.execv(sys.executable, [sys.executable, "-m", "dpsr", *map(str, arguments)])
    shown = b""
    try:
        for question, answer in answers:
            while question not in shown.rpartition(b"\r\n")[2]:
                shown += os.read(terminal, 1024)
            os.write(terminal, answer + b"\n")
        while piece := os.read(terminal, 1024):
            shown += piece
    except OSError:  # how a terminal ends when its process does
        pass
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_people_are_asked_for_a_passphrase_twice_and_it_is_not_shown(tmp_path):
    ask, again = b"A passphrase for the new key: ", b"The same again: "
    shown, code = typed(["keys", "new", "--out", tmp_path / "k"], [(ask, b"tr0ub4dor"), (again, b"tr0ub4dor")])
    assert code == 0, shown
    assert "tr0ub4dor" not in shown
    assert b"ENCRYPTED" in (tmp_path / "k").read_bytes()
    shown, code = typed(["keys", "new", "--out", tmp_path / "l"], [(ask, b"one"), (again, b"two")])
    assert code == 2
    assert "differ" in shown
    assert not (tmp_path / "l").exists()
