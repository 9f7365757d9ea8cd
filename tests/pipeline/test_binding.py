"""A certificate belongs to one charge and a charge to one folder: no other folder passes for the one that was paid."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import change_column, change_table, charged, copied, rewrite
from ledgers_by_hand import insert, next_entry

from dpsr import DPSR
from dpsr.certify.folder import sha256_of, write_manifest
from dpsr.data import realistic
from dpsr.engine.raw import RawTable
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.pipeline.verification import verify_release
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release import write_release


@pytest.fixture(scope="module")
def ratings():
    return realistic(3, n_users=40, n_items=30, n_ratings=500)


@pytest.fixture(scope="module")
def book(ratings, tmp_path_factory):
    """A ledger and the folder `r` that was charged to it."""
    root = tmp_path_factory.mktemp("book")
    charged(root, ratings)
    return root


@pytest.fixture
def folder(book, tmp_path):
    return copied(book / "r", tmp_path / "r")


def asked(folder, book, **options):
    return verify_release(folder, ledger=str(book / "ledger.db"), **options)


def test_what_was_charged_is_recorded_with_the_digest_of_its_manifest_and_verifies(book):
    found = asked(book / "r", book)
    assert found.private, found.fails
    certificate = json.loads((book / "r" / "certificate.json").read_text())
    _, charge, release = Ledger.open(str(book / "ledger.db")).history()
    assert certificate["charge"] == {"id": charge.charge, "digest": charge.digest}
    assert release.manifest == found.manifest_sha256 == sha256_of((book / "r" / "manifest.json").read_bytes())
    assert release.certificate == found.certificate_sha256


def test_what_a_folder_says_of_a_ledger_is_noted_as_hearsay_until_a_ledger_says_it(book, tmp_path, ratings):
    """A folder that no ledger paid for can name a charge and a budget, and its card repeats them."""
    hearsay = "budget.json, and card.html after it, tell what a ledger is said to have said"
    assert any(hearsay in words for words in verify_release(book / "r").notes)
    assert not any(hearsay in words for words in asked(book / "r", book).notes)
    alone = DPSR(1.0).fit(ratings).save(tmp_path / "alone")
    assert not verify_release(alone).notes


def test_once_the_ledger_has_answered_nobody_is_told_to_compare_with_the_ledger(book):
    assert "--ledger" in verify_release(book / "r").limit
    limit = asked(book / "r", book).limit
    assert "--ledger" not in limit
    assert "the ledger recorded when it was released" in limit


def test_three_uncharged_releases_do_not_pass_on_the_record_of_one_that_was_charged(book, ratings, tmp_path):
    """The same ratings and epsilon, fresh noise, nothing charged; then also under the certificate that was charged."""
    paid = (book / "r" / "certificate.json").read_bytes()
    for number in range(3):
        fresh = DPSR(1.0).fit(ratings).save(tmp_path / str(number))
        assert verify_release(fresh).private, "by itself it is a private release"
        assert any("names no charge" in words for words in asked(fresh, book).fails)
        (fresh / "certificate.json").write_bytes(paid)
        shutil.copy(book / "r" / "budget.json", fresh)
        (fresh / "card.html").unlink()
        write_manifest(fresh)
        assert asked(fresh, book).fails == (
            "the ledger recorded another manifest for that charge: the certificate is the one, the folder is not",
        )


def test_raw_ratings_under_a_certificate_that_was_charged_are_found(book, folder, ratings):
    raw = ratings.to_arrow()["rating"].to_pylist()
    by_itself = change_column(folder, "ratings.parquet", "rating", lambda _: raw)
    assert by_itself.fails == ("not every released rating is what the model predicts of it",), "without a ledger, even"
    (folder / "card.html").unlink()
    write_manifest(folder)
    assert any("another manifest" in words for words in asked(folder, book).fails)


NO_COLUMN = "the table of ratings has a column that its method does not make"


def test_raw_ratings_do_not_pass_as_a_column_that_the_method_does_not_make(book, folder, ratings):
    """`predicted` overrides the model and `noisy` is taken as it is: where nothing makes them, they are refused."""
    raw = ratings.to_arrow()["rating"].combine_chunks()
    put = change_table(
        folder,
        "ratings.parquet",
        lambda table: table.select(["user", "item"]).append_column("rating", raw).append_column("predicted", raw),
    )
    assert put.fails == (NO_COLUMN,)
    settings = {"n_iter": 7, "period": 5}
    said_to_be_paper = rewrite(folder, "model.json", lambda record: record.update(method="paper", settings=settings))
    assert said_to_be_paper.fails == ("the certificate's parts are not what the method asks",)


def test_noisy_ratings_that_nobody_bought_are_refused(ratings, tmp_path):
    folder = DPSR(0.05).fit(ratings).save(tmp_path / "r")
    assert not any(part.name == "ratings" for part in verify_release(folder).certificate.parts)
    raw = ratings.to_arrow()["rating"].combine_chunks().cast(pa.float32())
    put = change_table(folder, "ratings.parquet", lambda t: t.append_column("noisy", raw).append_column("weight", raw))
    assert put.fails == (NO_COLUMN,)


@pytest.mark.parametrize(("n_iter", "period"), [(5, 5), (7, 0)])
def test_a_column_that_overrides_the_paper_s_model_needs_iterations_after_the_last_projection(
    ratings, tmp_path, n_iter, period
):
    folder = DPSR.paper(1.0, n_iter=7, period=5).fit(ratings).save(tmp_path / "r")
    found = verify_release(folder)
    assert found.private, found.fails
    assert "every released rating is what its column predicted says, with which the method ends" in found.holds
    said = rewrite(folder, "model.json", lambda record: record["settings"].update(n_iter=n_iter, period=period))
    assert said.fails == (NO_COLUMN,)


def test_a_certificate_with_another_charge_in_its_place_is_found(book, folder):
    for change, words in (
        (lambda r: r["charge"].update(id="0" * 32), "does not hold the charge"),
        (lambda r: r["charge"].update(digest="0" * 64), "does not hold the charge"),
        (lambda r: r.update(charge=None), "names no charge"),
        (lambda r: r.update(id="0" * 32), "another certificate"),
    ):
        before = (folder / "certificate.json").read_bytes()
        rewrite(folder, "certificate.json", change)
        assert any(words in found for found in asked(folder, book).fails)
        (folder / "certificate.json").write_bytes(before)


def test_a_charge_without_a_record_does_not_vouch_for_a_folder(book, ratings, tmp_path):
    """Somebody charged and died before the record; the noise may have been seen, the folder was never finished."""
    ledger = Ledger.open(str(book / "ledger.db"))
    charge = ledger.charge("films", "1", method="default")
    model = DPSR(1.0)
    contents = model.fit_table(RawTable.of(ratings), charge=charge.reference)
    folder = write_release(contents, tmp_path / "r")
    assert any("recorded no release" in words for words in asked(folder, book).fails)


def test_a_release_of_values_does_not_pass_on_a_charge_for_people(ratings, tmp_path):
    """The writer refuses to record it; somebody with a team's rights puts the row in, with a digest that fits."""
    ledger = Ledger.create(str(tmp_path / "ledger.db"), "people", "3", "1e-5", unit="user")
    charge = ledger.charge("people", "1", "1e-6", method="default", unit="user")
    folder = write_release(DPSR(1.0).fit_table(RawTable.of(ratings), charge=charge.reference), tmp_path / "r")
    digests = {name: sha256_of((folder / f"{name}.json").read_bytes()) for name in ("certificate", "manifest")}
    row = next_entry(ledger, "people", kind="release", charge=charge.id, epsilon="1", **digests)
    insert(str(tmp_path / "ledger.db"), row)
    assert verify_release(folder).private, "by itself it is a private release"
    assert asked(folder, tmp_path).fails == (
        "the ledger was charged for every whole person, and this release protects the value of a rating alone",
    )


