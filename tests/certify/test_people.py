"""Questions to people: what they cost at every unit, and certificates that say less than that are refused."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import isqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from dpsr.certify import Certificate
from dpsr.certify.certificate import PUBLIC_FACTS
from dpsr.certify.check import NUMBERS, RATING_NUMBERS, _against, check_certificate
from dpsr.certify.normal_price import SAMPLER_SLACK, gaussian_delta, gaussian_epsilon
from dpsr.certify.parts import ChannelPart, HistogramPart, Price
from dpsr.certify.people import (
    COUNTS,
    INTERACTIONS,
    MOMENTS,
    MOST_NAMED,
    NAMES,
    PRESENCE,
    QUESTIONS,
    NormalPart,
    PersonPart,
    RatingPart,
    naming_tail,
    near_threshold,
    person_threshold,
    root_up,
    squared_bound_of,
)
from dpsr.errors import PrivacyError

B = 1 << 20
NONE = "not protected"
SCORES = {"bound": float(B), "clip": 1.5, "shrink": 40.0, "width": 0.8}


def person(name="scores", deviations=3.0, **facts):
    """A question whose noise has so many times the deviation of one person's bound."""
    bound = squared_bound_of(name)
    threshold = {"threshold": 8 * int(deviations * B)} if name == NAMES else {}
    numbers = {NAMES: 0, MOMENTS: 435, **NUMBERS}.get(name, 64)
    return PersonPart(name, round(deviations**2 * bound), numbers, bound, **{**threshold, **facts})


def rating(name="scores", deviations=3.0, **facts):
    threshold = {"threshold": 8 * int(deviations * B)} if name == NAMES else {}
    moments = {**SCORES, "bound": float(1 << 30), "ramp": 8.0, "cells": 30.0}
    levels = {"bound": float(B), "ramp": 16.0}
    how = {"scores": SCORES, MOMENTS: moments, "levels": levels}.get(name, {"bound": float(B)})
    sums = {"numbers": {NAMES: 0, **RATING_NUMBERS}.get(name, 64), "settings": how}
    return RatingPart(name, round(deviations**2 * how["bound"] ** 2), **{**sums, **threshold, **facts})


def certificate(*parts, unit="user", nominal=5.0, delta=1e-5, **facts):
    public = {"facts": PUBLIC_FACTS[unit], "scale": "1:5:1", "levels": 5, "cells": 32, "declared_items": None}
    fixed = {"public": public, "randomness": "system", "private": True, "id": "0" * 32}
    return Certificate(nominal=nominal, parts=parts, unit=unit, nominal_delta=delta, **{**fixed, **facts})


def examined(record):
    """What does not hold of a certificate's record."""
    checks, _ = check_certificate(json.dumps(record, separators=(",", ":")).encode())
    return [check.words for check in checks if not check.holds]


# --- the price of a part ---


@pytest.mark.parametrize(
    ("name", "value", "one"),
    [
        (NAMES, 0, 2),
        (MOMENTS, 2, 2),
        ("scores", 4, 4),
        ("levels", 4, 4),
        (COUNTS, 2, 2),
        (INTERACTIONS, 2, 2),
        (PRESENCE, 4, 4),
    ],
)
def test_a_person_replaced_by_another_moves_sums_by_so_many_squared_bounds(name, value, one):
    part = person(name, 3.0)
    assert [part.squared_mu(unit) for unit in ("value", "rating", "user")] == [
        Fraction(times, 9) for times in (value, one, 1)
    ]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-100, 100), min_size=2, max_size=6), st.lists(st.integers(-100, 100), min_size=2, max_size=6)
)
def test_replaced_vectors_and_moments_stay_within_the_stated_squares(x, y):
    """Random people: 4 squared bounds for any vectors, 2 for weights that are not negative and for second moments."""
    n = min(len(x), len(y))
    x, y = np.array(x[:n], dtype=object), np.array(y[:n], dtype=object)
    bound = max((x**2).sum(), (y**2).sum())
    assert ((x - y) ** 2).sum() <= 4 * bound
    assert ((abs(x) - abs(y)) ** 2).sum() <= 2 * bound
    above = np.triu(np.outer(x, x) - np.outer(y, y), 1)
    assert 2 * (above**2).sum() <= 2 * bound**2


