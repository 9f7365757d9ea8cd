"""The ledger: exact, append-only, and never talked into more than its budget. On SQLite and on PostgreSQL."""

import hashlib
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest
from certificates import certificate

from dpsr.certify.certificate import ChargeReference
from dpsr.errors import LedgerError, PrivacyError
from dpsr.privacy.ledger.ledger import Charge, Ledger

MANIFEST = "d" * 64


def test_what_is_left_is_the_budget_less_all_charges(address):
    ledger = Ledger.create(address, "films", "3", note="the board")
    ledger.charge("films", "0.5", method="default")
    ledger.charge("films", "1", method="paper")
    budget = Ledger.open(address).budget("films")
    assert (budget.spent_epsilon, budget.left_epsilon, budget.charges) == (Fraction(3, 2), Fraction(3, 2), 2)


def test_ten_tenths_fit_into_one_and_nothing_after_them(address):
    """As floats ten times 0.1 is less than 1 or more than 1, depending on how one adds."""
    ledger = Ledger.create(address, "films", "1")
    for _ in range(10):
        ledger.charge("films", "0.1", method="default")
    with pytest.raises(PrivacyError, match=r"epsilon = 0 left of 1 .*exhausted"):
        ledger.charge("films", 1e-300, method="default")


def test_a_float_is_charged_as_the_binary_fraction_it_is(address):
    ledger = Ledger.create(address, "films", "0.1")
    with pytest.raises(PrivacyError, match=r"Nothing was spent"):
        ledger.charge("films", 0.1, method="default")  # the float is above one tenth
    assert ledger.budget().spent_epsilon == 0


def test_overspending_is_refused_with_what_is_left_and_spends_nothing(address):
    ledger = Ledger.create(address, "films", "1", "1e-6")
    ledger.charge("films", "0.75", "1e-7", method="default")
    with pytest.raises(PrivacyError, match=r"'films' has epsilon = 0.25, delta = 9e-07 left of 1 .*at most epsilon"):
        ledger.charge("films", "0.26", method="default")
    with pytest.raises(PrivacyError, match="delta = 1e-06 was asked for"):
        ledger.charge("films", "0.1", "1e-6", method="default")
    assert len(ledger.history()) == 2
    ledger.charge("films", "0.25", "9e-7", method="default")  # exactly what is left


def test_data_sets_have_budgets_of_their_own(address):
    Ledger.create(address, "films", "1")
    ledger = Ledger.create(address, "books", "2")
    ledger.charge("films", "1", method="default")
    assert [(b.dataset, b.left_epsilon) for b in ledger.budgets()] == [("books", 2), ("films", 0)]
    with pytest.raises(LedgerError, match=r"more than one data set; it has 'books', 'films'.*--dataset"):
        ledger.budget()
    with pytest.raises(LedgerError, match="no data set 'songs'"):
        ledger.budget("songs")
    with pytest.raises(LedgerError, match="ledger init"):
        ledger.charge("songs", "1", method="default")


def test_a_budget_is_set_once(address):
    Ledger.create(address, "films", "1")
    with pytest.raises(LedgerError, match="set once"):
        Ledger.create(address, "films", "10")
    assert Ledger.open(address).budget().epsilon == 1


def test_the_history_says_who_when_what_and_for_which_certificate(address):
    ledger = Ledger.create(address, "films", "2", who="officer", note="minutes of 3 May")
    paid = ledger.charge("films", "1", method="default", who="ada", note="for the website")
    receipt = certificate(0.9, charge=paid.reference)
    digest = ledger.record(paid, receipt, manifest=MANIFEST, who="ada")
    budget, charge, release = ledger.history("films")
    assert (budget.kind, budget.who, budget.note, budget.epsilon) == ("budget", "officer", "minutes of 3 May", 2)
    assert (charge.kind, charge.who, charge.method, charge.charge) == ("charge", "ada", "default", paid.id)
    assert charge.at.endswith("+00:00")
    assert (release.kind, release.charge, release.certificate, release.manifest) == (
        "release",
        paid.id,
        digest,
        MANIFEST,
    )
    assert release.epsilon == Fraction(0.9)
    assert digest == hashlib.sha256(receipt.to_json().encode()).hexdigest()
    assert ledger.budget().spent_epsilon == 1, "what was charged is spent, although the certificate costs less"


