"""`verify` finds every changed byte, every missing or added file, and every figure that its tables do not bear out."""

import hashlib
import json
from math import nextafter

import numpy as np
import pytest
from folders import copied, resealed, rewrite

from dpsr import DPSR
from dpsr.certify.check import check_certificate
from dpsr.data import realistic
from dpsr.errors import ReleaseError
from dpsr.privacy.channels import gaussian, gaussian_classical
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.release import load_release, verify
from dpsr.release.folder.write import write_release

CARD = "<!doctype html><title>A page with a &amp; and an ü</title>\n" + "<p>words</p>\n" * 20


@pytest.fixture(scope="module")
def ratings():
    return realistic(3, n_users=40, n_items=30, n_ratings=500, timestamps=True)


@pytest.fixture(scope="module")
def sound(ratings, tmp_path_factory):
    """A private release with every kind of part, and a further page."""
    model = DPSR(4.0).fit(ratings)
    assert {part.name for part in model.certificate.parts} == {"level histogram", "window sums", "ratings"}
    return write_release(model.release.contents, tmp_path_factory.mktemp("sound") / "r", pages={"card.html": CARD})


@pytest.fixture
def release(sound, tmp_path):
    return copied(sound, tmp_path / "r")


FILES = ("card.html", "certificate.json", "items.parquet", "manifest.json", "model.json", "ratings.parquet",
         "users.parquet")  # fmt: skip


