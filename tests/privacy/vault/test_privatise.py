"""Noise and its receipt are one value."""

import json
from dataclasses import replace
from fractions import Fraction

import jsonschema
import numpy as np
import pytest

from dpsr import Ratings, Scale
from dpsr.certify import Certificate
from dpsr.certify.check import read_certificate
from dpsr.certify.form import CERTIFICATE_FORM as SCHEMA
from dpsr.certify.parts import HistogramPart
from dpsr.certify.table_price import delta_of, epsilon_of
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import (
    AsPublished,
    calibrated_laplace,
    gaussian,
    gaussian_classical,
    laplace,
    optimal_channel,
    randomised_response,
)
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import declared_private, privatise

STARS = Scale(1, 5)


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    cells = rng.choice(60 * 40, size=900, replace=False)
    return Ratings.from_arrays(cells // 40, cells % 40, rng.integers(1, 6, 900), scale=STARS)


def test_every_rating_passes_once_and_the_mask_is_untouched(ratings):
    private = privatise(ratings, laplace(STARS, 1.0), noise=NoiseSource.system())
    assert len(private) == len(ratings)
    assert private.mask is ratings.mask
    assert private.values.min() >= 1
    assert private.values.max() <= 5


def test_the_receipt_states_the_exact_price_and_the_table_proves_it(ratings):
    certificate = privatise(ratings, calibrated_laplace(STARS, 1.0), noise=NoiseSource.system()).certificate
    assert certificate.private
    assert certificate.nominal == 1.0
    assert 1 - 1e-6 <= certificate.epsilon <= 1.0
    assert certificate.delta == 0
    assert epsilon_of(certificate.parts[0].tables[0]) == certificate.parts[0].epsilon


def test_as_published_reports_the_truth_and_refuses_to_call_itself_private(ratings):
    certificate = privatise(ratings, AsPublished(STARS, 0.1), noise=NoiseSource.system()).certificate
    assert not certificate.private
    assert certificate.nominal == 0.1
    assert certificate.epsilon == pytest.approx(0.939, abs=1e-3)
    assert "exact mean" in certificate.reasons[0]
    assert str(certificate).startswith("NOT PRIVATE")


def test_the_certificate_as_published_does_not_contain_the_mean_it_leaked(ratings):
    text = privatise(ratings, AsPublished(STARS, 0.1), noise=NoiseSource.system()).certificate.to_json()
    assert repr(float(ratings.values.mean()))[:6] not in text
    assert "tables" not in json.loads(text)["parts"][0]


def test_the_classical_gaussian_certificate_shows_the_true_delta(ratings):
    certificate = privatise(ratings, gaussian_classical(STARS, 10.0, 1e-5), noise=NoiseSource.system()).certificate
    part = certificate.parts[0]
    assert certificate.delta == pytest.approx(2.27e-5, abs=0.005e-5)
    assert certificate.delta == delta_of(part.tables[0], part.bits, 10.0)
    assert not certificate.private
    assert "exact delta" in certificate.reasons[0]


def test_a_seed_means_not_private(ratings):
    certificate = privatise(ratings, laplace(STARS, 1.0), noise=NoiseSource.seeded(0)).certificate
    assert not certificate.private
    assert certificate.randomness == "seeded"
    assert "whoever has the seed" in certificate.reasons[0]


def test_declared_ratings_are_never_certified(ratings):
    certificate = declared_private(ratings).certificate
    assert not certificate.private
    assert certificate.epsilon == np.inf
    assert read_certificate(certificate.to_json().encode()) == certificate
    assert "says somebody" not in certificate.to_json()


def test_a_mechanism_for_another_scale_is_refused(ratings):
    with pytest.raises(PrivacyError, match=r"built for the scale 0:10:1.*Build it with"):
        privatise(ratings, laplace(Scale(0, 10), 1.0), noise=NoiseSource.system())


@pytest.mark.parametrize(
    "mechanism",
    [
        laplace(STARS, 1.0),
        AsPublished(STARS, 1.0),
        gaussian_classical(STARS, 10.0, 1e-5),
        gaussian(STARS, 1.0, 1e-3),
        calibrated_laplace(STARS, 1.0),
        randomised_response(STARS, 1.0),
        optimal_channel(STARS, 1.0, np.full(5, 0.2)),
        replace(laplace(STARS, 1.0), mechanism="epsilon = 0.01, says somebody"),
    ],
    ids=lambda mechanism: getattr(mechanism, "mechanism", "as published"),
)
def test_certificates_follow_their_schema_and_survive_json(ratings, mechanism):
    certificate = privatise(ratings, mechanism, noise=NoiseSource.system()).certificate
    jsonschema.validate(json.loads(certificate.to_json()), SCHEMA)
    assert read_certificate(certificate.to_json().encode()) == certificate


def test_public_facts_name_the_heaviest_user_and_a_person_is_priced_as_a_group(ratings):
    certificate = privatise(ratings, laplace(STARS, 1.0), noise=NoiseSource.system()).certificate
    k = certificate.public["max_ratings_per_user"]
    assert k == ratings.mask.user_counts.max()
    assert certificate.epsilon_for_user(k) >= k * certificate.epsilon * (1 - 1e-15)


def test_sums_of_prices_are_never_rounded_down():
    part = HistogramPart("level histogram", "20", (0, 1))
    total = Certificate(1.0, (part,) * 10, {}, "system", True, "0" * 32).epsilon
    assert Fraction(total) >= 10 * Fraction(part.epsilon)
    assert total <= np.nextafter(1.0, 2)


def test_the_raw_table_and_the_certificate_never_print_a_rating(ratings):
    assert repr(ratings) == "Ratings(900 ratings, 60 users, 40 items, scale 1:5:1)"
