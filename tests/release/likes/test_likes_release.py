"""Releases of likes: what their folder holds, what it must never hold, and what one's own interactions make of it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import copied, resealed, rewrite, without

from dpsr import DPSR, Interactions, Ratings, load_release
from dpsr.errors import DataError, ParameterError, PrivacyError, ReleaseError
from dpsr.pipeline.likes import check_likes
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release import verify
from dpsr.release.likes import LikesRelease
from dpsr.report.people_card import questions
from dpsr.types.likes_side import strengths

PERSON, ALONE = "canary-person-7f3a", "canary-item-9b1c"
DELTA = 1e-5


def sample(n_users=240, n_items=60, canaries=False, seed=0):
    """Two crowds, each with its own half of the items, popular ones first."""
    rng = np.random.default_rng(seed)
    half = n_items // 2
    p = 1 / (3 + np.arange(half))
    taken = [
        (u, int(j) + half * (u % 2)) for u in range(n_users) for j in rng.choice(half, 9, replace=False, p=p / p.sum())
    ]
    users, items = ([f"canary {u}" for u, _ in taken], [f"film {j}" for _, j in taken])
    if canaries:
        users, items = [*users, PERSON, PERSON], [*items, ALONE, "film 1"]
    return Interactions.from_arrays(users, items)


@pytest.fixture(scope="module", params=["user", "rating"])
def folder(request, tmp_path_factory):
    """A release as a curator publishes it: system noise, card, no list of items declared."""
    target = tmp_path_factory.mktemp(request.param) / "release"
    return publish(sample(canaries=True), DPSR(12.0, unit=request.param, delta=DELTA), target).folder


@pytest.fixture(scope="module")
def likes():
    return sample()


@pytest.fixture(scope="module")
def model(likes):
    return DPSR(30.0, unit="user", delta=1e-3, items=likes.item_ids, random_state=0).fit(likes)


def test_a_folder_is_verified_and_loads_as_it_was(folder, tmp_path):
    found = verify(folder)
    assert found.intact, found.fails
    assert found.private
    release = load_release(folder)
    assert isinstance(release, LikesRelease)
    release.save(tmp_path / "again")
    again = load_release(tmp_path / "again")
    np.testing.assert_array_equal(again.fold_in(["film 1"]).scores, release.fold_in(["film 1"]).scores)


def test_nothing_in_a_folder_names_a_person_or_an_item_of_one_person_alone(folder):
    for file in folder.iterdir():
        content = file.read_bytes()
        assert b"canary" not in content, file.name
    assert {file.name for file in folder.iterdir()} == {
        "card.html", "cells.parquet", "certificate.json", "items.parquet", "manifest.json", "model.json",
        "synthetic.parquet", "taste.parquet",
    }  # fmt: skip


def test_the_card_speaks_of_interactions_and_of_people_who_do_not_exist(folder):
    card = (folder / "card.html").read_text("utf-8")
    assert "Weighted counts" in card
    assert "Nobody below exists" in card or "made-up people" in card
    assert "their ratings" not in card


def test_rounds_of_one_question_are_one_row_of_the_card_with_the_share_of_all(model):
    certificate = model.release.certificate
    names = [part.name for part in certificate.parts]
    rows = questions(certificate)
    assert len(names) > len(set(names)) == len(rows)
    rounds = [part for part in certificate.parts if part.name == "numbers of interactions"]
    (row,) = (one for one in rows if one.name == f"Numbers of interactions, {len(rounds)} times")
    whole = sum(part.squared_mu("user") for part in certificate.parts)
    assert row.share == pytest.approx(float(sum(part.squared_mu("user") for part in rounds) / whole))
    assert row.noise.endswith(f"mu = {float(sum(part.squared_mu('user') for part in rounds)) ** 0.5:.4g}")
    assert sum(one.share for one in rows) == pytest.approx(1)
    assert [one.start for one in rows] == pytest.approx([sum(one.share for one in rows[:i]) for i in range(len(rows))])


def test_own_interactions_lead_to_what_the_own_crowd_does(model, likes):
    """Two crowds: lists stay within the half of somebody's own."""
    own = [
        model.fold_in([f"film {j}" for j in (0, 2, 4)], n=8),
        model.fold_in([f"film {j}" for j in (31, 33, 35)], n=8),
    ]
    halves = [[int(item.split()[1]) >= 30 for item in found.items] for found in own]
    assert np.mean(halves[0]) < 0.3 < 0.7 < np.mean(halves[1])
    assert not {"film 0", "film 2", "film 4"} & set(own[0].items)


