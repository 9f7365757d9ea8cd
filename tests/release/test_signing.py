"""Signed folders: what a signature binds, what is missed when it is gone, and what nobody signs."""

import errno
import json
import os
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from folders import charged, copied, resealed, rewrite

from dpsr import DPSR
from dpsr.certify.folder import Manifest, write_manifest
from dpsr.certify.signature import signatures_to_bytes
from dpsr.data import realistic
from dpsr.errors import PrivacyError, ReleaseError, SignatureError
from dpsr.pipeline.publish import publish
from dpsr.pipeline.signing import sign_release
from dpsr.release import load_release, verify
from dpsr.release.folder.examination import examine
from dpsr.release.keys import PassphraseNeededError, new_key, read_key


@pytest.fixture(scope="module")
def ratings():
    return realistic(3, n_users=40, n_items=30, n_ratings=500)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    root = tmp_path_factory.mktemp("keys")
    for name in ("officer", "curator", "stranger"):
        new_key(root / name, None)
    return {name: read_key(root / name) for name in ("officer", "curator", "stranger")}


@pytest.fixture(scope="module")
def signed(ratings, keys, tmp_path_factory):
    return publish(ratings, DPSR(1.0), tmp_path_factory.mktemp("signed") / "r", signer=keys["curator"]).folder


@pytest.fixture
def folder(signed, tmp_path):
    return copied(signed, tmp_path / "r")


def test_a_release_that_was_signed_when_it_was_made_verifies_for_that_key_alone(signed, keys):
    found = verify(signed, signer=keys["curator"].public)
    assert found.private
    assert f"signed by the key {keys['curator'].public.fingerprint}" in found.holds
    assert "--signer" not in found.limit
    stranger = verify(signed, signer=keys["stranger"].public)
    assert stranger.fails == (f"there is no signature by the key {keys['stranger'].public.fingerprint}",)


def test_without_a_key_a_signature_is_reported_and_not_trusted(signed, keys):
    found, print_ = verify(signed), keys["curator"].public.fingerprint
    assert found.signers == (print_,)
    assert any(print_ in words and "nobody said here whose key" in words for words in found.notes)
    assert not any(print_ in words for words in found.holds)
    assert "--signer" in found.limit


def test_the_signature_is_the_one_file_that_the_manifest_does_not_name(signed, keys):
    names = {file.name for file in signed.iterdir()}
    manifest = Manifest.from_bytes((signed / "manifest.json").read_bytes())
    assert names - set(manifest.files) == {"manifest.json", "signature.json"}
    assert manifest.signer == keys["curator"].public.fingerprint
    assert manifest.signer in (signed / "card.html").read_text("utf-8")


def test_an_officer_adds_a_signature_to_a_finished_folder(folder, keys):
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "signature.json"}
    sign_release(folder, keys["officer"])
    found = verify(folder, signer=keys["officer"].public)
    assert found.private
    assert found.signers == tuple(keys[name].public.fingerprint for name in ("curator", "officer"))
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "signature.json"} == before
    once = (folder / "signature.json").read_bytes()
    sign_release(folder, keys["officer"])
    assert (folder / "signature.json").read_bytes() == once, "a second time changes nothing"


def test_a_signature_that_was_promised_and_is_gone_is_missed(folder, keys):
    (folder / "signature.json").unlink()
    assert verify(folder).fails == (
        f"it was to be signed by the key {keys['curator'].public.fingerprint}, and there is no signature by that key",
    )
    with pytest.raises(ReleaseError, match="was to be signed"):
        load_release(folder)


def test_a_signature_by_somebody_else_does_not_stand_for_the_one_that_was_promised(folder, keys):
    digest = verify(folder).manifest_sha256
    (folder / "signature.json").write_bytes(signatures_to_bytes([keys["stranger"].sign(digest)]))
    assert any("was to be signed" in words for words in verify(folder).fails)


def test_changed_tables_in_a_resealed_folder_do_not_pass_for_signed(folder, keys):
    rewrite(folder, "model.json", lambda record: record.update(overall=1.5))
    found = verify(folder, signer=keys["curator"].public)
    assert any("is no signature of this manifest.json" in words for words in found.fails)
    assert any("no signature by the key" in words for words in found.fails)


