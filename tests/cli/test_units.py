"""Units of protection on the command line: one vocabulary, refusals before anything is spent."""

import json
import os
import pty
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from forked import Forked

from dpsr import DPSR, load_release
from dpsr.data.synthetic import realistic
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    ratings = realistic(0, n_users=60, n_items=30, n_ratings=900)
    mask = ratings.mask
    users, items = (np.array(ids.to_pylist()) for ids in (mask.user_ids, mask.item_ids))
    rows = [f"{u},{i},{v:g}" for u, i, v in zip(users[mask.users], items[mask.items], ratings.values, strict=True)]
    path = tmp_path_factory.mktemp("people") / "ratings.csv"
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def catalogue(csv, tmp_path):
    items = sorted({line.split(",")[1] for line in csv.read_text().splitlines()[1:]}, key=int)
    path = tmp_path / "items.csv"
    path.write_text("item,title\n" + "\n".join(f"{one},Film {one}" for one in items[:-1]) + "\n")
    return path


def test_a_catalogue_of_something_else_is_said_before_anything_is_spent(dpsr, csv, tmp_path):
    wrong = tmp_path / "wines.csv"
    wrong.write_text("item\nRioja\nBarolo\n")
    outcome = release(dpsr, csv, tmp_path / "r", "--unit", "user", "--delta", "1e-4", "--items", wrong)
    assert "All 900 ratings are of items outside the catalogue" in outcome.out


def release(dpsr, csv, out, *options):
    return dpsr("release", csv, "--scale", "1:5:1", "--epsilon", "5", "--out", out, "--yes", *options)


def test_a_script_that_names_no_unit_gets_value_and_is_told_so(dpsr, csv, tmp_path):
    outcome = release(dpsr, csv, tmp_path / "r")
    assert outcome.code == 0, outcome.err
    assert "No --unit was named: value" in outcome.out
    assert load_release(tmp_path / "r").certificate.unit == "value"


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_people_are_released_verified_explained_and_served(dpsr, csv, catalogue, tmp_path, unit):
    folder = tmp_path / "r"
    outcome = release(dpsr, csv, folder, "--unit", unit, "--delta", "1e-4", "--items", catalogue)
    assert outcome.code == 0, outcome.err
    assert "For your eyes only" in outcome.out
    assert "outside the catalogue" in outcome.out
    assert "No list of items was declared" not in outcome.out
    assert "Asking which items may be named" not in outcome.err
    assert "Items that have a name, and may be on lists: 29." in outcome.out
    verified = dpsr("verify", folder, "--unit", unit)
    assert verified.code == 0
    assert "as was asked, at epsilon = 5, delta = 0.0001" in " ".join(verified.out.split())
    assert f"unit: {unit}" in dpsr("personalise", folder, csv, "--out", tmp_path / "l.parquet").out
    lists = pq.read_table(tmp_path / "l.parquet")
    assert lists.num_rows > 100
    assert lists.schema.metadata[b"dpsr.unit"] == unit.encode()
    assert "Film" in dpsr("recommend", folder, "--rated", "3=5").out
    assert "delta = 0.0001" in dpsr("explain", "--release", folder).out
    refused = dpsr("recommend", folder, "--user", "3")
    assert refused.code == 2
    assert "knows nobody" in refused.err