def test_a_sound_release_is_verified_in_words(sound):
    result = verify(sound)
    assert result.fails == ()
    assert result.private
    words = " ".join(result.holds)
    for phrase in ("recomputed from its bins and noise scale", "integer table", "add up to", "500 ratings"):
        assert phrase in words
    assert result.to_dict()["epsilon"] <= 4


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_byte_is_found(release, name):
    whole = (release / name).read_bytes()
    rng = np.random.default_rng(len(whole))
    positions = {0, len(whole) // 2, len(whole) - 1, *rng.integers(0, len(whole), 12).tolist()}
    for position in sorted(positions):
        for bit in (1, 32, 128):
            flipped = bytearray(whole)
            flipped[position] ^= bit
            (release / name).write_bytes(flipped)
            result = verify(release)
            assert not result.intact, f"{name}, byte {position}, bit {bit}"
            assert any(name in words for words in result.fails)
    (release / name).write_bytes(whole)
    assert verify(release).intact


def test_every_single_byte_of_the_manifest_counts(release):
    """The manifest has nobody above it, so all of it is tried: also spaces, case and other spellings of one record."""
    whole = (release / "manifest.json").read_bytes()
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 32
        (release / "manifest.json").write_bytes(flipped)
        assert not verify(release).intact, position
    for other in (whole + b" ", whole.strip(), whole.replace(b":", b": ", 1), b"\n" + whole):
        (release / "manifest.json").write_bytes(other)
        assert not verify(release).intact


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_found(release, name):
    whole = (release / name).read_bytes()
    for length in (0, len(whole) // 2, len(whole) - 1):
        (release / name).write_bytes(whole[:length])
        assert not verify(release).intact


@pytest.mark.parametrize("name", FILES)
def test_a_removed_file_is_found(release, name):
    (release / name).unlink()
    result = verify(release)
    assert not result.intact
    assert any(name in words for words in result.fails)


def test_added_files_hidden_ones_folders_and_links_are_found(release, tmp_path):
    for add in (
        lambda: (release / "raw.csv").write_text("user,item,rating\n"),
        lambda: (release / ".notes").write_text("seed 7"),
        lambda: (release / "more").mkdir(),
        lambda: (release / "link.parquet").symlink_to(release / "ratings.parquet"),
    ):
        before = set(release.iterdir())
        add()
        added = (set(release.iterdir()) - before).pop()
        assert any(added.name in words and "added later" in words for words in verify(release).fails)
        added.rmdir() if added.is_dir() else added.unlink()
    (release / "card.html").rename(tmp_path / "card.html")
    (release / "card.html").symlink_to(tmp_path / "card.html")
    assert any("plain file" in words for words in verify(release).fails)


def test_a_manifest_cannot_point_outside_its_folder(release, tmp_path):
    (tmp_path / "elsewhere").write_text("x")
    record = json.loads((release / "manifest.json").read_text())
    record["files"]["../elsewhere"] = {"bytes": 1, "sha256": "0" * 64}
    (release / "manifest.json").write_text(json.dumps(record))
    assert any("elsewhere" in words and "no file that a release has" in words for words in verify(release).fails)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_part_that_states_less_than_its_tables_cost_is_found_to_the_last_digit(release, index):
    part = json.loads((release / "certificate.json").read_text())["parts"][index]
    lower = nextafter(part["epsilon"], 0)

    def understate(record):
        record["parts"][index]["epsilon"] = lower

    result = rewrite(release, "certificate.json", understate)
    assert any(part["name"] in words and "it states" in words for words in result.fails)


def test_a_figure_may_err_upwards_by_a_trace_only(release):
    def raise_by(factor):
        def change(record):
            record["parts"][1]["epsilon"] *= factor
            record["epsilon"] = sum(part["epsilon"] for part in record["parts"]) * (1 + 1e-12)
            record["nominal"] = 5.0

        return change

    rewrite(release, "model.json", lambda record: record["settings"].update(epsilon=5.0))
    assert rewrite(release, "certificate.json", raise_by(1 + 1e-14)).intact
    assert not rewrite(release, "certificate.json", raise_by(1.001)).intact


def test_a_total_that_is_not_the_sum_is_found(release):
    total = json.loads((release / "certificate.json").read_text())["epsilon"]
    for stated in (nextafter(total, 0), total / 2, total * 1.01):
        result = rewrite(release, "certificate.json", lambda record, s=stated: record.update(epsilon=s))
        assert any("add up to" in words for words in result.fails)


def test_a_certificate_that_can_be_read_in_two_ways_is_refused():
    for text in (b'{"epsilon":1,"epsilon":2}', b'{"epsilon":NaN}', b'{"epsilon":1e999}', b"\xff", b"[" * 5000, b""):
        checks, certificate = check_certificate(text)
        assert certificate is None
        assert not checks[0].holds


def test_releases_that_rightly_call_themselves_not_private_are_intact_and_not_private(ratings, tmp_path):
    for i, model in enumerate((DPSR.paper(0.1, as_published=True), DPSR.paper(1.0, random_state=0))):
        folder = model.fit(ratings).save(tmp_path / str(i))
        result = verify(folder)
        assert result.intact, result.fails
        assert not result.private
        warning = (folder / "NOT_PRIVATE.txt").read_text()
        (folder / "NOT_PRIVATE.txt").write_text(warning.replace("Do not share", "Share"))
        assert not resealed(folder).intact
        (folder / "NOT_PRIVATE.txt").unlink()
        assert not resealed(folder).intact


def test_an_understated_worst_case_of_the_published_stage_is_found(ratings, tmp_path):
    folder = DPSR.paper(0.1, as_published=True).fit(ratings).save(tmp_path / "r")

    def believe_the_paper(record):
        record["parts"][0]["epsilon"] = record["epsilon"] = 0.1
        record.update(private=True, reasons=[])

    assert any("0.939" in words for words in rewrite(folder, "certificate.json", believe_the_paper).fails)


@pytest.mark.parametrize("build", [gaussian, gaussian_classical])
def test_a_delta_is_recomputed_from_the_table_and_may_not_be_understated(ratings, build):
    private = privatise(ratings, build(ratings.scale, 2.0, 1e-3), noise=NoiseSource.system())
    record = private.certificate.to_record()
    checks, _ = check_certificate(json.dumps(record).encode())
    assert all(check.holds for check in checks)
    record["parts"][0]["delta"] = record["delta"] = nextafter(record["delta"], 0)
    checks, _ = check_certificate(json.dumps(record).encode())
    assert any("delta" in check.words and not check.holds for check in checks)


def test_the_digests_are_what_sha256sum_prints(release):
    found = verify(release)
    for name, digest in (("manifest", found.manifest_sha256), ("certificate", found.certificate_sha256)):
        assert digest == hashlib.sha256((release / f"{name}.json").read_bytes()).hexdigest()
    assert found.to_dict()["manifest_sha256"] == found.manifest_sha256
    assert "manifest's SHA-256" in found.limit


@pytest.mark.parametrize("name", ["manifest", "certificate", "model"])
def test_a_folder_of_an_older_version_is_refused_with_a_sentence_that_says_so(release, name):
    text = (release / f"{name}.json").read_text()
    assert f"dpsr-{name}-2" in text
    (release / f"{name}.json").write_text(text.replace(f"dpsr-{name}-2", f"dpsr-{name}-1"))
    found = verify(release) if name == "manifest" else resealed(release)
    assert any(f"the format dpsr-{name}-1 of an older version of dpsr" in words for words in found.fails)
    with pytest.raises(ReleaseError, match=f"dpsr-{name}-1 of an older version"):
        load_release(release)


def test_something_that_is_no_release_is_an_error_and_not_a_verdict(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "nowhere"):
        with pytest.raises(ReleaseError, match="not a readable release folder"):
            verify(path)