def test_a_charge_knows_its_place_in_the_chain_and_certificates_are_given_it(address):
    ledger = Ledger.create(address, "films", "2")
    paid = ledger.charge("films", "1", method="default")
    event = ledger.history()[1]
    assert (paid.id, paid.digest) == (event.charge, event.digest)
    assert paid.reference == ChargeReference(event.charge, event.digest)


def test_a_certificate_names_the_charge_that_pays_or_is_refused(address):
    """Fresh noise under the receipt of another charge, and a receipt that names none, are not recorded."""
    ledger = Ledger.create(address, "films", "2")
    one, other = (ledger.charge("films", "0.5", method="default") for _ in range(2))
    for reference in (
        None,
        other.reference,
        ChargeReference(one.id, other.digest),
        ChargeReference(other.id, one.digest),
    ):
        with pytest.raises(PrivacyError, match="does not name the charge"):
            ledger.record(one, certificate(0.5, charge=reference), manifest=MANIFEST)
    forged = Charge(one.dataset, one.epsilon, one.delta, one.id, other.digest)  # the ledger believes its own book
    with pytest.raises(PrivacyError, match="does not name the charge"):
        ledger.record(forged, certificate(0.5, charge=forged.reference), manifest=MANIFEST)
    assert ledger.budget().releases == 0
    ledger.record(one, certificate(0.5, charge=one.reference), manifest=MANIFEST)
    ledger.record(other, certificate(0.5, charge=other.reference), manifest=MANIFEST)


def test_each_charge_pays_for_one_release(address):
    ledger = Ledger.create(address, "films", "2")
    paid = ledger.charge("films", "1", method="default")
    ledger.record(paid, certificate(1.0, charge=paid.reference), manifest=MANIFEST)
    with pytest.raises(LedgerError, match="paid for a release already"):
        ledger.record(paid, certificate(1.0, charge=paid.reference), manifest=MANIFEST)
    unknown = Charge("films", Fraction(1), Fraction(0), "0" * 32, "0" * 64)
    with pytest.raises(LedgerError, match="Charge first"):
        ledger.record(unknown, certificate(1.0, charge=unknown.reference), manifest=MANIFEST)


@pytest.mark.parametrize("manifest", ["", "f" * 63, "F" * 64, "f" * 64 + "\n", "manifest.json"])
def test_a_release_is_recorded_with_the_digest_of_its_manifest(address, manifest):
    ledger = Ledger.create(address, "films", "2")
    paid = ledger.charge("films", "1", method="default")
    with pytest.raises(LedgerError, match=r"SHA-256 of its manifest\.json"):
        ledger.record(paid, certificate(1.0, charge=paid.reference), manifest=manifest)
    assert ledger.budget().releases == 0


def test_a_seeded_certificate_and_one_dearer_than_its_charge_are_refused(address):
    ledger = Ledger.create(address, "films", "9")
    paid = ledger.charge("films", "1", method="default")

    def record(*price, **facts):
        ledger.record(paid, certificate(*price, charge=paid.reference, **facts), manifest=MANIFEST)

    with pytest.raises(PrivacyError, match="NOT PRIVATE"):
        record(1.0, private=False)
    with pytest.raises(PrivacyError, match="Charge before releasing"):
        record(1.0000000000000002)
    with pytest.raises(PrivacyError, match="Charge before releasing"):
        record(1.0, delta=1e-300)
    generous = replace(paid, epsilon=Fraction(9))  # the ledger believes its own book
    with pytest.raises(PrivacyError, match="Charge before releasing"):
        ledger.record(generous, certificate(2.0, charge=paid.reference), manifest=MANIFEST)
    assert [event.kind for event in ledger.history()] == ["budget", "charge"]


# -- units of protection


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_a_budget_is_for_one_unit_and_takes_no_charge_for_another(address, unit):
    ledger = Ledger.create(address, "films", "2", "1e-6", unit=unit)
    assert ledger.budget().unit == ledger.history()[0].unit == unit
    for other in {"value", "rating", "user", "household"} - {unit}:
        with pytest.raises(PrivacyError, match=rf"for .* \(unit '{unit}'\).*do not add up.*Nothing was spent.*Ask for"):
            ledger.charge("films", "1", method="default", unit=other)
    paid = ledger.charge("films", "1", "1e-7", method="default", unit=unit)
    assert (paid.unit, ledger.budget().left_delta) == (unit, Fraction(9, 10**7))