def test_a_signature_of_one_folder_does_not_sign_another(folder, ratings, keys, tmp_path):
    other = DPSR(1.0).fit(ratings).save(tmp_path / "other")
    (other / "signature.json").write_bytes((folder / "signature.json").read_bytes())
    assert not verify(other).intact


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff\xfe", b"[" * 60_000, b" " * 70_000])
def test_a_file_of_signatures_that_is_nonsense_is_a_finding(folder, text):
    (folder / "signature.json").write_bytes(text)
    assert any("signature.json" in words for words in verify(folder).fails)


def test_a_file_of_signatures_that_is_no_plain_file_is_a_finding(folder):
    (folder / "signature.json").unlink()
    os.mkfifo(folder / "signature.json")
    assert any("signature.json is not a plain file" in words for words in verify(folder).fails)


def test_nobody_signs_what_does_not_hold_or_is_not_private(folder, ratings, keys, tmp_path):
    (folder / "card.html").write_text("changed")
    with pytest.raises(ReleaseError, match=r"card\.html"):
        sign_release(folder, keys["officer"])
    seeded = DPSR(1.0, random_state=0).fit(ratings).save(tmp_path / "seeded")
    with pytest.raises(SignatureError, match="NOT PRIVATE"):
        sign_release(seeded, keys["officer"])
    assert not (seeded / "signature.json").exists()
    for estimator in (DPSR(1.0, random_state=0), DPSR.paper(1.0, as_published=True)):
        with pytest.raises(PrivacyError, match="nobody signs"):
            publish(ratings, estimator, tmp_path / "never", signer=keys["officer"])
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("software", [None, "dpsr 0.0.9"])
def test_a_card_that_is_not_the_tables_is_not_signed_whatever_version_is_said_to_have_drawn_it(
    ratings, keys, tmp_path, software
):
    folder = publish(ratings, DPSR(1.0), tmp_path / "r").folder
    page = (folder / "card.html").read_text("utf-8")
    (folder / "card.html").write_text(page.replace("PRIVATE", "VERY PRIVATE", 1), "utf-8")
    rewrite(folder, "certificate.json", lambda record: record.update(software=software or record["software"]))
    with pytest.raises(ReleaseError, match=r"card\.html is not the page that the tables give"):
        sign_release(folder, keys["officer"])
    assert not (folder / "signature.json").exists()


def test_a_charged_release_is_signed_and_recorded_at_once(ratings, keys, tmp_path):
    folder = charged(tmp_path, ratings, signer=keys["curator"])
    assert verify(folder, signer=keys["curator"].public).private
    assert examine(folder).certificate.charge is not None


def test_two_who_sign_at_once_both_end_up_in_the_folder(folder, keys):
    names = ("officer", "stranger")
    threads = [threading.Thread(target=sign_release, args=(folder, keys[name])) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(verify(folder).signers) == {key.public.fingerprint for key in keys.values()}
    assert not (folder / ".signature.json.partial").exists()


def test_what_an_interrupted_signature_left_is_cleared_by_the_next(folder, keys):
    (folder / ".signature.json.partial").write_text("half")
    assert not verify(folder).intact
    sign_release(folder, keys["officer"])
    assert verify(folder).intact


def test_a_folder_in_place_of_what_an_interruption_left_is_a_sentence(folder, keys):
    (folder / ".signature.json.partial").mkdir()
    with pytest.raises(ReleaseError, match="partial is not named in manifest"):
        sign_release(folder, keys["officer"])


def test_a_resealed_manifest_without_its_signer_is_no_longer_what_was_signed(folder, keys):
    """Stripping the promise as well as the signature leaves an unsigned folder: whoever asks for the key is told."""
    (folder / "signature.json").unlink()
    write_manifest(folder)
    assert resealed(folder).intact
    assert not verify(folder, signer=keys["curator"].public).intact


# -- keys on disk


def test_a_key_is_its_owners_alone_and_its_public_half_is_for_everybody(tmp_path):
    made = new_key(tmp_path / "k", "correct horse")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in (tmp_path / "k").read_bytes()
    assert b"BEGIN PUBLIC KEY" in (tmp_path / "k.pub").read_bytes()
    assert read_key(tmp_path / "k", "correct horse").public == made
    assert made.fingerprint in repr(read_key(tmp_path / "k", "correct horse"))


def test_a_key_is_readable_by_its_owner_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        new_key(tmp_path / "k", None)
    finally:
        os.umask(before)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600


def test_a_passphrase_is_needed_and_must_be_right(tmp_path):
    new_key(tmp_path / "k", "correct horse")
    with pytest.raises(PassphraseNeededError, match="DPSR_KEY_PASSPHRASE"):
        read_key(tmp_path / "k")
    with pytest.raises(SignatureError, match="does not open with this passphrase") as refused:
        read_key(tmp_path / "k", "battery staple")
    assert "Correct DPSR_KEY_PASSPHRASE" in str(refused.value)
    assert "keys new" not in str(refused.value), "another key would not sign for this one"
    with pytest.raises(SignatureError, match=r"at least one character.*--no-passphrase"):
        new_key(tmp_path / "other", "")
    assert not (tmp_path / "other").exists()


def test_a_passphrase_that_is_set_for_another_key_does_not_lock_one_without(tmp_path):
    made = new_key(tmp_path / "k", None)
    assert read_key(tmp_path / "k", "for another key").public == made


def test_nothing_that_exists_is_overwritten(tmp_path):
    for name in ("k", "k.pub"):
        (tmp_path / name).write_text("somebody's")
        with pytest.raises(SignatureError, match="exists already"):
            new_key(tmp_path / "k", None)
        assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: "somebody's"}
        (tmp_path / name).unlink()
    (tmp_path / "k").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SignatureError, match="exists already"):
        new_key(tmp_path / "k", None)
    assert not (tmp_path / "elsewhere").exists()