def test_lists_of_everybody_are_those_of_each_alone_in_any_blocks(model, likes, tmp_path):
    personal = model.personalise(likes)
    path = personal.recommend_all(tmp_path / "lists.parquet", n=5)
    table = pq.read_table(path)
    assert b"nobody else" in table.schema.metadata[b"dpsr.for"]
    for user in likes.user_ids.to_pylist()[:6]:
        mine = table.filter(pa.compute.equal(table["user"], user))
        assert mine["item"].to_pylist() == personal.recommend(user, 5).items
    assert model.release.personalise(likes, block=7).table(5).equals(personal.table(5))
    stranger = personal.recommend("nobody we know", 5)
    assert stranger.items == model.release.popular(5).items


def test_one_persons_list_does_not_depend_on_anybody_elses_rows(model, likes):
    user = likes.user_ids[0].as_py()
    alone = model.personalise(likes.of_people(np.array([0])))
    assert alone.recommend(user, 10).items == model.personalise(likes).recommend(user, 10).items


def test_strengths_are_the_same_bits_in_whatever_order_items_come():
    """The order of items is that of all ids, and somebody else's id that is text makes it another."""
    rng = np.random.default_rng(0)
    weights, order = rng.uniform(0.1, 9, 50), rng.permutation(50)
    whole = np.array([0, 50])
    np.testing.assert_array_equal(strengths(whole, weights)[order], strengths(whole, weights[order]))


def test_weights_move_a_list_and_only_their_ratios_matter(model):
    items = ["film 0", "film 1", "film 31"]
    even, tilted = model.fold_in(items), model.fold_in(items, [1, 1, 9])
    assert not np.array_equal(even.scores, tilted.scores)
    np.testing.assert_allclose(model.fold_in(items, [10, 10, 90]).scores, tilted.scores)
    with pytest.raises(ParameterError, match="above 0"):
        model.fold_in(items, [1, 1, -1])


def test_a_certificate_of_likes_speaks_of_interactions(model):
    shown = model.certificate._repr_html_()
    assert "<td>that one interaction exists</td>" in shown
    assert "rating exists" not in shown


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, float("nan"), float("inf"), 1e9])
def test_an_epsilon_that_is_none_is_refused_before_its_noise_is_sought(epsilon):
    with pytest.raises(PrivacyError, match="epsilon must be a number above 0"):
        check_likes("user", epsilon, 1e-6)


def test_interactions_at_the_unit_value_are_refused_with_a_sentence_and_nothing_is_charged(likes, tmp_path):
    ledger = Ledger.create(str(tmp_path / "ledger.db"), "shop", "10")
    with pytest.raises(ParameterError, match=r"who did what is the secret.*unit='user'"):
        DPSR(1.0).fit(likes, ledger=str(tmp_path / "ledger.db"))
    with pytest.raises(ParameterError, match="who did what is the secret"):
        publish(likes, DPSR(1.0), tmp_path / "release")
    with pytest.raises(DataError, match="interactions"):
        DPSR.paper(1.0).fit(likes)
    with pytest.raises(PrivacyError, match="so small together"):
        DPSR(1e-4, unit="user", delta=1e-9).fit(likes, ledger=str(tmp_path / "ledger.db"))
    with pytest.raises(PrivacyError, match="needs a delta"):
        DPSR(1.0, unit="user").fit(likes, ledger=str(tmp_path / "ledger.db"))
    assert ledger.budget("shop").left_epsilon == 10
    assert not (tmp_path / "release").exists()


