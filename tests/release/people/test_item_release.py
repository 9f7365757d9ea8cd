"""Releases that protect people: what their folder holds, what it must never hold, and what one's own ratings make."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import change_column, copied, resealed, rewrite, without

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.data import realistic
from dpsr.errors import DataError, DpsrError, ParameterError, PrivacyError, ReleaseError
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release import verify
from dpsr.release.folder.asked import check_people_asked
from dpsr.release.people import ItemRelease, PersonalisedPeople, own_rows
from dpsr.report.people_card import questions
from dpsr.types.item_side import HASHED_CELLS, ItemIndex

STARS = Scale(1, 5)
PERSON, ALONE, HEAVY = "canary-person-7f3a", "canary-item-9b1c", "canary-heavy-55e0"
DELTA = 1e-6
"""A tenth of it is the chance that an item of one person alone is named: seven such items are looked at, not more."""

FILMS, PEOPLE = list(range(1, 61)), list(range(1, 151))
"""The ids in `sample`."""


def canaries():
    """Some two hundred ordinary people, one who alone rated an item, one with two fifths of all ratings."""
    rng = np.random.default_rng(5)
    places = rng.choice(217 * 90, 2_711, replace=False)
    rows = [(f"canary {p // 90}", f"film {p % 90}", int(rng.integers(2, 6))) for p in places]
    rows += [(PERSON, ALONE, 1), *((PERSON, f"film {i}", 1 + 4 * (i % 2)) for i in range(37))]
    rows += [(HEAVY, f"rare {i}", 1 + i % 5) for i in range(1_831)]
    users, items, values = (np.array(column) for column in zip(*rows, strict=True))
    return Ratings.from_arrays(users, items, values, scale=STARS)


@pytest.fixture(scope="module")
def ratings():
    return canaries()


@pytest.fixture(scope="module", params=["user", "rating"])
def folder(request, ratings, tmp_path_factory):
    """A release as a curator publishes it: system noise, card, no list of items declared.

    So few made-up people that they cannot by chance have as many ratings as real ones.
    """
    target = tmp_path_factory.mktemp(request.param) / "release"
    return publish(ratings, DPSR(12.0, unit=request.param, delta=DELTA), target, people=60).folder


@pytest.fixture(scope="module")
def sample():
    return realistic(0, n_users=150, n_items=60, n_ratings=2_500)


@pytest.fixture(scope="module")
def model(sample):
    """A seeded release with a declared list of items: quick, and the same every time."""
    return DPSR(20.0, unit="user", delta=DELTA, items=FILMS, random_state=1).fit(sample)


# --- canaries ---


def texts(folder):
    """Every file as bytes, and every table written out in full, with its metadata."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
            if path.suffix == ".parquet":
                table = pq.read_table(path)
                yield f"{path.name}, read", json.dumps([table.to_pydict(), str(table.schema)], default=str).encode()


@pytest.fixture(scope="module")
def written(folder):
    return list(texts(folder))


def test_no_file_holds_the_id_of_a_person(written, ratings):
    assert all(one.startswith("canary") for one in ratings.mask.user_ids.to_pylist())
    for name, text in written:
        assert b"canary" not in text.lower(), name


def test_no_file_names_an_item_that_one_person_alone_rated(folder, written):
    for name, text in written:
        assert ALONE.encode() not in text, name
        assert b"rare " not in text, name
    named = load_release(folder).index.named.to_pylist()
    assert all(item.startswith("film ") for item in named)