def test_a_key_is_there_whole_and_with_its_public_half_whenever_the_process_ends(tmp_path, monkeypatch):
    """Killed while it was written, half a key had its name, and nothing would be written there again."""
    seen, force = [], os.fsync

    def look(handle):
        seen.append({file.name for file in tmp_path.iterdir() if not file.name.startswith(".")})
        for name in seen[-1]:
            assert (tmp_path / name).read_bytes().endswith(b"-----\n")
        force(handle)

    monkeypatch.setattr(os, "fsync", look)
    made = new_key(tmp_path / "k", None)
    assert seen == [set(), {"k.pub"}, {"k.pub"}, {"k", "k.pub"}], "each half, and the folder once it is there"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["k", "k.pub"]
    assert read_key(tmp_path / "k").public == made


def test_what_a_killed_run_left_of_a_key_is_removed_by_the_next(tmp_path):
    for name in (".k.0123456789ab.partial", ".k.pub.0123456789ab.partial"):
        (tmp_path / name).write_text("-----BEGIN PRIVATE")
    new_key(tmp_path / "k", None)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["k", "k.pub"]


def test_a_public_half_without_its_private_one_is_named(tmp_path):
    new_key(tmp_path / "k", None)
    (tmp_path / "k").unlink()
    before = (tmp_path / "k.pub").read_bytes()
    with pytest.raises(SignatureError, match=r"k.pub exists already, without k: .* or delete it if nobody uses it"):
        new_key(tmp_path / "k", None)
    assert (tmp_path / "k.pub").read_bytes() == before


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("name", ["k", "k.pub"])
def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path, monkeypatch, name, links):
    """Also where the file system has no links, and by a key that another process makes."""
    link, force = os.link, os.fsync

    def linked(draft, path):
        if not links:
            raise OSError(errno.EPERM, "Operation not permitted")
        link(draft, path)

    def meanwhile(handle):
        force(handle)
        (tmp_path / name).write_text("somebody's")

    monkeypatch.setattr(os, "link", linked)
    with monkeypatch.context() as during:
        during.setattr(os, "fsync", meanwhile)
        with pytest.raises(SignatureError, match=f"{name} exists already"):
            new_key(tmp_path / "k", None)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: "somebody's"}
    (tmp_path / name).unlink()
    made = new_key(tmp_path / "k", None)
    assert read_key(tmp_path / "k").public == made


@pytest.mark.parametrize("late", [True, False])
def test_an_interrupt_leaves_both_halves_or_none(tmp_path, monkeypatch, late):
    link = os.link

    def interrupted(draft, path):
        if path.name == "k" and not late:
            raise KeyboardInterrupt
        link(draft, path)
        if path.name == "k":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        new_key(tmp_path / "k", None)
    assert sorted(file.name for file in tmp_path.iterdir()) == (["k", "k.pub"] if late else [])


def test_a_key_that_others_may_read_is_not_used(tmp_path):
    new_key(tmp_path / "k", None)
    (tmp_path / "k").chmod(0o644)
    with pytest.raises(SignatureError, match="chmod 600"):
        read_key(tmp_path / "k")


def test_what_is_no_key_is_a_sentence(tmp_path):
    rsa = generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content, words in (
        (rsa, "another kind"),
        (b"nonsense\x1b[2J", "no private key in PEM"),
        (b"", "no private key"),
    ):
        (tmp_path / "k").write_bytes(content)
        (tmp_path / "k").chmod(0o600)
        with pytest.raises(SignatureError, match=words) as error:
            read_key(tmp_path / "k")
        assert str(error.value).isprintable()
    with pytest.raises(SignatureError, match="is missing"):
        read_key(tmp_path / "nowhere")
    with pytest.raises(SignatureError, match="could not be written"):
        new_key(tmp_path / "k" / "inside a file", None)


def test_the_private_key_is_nowhere_in_the_folder(signed, keys):
    secret = keys["curator"]._key.private_bytes_raw()
    for file in signed.iterdir():
        content = file.read_bytes()
        assert secret not in content
        assert secret.hex().encode() not in content
    assert json.loads((signed / "signature.json").read_text())["format"] == "dpsr-signatures-1"
