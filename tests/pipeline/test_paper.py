"""The paper's three stages behind one estimator with scikit-learn manners."""

import numpy as np
import pytest
from paper_stages import blended, completed, neighbours
from sklearn.base import clone

from dpsr import DPSR, Ratings, Scale
from dpsr.data import paper_matrix, realistic
from dpsr.errors import NotFittedError, ParameterError, PrivacyError
from dpsr.privacy.channels import calibrated_laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise


@pytest.fixture(scope="module")
def ratings():
    return paper_matrix(0, n_users=60, n_items=40, density=0.3)


@pytest.fixture(scope="module")
def fitted(ratings):
    return DPSR.paper(epsilon=1.0).fit(ratings)


@pytest.fixture(scope="module")
def base(ratings):
    return DPSR.paper(2.0, random_state=0).fit(ratings)


def test_the_pipeline_is_its_three_stages(ratings):
    model = DPSR.paper(2.0, random_state=3, n_neighbors=5, rank=4, beta=0.5, lam=0.6, n_iter=20, period=5).fit(ratings)
    channel = calibrated_laplace(ratings.scale, 2.0, 0.3)
    private = privatise(ratings, channel, noise=NoiseSource.seeded(3))
    smoothed = blended(private, neighbours(private, k=5), beta=0.5)
    expected = completed(smoothed, rank=4, lam=0.6, n_iter=20, period=5)
    users, items = ratings.mask.users, ratings.mask.items
    np.testing.assert_array_equal(model.model_.predict(users, items), expected.predict(users, items))


def test_the_default_draws_from_the_system_and_is_private(fitted):
    assert fitted.certificate.private
    assert fitted.certificate.epsilon <= 1.0
    assert fitted.certificate.randomness == "system"


def test_two_private_fits_differ_and_two_seeded_fits_do_not(ratings):
    a, b = DPSR.paper().fit(ratings), DPSR.paper().fit(ratings)
    assert (a.private_.values != b.private_.values).any()
    c, d = DPSR.paper(random_state=1).fit(ratings), DPSR.paper(random_state=1).fit(ratings)
    np.testing.assert_array_equal(c.release_.ratings, d.release_.ratings)
    assert not c.certificate.private


def test_as_published_shows_the_true_epsilon(ratings):
    certificate = DPSR.paper(epsilon=1.0, as_published=True).fit(ratings).certificate
    assert not certificate.private
    assert certificate.epsilon == pytest.approx(1.6316, abs=1e-4)
    assert certificate.nominal == 1.0


def test_predictions_stay_inside_the_scale_for_known_and_unknown(fitted, ratings):
    predictions = fitted.predict([1, 1, 999, 999], [1, 999, 1, 999])
    assert predictions.shape == (4,)
    assert np.isfinite(predictions).all()
    assert (predictions >= ratings.scale.low).all()
    assert (predictions <= ratings.scale.high).all()
    model = fitted.model_
    assert predictions[1] == pytest.approx(model.user_means[0])
    assert predictions[2] == pytest.approx(model.item_means[0])
    assert predictions[3] == pytest.approx(model.overall)


def test_one_user_against_many_items_broadcasts(fitted):
    np.testing.assert_array_equal(fitted.predict([3], [0, 1, 2]), fitted.predict([3, 3, 3], [0, 1, 2]))


def test_lengths_that_do_not_match_are_an_error_with_advice(fitted):
    with pytest.raises(ParameterError, match="one item per user"):
        fitted.predict([1, 2, 3], [1, 2])


def test_recommendations_are_the_best_unrated_items_in_order(fitted, ratings):
    items, scores = fitted.recommend(6, n=7)
    assert len(items) == 7
    assert (np.diff(scores) <= 0).all()
    mask = ratings.mask
    rated = set(mask.item_ids.take(mask.items[mask.indptr[5] : mask.indptr[6]]).to_pylist())
    assert not rated & set(items)
    rest = [i for i in range(1, 41) if i not in rated and i not in items]
    assert fitted.predict([6] * len(rest), rest).max() <= scores[-1] + 1e-12