def test_no_file_tells_an_exact_total(folder, ratings):
    """How many people, ratings and items there are: in no number of any file, nor as the length of a table."""
    mask = ratings.mask
    totals = {mask.n_users, mask.n_items, mask.n_ratings, int(mask.user_counts.max())}
    written = re.compile(rb"(?<![\w.,#-])(" + b"|".join(f"{n}|{n:,}".encode() for n in totals) + rb")(?![\w.,%-])")
    for name in ("card.html", "model.json", "certificate.json"):  # the manifest's numbers are sizes of files
        text = re.sub(
            rb"<style>.*?</style>|<script>.*?</script>|<svg.*?</svg>", b"", (folder / name).read_bytes(), flags=re.S
        )
        assert not written.search(text), (name, written.search(text))
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        assert len(table) not in totals
        for name, column in zip(table.column_names, table.columns, strict=True):
            if path.name == "synthetic.parquet" and name == "user":
                assert set(np.asarray(column).tolist()) == set(range(1, 61))  # made-up people are numbered
            elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
                assert not totals & set(np.asarray(column).tolist())


def test_the_canary_test_would_notice(folder, tmp_path):
    """The planted error: a file with a person's id, and one with a total."""
    forged = copied(folder, tmp_path / "forged")
    (forged / "notes.txt").write_text(f"thanks to {PERSON}")
    assert any(PERSON.encode() in text for _, text in texts(forged))


def test_the_folder_holds_cells_items_certificate_and_pages_alone(folder):
    assert {path.name for path in folder.iterdir()} == {
        "card.html", "cells.parquet", "certificate.json", "items.parquet", "manifest.json", "model.json",
        "synthetic.parquet",
    }  # fmt: skip
    assert len(pq.read_table(folder / "cells.parquet")) == HASHED_CELLS


def test_a_sound_folder_is_verified_and_is_private_at_no_more_than_was_asked(folder):
    found = verify(folder)
    assert found.intact
    release = load_release(folder)
    assert isinstance(release, ItemRelease)
    assert release.certificate.private
    assert 11.9 < release.certificate.epsilon <= 12.0
    assert release.certificate.delta == DELTA


def test_the_card_says_first_what_is_protected_and_gives_a_price_for_every_unit(folder):
    page = (folder / "card.html").read_text("utf-8")
    unit = load_release(folder).certificate.unit
    first = re.search(r"<h1>(.*?)</h1>", page)[1]
    assert first == {"user": "PEOPLE ARE PROTECTED", "rating": "RATINGS ARE PROTECTED"}[unit]
    prices = dict(re.findall(r'<th scope="row">([^<]*)</th><td class="n">([^<]*)</td>', page))
    for hidden in ("the value of one rating", "that one rating exists", "a whole person"):
        assert prices[hidden].startswith("ε = ") or (hidden, unit) == ("a whole person", "rating")
    assert (prices["a whole person"] == "not protected") == (unit == "rating")
    for paragraph in re.findall(r"<p[^>]*>(.*?)</p>", page, re.DOTALL):
        assert not re.search(r"[a-z]\.[A-Z]", re.sub(r"<[^>]+>", "", paragraph)), "a space between sentences"


# --- the ledger ---


@pytest.mark.parametrize("delta", [1e-5, 3e-6, 0.1 / 3])
def test_a_ledger_is_charged_epsilon_and_delta_for_its_unit_and_the_folder_still_tells_no_total(
    ratings, tmp_path, delta
):
    address = str(tmp_path / "ledger.db")
    ledger = Ledger.create(address, "films", "3", "0.05", unit="user")
    account = Account.open(address, None, 2.0, unit="user", delta=delta)
    folder = publish(ratings, DPSR(2.0, unit="user", delta=delta), tmp_path / "r", account=account).folder
    assert (ledger.budget().spent_epsilon, ledger.budget().left_delta) == (2, Fraction("0.05") - Fraction(repr(delta)))
    assert verify(folder).private, verify(folder).fails
    assert verify(folder).certificate.delta <= delta
    assert all(b"canary" not in text for _, text in texts(folder))
    assert [event.fingerprint for event in ledger.history() if event.fingerprint] == []