def test_a_certificate_for_another_unit_than_was_charged_is_refused(address):
    ledger = Ledger.create(address, "films", "2", unit="user")
    paid = ledger.charge("films", "1", method="default", unit="user")
    with pytest.raises(PrivacyError, match=r"protects unit 'value', and unit 'user' was charged"):
        ledger.record(paid, certificate(1.0, charge=paid.reference), manifest=MANIFEST)


def test_a_unit_nobody_knows_is_refused_and_no_file_appears(tmp_path):
    with pytest.raises(PrivacyError, match="value, rating, user"):
        Ledger.create(str(tmp_path / "l.db"), "films", "1", unit="household")
    assert not list(tmp_path.iterdir())


# -- fingerprints


def test_fingerprints_say_which_ratings_were_released_under_which_name(address):
    ledger = Ledger.create(address, "films", "2")
    Ledger.create(address, "books", "2")
    for dataset, fingerprint in (("films", "1" * 64), ("books", "2" * 64), ("films", "1" * 64), ("films", None)):
        ledger.charge(dataset, "0.1", method="default", fingerprint=fingerprint)
    ledger.charge("books", "0.1", method="default", fingerprint="1" * 64)
    found = ledger.fingerprints()
    assert sorted(found) == [("books", "1" * 64), ("books", "2" * 64), ("films", "1" * 64)]


# -- what people write


def test_what_people_write_is_kept_on_one_printable_line(address):
    ledger = Ledger.create(address, "films", "1", who="ada\x1b[2J\n", note="two\nlines" + "x" * 500)
    event = ledger.history()[0]
    assert event.who == "ada[2J"
    assert (len(event.note), event.note[:9]) == (400, "two\ufffdlines")
    ledger.charge("films", "1", method="x" * 100, note="100 % :name ? $1 ' \" \\ Zoë \U0001f600")
    assert ledger.history()[1].note == "100 % :name ? $1 ' \" \\ Zoë \U0001f600"


# -- finding things


def test_a_charge_is_found_by_its_id_and_only_if_it_went_through(address):
    ledger = Ledger.create(address, "films", "1")
    ledger.charge("films", "1", method="default", charge_id="a" * 32)
    with pytest.raises(PrivacyError):
        ledger.charge("films", "1", method="default", charge_id="b" * 32)
    assert ledger.was_charged("films", "a" * 32)
    assert not ledger.was_charged("films", "b" * 32)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *(("0", "0"), ("-1", "0"), ("nan", "0"), ("inf", "0"), ("1e999999999", "0"), ("one", "0")),
        *((float("inf"), 0), ("1", "1"), ("1", "-1")),
    ],
)
def test_a_budget_that_means_nothing_is_refused_and_no_file_appears(tmp_path, epsilon, delta):
    with pytest.raises(PrivacyError):
        Ledger.create(str(tmp_path / "l.db"), "films", epsilon, delta)
    assert not list(tmp_path.iterdir())


def test_what_is_no_ledger_is_said_to_be_none(tmp_path, postgres):
    (tmp_path / "text.db").write_text("not a database " * 100)
    sqlite3.connect(tmp_path / "other.db").execute("create table t (x)")
    with pytest.raises(LedgerError, match=r"no ledger at missing.db.*ledger init"):
        Ledger.open(str(tmp_path / "missing.db"))
    with pytest.raises(LedgerError, match="not a database"):
        Ledger.open(str(tmp_path / "text.db"))
    with pytest.raises(LedgerError, match=r"no ledger at other\.db"):
        Ledger.open(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(postgres.new_database())
    with pytest.raises(LedgerError, match=r"l\.db cannot be used: there is no folder nowhere"):
        Ledger.create(str(tmp_path / "nowhere" / "l.db"), "films", "1")
    with pytest.raises(LedgerError, match="cannot be used: it is a folder"):
        Ledger.create(str(tmp_path), "films", "1")