def test_the_stated_squares_are_attained_by_opposite_by_disjoint_and_by_crossed_people():
    x, y = np.array([7, 0]), np.array([-7, 0])
    assert ((x - y) ** 2).sum() == 4 * 49
    assert ((np.array([7, 0]) - np.array([0, 7])) ** 2).sum() == 2 * 49
    x, y = np.array([5, 5, 0, 0]), np.array([0, 0, 5, 5])
    above = np.triu(np.outer(x, x) - np.outer(y, y), 1)
    assert (above**2).sum() == 2 * 25**2  # 4 cells: half of the bound; with T cells it tends to all of it
    T = 200
    x, y = np.repeat([1, 0], T), np.repeat([0, 1], T)
    above = np.triu(np.outer(x, x) - np.outer(y, y), 1)
    assert (above**2).sum() > 0.99 * T**2


@pytest.mark.parametrize("name", [*QUESTIONS])
def test_questions_to_ratings_protect_no_person_and_a_changed_rating_is_two(name):
    part = rating(name)
    assert part.squared_mu("user") is None
    one, value = part.squared_mu("rating"), part.squared_mu("value")
    assert value == (0 if name == NAMES else 4 * one)
    assert part.stated["mu"] == root_up(one)


@given(st.fractions(Fraction(1, 10**9), 10**6, max_denominator=10**12))
@settings(max_examples=50, deadline=None)
def test_a_root_is_never_rounded_down_and_the_next_number_below_is_too_small(square):
    root = root_up(square)
    assert Fraction(root) ** 2 >= square
    assert Fraction(np.nextafter(np.nextafter(root, 0), 0)) ** 2 < square


@pytest.mark.parametrize(
    "part",
    [
        person("scores", threshold=5),
        person(NAMES, threshold=None),
        PersonPart("scores", 0, 64, B * B),
        PersonPart("scores", B * B, 0, B * B),
        PersonPart(NAMES, B * B, 9, B * B, 9 * B),
        PersonPart("scores", B * B, 64, 0),
        rating("scores", settings={"bound": float(B)}),
        rating("levels", threshold=5),
        person("scores", most_named=64),
        person(NAMES, most_named=0),
        person(NAMES, most_named=-1),
        person(NAMES, most_named=MOST_NAMED + 1),
    ],
)
def test_a_part_that_contradicts_itself_has_no_price(part):
    with pytest.raises(PrivacyError):
        part.stated  # noqa: B018


# --- names ---


def exact_naming(threshold, squared_bound, variance, k):
    """The chance that one of k items of one person passes, bounded as promised: k tails, with 50 digits."""
    sigma = mpmath.sqrt(variance)
    return k * mpmath.ncdf(-(threshold - mpmath.sqrt(mpmath.mpf(squared_bound) / k)) / sigma)


def worst_naming(threshold, variance, most):
    """The largest such chance: brute force over every number of items up to `most`, the worst again with 50 digits."""
    k = np.arange(1, most + 1)
    chances = k * norm.sf((threshold - B / np.sqrt(k)) / np.sqrt(variance))
    with mpmath.workdps(50):
        worst = exact_naming(threshold, B * B, variance, int(k[chances.argmax()]))
    assert float(worst) == pytest.approx(chances.max(), rel=1e-6)
    return worst


MOSTS = [1, 2, 10, 33, 500, MOST_NAMED]