def test_a_fit_that_a_ledger_pays_for_can_be_saved(sample, tmp_path):
    address = str(tmp_path / "ledger.db")
    Ledger.create(address, "films", "3", "1e-4", unit="user")
    model = DPSR(1.0, unit="user", delta=DELTA, items=FILMS).fit(sample, ledger=address)
    assert verify(model.save(tmp_path / "r")).private
    with pytest.raises(PrivacyError, match="unit 'user'"):
        DPSR(1.0).fit(sample, ledger=address)


def test_a_list_of_items_that_makes_no_sense_is_refused_before_the_ledger_is_charged(ratings, tmp_path):
    address = str(tmp_path / "ledger.db")
    ledger = Ledger.create(address, "films", "3", "1e-4", unit="user")
    account = Account.open(address, None, 2.0, unit="user", delta=DELTA)
    with pytest.raises(ParameterError):
        publish(ratings, DPSR(2.0, unit="user", delta=DELTA, items=["a", 1]), tmp_path / "r", account=account)
    assert ledger.budget().spent_epsilon == 0
    assert not (tmp_path / "r").exists()


# --- forgeries ---


def failed(report):
    return not report.intact


def test_a_tampered_table_fails(folder, tmp_path):
    forged = copied(folder, tmp_path / "forged")
    data = bytearray((forged / "cells.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (forged / "cells.parquet").write_bytes(data)
    assert failed(verify(forged))
    with pytest.raises(ReleaseError):
        load_release(forged)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(epsilon=r["epsilon"] / 2),
        lambda r: r["parts"][0].update(mu=r["parts"][0]["mu"] * 0.9),
        lambda r: r["parts"][0].update(variance=r["parts"][0]["variance"] * 4),
        lambda r: r["parts"].pop(),
        lambda r: r["protection"].update(value="not protected"),
        lambda r: r.update(unit="value"),
    ],
)
def test_a_certificate_that_was_lowered_fails_though_the_folder_was_sealed_again(folder, tmp_path, change):
    assert failed(rewrite(copied(folder, tmp_path / "forged"), "certificate.json", change))


@pytest.mark.parametrize("settings", [{"epsilon": 0.01}, {"delta": 1e-12}, {"unit": "value"}], ids=str)
def test_settings_of_the_model_are_what_was_asked_for(model, tmp_path, settings):
    said = rewrite(model.save(tmp_path / "r"), "model.json", lambda record: record["settings"].update(settings))
    assert any("the model was made with another epsilon, delta or unit" in words for words in said.fails), said.fails


@pytest.mark.parametrize(
    ("question", "what"), [("levels", "levels of people"), ("activity", "people by"), ("scores", "effects of items")]
)
def test_tables_that_hold_what_nothing_asked_for_fail_though_every_price_was_computed_anew(
    folder, tmp_path, question, what
):
    found = rewrite(copied(folder, tmp_path / "forged"), "certificate.json", without(question))
    assert len(found.fails) == 1
    assert f"the tables hold {what}" in found.fails[0]


def test_a_card_of_ratings_says_that_their_number_was_asked(sample):
    """An officer reads there what was asked; at the unit `user` nothing of the kind is."""
    said = {
        unit: questions(DPSR(1.0, unit=unit, delta=1e-5, random_state=0).fit(sample).certificate)[0].words
        for unit in ("rating", "user")
    }
    assert "how many ratings there are is asked" in said["rating"]
    assert "ratings" not in said["user"]


def test_factors_and_names_that_nothing_asked_for_fail(model):
    parts = [part for part in model.certificate.parts if part.name != "second moments"]
    certificate, index = replace(model.certificate, parts=tuple(parts)), model.release.index
    sides = [replace(model.release.side, features=np.zeros((60, k))) for k in (2, 4)]
    assert check_people_asked(certificate, sides[0], index).holds
    assert "hold factors of taste" in check_people_asked(certificate, sides[1], index).words
    few, none = (ItemIndex(None, pa.array(names, pa.string())) for names in (["film 1"], []))
    assert "hold names of items" in check_people_asked(certificate, sides[0], few).words
    assert check_people_asked(certificate, sides[0], none).holds