def test_another_ledger_and_another_data_set_know_nothing_of_it(book, ratings, tmp_path):
    charged(tmp_path, ratings)
    assert any("does not hold the charge" in words for words in asked(book / "r", tmp_path).fails)
    Ledger.create(str(tmp_path / "ledger.db"), "books", "1")
    assert asked(tmp_path / "r", tmp_path, dataset="films").private
    assert any("does not hold" in words for words in asked(tmp_path / "r", tmp_path, dataset="books").fails)


def test_a_folder_without_a_certificate_is_said_to_have_none(book, folder):
    (folder / "certificate.json").unlink()
    assert any("could name a charge" in words for words in asked(folder, book).fails)


@pytest.mark.parametrize(
    "estimator",
    [DPSR(1.0), DPSR.paper(1.0), DPSR.paper(1.0, tune=True), DPSR.paper(1.0, n_iter=13, period=5)],
    ids=repr,
)
def test_every_method_that_a_ledger_takes_carries_its_charge(ratings, tmp_path, estimator):
    folder = charged(tmp_path, ratings, estimator=estimator)
    assert asked(folder, tmp_path).private


@pytest.mark.parametrize("estimator", [DPSR.paper(1.0, as_published=True), DPSR(1.0, random_state=0)], ids=repr)
def test_what_no_ledger_takes_is_still_made_without_one(ratings, tmp_path, estimator):
    done = publish(ratings, estimator, tmp_path / "r")
    assert verify_release(done.folder).intact
    assert done.certificate.charge is None
    assert done.manifest_sha256 == sha256_of((done.folder / "manifest.json").read_bytes())


