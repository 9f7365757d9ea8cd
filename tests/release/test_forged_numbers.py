"""Certificates that state another number of numbers for a question than the tables ask for, resealed: refused.

Every price was computed anew, and no price depends on that number; cards show it.
"""

import json

import numpy as np
import pytest
from folders import copied, restated, rewrite, without

from dpsr import DPSR, Interactions, load_release
from dpsr.certify.check import check_certificate
from dpsr.data import realistic
from dpsr.errors import ReleaseError
from dpsr.release import verify
from dpsr.release.folder.asked import check_people_asked

CELLS = 60


@pytest.fixture(scope="module", params=["user", "rating"])
def rated(request, tmp_path_factory):
    """A release with factors, and with coefficients asked before they were known and after."""
    ratings = realistic(0, n_users=3_000, n_items=CELLS, n_ratings=75_000)
    asked = DPSR(30.0, unit=request.param, delta=1e-5, items=list(range(1, CELLS + 1)), random_state=1)
    return asked.fit(ratings).save(tmp_path_factory.mktemp(request.param) / "r", people=60)  # to be drawn again


@pytest.fixture(scope="module", params=["user", "rating"])
def liked(request, tmp_path_factory):
    """A release of likes with axes of taste: two crowds, each with its own half of the items."""
    rng, half = np.random.default_rng(0), CELLS // 2
    items = np.concatenate([half * (u % 2) + rng.choice(half, 9, replace=False) for u in range(600)])
    likes = Interactions.from_arrays(np.repeat(np.arange(600), 9), items)
    asked = DPSR(30.0, unit=request.param, delta=1e-3, items=likes.item_ids, random_state=0)
    return asked.fit(likes).save(tmp_path_factory.mktemp(request.param) / "r", people=60)


def parts_of(folder):
    return json.loads((folder / "certificate.json").read_text("utf-8"))["parts"]


def pairs(n):
    return n * (n - 1) // 2


def stating(place, numbers):
    return restated(lambda record: record["parts"][place].update(numbers=numbers))


def refused(folder, target, place, numbers):
    forged = copied(folder, target / f"{place} {numbers}")
    found = rewrite(forged, "certificate.json", stating(place, numbers))
    assert found.fails, parts_of(forged)[place]
    assert all("as many sums and symbols" in words or f"states {numbers:,}" in words for words in found.fails)
    with pytest.raises(ReleaseError, match="not a readable release folder"):
        load_release(forged)


def test_scores_and_coefficients_have_as_many_numbers_as_cells_and_factors_ask_for(rated, tmp_path):
    parts, factors = parts_of(rated), load_release(rated).side.n_factors
    assert verify(rated).fails == ()
    assert factors > 0
    widths = {part["numbers"] // CELLS for part in parts if part["name"].startswith("scores")}
    assert widths == {2, 2 + factors}
    assert len({part["numbers"] for part in parts if part["name"] == "coefficients"}) == 2
    for place, part in enumerate(parts):
        refused(rated, tmp_path, place, part["numbers"] + 1)
        if part["name"].startswith("scores"):
            refused(rated, tmp_path, place, part["numbers"] + CELLS)
    before = next(place for place, part in enumerate(parts) if part["name"] == "coefficients")
    refused(rated, tmp_path, before, parts[-1]["numbers"])  # as if factors had been known then


@pytest.mark.parametrize(
    ("question", "what"), [("coefficients", "where people's coefficients lie"), ("scores", "effects of items")]
)
def test_a_question_left_out_is_missed_though_another_is_like_it_and_every_price_was_computed_anew(
    rated, tmp_path, question, what
):
    """At the unit `rating` scores of people are asked besides."""
    found = rewrite(copied(rated, tmp_path / "forged"), "certificate.json", without(question))
    assert any(f"the tables hold {what}" in words for words in found.fails), found.fails


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_coefficients_need_no_question_where_few_people_leave_them_as_believed(unit):
    ratings = realistic(0, n_users=80, n_items=30, n_ratings=900)
    release = DPSR(0.5, unit=unit, delta=1e-5, items=list(range(1, 31)), random_state=1).fit(ratings).release_
    assert "coefficients" not in {part.name for part in release.certificate.parts}
    assert check_people_asked(release.certificate, release.side, release.index).holds


def test_counts_and_moments_have_as_many_numbers_as_cells_and_frequent_cells_ask_for(liked, tmp_path):
    parts, frequent = parts_of(liked), load_release(liked).side.frequent
    assert verify(liked).fails == ()
    names = [part["name"] for part in parts]
    for place, part in enumerate(parts):
        if part["name"] != "weighted counts":
            refused(liked, tmp_path, place, part["numbers"] + 1)
        elif names.index("weighted counts") == place:
            refused(liked, tmp_path, place, part["numbers"] - 1)
        refused(liked, tmp_path, place, part["numbers"] + CELLS)
        if part["numbers"] == pairs(len(frequent)):
            refused(liked, tmp_path, place, pairs(len(frequent) - 1))
    assert pairs(len(frequent)) in {part["numbers"] for part in parts}


@pytest.mark.parametrize(("numbers", "holds"), [(pairs(24), True), (pairs(CELLS + 1), False), (pairs(24) + 1, False)])
def test_second_moments_are_those_of_some_of_the_cells(rated, numbers, holds):
    record = json.loads((rated / "certificate.json").read_text("utf-8"))
    moments = next(part for part in record["parts"] if part["name"] == "second moments")
    moments["numbers"] = numbers
    if "settings" in moments:  # at the unit `rating` its bound is for a number of cells
        moments["settings"]["cells"] = 24.0
    checks, _ = check_certificate(json.dumps(record).encode())
    assert [check.holds for check in checks if "sums and symbols" in check.words] == [holds]


@pytest.mark.parametrize(("sums", "fails"), [(121, 0), (122, 1)])
def test_sums_with_signs_are_one_for_every_two_classes(sums, fails, tmp_path):
    folder = DPSR(1.0, random_state=0).fit(realistic(3, n_users=40, n_items=30, n_ratings=500)).save(tmp_path / "r")

    def with_contrasts(record):
        part = next(part for part in record["parts"] if part["name"] == "window sums")
        part["families"].append(["contrasts", sums])
        for name in ("weights", "light"):
            part[name] = [[*weights, 0] for weights in part[name]]

    found = rewrite(folder, "certificate.json", restated(with_contrasts))
    assert ["as many sums and symbols" in words for words in found.fails] == [True] * fails