def test_a_declared_list_has_as_many_items_as_cells(model, tmp_path):
    model.save(tmp_path / "release")
    found = rewrite(tmp_path / "release", "certificate.json", lambda r: r["public"].update(declared_items=3))
    assert any("60 cells" in words for words in found.fails)


@pytest.mark.parametrize(("column", "value"), [("effect", np.nan), ("effect", np.inf), ("uncertainty", -1.0)])
def test_numbers_that_cannot_be_fail_though_the_folder_was_sealed_again(folder, tmp_path, column, value):
    def spoilt(numbers):
        numbers = np.array(numbers)
        numbers[7] = value
        return numbers

    assert failed(change_column(copied(folder, tmp_path / "forged"), "cells.parquet", column, spoilt))


def test_cells_that_are_missing_and_files_of_people_fail(folder, tmp_path):
    forged = copied(folder, tmp_path / "short")
    pq.write_table(pq.read_table(forged / "cells.parquet").slice(1), forged / "cells.parquet")
    assert failed(resealed(forged))
    forged = copied(folder, tmp_path / "more")
    pq.write_table(pa.table({"user": [PERSON]}), forged / "users.parquet")
    assert failed(resealed(forged))


# --- there and back ---


def test_saved_and_loaded_it_predicts_the_same_bits(model, sample, tmp_path):
    before, after = model.release_, load_release(model.save(tmp_path / "r"))
    items = np.array(FILMS)
    np.testing.assert_array_equal(after.predict("anybody", items), before.predict("anybody", items))
    users, rated = sample.mask.user_ids.to_pylist(), np.tile(items, 150)
    who = np.repeat(users, 60)
    np.testing.assert_array_equal(
        after.personalise(sample).predict(who, rated), before.personalise(sample).predict(who, rated)
    )
    assert after.personalise(sample).table(5).equals(before.personalise(sample).table(5))
    assert (tmp_path / "r" / "NOT_PRIVATE.txt").exists()


@pytest.fixture(scope="module")
def undeclared(ratings):
    """A seeded fit without a list of items."""
    return DPSR(1.0, unit="user", delta=DELTA, random_state=0).fit(ratings)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_release_that_names_next_to_nothing_is_read_back(undeclared, tmp_path, n):
    """Few items pass the threshold where people are few: none, or one alone."""
    hashed, made = ItemIndex(None, pa.array(["a", "b"][:n], pa.string())), undeclared.release_
    release = ItemRelease(made.side, hashed, made.certificate, settings=made.settings)
    folder = release.save(tmp_path / "r")
    assert verify(folder).intact, verify(folder).fails
    assert load_release(folder).index.named.to_pylist() == ["a", "b"][:n]
    assert len(load_release(folder).popular(5).items) == n


def test_a_model_with_a_list_of_items_can_be_shown(model):
    assert repr(model).startswith("DPSR(epsilon=20.0, unit='user', delta=1e-06, items=[1, 2")
    assert repr(DPSR(1.0, unit="user", delta=DELTA, items=np.arange(3))).count("array") == 1
    assert repr(DPSR(2.0)) == "DPSR(epsilon=2.0)"


