"""What the chain shows by itself, and what only a comparison with something kept elsewhere shows."""

import json
import os
from dataclasses import replace
from fractions import Fraction

import pytest
from certificates import certificate
from ledgers_by_hand import insert, is_sqlite, make_old, rechained, remove_guards, run

from dpsr.certify.normal_price import VARIANCE_BITS
from dpsr.errors import LedgerError
from dpsr.privacy.ledger.examination import examine, head_of
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture
def ledger(address, tmp_path):
    """Two charges, each with a folder that was handed out."""
    ledger = Ledger.create(address, "films", "1")
    for name in ("one", "two"):
        paid = ledger.charge("films", "0.4", method="default")
        receipt = certificate(paid.spendable, charge=paid.reference)
        (tmp_path / name).mkdir()
        (tmp_path / name / "certificate.json").write_text(receipt.to_json())
        ledger.record(paid, receipt, manifest="d" * 64)
    return ledger


def failures(*arguments):
    return [check.words for check in examine(*arguments) if not check.holds]


def rewrite(address, events):
    """What whoever may write to the storage can do: another history, with every digest computed anew."""
    remove_guards(address)
    run(address, "delete from dpsr_events")
    for event in rechained(events):
        insert(address, event.row())


def test_a_sound_ledger_holds_and_every_head_it_ever_had_still_occurs(ledger, tmp_path):
    heads = [("films", event.digest) for event in ledger.history()]
    checks = examine(ledger, heads, [tmp_path / "one", tmp_path / "two"])
    assert all(check.holds for check in checks)
    assert [check.words for check in checks[2:]] == [
        *(f"'films': the head that was noted is entry {n} of 5" for n in range(1, 6)),
        "one: its charge is entry 2 of 'films'",
        "two: its charge is entry 4 of 'films'",
    ]
    assert ledger.budget().head == ledger.history()[-1].digest
    assert ledger.budget().entries == 5


def test_a_history_rewritten_with_new_digests_reads_well_and_is_found_by_heads_and_folders(ledger, address, tmp_path):
    """The digests have no key: by itself the ledger cannot tell. This is what the guide says, and no more."""
    head = ledger.budget().head
    rewrite(address, [replace(e, epsilon=Fraction(1, 1000)) if e.number == 4 else e for e in ledger.history()
                      if e.number <= 4])  # fmt: skip
    assert ledger.budget().left_epsilon == 1 - Fraction(2, 5) - Fraction(1, 1000)
    assert failures(ledger, [("films", head)]) == [
        *failures(ledger),
        "'films': the head that was noted does not occur: the history was rewritten, cut off or replaced after that",
    ]
    assert len(failures(ledger, (), [tmp_path / "one"])) == len(failures(ledger)), "before the change all is as it was"
    assert "two: the charge that its certificate names does not occur" in failures(ledger, (), [tmp_path / "two"])[-1]


def test_a_history_that_was_cut_off_is_found_by_a_noted_head_and_by_a_folder(ledger, address, tmp_path):
    head = ledger.budget().head
    rewrite(address, ledger.history()[:3])
    assert ledger.budget().left_epsilon == Fraction(3, 5)
    assert len(failures(ledger, [("films", head)], [tmp_path / "two"])) == len(failures(ledger)) + 2


def test_a_data_set_that_is_gone_or_was_never_there_has_no_head(ledger):
    assert "'songs': the head that was noted does not occur" in failures(ledger, [("songs", "0" * 64)])[0]


def test_a_broken_history_is_one_line_and_the_others_are_read(ledger, address):
    Ledger.create(address, "books", "1")
    remove_guards(address)
    run(address, "update dpsr_events set epsilon = '1/1000' where dataset = 'films' and number = 2")
    words = {check.words.split(":")[0]: check.holds for check in examine(ledger)}
    assert words["'books'"]
    assert not words["the history of 'films' was changed by other hands than dpsr's"]


