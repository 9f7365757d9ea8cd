"""`dpsr audit`: exit code 0 if no claim is refuted, 1 if one is, 2 for bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dpsr import DPSR
from dpsr.audit import auditing
from dpsr.data import realistic

SEEDED = ("--seed", "1")
"""An audit at 95 % rejects a true claim once in a while, and overlooks a false one: its draws are fixed."""


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Every trial an eighth as long: whole audits are in tests/audit, and here it is what the command makes of one."""
    every = auditing.stage1_trials
    monkeypatch.setattr(auditing, "stage1_trials", lambda *how: [replace(t, runs=t.runs // 8) for t in every(*how)])


@pytest.fixture(scope="module")
def ratings():
    return realistic(5, n_users=200, n_items=100, n_ratings=6_000)


@pytest.fixture(scope="module")
def csv(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "ratings.csv"
    ratings.to_frame().to_csv(path, index=False)
    return path


def test_the_demo_is_not_rejected(dpsr):
    outcome = dpsr("audit", "--demo", *SEEDED)
    assert outcome.code == 0, outcome.out
    assert "REJECTED" not in outcome.out
    assert "canaries" in outcome.out
    assert "not private" not in outcome.out, "the sample is nobody's"


def test_the_published_method_is_rejected_at_a_tenth(dpsr):
    outcome = dpsr("audit", "--scale", "1:5:1", "--epsilon", "0.1", "--method", "as-published", *SEEDED, "--json")
    assert outcome.code == 1
    record = json.loads(outcome.out)
    assert record["rejected"]
    assert record["findings"][0]["lower"] > 0.1


def test_planted_errors_are_all_rejected_and_that_is_a_success(dpsr):
    outcome = dpsr("audit", "--planted", *SEEDED)
    assert outcome.code == 0, outcome.out
    assert outcome.out.count("REJECTED") == 8


def test_ratings_of_ones_own_are_audited_and_marked_a_seed_repeats_it_and_nothing_is_left(
    dpsr, csv, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ["audit", csv, "--scale", "1:5:1", "--epsilon", "2", *SEEDED]
    outcome = dpsr(*words)
    assert outcome.code == 0, outcome.out
    assert "not private. For the curator only." in " ".join(outcome.out.split())
    record = json.loads(dpsr(*words, "--json").out)
    assert record["private"] is False
    found = [finding["lower"] for finding in record["findings"]]
    assert np.isfinite(found).all()
    assert all(f" {lower:.4f} " in outcome.out for lower in found), "the same draws, shown in another form"
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_audited_from_its_certificate(dpsr, ratings, tmp_path):
    folder = DPSR(4.0, random_state=1).fit(ratings).save(tmp_path / "r")
    outcome = dpsr("audit", folder, *SEEDED)
    assert outcome.code == 0, outcome.out
    assert "window sums: sensitivity against noise" in outcome.out


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "--scale and --epsilon"),
        (["--epsilon", "1"], "--scale and --epsilon"),
        (["--demo", "--planted"], "one thing at a time"),
        (["--scale", "1:5", "--epsilon", "0"], "above 0"),
        (["nowhere.csv", "--scale", "1:5", "--epsilon", "1"], "nowhere.csv"),
    ],
)
def test_bad_options_are_one_sentence(dpsr, options, word):
    outcome = dpsr("audit", *options)
    assert outcome.code == 2
    assert word in outcome.err