def test_a_folder_that_is_loaded_and_saved_again_is_the_same(folder, tmp_path):
    again = load_release(folder).save(tmp_path / "again")
    for name in ("cells.parquet", "items.parquet", "model.json", "certificate.json", "synthetic.parquet"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


# --- personal answers ---


def with_other_rows(sample, person):
    """Everybody's ratings but those of one person turned around, some dropped, and a person more."""
    table = sample.to_arrow().to_pandas()
    user, item, value = table.columns[:3]
    mine = table[user] == person
    others = table[~mine].iloc[::2].assign(**{value: 6 - table[~mine].iloc[::2][value]})
    rows = [table[mine], others]
    frame = {c: np.concatenate([np.asarray(one[c]) for one in rows]) for c in (user, item, value)}
    frame = {c: np.append(v, n) for (c, v), n in zip(frame.items(), (999, 3, 1), strict=True)}
    return Ratings.from_arrays(*frame.values(), scale=STARS)


@pytest.mark.parametrize("person", [1, 77, 150])
def test_whatever_all_others_rated_a_persons_predictions_and_list_are_the_same_bits(model, sample, person):
    a, b = model.personalise(sample), model.personalise(with_other_rows(sample, person))
    np.testing.assert_array_equal(a.predict(person, FILMS), b.predict(person, FILMS))
    one, other = a.recommend(person, n=20), b.recommend(person, n=20)
    assert list(one.items) == list(other.items)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_a_persons_own_rows_do_matter(model, sample):
    """The planted error would be a list that ignores them."""
    table = sample.to_arrow().to_pandas()
    user, item, value = table.columns[:3]
    turned = np.where(table[user] == 1, 6 - table[value], table[value])
    other = Ratings.from_arrays(np.asarray(table[user]), np.asarray(table[item]), turned, scale=STARS)
    a, b = (model.personalise(one).predict(1, FILMS) for one in (sample, other))
    assert np.abs(a - b).max() > 0.2


@pytest.mark.parametrize("block", [1, 7, 149, 10_000])
def test_lists_are_the_same_for_any_block_of_people(model, sample, block):
    expected = model.personalise(sample)
    found = PersonalisedPeople(model.release_, sample, block=block)
    assert found.table(8).equals(expected.table(8))
    np.testing.assert_array_equal(found.predict(PEOPLE, 11), expected.predict(PEOPLE, 11))


def test_one_persons_list_is_the_one_in_everybodys(model, sample):
    personal = model.personalise(sample)
    rows = personal.table(6).to_pandas()
    for person in (3, 140):
        mine = rows[rows["user"] == person]
        found = personal.recommend(person, n=6)
        assert mine["item"].tolist() == list(found.items)
        np.testing.assert_allclose(mine["score"], found.scores, atol=1e-12)


def test_a_list_shows_what_is_predicted(model, sample):
    """Lists are found with curves that are straight between knots; what they show is not."""
    personal = model.personalise(sample)
    rows = personal.table(6).to_pandas()
    np.testing.assert_array_equal(rows["score"], personal.predict(rows["user"], rows["item"]))
    assert len(FILMS) > len(model.release_.index.knots.ids), "or every item is a knot"
    items, values = FILMS[:9], [5, 5, 5, 4, 4, 2, 2, 1, 1]
    found = model.fold_in(items, values, n=7)
    np.testing.assert_array_equal(found.scores, model.release_.predict_own(items, values, found.items))


def test_an_odd_id_of_somebody_else_changes_nothing_for_others(sample):
    """With it all ids of the file are text; the order in which one's own items lie is still that of numbers."""
    model = DPSR(20.0, unit="user", delta=DELTA, random_state=1).fit(sample)
    rows = sample.to_arrow().to_pandas()
    users, items = rows["user"].astype(str).tolist(), rows["item"].astype(str).tolist()
    odd = Ratings.from_arrays([*users, "me"], [*items, "B00-7"], [*rows["rating"], 2], scale=STARS)
    assert pa.types.is_string(odd.mask.item_ids.type)
    assert pa.types.is_integer(sample.mask.item_ids.type)
    a = model.personalise(sample).predict([1] * 60, FILMS)
    np.testing.assert_array_equal(a, model.personalise(odd).predict(["1"] * 60, list(map(str, FILMS))))


def test_who_rates_by_the_order_of_ids_is_served_by_it_and_ids_without_meaning_cost_next_to_nothing():
    """Everybody likes a stretch of their own, so that no item is better than another; then the ids are dealt out."""
    rng, people, films = np.random.default_rng(0), 120, 200
    users, items = np.nonzero(rng.random((people, films)) < 0.4)
    liked = np.cos(2 * np.pi * (items / films - rng.random(people)[users]))
    values = np.clip(np.round(3 + liked + 0.7 * rng.normal(size=len(users))), 1, 5)
    dealt, errors = rng.permutation(films), {}
    for name, ids in (("order", items), ("dealt", dealt[items])):
        train, test = Ratings.from_arrays(users, ids, values, scale=STARS).split(0.2, seed=0)
        personal = DPSR(1.0, unit="user", delta=DELTA, random_state=0).fit(train).personalise(train)
        rows, side = test.to_arrow().to_pandas(), personal.release.side
        who, cells = train.mask.user_codes(rows["user"]), personal.release.index.cells_of(rows["item"])
        without = side.predict(personal.own_side(np.arange(personal.n_people)), who, cells)
        with_it = personal.predict(rows["user"], rows["item"])
        errors[name] = [np.sqrt(np.mean((one - rows["rating"]) ** 2)) for one in (with_it, without)]
    assert errors["order"][0] < 0.85 * errors["order"][1]
    assert errors["dealt"][0] < 1.002 * errors["dealt"][1]


def test_somebody_is_likely_to_meet_items_in_the_stretch_of_the_order_in_which_their_own_lie(model):
    """By their places alone, not by what they gave. Who brings nothing is likely to meet what is popular."""
    release = model.release_
    popular = np.sort(release.index.named_cells[np.argsort(-release.side.log_popularity)[:20]])

    def meets(cells):
        rows = own_rows(np.array([0, len(cells)]), cells, STARS, np.full(len(cells), 3.0))
        return (release.meetings.people(rows) @ release.meetings.items(release.index.named_cells).T)[0]

    first, last, nobody = meets(popular[:6]), meets(popular[-6:]), meets(popular[:0])
    early = np.arange(60) < 20
    assert first[early].sum() / first.sum() > 1.08 * last[early].sum() / last.sum()
    popularity = release.side.log_popularity[release.index.named_cells]
    np.testing.assert_allclose(np.log(nobody) - np.log(nobody.max()), popularity - popularity.max(), atol=1e-12)


def test_fold_in_is_what_personalise_says_of_the_same_ratings_of_new_people(model, sample):
    mask, person = sample.mask, 20
    mine = slice(mask.indptr[person - 1], mask.indptr[person])
    items, values = mask.item_ids.take(pa.array(mask.items[mine])).to_pylist(), sample.values[mine]
    expected = model.personalise(sample, new_people=True)
    np.testing.assert_allclose(
        model.release_.predict_own(items, values, FILMS), expected.predict(person, FILMS), atol=1e-12
    )
    assert list(model.fold_in(items, values, n=7).items) == list(expected.recommend(person, n=7).items)


def test_of_people_who_were_fitted_their_own_ratings_are_taken_out_of_what_is_known_about_items(model, sample):
    own, new = (model.personalise(sample, new_people=new).predict(20, FILMS) for new in (False, True))
    assert 0 < np.abs(own - new).max() < 0.5


def test_being_new_is_refused_where_it_makes_no_difference(sample):
    value = DPSR(1.0, random_state=0).fit(sample)
    with pytest.raises(ParameterError, match="matters where ratings are fitted at unit = 'rating' or 'user'"):
        value.personalise(sample, new_people=True)


def test_what_is_rated_is_not_recommended_and_a_stranger_gets_what_is_popular(model, sample):
    personal, mask = model.personalise(sample), sample.mask
    rated = set(mask.item_ids.take(pa.array(mask.items[mask.indptr[4] : mask.indptr[5]])).to_pylist())
    assert not rated & set(personal.recommend(5, n=30).items)
    assert list(personal.recommend("nobody", n=5).items) == list(model.release_.popular(5).items)


@pytest.mark.parametrize("likes", [False, True])
def test_what_somebody_has_is_not_recommended_however_its_number_is_spelt(likes):
    rng = np.random.default_rng(3)
    users = [f"u{k}" for k in range(1_500) for _ in range(4)]
    items = [f"{one:04d}" for _ in range(1_500) for one in rng.choice(12, 4, replace=False)]
    users, items = [*users, "u0"], [*items, str(int(items[0]))]  # the same thing, spelt in two ways by one person
    rows = Ratings.from_arrays(users, items, np.tile([4, 5], 3_001)[: len(users)], scale=STARS)
    rows = rows.liked(at_least=1) if likes else rows
    model = DPSR(12.0, unit="user", delta=1e-6).fit(rows)
    personal = model.personalise(rows)
    known = set(zip(users, map(int, items), strict=True))
    lists = personal.table(12).to_pylist()
    assert lists
    assert not [row for row in lists if (row["user"], int(row["item"])) in known]
    assert items[0].lstrip("0") not in model.fold_in([items[0]], None if likes else [5], n=12).items


def test_personal_lists_say_for_whom_they_are_and_cannot_be_a_release(model, sample, tmp_path):
    personal = model.personalise(sample)
    path = personal.save(tmp_path / "lists.parquet", n=3)
    words = b" ".join(pq.read_schema(path).metadata.values()).decode()
    assert "to its own person, and to nobody else" in words
    assert not isinstance(personal, ItemRelease)
    with pytest.raises(DpsrError):
        load_release(path)


def test_own_ratings_help(sample):
    """Accuracy on held-out ratings: from one's own ratings, never worse than a stranger's prediction."""
    train, test = sample.split(0.2, seed=0)
    model = DPSR(20.0, unit="user", delta=DELTA, items=FILMS, random_state=0).fit(train)
    users, items = test.mask.user_ids.to_pylist(), test.mask.item_ids.to_pylist()
    who = np.array(users)[np.repeat(np.arange(len(users)), np.diff(test.mask.indptr))]
    what = np.array(items)[test.mask.items]

    def rmse(predicted):
        return float(np.sqrt(((predicted - test.values) ** 2).mean()))

    assert rmse(model.personalise(train).predict(who, what)) < rmse(model.predict(who, what))


# --- bad input ---


def test_rows_of_another_kind_are_refused_by_name(model, sample):
    with pytest.raises(ParameterError, match=r"learned from ratings, found Interactions\. Pass .*scale=\"1:5:1\""):
        model.personalise(sample.liked(at_least=4))
    likes = DPSR(2.0, unit="user", delta=1e-4, items=FILMS).fit(sample.liked(at_least=4))
    for other in (sample, sample.to_arrow()):
        with pytest.raises(
            ParameterError, match=rf"learned from interactions, found {type(other).__name__}\. Pass Inter"
        ):
            likes.personalise(other)
    with pytest.raises(ParameterError, match=r"found Ratings\. Pass ratings\.mask"):
        DPSR.plan(sample, sample.scale, [1.0])


def test_a_list_for_a_user_is_refused_with_what_to_do_instead(model, tmp_path):
    with pytest.raises(ParameterError, match="knows nobody"):
        model.recommend_all(tmp_path / "lists.csv")
    with pytest.raises(ParameterError, match=r"personalise\(ratings\)\.recommend\(user\)"):
        model.release_.recommend(3)
    with pytest.raises(ParameterError, match="knows nobody"):
        model.recommend(3)


@pytest.mark.parametrize("unit", ["user", "rating"])
@pytest.mark.parametrize(
    ("delta", "words"),
    [(None, "needs a delta"), (0, "above 0"), (0.5, "below 0.1"), (-1e-5, "above 0"), (True, "above 0")],
)
def test_a_delta_that_is_missing_zero_or_too_large_is_refused_before_anything_is_spent(sample, unit, delta, words):
    with pytest.raises(PrivacyError, match=words):
        DPSR(1.0, unit=unit, delta=delta).fit(sample)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"unit": "person", "delta": DELTA}, "value, rating, user"),
        ({"unit": None}, "value, rating, user"),
        ({"unit": "value", "delta": DELTA}, "Leave it out"),
        ({"unit": "value", "items": [1, 2]}, "Leave items out"),
        ({"unit": "user", "delta": DELTA, "items": []}, "at least one item"),
        ({"unit": "user", "delta": DELTA, "items": [None, "a"]}, "every item has an id"),
        ({"unit": "user", "delta": DELTA, "items": [1, "a"]}, "all whole numbers or all text"),
        ({"unit": "user", "delta": DELTA, "items": [[1], [2]]}, "all whole numbers or all text"),
    ],
)
def test_units_and_lists_that_make_no_sense_are_refused_in_words(sample, settings, words):
    with pytest.raises(DpsrError, match=words):
        DPSR(1.0, **settings).fit(sample)


