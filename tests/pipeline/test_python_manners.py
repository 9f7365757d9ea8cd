"""The library as people who know pandas and scikit-learn expect it."""

import json
import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.data import realistic
from dpsr.errors import DataError, ParameterError, PrivacyError, ScaleError
from dpsr.pipeline import estimator
from dpsr.pipeline.verification import verify_release
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture(scope="module")
def ratings():
    return realistic(0, n_users=60, n_items=40, n_ratings=900, timestamps=True)


@pytest.fixture(scope="module")
def model(ratings):
    return DPSR(1.0).fit(ratings)


# -- getting in


@pytest.mark.parametrize(
    ("wrong", "write"),
    [
        (pd.DataFrame({"user": [1], "item": [2], "rating": [3]}), r"Ratings.from_frame\(df, scale=\"1:5:1\"\)"),
        (pl.DataFrame({"user": [1], "item": [2], "rating": [3]}), r"Ratings.from_frame"),
        ("ratings.csv", r"Ratings.read\(path"),
        (np.eye(3), r"Ratings.from_arrays\(users, items, values"),
    ],
)
def test_what_is_not_ratings_is_told_what_to_write(wrong, write):
    for fit in (DPSR(1.0).fit, DPSR.paper(1.0).fit):
        with pytest.raises(DataError, match=write):
            fit(wrong)


@pytest.mark.parametrize("scale", ["0.5:5:0.5", (0.5, 5, 0.5), Scale(0.5, 5, 0.5)])
def test_a_scale_may_be_written_as_text_or_numbers(scale):
    table = Ratings.from_arrays([1, 1, 2], [1, 2, 1], [0.5, 5, 2.5], scale=scale)
    assert table.scale == Scale(0.5, 5, 0.5)
    assert Ratings.from_frame(table.to_frame(), scale=scale).scale == table.scale


def test_a_scale_that_is_none_of_these_is_refused():
    with pytest.raises(ScaleError, match="LOW:HIGH:STEP"):
        Ratings.from_arrays([1, 2], [1, 2], [1, 2], scale=5)


# -- lists


def test_lists_of_several_users_are_one_table_with_their_own_lists_in_it(model):
    found = model.recommend([3, 1, 2], n=4)
    frame = found.to_pandas()
    assert list(frame.columns) == ["user", "rank", "item", "score"]
    assert frame["user"].tolist() == [3] * 4 + [1] * 4 + [2] * 4
    for user in (1, 2, 3):
        assert frame[frame["user"] == user]["item"].tolist() == model.recommend(user, 4).items
    assert found.to_polars().shape == (12, 4)


@pytest.mark.parametrize("make", [np.array, tuple, pd.Series, pl.Series, lambda ids: pd.Series(ids).array])
def test_every_kind_of_array_is_one(model, make):
    assert model.recommend(make([3, 1]), n=2).to_pandas()["user"].tolist() == [3, 3, 1, 1]


def test_somebody_unknown_is_refused_unless_told_otherwise(model):
    for who in ("nobody", [1, "nobody"]):
        with pytest.raises(ParameterError, match="'nobody' is not in this release"):
            model.recommend(who)
    assert len(model.recommend("nobody", n=3, unknown="average").items) == 3
    assert len(model.recommend([1, "nobody"], n=3, unknown="average")) == 6
    with pytest.raises(ParameterError, match='"error" or "average"'):
        model.recommend(1, unknown="guess")


def test_one_list_unpacks_prints_and_becomes_a_frame(model):
    items, scores = found = model.recommend(1, n=6)
    assert found.to_pandas()["item"].tolist() == items
    assert found.to_polars()["score"].to_list() == pytest.approx(list(scores))
    assert repr(found).startswith(f"Recommendations({items[0]}: ")
    assert "<td>1</td>" in found._repr_html_()


def test_html_in_a_notebook_takes_nothing_from_strangers_for_markup():
    names = ["<script>alert(1)</script>", "b"]
    table = Ratings.from_arrays(["x", "x", "y"], [names[0], names[1], names[1]], [1, 5, 3], scale=(1, 5))
    release = DPSR(1.0).fit(table).release
    shown = release.recommend("y")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "private: epsilon = 1" in release._repr_html_()


def test_certificates_are_frames_and_html_too(model):
    certificate = model.certificate
    rows = certificate.to_pandas()
    assert rows["question"].tolist() == [part.name for part in certificate.parts]
    assert certificate.to_polars()["epsilon"].to_list() == [part.epsilon for part in certificate.parts]
    shown = certificate._repr_html_()
    assert "private: epsilon = 1 per rating" in shown
    assert "<td>a whole person</td><td>not protected</td>" in shown
    assert all(f"<td>{part.name}</td>" in shown for part in certificate.parts)


