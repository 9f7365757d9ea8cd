"""`dpsr card`: the same page again, pictures beside their data, and no file of anybody's replaced unasked."""

import json
import os

import pytest

from dpsr import DPSR
from dpsr.certify.folder import write_manifest
from dpsr.data import realistic
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release that a ledger was charged for."""
    ratings, root = realistic(0, n_users=60, n_items=40, n_ratings=900), tmp_path_factory.mktemp("card")
    Ledger.create(str(root / "ledger.db"), "films", "3")
    return publish(ratings, DPSR(1.0), root / "r", account=Account.open(str(root / "ledger.db"), None, 1.0)).folder


def test_the_card_is_drawn_again_byte_for_byte(dpsr, folder, tmp_path):
    outcome = dpsr("card", folder, "--out", tmp_path / "again.html")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "again.html").read_bytes() == (folder / "card.html").read_bytes()
    assert "again.html" in outcome.out


def test_plots_come_as_svg_png_and_csv(dpsr, folder, tmp_path):
    outcome = dpsr("card", folder, "--out", tmp_path / "c.html", "--plots", tmp_path / "plots", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert sorted(record["plots"]) == sorted(str(path) for path in (tmp_path / "plots").iterdir())
    assert len(record["plots"]) == 9


def test_an_interrupt_leaves_no_draft(dpsr, folder, tmp_path, monkeypatch):
    def interrupted(*places):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    assert dpsr("card", folder, "--out", tmp_path / "c.html").code == 130
    assert not any(tmp_path.iterdir())


def test_a_file_that_exists_needs_force(dpsr, folder, tmp_path):
    page = tmp_path / "c.html"
    page.write_text("somebody's page")
    refused = dpsr("card", folder, "--out", page)
    assert refused.code == 2
    assert "--force" in refused.err
    assert page.read_text() == "somebody's page"
    assert dpsr("card", folder, "--out", page, "--force").code == 0
    assert page.read_text() != "somebody's page"


def test_a_release_folder_is_never_written_into(dpsr, folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for options in (["--out", folder / "card.html"], ["--out", folder / "other.html", "--force"]):
        refused = dpsr("card", folder, *options)
        assert refused.code == 2
        assert "manifest" in refused.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_something_that_is_no_release_is_one_sentence(dpsr, tmp_path):
    outcome = dpsr("card", tmp_path / "nowhere", "--out", tmp_path / "c.html")
    assert outcome.code == 2
    assert "not a readable release" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("certificate.json", '"nominal":1.0', '"nominal":"one"'),
        ("certificate.json", '"kind":"histogram"', '"kind":"rumour"'),
        ("budget.json", '"spent": 1', '"spent": "much"'),
        ("budget.json", '"spent": 1', '"spent": 0.5'),
        ("budget.json", "{", "["),
    ],
)
@pytest.mark.parametrize("resealed", [False, True])
def test_a_folder_somebody_changed_is_one_sentence(dpsr, folder, tmp_path, name, old, new, resealed):
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in folder.iterdir():
        (changed / path.name).write_bytes(path.read_bytes())
    text = (changed / name).read_text("utf-8")
    assert old in text
    (changed / name).write_text(text.replace(old, new, 1), "utf-8")
    if resealed:
        write_manifest(changed)
    outcome = dpsr("card", changed, "--out", tmp_path / "c.html")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "dpsr release" in outcome.err
    assert not (tmp_path / "c.html").exists()


def test_plots_that_cannot_be_written_leave_nothing(dpsr, folder, tmp_path):
    (tmp_path / "plots").write_text("a file where a folder should be")
    outcome = dpsr("card", folder, "--out", tmp_path / "c.html", "--plots", tmp_path / "plots")
    assert outcome.code == 2
    assert "could not be written" in outcome.err
    assert {path.name for path in tmp_path.iterdir()} == {"plots"}