def test_one_person_alone_gets_the_list_that_they_get_among_others(model):
    mine = Ratings.from_arrays([7] * 3, [1, 2, 3], [5, 1, 4], scale=STARS)
    both = Ratings.from_arrays([7] * 3 + [8] * 3, [1, 2, 3] * 2, [5, 1, 4, 3, 3, 3], scale=STARS)
    alone, among = (model.personalise(one, new_people=True).recommend(7, n=5) for one in (mine, both))
    assert repr(alone) == repr(among)
    np.testing.assert_allclose(alone.scores, among.scores)


@pytest.mark.parametrize("settings", [{}, {"unit": "rating", "delta": DELTA}, {"unit": "user", "delta": DELTA}])
@pytest.mark.parametrize(("users", "items"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [1, 1, 1])])
def test_one_person_or_one_item_alone_is_refused_before_anything_is_charged(tmp_path, settings, users, items):
    ledger = Ledger.create(str(tmp_path / "ledger.db"), "films", "3")
    alone = Ratings.from_arrays(users, items, [1, 2, 3], scale=STARS)
    with pytest.raises(DataError, match="at least 2 users and 2 items are needed to learn from"):
        DPSR(1.0, **settings).fit(alone, ledger=tmp_path / "ledger.db")
    assert len(ledger.history()) == 1, "it was opened, and nothing charged"


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_two_people_are_few_and_nothing_breaks(unit):
    ratings = Ratings.from_arrays([1, 1, 2], ["a", "b", "a"], [1, 2, 3], scale=STARS)
    model = DPSR(0.5, unit=unit, delta=DELTA).fit(ratings)
    assert len(model.release_.index.named) == 0
    predicted = model.personalise(ratings).predict([1, 2, 3], ["b", "b", "unheard of"])
    assert ((predicted >= 1) & (predicted <= 5)).all()