@pytest.mark.parametrize("deviations", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("distance", [4.5, 6.0, 8.0])
@pytest.mark.parametrize("most", MOSTS)
def test_naming_is_never_likelier_than_stated_for_any_number_of_items_and_the_figure_is_tight(
    deviations, distance, most
):
    """Within a factor of 1.6."""
    variance, threshold = round((deviations * B) ** 2), B + int(distance * deviations * B)
    worst = worst_naming(threshold, variance, most)
    found = naming_tail(threshold, B * B, variance, most)
    assert worst <= found <= min(1.0, 1.6 * float(worst))


@pytest.mark.parametrize("deviations", [0.3, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("most", MOSTS)
def test_the_threshold_hides_every_number_of_items_up_to_the_most_and_a_little_lower_would_not(deviations, most):
    """Oracle: `worst_naming`. Lower by a 5,000th of a deviation, the tail by which it was found is too large; by a
    twentieth, the exact chance is."""
    variance, delta = round((deviations * B) ** 2), 1e-6
    sigma, found = isqrt(variance), person_threshold(variance, delta, most)
    assert worst_naming(found, variance, most) <= naming_tail(found, B * B, variance, most) <= delta
    assert naming_tail(found - sigma // 5_000, B * B, variance, most) > delta
    assert worst_naming(found - sigma // 20, variance, most) > delta
    assert found / B == pytest.approx(near_threshold(deviations, delta, most), rel=1e-3)


def test_fewer_items_of_a_person_need_a_lower_threshold_and_those_for_half_as_many_hide_too_little():
    """The planted error: a threshold computed for half of the items that count."""
    variance, delta = 25 * B * B, 1e-6
    found = [person_threshold(variance, delta, most) for most in MOSTS]
    assert found == sorted(set(found))
    for most in MOSTS[1:]:
        assert naming_tail(person_threshold(variance, delta, most // 2), B * B, variance, most) > 1.4 * delta
        assert worst_naming(person_threshold(variance, delta, most // 2), variance, most) > 1.4 * delta


def one_way(p, q, epsilon, x):
    """The exact delta of two densities on a line at epsilon, by integration."""
    return float(np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), x))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("chance", [1e-3, 0.05, 0.4])
@pytest.mark.parametrize("gives_way", [False, True])
def test_items_of_one_person_alone_add_their_chance_to_delta_once_whichever_neighbour_is_the_true_one(
    epsilon, mu, chance, gives_way
):
    """Oracle: all answers there are. A weight that others have too; beside it an item of one person alone is named or
    not. The other neighbour has no such item, or, where an item gives way to another one, one of its own."""
    x = np.linspace(-12, 12 + mu, 100_001)
    with_, without = (np.exp(-((x - at) ** 2) / 2) / np.sqrt(2 * np.pi) for at in (mu, 0.0))
    bound = gaussian_delta(Fraction(mu) ** 2, epsilon) + chance
    unnamed, other = (1 - chance) * with_, (1 - chance if gives_way else 1.0) * without
    assert chance + one_way(unnamed, other, epsilon, x) <= bound
    assert (chance if gives_way else 0.0) + one_way(other, unnamed, epsilon, x) <= bound


@pytest.mark.parametrize("most", [1, 8, 64])
def test_of_drawn_noise_items_of_one_person_alone_pass_as_rarely_as_promised(most):
    """Somebody with exactly as many items as count, all their own: drawn, with a delta that can be seen."""
    rng, sigma, delta, draws = np.random.default_rng(most), 3 * B, 0.02, 40_000
    noise = np.stack([rng.normal(0, sigma, most).max() for _ in range(draws)])

    def passed(threshold):
        return (B / np.sqrt(most) + noise > threshold).mean()

    error = 4 * np.sqrt(delta / draws)
    assert passed(person_threshold(sigma**2, delta, most)) < delta + error
    assert passed(person_threshold(sigma**2, delta, most)) > 0.7 * delta - error, "no more noise than it takes"
    if most > 1:
        assert passed(person_threshold(sigma**2, delta, most // 2)) > delta + error, "the planted error"


def test_the_exact_chance_with_independent_noise_is_below_the_sum_of_tails():
    """k items of a person pass independently: 1 - (1 - p)^k, and k p is the safe side of it."""
    variance, threshold = 9 * B * B, 16 * B
    for k in (1, 10, MOST_NAMED):
        with mpmath.workdps(50):
            p = exact_naming(threshold, B * B, variance, k) / k
            assert 1 - (1 - p) ** k <= naming_tail(threshold, B * B, variance)


def test_a_threshold_below_the_weight_of_a_person_hides_nothing():
    assert naming_tail(0, B * B, B * B) == 1.0
    assert naming_tail(B, B * B, B * B) == 1.0


def test_a_twentieth_off_the_threshold_would_not_be_hidden():
    """The planted error: a threshold 5 % too low exceeds what was promised for the right one."""
    promised = naming_tail(20 * B, B * B, 9 * B * B)
    assert naming_tail(19 * B, B * B, 9 * B * B) > 5 * promised


def test_one_rating_names_at_most_one_item():
    part = rating(NAMES, 2.0)
    with mpmath.workdps(50):
        exact = mpmath.ncdf(-mpmath.mpf(part.threshold - B) / (2 * B))
    assert exact <= part.tail("rating") <= float(exact) * (1 + 1e-9)
    assert part.tail("value") == part.tail("user") == 0


def test_at_the_unit_value_the_same_items_are_there_so_names_add_nothing():
    """One rating more may bring an item into the sum that nobody else has, as a person may."""
    assert person(NAMES).tail("value") == 0
    assert person(NAMES).tail("rating") == person(NAMES).tail("user") > 0
    low = certificate(*PARTS[:3], person(NAMES, threshold=4 * B))
    assert low.protection["rating"].epsilon > certificate(*PARTS[:3]).protection["rating"].epsilon


# --- composition ---


def exact_delta(squared_mu, epsilon):
    mu = mpmath.sqrt(mpmath.mpf(squared_mu.numerator) / squared_mu.denominator)
    e = mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


PARTS = (person("levels", 20.0), person("scores", 4.0), person(MOMENTS, 5.0), person(NAMES, 6.0))


def allowed(nominal, delta=1e-5):
    """Oracle: the largest mu^2 at which 60 digits leave delta, less a tenth for names and what the sampler adds."""
    with mpmath.workdps(60):
        room = mpmath.mpf(delta) - mpmath.mpf(0.1 * delta) - SAMPLER_SLACK
        low, high = mpmath.mpf(0), mpmath.mpf(20)
        for _ in range(160):
            middle = (low + high) / 2
            squared = Fraction(int(middle * 2**200), 2**200)
            low, high = (middle, high) if exact_delta(squared, nominal) <= room else (low, middle)
        return low


@pytest.mark.parametrize("unit", ["value", "rating"])
def test_another_unit_pays_what_the_dearest_course_of_answers_would_cost_it(unit):
    """Oracle: four times all that may be asked, with 60 digits, less what names and the sampler add to delta."""
    price = certificate(*PARTS, nominal=2.0).protection[unit]
    with mpmath.workdps(60):
        most = 4 * allowed(2.0)
        left = mpmath.mpf(1e-5) - SAMPLER_SLACK - (0 if unit == "value" else mpmath.mpf(1e-6))
        squared = Fraction(int(most * 2**200), 2**200)
        assert exact_delta(squared * (1 - Fraction(1, 10**8)), price.epsilon) <= left
        assert exact_delta(squared, price.epsilon * (1 - 1e-7)) > left
    assert price.delta == 1e-5


def test_the_unit_itself_pays_what_was_asked_for_unless_more_was_spent():
    squared_mu = sum(Fraction(1, d * d) for d in (20, 4, 5, 6))
    with mpmath.workdps(60):
        left = mpmath.mpf(1e-5) - SAMPLER_SLACK - mpmath.mpf(1e-6)
        less, more = certificate(*PARTS, nominal=5.0), certificate(*PARTS, nominal=0.5)
        assert less.epsilon == 5.0
        assert less.private
        assert exact_delta(squared_mu, more.epsilon) <= left
        assert exact_delta(squared_mu, more.epsilon * (1 - 1e-9)) > left * (1 - mpmath.mpf("1e-6"))
    assert more.epsilon > 0.5


@pytest.mark.parametrize("unit", ["value", "rating"])
def test_where_more_was_spent_than_was_asked_for_other_units_pay_four_times_that(unit):
    spent = sum(Fraction(1, d * d) for d in (20, 4, 5, 6))
    left = 1e-5 - SAMPLER_SLACK - (0 if unit == "value" else 1e-6)
    price = certificate(*PARTS, nominal=0.1).protection[unit]
    assert price.epsilon == pytest.approx(gaussian_epsilon(4 * spent, left), rel=1e-9)


@pytest.mark.parametrize("delta", [1.5 * SAMPLER_SLACK, 2 * SAMPLER_SLACK, 1e-20, 3e-9, 0.07])
def test_what_the_sampler_may_be_off_is_taken_from_delta_and_the_rest_is_rounded_down(delta):
    """Where delta is hardly more than that, it is most of the price."""
    made = certificate(*PARTS[:3], nominal=0.01, delta=delta, public={**certificate().public, "declared_items": 32})
    left = Fraction(delta) - Fraction(SAMPLER_SLACK)
    spent = sum(Fraction(1, d * d) for d in (20, 4, 5))
    with mpmath.workdps(60):
        assert exact_delta(spent, made.epsilon) <= mpmath.mpf(left.numerator) / left.denominator
    for unit in ("user", "rating", "value"):
        assert left * (1 - Fraction(1, 2**52)) <= Fraction(made._left_of_delta(made.parts, unit)) <= left


def delta_of_two(first, second, epsilon):
    """Exactly: delta of two questions to neighbours `first` apart, then second(answer) apart, by integration.

    P puts the answer about `first`, Q about 0; what is left of epsilon then goes to the second question.
    """
    x = np.linspace(-14, 14 + first, 200_001)
    mu, left = second(x), epsilon - first * x + first**2 / 2
    with np.errstate(over="ignore", divide="ignore"):
        told = ndtr(mu / 2 - left / mu) - np.exp(np.minimum(left, 700)) * ndtr(-mu / 2 - left / mu)
    known = np.maximum(1 - np.exp(np.minimum(left, 700)), 0)  # where nothing more is asked
    density = np.exp(-((x - first) ** 2) / 2) / np.sqrt(2 * np.pi)
    return float(np.trapezoid(density * np.where(mu > 0, told, known), x))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_questions_chosen_after_answers_tell_no_more_than_the_most_they_may_spend(epsilon):
    """Tight where every course spends all of it, safe where some stop early, however the answer decides."""
    M, first = 1.3, 0.6
    rest = np.sqrt(M - first**2)
    bound = gaussian_delta(Fraction(M), epsilon)
    assert delta_of_two(first, lambda x: np.full(len(x), rest), epsilon) == pytest.approx(bound, rel=1e-6)
    for stops in (lambda x: x > 0.3, lambda x: x < 0.3, lambda x: np.abs(x - 0.3) > 1, lambda x: np.cos(4 * x) > 0):
        told = delta_of_two(first, lambda x, stops=stops: np.where(stops(x), 0.0, rest), epsilon)
        assert gaussian_delta(Fraction(first) ** 2, epsilon) < told < bound


def test_what_one_course_of_answers_saved_at_another_unit_cannot_be_promised():
    """The extremal example: the answer decides whether the rest goes into counts (squares 2) or into scores (4).

    If every release stated what its own course cost, most would state less than an attacker gets.
    """
    M, first = 1.0, 0.2
    rest = M - first**2
    cheap, dear = 2 * M, 2 * first**2 + 4 * rest
    stated = gaussian_epsilon(Fraction(cheap), 1e-5)
    told = delta_of_two(np.sqrt(2) * first, lambda x: np.where(x > 1.5, np.sqrt(4 * rest), np.sqrt(2 * rest)), stated)
    assert told > 10 * 1e-5
    assert told < gaussian_delta(Fraction(dear), stated) < gaussian_delta(Fraction(4 * M), stated)


def test_the_price_agrees_with_googles_accountant_within_its_grid():
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = [pld.from_gaussian_mechanism(d, value_discretization_interval=1e-3) for d in (4.0, 5.0, 20.0)]
    theirs = parts[0].compose(parts[1]).compose(parts[2]).get_epsilon_for_delta(1e-5)
    declared = {**certificate().public, "declared_items": 32}
    assert certificate(*PARTS[:3], nominal=0.1, public=declared).epsilon == pytest.approx(theirs, abs=5e-3)


def test_a_person_is_not_protected_by_questions_to_ratings():
    made = certificate(rating("levels"), rating("scores"), unit="rating")
    assert made.protection["user"] is None
    assert made.protection["value"].epsilon > made.epsilon
    assert made.to_record()["protection"]["user"] == NONE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: part.update(numbers=5), "as many sums"),
        (lambda part: part["settings"].pop("ramp"), "ramp is missing"),
        (lambda part: part["settings"].update(ramp=0.5), "ramp is a whole number"),
        (lambda part: part["settings"].update(ramp=8.0), "levels: mu"),
    ],
)
def test_levels_by_rating_have_six_numbers_and_the_bound_of_their_ramp(change, words):
    record = certificate(rating("levels"), rating("scores"), unit="rating").to_record()
    assert not examined(record)
    change(record["parts"][0])
    assert words in "; ".join(examined(record))


def test_changing_one_rating_at_the_unit_user_is_not_covered_at_the_price_of_a_person():
    """The trap of PEOPLE: a person replaced is one removed and one added."""
    made = certificate(*PARTS)
    assert made.protection["rating"].epsilon > 1.3 * made.epsilon


def test_a_delta_that_names_use_up_leaves_an_infinite_price():
    assert certificate(person(NAMES, threshold=B)).epsilon == np.inf


# --- strict forms ---


def test_a_certificate_of_people_holds_by_itself():
    for made in (certificate(*PARTS), certificate(rating("levels"), rating("scores"), rating(NAMES), unit="rating")):
        assert examined(made.to_record()) == []


def test_a_certificate_of_values_states_no_mu():
    part = HistogramPart("level histogram", "4", (0, 1))
    counts = dict.fromkeys(("n_users", "n_items", "n_ratings", "median_ratings_per_user", "max_ratings_per_user"), 2)
    public = {"facts": PUBLIC_FACTS["value"], "scale": "0:1:1", "levels": 2, **counts, "has_timestamps": False}
    made = certificate(part, unit="value", nominal=0.5, delta=0.0, public=public).to_record()
    assert examined(made) == []
    assert made["protection"] == {"value": {"epsilon": 0.5, "delta": 0.0}, "rating": NONE, "user": NONE}
    assert "mu is stated, and no part has one" in examined({**made, "mu": 0.1})


def test_parts_of_values_add_up_in_delta_too_and_have_no_price_among_those_of_people():
    """A table that shows its level an eighth of the time, twice."""
    part = ChannelPart("ratings", "made up", 4, (((9, 7), (7, 9)),), at_epsilon=0.0)
    made = certificate(part, part, unit="value", nominal=0.5, delta=0.25)
    assert made.epsilon == 0
    assert 0.25 <= made.delta < 0.25 + 1e-15
    assert certificate(*PARTS, part).epsilon == np.inf
    assert set(certificate(*PARTS, part).protection.values()) - {None} == {Price(np.inf, 1e-5)}


@pytest.mark.parametrize("n_ratings", [1, 3, 10, 63, 64, 65, 210, 123_457])
def test_all_values_of_one_person_together_are_never_cheaper_than_their_sum(n_ratings):
    made = certificate(HistogramPart("level histogram", "30", (0, 1)), unit="value", nominal=0.5, delta=0.0)
    together = n_ratings * Fraction(made.epsilon)
    assert together <= Fraction(made.epsilon_for_user(n_ratings)) <= together * (1 + Fraction(1, 2**51))


def test_a_delta_that_was_not_asked_for_and_a_question_of_another_kind_of_release_are_refused_in_words():
    part = ChannelPart("ratings", "made up", 10, (((520, 504), (504, 520)),), at_epsilon=0.0)
    asked, not_asked = (certificate(part, unit="value", nominal=0.5, delta=delta) for delta in (0.02, 0.0))
    assert not list(_against(asked))
    assert [words for words in _against(not_asked) if "exceeds the 0.0 asked for" in words]
    foreign = examined(certificate(person(COUNTS)).to_record())
    assert "every question to people is one that such a release asks" in foreign


def part_of(record, name):
    return next(part for part in record["parts"] if part["name"] == name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: part_of(r, "scores").update(name="secrets"), "must be one of"),
        (lambda r: part_of(r, "scores").update(extra=1), "extra"),
        (lambda r: part_of(r, "scores").pop("squared_bound"), "squared_bound"),
        (lambda r: part_of(r, "scores").pop("threshold"), "threshold"),
        (lambda r: part_of(r, NAMES).update(threshold=None), "cannot be priced"),
        (lambda r: part_of(r, "scores").update(threshold=7), "cannot be priced"),
        (lambda r: part_of(r, "scores").update(variance=0), "variance"),
        (lambda r: part_of(r, "scores").update(variance=0.5), "variance"),
        (lambda r: part_of(r, "scores").update(squared_bound=B * B // 2), "squared_bound"),
        (lambda r: part_of(r, "scores").update(squared_bound=1 << 59), "measured against"),
        (lambda r: part_of(r, "scores").update(variance=part_of(r, "scores")["variance"] // 2), "states"),
        (lambda r: part_of(r, "scores").update(mu=part_of(r, "scores")["mu"] * 0.999), "states"),
        (lambda r: part_of(r, NAMES).update(delta=0.0), "states"),
        (lambda r: part_of(r, NAMES).update(most_named=64), "states"),
        (lambda r: part_of(r, NAMES).update(most_named=0), "most_named must be at least 1"),
        (lambda r: part_of(r, NAMES).update(most_named=MOST_NAMED + 1), "most_named must be at most 4096"),
        (lambda r: part_of(r, NAMES).update(most_named=2.5), "most_named"),
        (lambda r: part_of(r, NAMES).update(most_named=True), "most_named"),
        (lambda r: part_of(r, NAMES).update(most_named=None), "most_named"),
        (lambda r: part_of(r, "scores").update(most_named=64), "cannot be priced"),
        (lambda r: part_of(r, "scores").update(numbers=63), "as many sums"),
        (lambda r: part_of(r, MOMENTS).update(numbers=436), "as many sums"),
        (lambda r: part_of(r, MOMENTS).update(numbers=33 * 32 // 2), "as many sums"),
        (lambda r: part_of(r, "levels").update(numbers=10**12), "as many sums"),
        (lambda r: r.update(mu=r["mu"] * 0.99), "mu is stated as"),
        (lambda r: r.pop("mu"), "mu is stated as"),
        (lambda r: r["parts"].pop(), "mu is stated as"),
        (lambda r: r.update(nominal_delta=1.25e-24), "its parts may add up to"),
        (lambda r: r.update(epsilon=r["epsilon"] * 0.99), "its parts may add up to"),
        (lambda r: r.update(nominal_delta=r["delta"] / 2), "its parts may add up to"),
        (lambda r: r["protection"].update(user={"epsilon": 0.1, "delta": 1e-5}), "each unit"),
        (lambda r: r["protection"].update(rating=r["protection"]["user"]), "each unit"),
        (lambda r: r["public"].update(cells=0), "public"),
        (lambda r: r["public"].pop("cells"), "public"),
        (lambda r: r["public"].update(n_users=70), "public"),
        (lambda r: r.update(unit="rating"), "unit"),
        (lambda r: r.update(unit="value"), "public"),
        (lambda r: r["parts"].append(rating("levels").to_record()), "every part asks about that unit"),
    ],
)
def test_a_certificate_that_says_less_or_something_else_is_refused_in_words(change, words):
    record = certificate(*PARTS).to_record()
    change(record)
    assert any(words in found for found in examined(record)), examined(record)


def test_a_certificate_that_does_not_say_how_many_items_count_is_read_and_means_the_most():
    """As they were written before: they are read back to the byte."""
    old = certificate(*PARTS)
    record = old.to_record()
    assert "most_named" not in part_of(record, NAMES)
    checks, found = check_certificate(json.dumps(record).encode())
    assert all(check.holds for check in checks)
    assert found.to_record() == record
    said = person(NAMES, 6.0, most_named=MOST_NAMED)
    assert found.parts[-1].tail("user") == said.tail("user")
    assert certificate(*PARTS[:-1], said).epsilon == found.epsilon


def test_how_many_items_count_is_written_read_and_said():
    record = certificate(*PARTS[:-1], person(NAMES, 6.0, most_named=64)).to_record()
    assert examined(record) == []
    assert part_of(record, NAMES)["most_named"] == 64
    found = Certificate.from_record(record).parts[-1]
    assert isinstance(found, PersonPart)
    assert found.most_named == 64
    assert "64 items of a person" in found.noise
    assert found.tail("user") < PARTS[-1].tail("user")
    assert all("most_named" not in part for part in record["parts"][:-1])


def test_a_threshold_that_is_too_low_for_the_items_that_count_is_refused():
    """Forged so that all stated figures fit: more is spent than was asked for, and it may not call itself private."""
    variance = 36 * B * B
    low = person(NAMES, 6.0, threshold=person_threshold(variance, 1e-6, 32), most_named=32)
    nominal = certificate(*PARTS[:-1], low, nominal=0.1).epsilon
    assert examined(certificate(*PARTS[:-1], low, nominal=nominal).to_record()) == []
    forged = certificate(*PARTS[:-1], replace(low, most_named=64), nominal=nominal)
    assert any("calls itself private although" in words for words in examined(forged.to_record()))
    record = certificate(*PARTS[:-1], low, nominal=nominal).to_record()
    part_of(record, NAMES)["most_named"] = 64
    assert any(words.startswith("names: ") and "states" in words for words in examined(record))


def test_names_of_single_ratings_have_no_number_of_items_of_a_person():
    """One rating names one item more at most: a certificate that says more says what nobody computes with."""
    record = certificate(rating(NAMES), unit="rating").to_record()
    assert examined(record) == []
    record["parts"][0]["most_named"] = 64
    assert any("most_named" in words for words in examined(record))


@pytest.mark.parametrize(
    "settings",
    [{}, {"bound": float(B)}, {**SCORES, "trust": 1.0}, {**SCORES, "bound": 0.5}, {**SCORES, "width": 0.0}],
)
def test_settings_that_are_missing_unknown_or_impossible_are_refused_in_words(settings):
    record = certificate(rating("scores"), unit="rating").to_record()
    record["parts"][0]["settings"] = settings
    assert len(examined(record)) == 1


@pytest.mark.parametrize("name", ["scores", "levels", NAMES, MOMENTS])
@pytest.mark.parametrize("times", [0.5, 2.0])
def test_a_bound_on_another_grid_has_no_price(name, times):
    """Half the steps for the same sums would be a quarter of the price."""
    part = rating(name)
    other = replace(part, settings={**part.settings, "bound": times * part.settings["bound"]})
    with pytest.raises(PrivacyError, match="measured on a grid"):
        other.squared_mu("rating")


def test_a_lowered_clip_is_found_out_by_the_price_that_follows():
    record = certificate(rating("scores"), unit="rating").to_record()
    record["parts"][0]["settings"]["clip"] = 0.1
    assert any("states" in words for words in examined(record))


def test_second_moments_over_more_cells_than_their_bound_counts_are_found_out():
    """The bound grows with the cells, so fewer of them may not be stated than there are sums."""
    record = certificate(rating(MOMENTS, numbers=435), unit="rating").to_record()
    assert examined(record) == []
    record = certificate(rating(MOMENTS, numbers=436), unit="rating").to_record()
    assert any("as many sums" in words for words in examined(record))


def test_parts_of_values_in_a_certificate_of_people_are_refused_in_words():
    record, foreign = certificate(*PARTS).to_record(), {
        "kind": "sums", "name": "window sums", "epsilon": 4.0, "delta": 0.0, "noise_scale": "1", "step": 1.0,
        "steps": [-1, -1, 0, 1, 1], "weights": [1, 1], "families": [["items", 3], ["users", 4]],
    }  # fmt: skip
    record["parts"].append(foreign)
    assert any("every part asks about that unit" in words for words in examined(record))


def test_a_part_of_people_in_a_certificate_of_values_is_refused_in_words():
    record = certificate(*PARTS).to_record()
    value = {
        "facts": PUBLIC_FACTS["value"], "scale": "1:5:1", "levels": 5, "n_users": 9, "n_items": 9, "n_ratings": 9,
        "median_ratings_per_user": 1.0, "max_ratings_per_user": 3, "has_timestamps": False,
    }  # fmt: skip
    record.update(unit="value", public=value)
    assert examined(record)


def test_every_question_is_known_to_both_kinds_of_part():
    for name, make in product(QUESTIONS, (person, rating)):
        assert isinstance(make(name), NormalPart)
        assert make(name).noise.startswith("normal, ")
