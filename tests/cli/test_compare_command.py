"""`dpsr compare`: releases side by side."""

import json
from math import sqrt

import numpy as np
import pytest

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.data import realistic
from dpsr.pipeline.compare import compare


@pytest.fixture(scope="module")
def others(small_ratings, tmp_path_factory):
    root = tmp_path_factory.mktemp("compare")
    DPSR(4.0).fit(small_ratings).save(root / "richer")
    DPSR.paper(0.1, as_published=True).fit(small_ratings).save(root / "published")
    return root


def test_every_release_has_its_column_with_the_price_of_its_certificate(dpsr, folder, others):
    outcome = dpsr("compare", folder, others / "richer", others / "published", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    first, second, third = found["columns"]
    assert first["epsilon"] == load_release(folder).certificate.epsilon
    assert sum(second["parts"].values()) == pytest.approx(second["epsilon"])
    assert (first["n_users"], first["n_items"], first["n_ratings"]) == (60, 40, 1_200)
    assert first["private"]
    assert not third["private"]
    assert second["expected"] < first["expected"], "more budget, less expected error"
    assert third["expected"] is None, "the forecast is about our own pipeline"
    assert len(found["between"]) == 3


def test_differences_and_overlap_are_those_of_the_python_calls(folder, others):
    a, b = load_release(folder), load_release(others / "richer")
    found = compare([a, b], ["a", "b"]).between[0]
    users, items = np.divmod(np.arange(60 * 40), 40)
    apart = np.abs(a.predict(users + 1, items + 1) - b.predict(users + 1, items + 1)).mean()
    assert found.difference == pytest.approx(apart, rel=0.05)
    lists = [(set(a.recommend(u, 10).items), set(b.recommend(u, 10).items)) for u in range(1, 61)]
    shared = [len(x & y) / len(x) for x, y in lists if x]  # one release or the other: the same items are unrated
    assert found.overlap == pytest.approx(np.mean(shared)), "all sixty users are compared"


def test_a_release_does_not_differ_from_itself(folder):
    release = load_release(folder)
    same = compare([release, release], ["a", "a"]).between[0]
    assert same.difference == 0
    assert same.overlap == 1


def test_a_comparison_can_be_repeated(dpsr, folder, others):
    assert dpsr("compare", folder, others / "richer").out == dpsr("compare", folder, others / "richer").out


def test_people_see_columns_parts_and_what_the_figures_mean(dpsr, folder, others):
    out = dpsr("compare", folder, others / "richer", others / "published").out
    assert "window sums" in out
    assert "NOT PRIVATE" in out
    assert "share of predicting one constant" in out


def test_one_release_alone_is_shown(dpsr, folder):
    outcome = dpsr("compare", folder)
    assert outcome.code == 0
    assert "exact epsilon" in outcome.out
    assert "between" not in outcome.out


def test_releases_without_common_users_or_scales_say_so(dpsr, folder, tmp_path):
    rows = [f"x{u}" for u in range(20) for _ in range(5)], [j for _ in range(20) for j in range(1, 6)]
    DPSR(1.0).fit(Ratings.from_arrays(*rows, np.arange(100) % 5 + 1, scale=Scale(1, 5))).save(tmp_path / "strangers")
    assert "no user or no item in common" in dpsr("compare", folder, tmp_path / "strangers").out
    users = np.repeat(np.arange(1, 21), 5)
    wide = Ratings.from_arrays(users, rows[1], np.arange(100) % 11, scale=Scale(0, 10))
    DPSR(1.0).fit(wide).save(tmp_path / "wide")
    outcome = dpsr("compare", folder, tmp_path / "wide")
    assert outcome.code == 0
    assert "scales differ" in outcome.out


def test_what_is_no_release_is_one_sentence(dpsr, folder, tmp_path):
    for bad in (tmp_path / "nowhere", tmp_path):
        outcome = dpsr("compare", folder, bad)
        assert outcome.code == 2
        assert "not a readable release folder" in outcome.err
        assert outcome.err.count("\n") == 1


@pytest.fixture(scope="module")
def of_people(tmp_path_factory):
    """Two releases of people who rate, one of interactions."""
    root, ratings = tmp_path_factory.mktemp("people"), realistic(0, n_users=300, n_items=60, n_ratings=3_000)
    for name, epsilon in (("strict", 2.0), ("open", 20.0)):
        DPSR(epsilon, unit="user", delta=1e-4, items=ratings.mask.item_ids).fit(ratings).save(root / name)
    likes = ratings.liked(at_least=1)
    DPSR(20.0, unit="user", delta=1e-4, items=likes.item_ids).fit(likes).save(root / "likes")
    return root


def test_releases_that_know_nobody_are_compared_by_people_who_do_not_exist(dpsr, of_people):
    outcome = dpsr("compare", of_people / "strict", of_people / "open", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert [column["unit"] for column in found["columns"]] == ["user", "user"]
    assert [column["n_users"] for column in found["columns"]] == [None, None]
    assert found["made_up"]
    strict, opened = load_release(of_people / "strict"), load_release(of_people / "open")
    rows = strict.synthesise(100).to_pandas()
    people = [own for _, own in rows.groupby("user")]
    lists = [
        [set(map(str, release.fold_in(own["item"].tolist(), own["rating"].tolist(), 10).items)) for own in people]
        for release in (strict, opened)
    ]
    shared = [len(a & b) / max(len(a), len(b)) for a, b in zip(*lists, strict=True) if a or b]
    assert found["between"][0]["overlap"] == pytest.approx(np.mean(shared))
    assert 0 < found["between"][0]["difference"] < 4
    words = " ".join(dpsr("compare", of_people / "strict", of_people / "open").out.split())
    assert "people who do not exist were drawn from the first" in words


def test_parts_of_normal_noise_add_up_by_their_squares(of_people):
    release = load_release(of_people / "strict")
    parts = compare([release], ["a"]).columns[0].parts
    mu = sqrt(sum(float(part.squared_mu("user")) for part in release.certificate.parts))
    assert sqrt(sum(price**2 for price in parts.values())) == pytest.approx(mu, rel=1e-6)


def test_a_release_of_interactions_is_like_itself_and_unlike_one_of_ratings(dpsr, of_people, folder):
    shown = dpsr("compare", of_people / "likes", of_people / "likes")
    assert "no ratings" in shown.out
    assert "100.0%" in shown.out
    for other in (folder, of_people / "open"):
        refused = dpsr("compare", of_people / "likes", other)
        assert refused.code == 2
        assert "releases of one kind are compared" in refused.err


def test_no_more_pairs_are_said_to_be_compared_than_there_are(dpsr, folder):
    assert "over 2,400 common pairs" in " ".join(dpsr("compare", folder, folder).out.split())