def test_guards_that_are_missing_or_not_ours_are_named(ledger, address):
    assert not failures(ledger)
    if is_sqlite(address):
        run(address, "drop trigger dpsr_no_delete")
        run(address, "create trigger quiet after insert on dpsr_events begin select 1; end")
    else:
        run(address, "alter table dpsr_events disable trigger dpsr_no_change")
        run(address, "create rule quiet as on insert to dpsr_events do also nothing")
    (words,) = failures(ledger)
    assert "'quiet'" in words
    assert "'dpsr_no_" in words
    assert "dpsr ledger migrate" in words


@pytest.mark.parametrize("name", ["dpsr_epsilon_is_an_amount", "dpsr_one_release_per_charge"])
def test_a_constraint_that_was_dropped_is_named(postgres, name):
    address = postgres.new_database()
    ledger = Ledger.create(address, "films", "1")
    run(address, f"alter table dpsr_events drop constraint {name}")
    assert name in failures(ledger)[0]


def test_a_function_that_was_replaced_is_found(postgres):
    address = postgres.new_database()
    ledger = Ledger.create(address, "films", "1")
    run(
        address, "create or replace function dpsr_lawful() returns trigger language plpgsql as 'begin return null; end'"
    )
    assert "dpsr_lawful_entry" in failures(ledger)[0]


def test_a_ledger_of_format_1_is_read_and_told_to_migrate(address):
    make_old(address)
    (words,) = failures(Ledger.open(address))
    assert "format 1" in words
    assert "dpsr ledger migrate" in words


def test_a_charge_in_two_data_sets_is_found(ledger, address):
    Ledger.create(address, "books", "1")
    remove_guards(address)
    copied = ledger.history("films")[1]
    books = ledger.history("books")
    (_, forged) = rechained([*books, replace(copied, dataset="books")])
    insert(address, forged.row())
    assert any("occurs in 2 data sets" in words for words in failures(ledger))


@pytest.mark.parametrize("text", ["films", "films=", "=" + "0" * 64, "films=" + "0" * 63, "films=" + "F" * 64, ""])
def test_a_head_is_written_as_show_prints_it(text):
    with pytest.raises(LedgerError, match=r"DATASET=DIGEST.*dpsr ledger show"):
        head_of(text)
    assert head_of("a=b=" + "0" * 64) == ("a=b", "0" * 64)


def strange_folders(folder):
    """A certificate that is missing, none, a link, a pipe, a folder, without end, or names no charge."""
    kinds = {
        "missing": lambda file: None,
        "none": lambda file: file.write_text("{"),
        "list": lambda file: file.write_text("[1]"),
        "number": lambda file: file.write_text('{"charge": 17}'),
        "half": lambda file: file.write_text('{"charge": {"id": "x"}}'),
        "odd": lambda file: file.write_text('{"charge": {"id": ["x"], "digest": null}}'),
        "deep": lambda file: file.write_text("[" * 100_000),
        "uncharged": lambda file: file.write_text(certificate(1.0).to_json()),
        "link": lambda file: file.symlink_to("/dev/zero"),
        "pipe": os.mkfifo,
        "folder": lambda file: file.mkdir(),
        "huge": lambda file: file.touch() or os.truncate(file, 1 << 40),
        "text": lambda file: file.write_bytes(b"\xff\xfe"),
    }
    for name, make in kinds.items():
        (folder / name).mkdir(parents=True)
        make(folder / name / "certificate.json")
        yield folder / name


def test_a_certificate_with_variances_beyond_64_bits_is_read(ledger, tmp_path):
    """People at a small epsilon have them; their folders were called unreadable."""
    record = json.loads((tmp_path / "one" / "certificate.json").read_text())
    record["parts"] = [{"variance": (1 << VARIANCE_BITS) - 1}]
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide" / "certificate.json").write_text(json.dumps(record))
    assert failures(ledger, (), [tmp_path / "wide"]) == []


def test_folders_that_are_none_are_a_line_each(ledger, tmp_path):
    folders = [*strange_folders(tmp_path / "strange"), tmp_path / "nowhere", tmp_path / "one" / "certificate.json"]
    words = failures(ledger, (), folders)
    assert len(words) == len(folders)
    assert all("cannot be read" in one or "names no charge" in one for one in words)
    json.dumps(words)