def test_a_stranger_is_recommended_what_people_like(fitted):
    items, _ = fitted.recommend("nobody", n=3, unknown="average")
    assert items == (np.lexsort((np.arange(40), -fitted.model_.item_means))[:3] + 1).tolist()


def test_asking_for_more_items_than_there_are_gives_those_there_are(fitted, ratings):
    assert len(fitted.recommend(1, n=1000).items) == 40 - ratings.mask.user_counts[0]
    with pytest.raises(ParameterError, match="at least 1"):
        fitted.recommend(1, n=0)


def test_reconstruct_takes_private_ratings_and_keeps_their_receipt(ratings):
    private = privatise(ratings, calibrated_laplace(ratings.scale, 1.0), noise=NoiseSource.system())
    model = DPSR.paper().reconstruct(private)
    assert model.certificate is private.certificate


def test_reconstruct_of_a_plain_table_certifies_nothing(ratings):
    certificate = DPSR.paper().reconstruct(ratings).certificate
    assert not certificate.private
    assert "declared" in certificate.reasons[0]


@pytest.mark.parametrize(
    "change",
    [{"alpha": 0.0}, {"beta": 0.2}, {"n_neighbors": 3}, {"rank": 2}, {"lam": 0.2}, {"n_iter": 10}, {"period": 5}],
)
def test_every_setting_changes_the_result(ratings, base, change):
    other = DPSR.paper(2.0, random_state=0, **change).fit(ratings)
    assert (base.release_.ratings != other.release_.ratings).any()


def test_scikit_learn_manners():
    model = DPSR.paper(0.5, beta=0.4)
    assert model.get_params()["beta"] == 0.4
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(rank=3).rank == 3
    with pytest.raises(NotFittedError, match="Call fit"):
        model.predict([1], [1])


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"beta": 2}, "beta must lie between 0 and 1"),
        ({"lam": -1}, "lam must lie between 0 and 1"),
        ({"rank": 0}, "rank must be a whole number of at least 1"),
        ({"n_neighbors": 1.5}, "n_neighbors must be a whole number"),
        ({"period": 0}, "period must be"),
    ],
)
def test_settings_outside_their_range_are_refused(ratings, settings, advice):
    with pytest.raises(ParameterError, match=advice):
        DPSR.paper(**settings).fit(ratings)


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan")])
def test_no_epsilon_turns_privacy_off(ratings, epsilon):
    with pytest.raises(PrivacyError, match="epsilon must be"):
        DPSR.paper(epsilon).fit(ratings)


def test_string_ids_work_throughout():
    users = ["ann", "ann", "bob", "bob", "cy", "cy"]
    items = ["x", "y", "x", "z", "y", "z"]
    ratings = Ratings.from_arrays(users, items, [1, 5, 2, 4, 3, 3], scale=Scale(1, 5))
    model = DPSR.paper(epsilon=2.0, rank=2).fit(ratings)
    assert model.predict(["ann", "zoe"], ["z", "x"]).shape == (2,)
    assert model.recommend("bob", n=2).items == ["y"]


def test_tuning_reads_private_ratings_only_and_finds_better_settings():
    """Chosen on noisy ratings, judged on raw ones the tuner never saw."""
    ratings = realistic(1, n_users=300, n_items=120, n_ratings=9_000)
    train, test = ratings.split(0.2, seed=0)

    def error(model):
        return np.sqrt(np.mean((model.model_.predict(test.mask.users, test.mask.items) - test.values) ** 2))

    plain = DPSR.paper(2.0, random_state=0).fit(train)
    tuned = DPSR.paper(2.0, random_state=0, tune=True).fit(train)
    assert error(tuned) < error(plain) - 0.05
    assert tuned.tuned_ != plain.tuned_
    again = DPSR.paper(tune=True).reconstruct(tuned.private_)
    assert again.tuned_ == tuned.tuned_
    assert tuned.release_.settings["rank"] == tuned.tuned_["rank"]
