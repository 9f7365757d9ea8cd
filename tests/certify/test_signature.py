"""Signatures of manifests: what holds, what does not, and keys under which anybody could sign."""

import hashlib
import json
import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dpsr.certify.folder import MalformedError
from dpsr.certify.signature import (
    _WEAK,
    PublicKey,
    Signature,
    message,
    read_public_key,
    signatures_from_bytes,
    signatures_to_bytes,
)
from dpsr.errors import SignatureError
from dpsr.release.keys import SigningKey

DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def key():
    return SigningKey(Ed25519PrivateKey.generate())


def test_a_signature_holds_for_its_manifest_and_its_key_alone(key):
    made, other = key.sign(DIGEST), SigningKey(Ed25519PrivateKey.generate())
    assert made.holds
    assert not made._replace(manifest="ac" * 32).holds
    assert not made._replace(key=other.public).holds
    assert not made._replace(value=bytes(64)).holds
    for place in range(64):
        changed = bytearray(made.value)
        changed[place] ^= 1
        assert not made._replace(value=bytes(changed)).holds


def test_what_is_signed_says_what_it_is_for(key):
    """A bare digest could be anything; a signature of one is none of ours."""
    assert message(DIGEST) == b"dpsr-release-signature-1\n" + DIGEST.encode() + b"\n"
    bare = key._key.sign(DIGEST.encode())
    assert not Signature(key.public, DIGEST, bare).holds


P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


def point(raw):
    """The point of the curve that 32 bytes stand for, by the textbook."""
    y = int.from_bytes(raw, "little") % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - square) % P == 0
    return x, y


def doubled(at):
    (x, y), t = at, D * at[0] ** 2 * at[1] ** 2
    return 2 * x * y * pow(1 + t, -1, P) % P, (y * y + x * x) * pow(1 - t, -1, P) % P


@pytest.mark.parametrize("raw", sorted(_WEAK), ids=lambda raw: raw.hex()[:8])
def test_keys_of_small_order_have_signed_nothing(raw):
    """Eight times such a point is nothing, so that a signature says nothing about who made it."""
    assert doubled(doubled(doubled(point(raw)))) == (0, 1)
    for sign in (0, 128):
        weak = PublicKey(bytes([*raw[:31], raw[31] | sign]))
        for made in (bytes(64), raw + bytes(32), bytes([1]) + bytes(63)):
            assert not weak.signed(made, DIGEST)


def test_without_that_rule_the_library_takes_an_empty_signature():
    """Why the rule is there: zeros verify under a key of zeros."""
    PublicKey(bytes(32))._key.verify(bytes(64), message(DIGEST))


def test_the_fingerprint_is_the_sha256_of_the_key_in_der(key, tmp_path):
    der = key._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert key.public.fingerprint == hashlib.sha256(der).hexdigest()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on this machine")
def test_openssl_prints_the_same_fingerprint_and_verifies_the_same_signature(key, tmp_path):
    (tmp_path / "k.pub").write_bytes(key.public.to_pem())
    (tmp_path / "m").write_bytes(message(DIGEST))
    (tmp_path / "s").write_bytes(key.sign(DIGEST).value)
    shown = ["openssl", "pkey", "-pubin", "-in", tmp_path / "k.pub", "-outform", "DER"]
    der = subprocess.run(shown, check=True, capture_output=True).stdout
    assert hashlib.sha256(der).hexdigest() == key.public.fingerprint
    how = [
        "-verify",
        "-pubin",
        "-inkey",
        tmp_path / "k.pub",
        "-rawin",
        "-in",
        tmp_path / "m",
        "-sigfile",
        tmp_path / "s",
    ]
    assert subprocess.run(["openssl", "pkeyutl", *how], check=False, capture_output=True).returncode == 0


def test_signatures_come_back_as_they_were_written(key):
    other = SigningKey(Ed25519PrivateKey.generate())
    made = [key.sign(DIGEST), other.sign(DIGEST)]
    assert signatures_from_bytes(signatures_to_bytes(made)) == made


def records(key):
    return json.loads(signatures_to_bytes([key.sign(DIGEST)]))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(format="dpsr-signatures-9"),
        lambda r: r.update(note="trust me"),
        lambda r: r.update(signatures=[]),
        lambda r: r.update(signatures=[*r["signatures"], *r["signatures"]]),
        lambda r: r.update(signatures=r["signatures"] * 51),
        lambda r: r["signatures"][0].update(who="the officer"),
        lambda r: r["signatures"][0].pop("manifest"),
        lambda r: r["signatures"][0].update(key="00"),
        lambda r: r["signatures"][0].update(key=7),
        lambda r: r["signatures"][0].update(signature=r["signatures"][0]["signature"].upper()),
        lambda r: r.clear(),
    ],
)
def test_a_file_of_another_form_is_refused(key, change):
    record = records(key)
    change(record)
    with pytest.raises(MalformedError, match=r"signature\.json"):
        signatures_from_bytes((json.dumps(record, indent=1) + "\n").encode())


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"\xff", b'{"format":NaN}', b"[" * 100_000])
def test_a_file_that_is_nonsense_is_refused(text):
    with pytest.raises(MalformedError, match=r"signature\.json"):
        signatures_from_bytes(text)


def test_signatures_are_written_in_one_way(key):
    text = signatures_to_bytes([key.sign(DIGEST)])
    for other in (text + b" ", text.replace(b" ", b"  ", 1), text.strip()):
        with pytest.raises(MalformedError, match="not written the way"):
            signatures_from_bytes(other)


def test_a_public_key_file_is_read_and_anything_else_is_a_sentence(key, tmp_path):
    (tmp_path / "k.pub").write_bytes(key.public.to_pem())
    assert read_public_key(tmp_path / "k.pub") == key.public
    rsa = generate_private_key(65537, 2048).public_key()
    (tmp_path / "rsa.pub").write_bytes(rsa.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "nonsense").write_bytes(b"\x00\x1b[2J")
    (tmp_path / "huge").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to(tmp_path / "k.pub")
    for name, words in (
        ("rsa.pub", "Ed25519"),
        ("nonsense", "not a public key in PEM"),
        ("huge", "at most 65,536"),
        ("link", "not a plain file"),
        ("nowhere", "is missing"),
    ):
        with pytest.raises(SignatureError, match=words) as error:
            read_public_key(tmp_path / name)
        assert str(error.value).isprintable()
