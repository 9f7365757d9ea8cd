"""Arguments that look like others: a truth is no budget, nobody is not somebody called "None", no delta is ignored."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.data import realistic
from dpsr.errors import ParameterError, PrivacyError
from dpsr.pipeline.verification import verify_release
from dpsr.privacy.channels import randomised_response
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.release.verify import verify


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    cells = rng.choice(12 * 10, 60, replace=False)
    users = ["None" if cell < 10 else "True" if cell < 20 else f"u{cell // 10}" for cell in cells]
    return Ratings.from_arrays(users, cells % 10, rng.integers(1, 6, 60), scale=Scale(1, 5))


@pytest.mark.parametrize("epsilon", [True, np.True_, "1", None, [1.0]])
@pytest.mark.parametrize("build", [DPSR, DPSR.paper])
def test_what_only_looks_like_a_budget_is_refused(ratings, build, epsilon):
    with pytest.raises(PrivacyError, match="epsilon must be a number"):
        build(epsilon).fit(ratings)


def test_a_delta_is_refused_and_not_ignored(ratings):
    with pytest.raises(PrivacyError, match="no delta is taken"):
        DPSR(1.0, delta=1e-6).fit(ratings)


@pytest.mark.parametrize("items", ["items.csv", Path("items.csv"), pd.DataFrame({"item": [1, 2], "title": "x"})])
def test_a_file_or_a_frame_is_no_list_of_items(ratings, items, tmp_path):
    """Its letters, or its columns' names, were declared: every rating was left out, at the full price."""
    ledger = Ledger.create(str(tmp_path / "ledger.db"), "films", "3", "1e-5", unit="user")
    with pytest.raises(ParameterError, match="is a list of ids, found"):
        DPSR(1.0, unit="user", delta=1e-6, items=items).fit(ratings, ledger=tmp_path / "ledger.db")
    assert ledger.budget().left_epsilon == 3


@pytest.mark.parametrize(("thing", "text"), [(None, "None"), (True, "True")])
def test_nobody_is_not_a_person_whose_id_spells_it(ratings, thing, text):
    """Who is not known gets what a stranger gets; the person of that name has rated, and gets a list of their own."""
    release = DPSR(8.0, random_state=0).fit(ratings).release
    stranger = release.recommend("a stranger", 10, unknown="average").items
    assert release.recommend(thing, 10, unknown="average").items == stranger
    assert len(release.recommend(text, 10).items) < len(stranger), "what one rated is left out"
    nobody, named, unknown = (release.predict([user], [3])[0] for user in (thing, text, "a stranger"))
    assert nobody == unknown != named


def test_a_frame_or_a_generator_is_no_list_of_ids(ratings):
    """Nobody was found under such an id: everything was predicted to be the mean, without a word."""
    frame = pd.DataFrame({"user": ["u3", "u4"], "item": [1, 2]})
    people = DPSR(8.0, unit="user", delta=1e-4, random_state=0).fit(ratings)
    for answers in (DPSR(8.0, random_state=0).fit(ratings), people, people.personalise(ratings)):
        with pytest.raises(ParameterError, match=r"users are ids in one dimension, found an array of shape \(2, 1\)"):
            answers.predict(frame[["user"]], frame[["item"]])
        with pytest.raises(ParameterError, match="items are ids in one dimension, found a generator"):
            answers.predict(["u3", "u4"], (item for item in [1, 2]))
        with pytest.raises(ParameterError, match="2 users and 3 items"):
            answers.predict(["u3", "u4"], [1, 2, 3])
        assert answers.predict(frame["user"], frame["item"]).shape == (2,)
        assert answers.predict("u3", 1).shape == (1,)


@pytest.mark.parametrize("n", ["3", 2.5, None, True, 0])
def test_what_is_no_number_of_items_is_refused_in_a_sentence(ratings, tmp_path, n):
    """It was said in numpy's words, or in pyarrow's."""
    model = DPSR(8.0, random_state=0).fit(ratings)
    personal = model.personalise(ratings)
    for ask in (
        lambda: model.recommend("u3", n=n),
        lambda: model.recommend(["u3", "u4"], n=n),
        lambda: model.recommend_all(tmp_path / "all.parquet", n=n),
        lambda: model.fold_in([1], [5], n=n),
        lambda: personal.recommend("u3", n=n),
        lambda: personal.save(tmp_path / "lists.parquet", n=n),
    ):
        with pytest.raises(ParameterError, match=f"n must be at least 1, found {n!r}"):
            ask()
    assert list(tmp_path.iterdir()) == []
    assert len(model.recommend("u3", n=np.int32(2)).items) == 2


def test_ratings_declared_private_are_saved_and_examined_as_not_private(ratings, tmp_path):
    DPSR.paper().reconstruct(ratings).save(tmp_path / "r")
    found = verify(tmp_path / "r")
    assert (found.intact, found.private, found.fails) == (True, False, ())
    assert "declared them private already" in found.certificate.reasons[0]
    assert found.to_dict()["epsilon"] == "inf"


@pytest.mark.parametrize("scale", [Scale(1000001, 1000005), Scale(0.1, 0.7, 0.1), Scale(-1e-7, 3e-7, 1e-7)])
def test_a_scale_is_written_with_every_digit(scale):
    assert Scale.parse(str(scale)) == scale


@pytest.mark.parametrize(
    "estimator",
    [
        DPSR(np.float32(0.7)),
        DPSR(np.float32(2.7), unit="user", delta=np.float32(1e-5)),
        DPSR.paper(np.float32(0.7), rank=np.int32(2)),
    ],
    ids=str,
)
def test_a_number_of_numpy_s_is_stated_as_the_folder_reads_it_back(estimator, tmp_path):
    """The card of such a release was not the page that its own tables gave."""
    folder = estimator.fit(realistic(0, n_users=40, n_items=30, n_ratings=500)).save(tmp_path / "r")
    found = verify_release(folder)
    assert found.private, found.fails
    assert f"{float(estimator.epsilon)}" in (folder / "model.json").read_text("utf-8")


def test_settings_of_noise_that_somebody_else_drew_are_not_stated(tmp_path):
    ratings = realistic(0, n_users=40, n_items=30, n_ratings=500)
    private = privatise(ratings, randomised_response(ratings.scale, 2.0), noise=NoiseSource.system())
    folder = DPSR.paper(epsilon=1.0, rank=2).reconstruct(private).save(tmp_path / "r")
    found = verify_release(folder)
    assert found.private, found.fails
    assert found.certificate.nominal == 2.0
    assert not {"epsilon", "alpha", "as_published"} & set(load_release(folder).settings)
