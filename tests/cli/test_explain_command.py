"""`dpsr explain`: epsilon as odds, guesses and sums, all of them checkable by hand."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import e, exp, log

import numpy as np
import pytest

from dpsr import DPSR, Ratings, Scale
from dpsr.certify.amounts import belief_at_least, belief_at_most, guess_right
from dpsr.certify.normal_price import affordable_squared_mu
from dpsr.cli.terminal import promise
from dpsr.data import realistic
from dpsr.pipeline.explain import explain, explain_release
from dpsr.privacy.channels import gaussian, optimal_channel, randomised_response
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise

STARS = Scale(1, 5)


def test_beliefs_move_by_the_odds_factor_and_attain_it():
    """Randomised response with two levels is the mechanism that moves a belief as far as epsilon allows."""
    for epsilon in (0.1, 1.0, 3.0):
        channel = randomised_response(Scale(0, 1), epsilon)
        for prior in (0.5, 0.2, 0.01):
            posterior = channel.posterior([1 - prior, prior])[1]
            assert posterior.max() == pytest.approx(belief_at_most(prior, epsilon), rel=1e-6)
            assert posterior.min() == pytest.approx(belief_at_least(prior, epsilon), rel=1e-6)


def test_no_table_of_this_epsilon_moves_a_belief_further():
    rng = np.random.default_rng(0)
    for _ in range(50):
        prior = rng.dirichlet(np.ones(5))
        channel = optimal_channel(STARS, 1.3, rng.dirichlet(np.ones(5)))
        for x, posterior in enumerate(channel.posterior(prior)):
            assert posterior.max() <= belief_at_most(prior[x], 1.3) * (1 + 1e-9)
            assert posterior.min() >= belief_at_least(prior[x], 1.3) * (1 - 1e-9)


def test_how_often_a_guess_is_right_agrees_with_fractions_and_with_draws():
    channel = optimal_channel(STARS, 1.0, np.full(5, 0.2))
    exact = sum(max(Fraction(int(w), 5 * 2**62) for w in column) for column in channel.weights.T)
    assert guess_right(channel.weights.tolist()) == pytest.approx(float(exact), abs=1e-12)
    levels = np.random.default_rng(0).integers(0, 5, 400_000).astype(np.uint16)
    guesses = channel.weights.argmax(axis=0)[channel.sample(levels, NoiseSource.system())]
    assert (guesses == levels).mean() == pytest.approx(float(exact), abs=0.005)


def test_randomised_response_attains_the_most_that_any_mechanism_allows():
    told = explain(STARS, 1.0)
    assert told.guess_at_most == pytest.approx(e / (e + 4))
    assert guess_right(randomised_response(STARS, 1.0).weights.tolist()) == pytest.approx(told.guess_at_most, rel=1e-6)
    assert told.guess_before < told.guess_channel <= told.guess_at_most


def test_the_ratings_of_one_person_add_up():
    told = explain(STARS, 0.5)
    assert [person.ratings for person in told.persons] == [1, 5, 20, 100]
    for person in told.persons:
        assert person.epsilon == pytest.approx(0.5 * person.ratings)
        assert log(person.odds) == pytest.approx(person.epsilon)


def test_everything_grows_with_epsilon():
    told = [explain(STARS, epsilon) for epsilon in (0.05, 0.1, 0.5, 1, 2, 5, 10)]
    for less, more in pairwise(told):
        assert less.odds < more.odds
        assert less.guess_channel <= more.guess_channel
        assert all(a.most < b.most and a.least > b.least for a, b in zip(less.beliefs, more.beliefs, strict=True))


def test_a_release_is_explained_by_its_own_certificate_and_heaviest_user():
    ratings = realistic(3, n_users=40, n_items=30, n_ratings=500)
    release = DPSR(4.0).fit(ratings).release
    told = explain_release(release)
    assert told.epsilon == release.certificate.epsilon
    assert told.persons[-1].ratings == ratings.mask.user_counts.max()
    price = next(part.stated["epsilon"] for part in release.certificate.parts if part.name == "ratings")
    assert told.guess_before < told.guess_channel <= belief_at_most(0.2, price) * (1 + 1e-9)


def test_a_release_of_unknown_price_is_explained_without_a_traceback(tmp_path, dpsr):
    ratings = Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 5, 2, 3], scale=STARS)
    folder = DPSR.paper(rank=1).reconstruct(ratings).save(tmp_path / "r")
    record = json.loads(dpsr("explain", "--release", folder, "--json").out)
    assert record["epsilon"] == "inf"
    assert "> 99.99 %" in dpsr("explain", "--release", folder).out


@pytest.mark.parametrize("unit", [{}, {"unit": "user", "delta": 1e-4}], ids=str)
def test_a_release_that_is_not_private_is_not_explained_as_a_promise(tmp_path, dpsr, unit):
    ratings = realistic(0, n_users=40, n_items=30, n_ratings=500)
    folder = DPSR(2.0, random_state=0, **unit).fit(ratings).save(tmp_path / "r")
    said = " ".join(dpsr("explain", "--release", folder).out.split())
    assert said.startswith("NOT PRIVATE: the noise came from a seed")
    assert "What follows is no promise." in said
    assert json.loads(dpsr("explain", "--release", folder, "--json").out)["reasons"]


def test_the_command_prints_what_the_figures_say(dpsr):
    outcome = dpsr("explain", "--epsilon", "1", "--scale", "1:5:1")
    assert outcome.code == 0
    for figure in ("2.719", "73.11 %", "26.89 %", "40.47 %", "20 %"):
        assert figure in outcome.out
    record = json.loads(dpsr("explain", "--epsilon", "1", "--scale", "1:5:1", "--json").out)
    assert record["odds"] == pytest.approx(exp(1))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "needs an --epsilon"),
        (["--epsilon", "1", "--release", "r"], "neither"),
        (["--epsilon", "0", "--scale", "1:5"], "above 0"),
        (["--epsilon", "1", "--scale", "5:1"], "LOW:HIGH:STEP"),
        (["--release", "nowhere"], "not a readable release"),
    ],
)
def test_bad_options_are_one_sentence(dpsr, options, word):
    outcome = dpsr("explain", *options)
    assert outcome.code == 2
    assert word in outcome.err


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_every_unit_is_explained_and_says_what_the_others_cost(dpsr, unit):
    delta = [] if unit == "value" else ["--delta", "1e-5"]
    told = json.loads(dpsr("explain", "--epsilon", "1", "--unit", unit, *delta, "--json").out)
    own = told["units"][unit]
    assert (own["epsilon"], told["unit"]) == (1.0, unit)
    protected = {"value": {"value"}, "rating": {"value", "rating"}, "user": {"value", "rating", "user"}}[unit]
    assert {name for name, price in told["units"].items() if price is not None} == protected
    shown = dpsr("explain", "--epsilon", "1", "--unit", unit, *delta).out
    assert "Each unit" in shown
    assert ("not protected" in shown) == (unit != "user")


@pytest.mark.parametrize("likes", [False, True], ids=["ratings", "likes"])
@pytest.mark.parametrize("unit", ["rating", "user"])
def test_odds_of_people_are_about_being_there_and_not_about_what_they_rated(dpsr, unit, likes):
    """To change what somebody rated is to replace one contribution by another, whose price is another one."""
    told = explain(None, 1.0, unit=unit, delta=1e-5)
    assert told.units["value"].epsilon > 2 * told.epsilon
    shown = " ".join(dpsr("explain", "--epsilon", "1", "--unit", unit, "--delta", "1e-5").out.split())
    for words in (shown, promise(1.0, unit, 1e-5, likes=likes)):
        assert re.search("believe[sd] about whether (one|somebody)", words)
        assert "is protected at more than twice epsilon" in words
        assert "and its value" not in words


def test_normal_noise_is_guessed_less_often_than_epsilon_and_delta_allow():
    """The oracle: N(0, 1) against N(mu, 1) at the midpoint, by draws; and the bound of any mechanism."""
    told = explain(None, 1.0, unit="user", delta=1e-5)
    mu = float(affordable_squared_mu(1.0, 1e-5)) ** 0.5
    rng = np.random.default_rng(0)
    coins = rng.random(400_000) < 0.5
    right = ((rng.normal(size=400_000) + mu * coins > mu / 2) == coins).mean()
    assert told.guess_there == pytest.approx(right, abs=0.004)
    assert told.guess_there < belief_at_most(0.5, 1.0)


def test_a_delta_of_values_is_no_chance_that_odds_pass_the_factor(tmp_path, dpsr):
    """They pass it more often: delta is what the definition gives, as if it were one."""
    ratings = realistic(0, n_users=40, n_items=30, n_ratings=500)
    private = privatise(ratings, gaussian(ratings.scale, 2.0, 1e-5), noise=NoiseSource.system())
    DPSR.paper(rank=2).reconstruct(private).save(tmp_path / "r")
    said = " ".join(dpsr("explain", "--release", tmp_path / "r").out.split())
    assert "by at most a factor 7.39. It is as if that held but for a chance of" in said


def test_a_release_of_people_is_explained_by_its_own_prices(tmp_path):
    release = (
        DPSR(2.0, unit="user", delta=1e-5, random_state=0)
        .fit(realistic(0, n_users=80, n_items=30, n_ratings=900))
        .release
    )
    told = explain_release(release)
    for unit, price in release.certificate.protection.items():
        assert told.units[unit].epsilon == price.epsilon
    asked = explain(None, 2.0, unit="user", delta=1e-5)
    assert (told.guess_there, told.chance_beyond) == (asked.guess_there, asked.chance_beyond), "whatever the answers"
    assert told.chance_beyond > 5 * told.delta


def test_what_a_course_of_answers_saved_does_not_lower_how_often_somebody_is_found():
    """Promised is what holds whatever the answers; a certificate whose questions cost less promises no more."""
    ratings = realistic(0, n_users=80, n_items=30, n_ratings=900)
    release = DPSR(2.0, unit="user", delta=1e-5, random_state=0).fit(ratings).release
    spared = replace(release.certificate, parts=release.certificate.parts[:1])
    assert spared.mu < release.certificate.mu / 2
    told, whole = explain_release(replace(release, certificate=spared)), explain_release(release)
    assert told.guess_there == pytest.approx(whole.guess_there, abs=1e-6)


def test_delta_and_what_a_person_adds_up_to_are_never_rounded_down(dpsr):
    told = dpsr("explain", "--epsilon", "1.0000004", "--unit", "user", "--delta", "1.0049e-6").out
    assert "epsilon = 1.00001, delta = 1.005e-06" in told
    assert "of 995,123 such promises" in told
    assert "| 5 | 5.001 |" in " ".join(dpsr("explain", "--epsilon", "1.00004").out.replace("│", "|").split())