def test_without_a_list_of_items_it_is_said_before_anything_is_spent_that_most_will_have_no_name(dpsr, csv, tmp_path):
    outcome = release(dpsr, csv, tmp_path / "r", "--unit", "user", "--delta", "1e-4")
    shown = " ".join(outcome.out.split())
    named = pq.read_table(tmp_path / "r" / "items.parquet").num_rows
    assert shown.index("No list of items was declared") < shown.index("private: exact")
    assert f"Items that have a name, and may be on lists: {named}." in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--unit", "user"], "needs a delta"),
        (["--unit", "user", "--delta", "0"], "delta must be above 0"),
        (["--unit", "user", "--delta", "0.01", "--users", "1000"], "below one over the number of people"),
        (["--unit", "value", "--users", "1000"], "--users is for --unit rating or user"),
        (["--unit", "value", "--delta", "1e-6"], "no delta is taken. Leave it out, or protect people with it: "),
        (["--unit", "user", "--delta", "1e-6", "--method", "paper"], "protect the value of a rating"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_spent(dpsr, csv, tmp_path, options, words):
    book = Ledger.create(str(tmp_path / "l.db"), "films", "9", "1e-3", unit="user")
    outcome = release(dpsr, csv, tmp_path / "r", *options, "--ledger", tmp_path / "l.db")
    assert outcome.code == 2
    assert words in outcome.err
    assert book.budget().charges == 0
    assert not (tmp_path / "r").exists()


def test_a_ledger_keeps_epsilon_and_delta_for_one_unit_and_refuses_another(dpsr, csv, tmp_path):
    book = Ledger.create(str(tmp_path / "l.db"), "films", "9", "1e-3", unit="user")
    ledger = ["--ledger", tmp_path / "l.db"]
    done = release(dpsr, csv, tmp_path / "a", "--unit", "user", "--delta", "1e-4", *ledger)
    assert done.code == 0
    words = " ".join(done.out.split())
    assert "epsilon = 9 is left of 9, 4 will be; delta = 0.001 is left of 0.001, 0.0009 will be." in words
    assert "The ledger has epsilon = 4 left of 9 and delta = 0.0009 left of 0.001 for films." in words
    budget = book.budget()
    assert (float(budget.spent_epsilon), float(budget.spent_delta)) == (5.0, 1e-4)
    assert dpsr("verify", tmp_path / "a", *ledger).code == 0
    assert all(event.fingerprint is None for event in book.history()), "who is there is nobody's business"
    other = release(dpsr, csv, tmp_path / "b", "--unit", "value", *ledger)
    assert other.code == 2
    assert "(unit 'user'), and a charge for unit 'value' was asked for" in other.err
    assert "(dpsr ledger init --unit value)" in other.err
    assert book.budget().charges == 1


def test_predictions_for_people_whom_a_release_does_not_know_have_a_command(dpsr, csv, tmp_path):
    assert release(dpsr, csv, tmp_path / "r", "--unit", "user", "--delta", "1e-4").code == 0
    refused = dpsr("predict", tmp_path / "r", csv)
    assert (refused.code, "Predictions: dpsr personalise --predict PAIRS" in refused.err) == (2, True)


@pytest.mark.parametrize("unit", ["value", "user"])
def test_a_seeded_release_protects_nothing_whatever_its_unit(dpsr, tmp_path, unit):
    settings = {"unit": unit, **({"delta": 1e-4} if unit == "user" else {})}
    DPSR(1.0, random_state=0, **settings).fit(realistic(0, n_users=60, n_items=30, n_ratings=900)).save(tmp_path / "r")
    outcome = dpsr("verify", tmp_path / "r", "--unit", unit, "--allow-not-private")
    assert (outcome.code, "it protects" in outcome.out) == (1, False)
    assert "a release that is NOT PRIVATE protects nothing" in " ".join(outcome.out.split())


def test_a_release_of_values_is_no_release_of_people(dpsr, csv, tmp_path):
    assert release(dpsr, csv, tmp_path / "r", "--unit", "value").code == 0
    outcome = dpsr("verify", tmp_path / "r", "--unit", "user")
    assert outcome.code == 1
    assert "asked to protect every whole person" in outcome.out
    record = json.loads(dpsr("explain", "--epsilon", "1", "--unit", "user", "--delta", "1e-6", "--json").out)
    assert (record["unit"], record["delta"]) == ("user", 1e-6)


def test_in_a_terminal_the_unit_is_asked_for_with_a_sentence_on_each(csv, tmp_path):
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "dpsr", "release", str(csv), "--scale", "1:5:1", "--epsilon", "5"]
    process = Forked(
        [*command, "--delta", "1e-4", "--out", str(tmp_path / "r")], stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    shown, answers = b"", [(b"value/rating/user", b"user\n"), (b"[y/N]", b"n\n")]
    while True:
        try:
            shown += os.read(parent, 4096)
        except OSError:
            break
        if answers and answers[0][0] in shown:
            os.write(parent, answers.pop(0)[1])
    assert process.wait() == 1
    assert b"What is to be protected?" in shown
    assert b"every person with all their ratings" in shown
    assert b"Nothing was spent" in shown