def test_the_charge_is_in_the_certificate_before_the_folder_is_recorded(ratings, tmp_path):
    """What is recorded is what is renamed: nothing is written into the folder afterwards."""
    Ledger.create(str(tmp_path / "ledger.db"), "films", "1")
    account = Account.open(str(tmp_path / "ledger.db"), None, 1.0)
    seen = []

    def look():
        draft = next(tmp_path.glob(".r.*.partial")) / "r"
        seen.append({file.name: file.read_bytes() for file in draft.iterdir()})

    done = publish(ratings, DPSR(1.0), tmp_path / "r", account=account, last_call=look)
    assert account.ledger.history()[-1].manifest == sha256_of(seen[0]["manifest.json"])
    assert {file.name: file.read_bytes() for file in done.folder.iterdir()} == seen[0]
    assert pq.read_table(done.folder / "ratings.parquet").num_rows == 500


# -- the card, which is in the folder and for people


def test_a_card_that_says_something_else_than_the_tables_is_found(book, folder):
    page = (folder / "card.html").read_text("utf-8")
    (folder / "card.html").write_text(page.replace("PRIVATE", "VERY PRIVATE", 1), "utf-8")
    write_manifest(folder)
    assert any("card.html is not the page" in words for words in verify_release(folder).fails)


def test_a_card_that_is_said_to_be_by_another_version_is_not_taken_at_its_word(folder):
    page = (folder / "card.html").read_text("utf-8")
    (folder / "card.html").write_text(page.replace("PRIVATE", "VERY PRIVATE", 1), "utf-8")
    rewrite(folder, "certificate.json", lambda record: record.update(software="dpsr 0.0.9"))
    (words,) = verify_release(folder).fails
    assert "card.html is not the page" in words
    assert "dpsr 0.0.9 is said to have drawn it: verify with that version" in words


def test_a_card_by_another_version_is_noted_where_somebody_vouches_for_the_folder(book, monkeypatch):
    """A version to come that draws another page."""
    monkeypatch.setattr("dpsr.pipeline.cards.software", lambda: "dpsr 9.9.9")
    monkeypatch.setattr("dpsr.pipeline.cards.drawn_again", lambda found: b"another page")
    found = asked(book / "r", book)
    assert found.private, found.fails
    assert any("card.html was not checked" in words for words in found.notes)
    assert not any("card.html" in words for words in found.holds)
    assert not verify_release(book / "r").intact