def test_a_release_that_knows_nobody_shows_itself_and_its_made_up_people(ratings):
    release = DPSR(3.0, unit="user", delta=1e-3, random_state=0).fit(ratings).release  # noise may make up 700,000 rows
    assert "delta = 0.001 per person" in release._repr_html_()
    assert "mu = " in release.certificate._repr_html_()
    assert release.certificate.to_pandas()["mu"].gt(0).all()
    rows = release.to_pandas()
    assert rows.columns.tolist() == ["user", "item", "rating"]
    assert release.to_polars().height == len(rows) > 0


# -- settings and selection


def test_epsilon_is_always_shown():
    assert repr(DPSR()) == "DPSR(epsilon=1.0)"
    assert repr(DPSR.paper(0.5, beta=0.1)) == "PaperDPSR(epsilon=0.5, beta=0.1)"


def test_the_score_is_minus_the_error_on_ratings_not_seen(ratings):
    train, test = ratings.split(0.2, seed=0)
    model = DPSR(10.0).fit(train)
    table = test.to_arrow()
    error = np.sqrt(np.mean((model.predict(table["user"], table["item"]) - test.values) ** 2))
    assert model.score(test) == pytest.approx(-error)


def test_model_selection_tools_take_it_as_it_is(ratings):
    assert cross_val_score(DPSR(5.0), ratings, cv=3).shape == (3,)
    search = GridSearchCV(DPSR.paper(5.0), {"beta": [0.3, 0.9]}, cv=2).fit(ratings)
    assert search.best_params_["beta"] in (0.3, 0.9)


# -- the ledger


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(str(tmp_path / "ledger.db"), "films", "1")


@pytest.mark.parametrize("build", [DPSR, DPSR.paper])
def test_a_fit_is_charged_as_the_command_charges_and_the_folder_recorded(ratings, tmp_path, ledger, build):
    book = tmp_path / "ledger.db"
    model = build(0.1).fit(ratings, ledger=book, note="for the web")
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 0)
    assert ledger.history()[1].note == "for the web"
    folder = model.save(tmp_path / "r")
    assert verify_release(folder, ledger=str(book)).private
    model.save(tmp_path / "copy")
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 1)
    assert json.loads((folder / "certificate.json").read_text())["charge"]["id"] == ledger.history()[1].charge
    assert load_release(folder).certificate.epsilon <= 0.1


def test_what_no_ledger_takes_is_refused_before_the_charge(ratings, tmp_path, ledger):
    book = tmp_path / "ledger.db"
    for model in (DPSR(0.1, random_state=7), DPSR.paper(0.1, as_published=True), DPSR(5.0)):
        with pytest.raises(PrivacyError):
            model.fit(ratings, ledger=book)
    assert ledger.budget().charges == 0


def test_other_ratings_under_the_same_name_need_a_word(ratings, tmp_path, ledger):
    book = tmp_path / "ledger.db"
    DPSR(0.1).fit(ratings, ledger=book)
    part, _ = ratings.split(0.5, seed=0)
    with pytest.raises(PrivacyError, match="another_file=True"):
        DPSR(0.1).fit(part, ledger=book)
    DPSR(0.1).fit(part, ledger=book, another_file=True)
    assert ledger.budget().charges == 2


def test_a_fit_without_a_ledger_says_so_once(ratings, monkeypatch, caplog):
    monkeypatch.setattr(estimator, "_said", False)
    with caplog.at_level(logging.WARNING, logger="dpsr"):
        DPSR(1.0, random_state=3).fit(ratings)
        assert not caplog.records
        DPSR(1.0).fit(ratings)
        DPSR(1.0).fit(ratings)
    assert [record.message for record in caplog.records] == [estimator.UNCHARGED]


# -- sessions with settings of their own


@pytest.mark.parametrize("unit", ["value", "rating", "user", "likes"])
def test_a_session_in_which_numpy_raises_gets_its_fit_and_its_folder(ratings, unit, tmp_path):
    """Posteriors have tails that vanish; raised after a charge, that would be a release paid for and lost."""
    rows, unit = (ratings.liked(at_least=4), "user") if unit == "likes" else (ratings, unit)
    people = {} if unit == "value" else {"delta": 1e-3, "items": ratings.mask.item_ids}
    with np.errstate(all="raise"):
        for epsilon in (1, 20):
            fitted = DPSR(epsilon, unit=unit, **people, random_state=0).fit(rows)
            load_release(fitted.save(tmp_path / f"{epsilon}"))
