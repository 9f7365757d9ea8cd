"""`verify` finds every changed byte, every missing or added file, and every figure that its tables do not bear out."""

import json
import shutil
from math import inf, nextafter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsr import DPSR
from dpsr.certify.check import check_certificate
from dpsr.certify.manifest import write_manifest
from dpsr.data import realistic
from dpsr.errors import ReleaseError
from dpsr.privacy.channels import gaussian, gaussian_classical
from dpsr.privacy.noise.source import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.release import certificate_digest, verify
from dpsr.release.folder.files import write_release

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
    return shutil.copytree(sound, tmp_path / "r")


FILES = ("card.html", "certificate.json", "items.parquet", "manifest.json", "model.json", "ratings.parquet",
         "users.parquet")  # fmt: skip


def rewrite(folder, name, change):
    """Edit a JSON file and reseal the folder, as a careful forger would."""
    record = json.loads((folder / name).read_text("utf-8"))
    change(record)
    (folder / name).write_text(json.dumps(record, separators=(",", ":")), "utf-8")
    write_manifest(folder)
    return verify(folder)


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
    record["files"]["../elsewhere"] = {"bytes": 1, "sha256": "0"}
    (release / "manifest.json").write_text(json.dumps(record))
    assert any("elsewhere" in words and "plain file" in words for words in verify(release).fails)


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

    assert rewrite(release, "certificate.json", raise_by(1 + 1e-14)).intact
    assert not rewrite(release, "certificate.json", raise_by(1.001)).intact


def test_a_total_that_is_not_the_sum_is_found(release):
    total = json.loads((release / "certificate.json").read_text())["epsilon"]
    for stated in (nextafter(total, 0), total / 2, total * 1.01):
        result = rewrite(release, "certificate.json", lambda record, s=stated: record.update(epsilon=s))
        assert any("add up to" in words for words in result.fails)


FORGERIES = {
    "a cell moved": lambda r: r["parts"][2]["tables"][0][0].__setitem__(0, r["parts"][2]["tables"][0][0][0] - 1),
    "a negative cell": lambda r: r["parts"][2]["tables"][0].__setitem__(0, [-1, 2**62 + 1]),
    "a row too few": lambda r: r["parts"][2]["tables"][0].pop(),
    "no tables": lambda r: r["parts"][2].update(tables=[]),
    "no noise": lambda r: r["parts"][1].update(noise_scale="0"),
    "division by zero": lambda r: r["parts"][1].update(noise_scale="1/0"),
    "no sensitivity": lambda r: r["parts"][1].update(sensitivity=None),
    "wider noise": lambda r: r["parts"][1].update(noise_scale=r["parts"][1]["noise_scale"] + "0"),
    "a part dropped": lambda r: r["parts"].pop(),
    "no parts": lambda r: r.update(parts=[], epsilon=0),
    "another unit": lambda r: r.update(unit="All ratings of one person."),
    "another composition": lambda r: r.update(composition="the dearest part"),
    "seeded but private": lambda r: r.update(randomness="seeded"),
    "reasons but private": lambda r: r.update(reasons=["a seed"]),
    "not private without reasons": lambda r: r.update(private=False),
    "dearer than asked": lambda r: r.update(nominal=1.0),
    "nothing asked": lambda r: r.update(nominal=None),
    "a field nobody knows": lambda r: r.update(note="trust me"),
    "another format": lambda r: r.update(format="dpsr-certificate-9"),
    "epsilon as text": lambda r: r.update(epsilon="1"),
    "fewer ratings": lambda r: r["public"].update(n_ratings=499),
    "another scale": lambda r: r["public"].update(scale="1:10:1"),
    "timestamps denied": lambda r: r["public"].update(has_timestamps=False),
    "lighter heaviest user": lambda r: r["public"].update(max_ratings_per_user=1),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_resealed_certificate_that_contradicts_itself_or_its_tables_is_found(release, name):
    result = rewrite(release, "certificate.json", FORGERIES[name])
    assert not any("SHA-256" in words for words in result.fails), "the seal was renewed"
    assert not result.intact


def test_a_certificate_that_can_be_read_in_two_ways_is_refused():
    for text in (b'{"epsilon":1,"epsilon":2}', b'{"epsilon":NaN}', b'{"epsilon":1e999}', b"\xff", b"[" * 5000, b""):
        checks, certificate = check_certificate(text)
        assert certificate is None
        assert not checks[0].holds


def change_table(folder, name, column, change):
    table = pq.read_table(folder / f"{name}.parquet")
    values = change(table[column].to_numpy().copy())
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    pq.write_table(table, folder / f"{name}.parquet")
    write_manifest(folder)
    return verify(folder)


def with_first(value):
    def change(values):
        values[0] = value
        return values

    return change


@pytest.mark.parametrize(
    ("name", "column", "change", "word"),
    [
        ("ratings", "rating", with_first(5.01), "scale's range"),
        ("ratings", "rating", with_first(0.99), "scale's range"),
        ("ratings", "rating", with_first(np.nan), "scale's range"),
        ("ratings", "user", lambda v: v[::-1].copy(), "name the same users"),
        ("ratings", "item", lambda v: v[::-1].copy(), "name the same users"),
        ("ratings", "item", with_first(10**6), "name the same users"),
        ("items", "n_ratings", lambda v: v + 1, "name the same users"),
        ("users", "n_ratings", lambda v: v + 1, "n_ratings"),
        ("users", "mean", with_first(inf), "finite"),
    ],
)
def test_resealed_tables_that_do_not_fit_are_found(release, name, column, change, word):
    result = change_table(release, name, column, change)
    assert any(word in words for words in result.fails)


def test_a_table_that_lost_a_column_is_a_finding_and_not_a_traceback(release):
    table = pq.read_table(release / "users.parquet")
    for lost in table.column_names:
        pq.write_table(table.drop_columns([lost]), release / "users.parquet")
        write_manifest(release)
        if lost == "affinity":
            continue
        assert any("cannot be loaded" in words for words in verify(release).fails), lost


def test_a_model_file_that_is_nonsense_is_a_finding(release):
    for text in ("[]", "null", '{"format":"dpsr-model-1"}', '{"format":"dpsr-model-1","scale":7}'):
        (release / "model.json").write_text(text)
        write_manifest(release)
        assert any("cannot be loaded" in words for words in verify(release).fails)


def test_releases_that_rightly_call_themselves_not_private_are_intact_and_not_private(ratings, tmp_path):
    for i, model in enumerate((DPSR.paper(0.1, as_published=True), DPSR.paper(1.0, random_state=0))):
        folder = model.fit(ratings).save(tmp_path / str(i))
        result = verify(folder)
        assert result.intact, result.fails
        assert not result.private
        (folder / "NOT_PRIVATE.txt").unlink()
        write_manifest(folder)
        assert not verify(folder).intact


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


def test_the_certificate_digest_is_what_sha256sum_prints(release):
    import hashlib

    digest = hashlib.sha256((release / "certificate.json").read_bytes()).hexdigest()
    assert certificate_digest(release) == digest == verify(release).certificate_sha256


def test_something_that_is_no_release_is_an_error_and_not_a_verdict(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "nowhere"):
        with pytest.raises(ReleaseError, match="not a release folder"):
            verify(path)