def test_a_catalogue_that_lacks_rated_items_drops_their_rows_and_counts_them_without_names(sample, tmp_path):
    model = DPSR(5.0, unit="user", delta=DELTA, items=range(1, 41), random_state=0).fit(sample)
    lacking = int((sample.mask.items >= 40).sum())  # codes: ids less one
    personal = model.personalise(sample)
    assert personal.dropped == lacking > 0
    assert max(personal.table(50)["item"].to_pylist()) <= 40
    assert np.isfinite(personal.predict(PEOPLE, 55)).all()
    assert verify(model.save(tmp_path / "r")).intact


def test_a_catalogue_with_items_nobody_rated_is_ordinary(sample):
    model = DPSR(5.0, unit="user", delta=DELTA, items=range(1, 201), random_state=0).fit(sample)
    assert model.release_.side.n_cells == 200
    assert np.isfinite(model.predict(1, np.arange(1, 201))).all()


def test_own_ratings_of_another_scale_are_refused(model):
    other = Ratings.from_arrays([1, 2], [1, 2], [1, 10], scale=Scale(1, 10))
    with pytest.raises(DpsrError, match="scale"):
        model.personalise(other)
    with pytest.raises(ParameterError, match="scale"):
        model.release_.fold_in([1], [9])
    with pytest.raises(ParameterError, match="one rating per item"):
        model.release_.fold_in([1, 2], [3])