def test_ratings_are_not_served_by_a_release_of_interactions_and_the_sentence_says_what_to_pass(model):
    ratings = Ratings.from_arrays(["ann", "bob"], ["film 1", "film 2"], [1, 5], scale="1:5:1")
    with pytest.raises(ParameterError, match=r"liked\(at_least=4\)"):
        model.personalise(ratings)
    with pytest.raises(ParameterError, match="knows nobody"):
        model.recommend("canary 1")


def test_without_an_item_above_the_threshold_the_release_says_so_and_offers_nothing(tmp_path):
    """Two people: paid for, released, verified, and no list."""
    few = Interactions.from_arrays(["ann", "ann", "bob"], ["heat", "alien", "heat"])
    done = publish(few, DPSR(0.5, unit="user", delta=DELTA), tmp_path / "release", people=10)
    release = load_release(done.folder)
    assert release.popular(5).items == []
    assert release.personalise(few).recommend("ann").items == []
    assert release.personalise(few).table(3).num_rows == 0
    card = (done.folder / "card.html").read_text("utf-8")
    assert "No item passed the threshold" in card
    assert "everybody gets" not in card, "there are no lists"
    assert verify(done.folder).intact


def test_with_a_declared_list_two_people_are_served_by_noisy_popularity(tmp_path):
    few = Interactions.from_arrays(["ann", "ann", "bob"], ["heat", "alien", "heat"])
    model = DPSR(0.5, unit="user", delta=DELTA, items=["heat", "alien", "ran"]).fit(few)
    assert sorted(model.fold_in(["heat"], n=5).items) == ["alien", "ran"]
    assert model.release.side.method == "popularity"
    one_item = DPSR(0.5, unit="rating", delta=DELTA, items=["heat"]).fit(few)
    assert one_item.fold_in([], n=5).items == ["heat"]


def test_a_seeded_release_is_not_private_and_its_folder_says_so(model, tmp_path):
    assert not model.certificate.private
    model.save(tmp_path / "release")
    assert (tmp_path / "release" / "NOT_PRIVATE.txt").exists()
    assert not verify(tmp_path / "release").private


@pytest.mark.parametrize(
    "change",
    [
        {"gram": [-1.0]},
        {"scores": "magic"},
        {"frequent": 3},
        {"unit": "value"},
        {"method": "people"},
        {"extra": 1},
    ],
)
def test_a_model_that_says_something_else_is_refused(folder, tmp_path, change):
    forged = copied(folder, tmp_path / "forged")
    record = json.loads((forged / "model.json").read_text("utf-8")) | change
    (forged / "model.json").write_text(json.dumps(record), "utf-8")
    resealed(forged)
    assert verify(forged).fails
    with pytest.raises(ReleaseError):
        load_release(forged)


@pytest.mark.parametrize(
    ("question", "what"),
    [("numbers of interactions", "people by"), ("weighted counts", "popularities of"), ("names", "names of items")],
)
def test_tables_that_hold_what_nothing_asked_for_are_refused_though_every_price_was_computed_anew(
    folder, tmp_path, question, what
):
    found = rewrite(copied(folder, tmp_path / "forged"), "certificate.json", without(question))
    assert len(found.fails) == 1
    assert f"the tables hold {what}" in found.fails[0]


def test_axes_of_taste_that_nothing_asked_for_are_refused(model, tmp_path):
    assert model.release.side.n_axes > 0
    model.save(tmp_path / "release")
    found = rewrite(tmp_path / "release", "certificate.json", without("second moments of presence"))
    assert ["the tables hold axes of taste" in words for words in found.fails] == [True]


@pytest.mark.parametrize("column", ["popularity", "cell"])
def test_numbers_that_no_release_has_are_refused(folder, tmp_path, column):
    forged = copied(folder, tmp_path / "forged")
    name = "cells.parquet" if column == "popularity" else "taste.parquet"
    table = pq.read_table(forged / name)
    if not table.num_rows:
        return
    values = np.array(table[column].to_numpy())
    values[0] = -1
    place = table.schema.get_field_index(column)
    pq.write_table(
        table.set_column(place, column, pa.array(values)), forged / name, compression="snappy",
        data_page_version="1.0", version="2.6",
    )  # fmt: skip
    resealed(forged)
    assert verify(forged).fails
