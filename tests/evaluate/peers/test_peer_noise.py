"""The noise that every peer really draws is the noise it is charged for, and the charge is what was asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, kstest
from transcript import record

from dpsr.data import realistic
from dpsr.evaluate.contract import Protection
from dpsr.evaluate.peers.accounting import epsilon_of

FLOATING = ("dp-sgd-mf", "denoised-dp-mf", "objective-mf", "objective-mf-local", "berlioz-input", "berlioz-als",
            "mcsherry-mironov", "mcsherry-mironov-svd", "dp-als", "noisy-bias")  # fmt: skip
DELTA = 1e-5


@pytest.fixture(scope="module")
def ratings():
    return realistic(2, n_users=120, n_items=80, n_ratings=3000)


def p_value(release):
    """How well the noise fits the law on its receipt."""
    scale, noise = release.price.scale, release.noise
    if release.price.mechanism == "laplace":
        return kstest(noise.ravel() / scale, "laplace").pvalue
    if release.price.mechanism == "gaussian":
        return kstest(noise.ravel() / scale, "norm").pvalue
    return kstest(np.linalg.norm(noise, axis=1), gamma(noise.shape[1], scale=scale).cdf).pvalue


def clamps(release):
    """Releases of one number have nothing to fit a law to."""
    return release.noise.size >= 50


@pytest.mark.parametrize("name", FLOATING)
def test_the_noise_drawn_fits_the_receipt(monkeypatch, name, ratings):
    _, releases = record(monkeypatch, name, 1.0, ratings)
    fits = [p_value(release) for release in releases if clamps(release)]
    assert fits
    assert min(fits) > 1e-4 / len(fits)


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_noise_off_by_a_factor_of_two_does_not_fit(monkeypatch, name, ratings, factor):
    def spoil(statistic, answer):
        return statistic + factor * (answer - statistic)

    _, releases = record(monkeypatch, name, 1.0, ratings, spoil=spoil)
    fits = [p_value(release) for release in releases if clamps(release)]
    assert min(fits) < 1e-4 / len(fits)


@pytest.mark.parametrize("name", [*FLOATING, "shin-ldp-mf"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_price_is_composed_from_the_receipts_and_does_not_exceed_what_was_asked(
    monkeypatch, name, ratings, epsilon
):
    peer, releases = record(monkeypatch, name, epsilon, ratings)
    protection = peer.protection
    assert isinstance(protection, Protection)
    assert protection.epsilon == epsilon_of([release.price for release in releases], DELTA)
    assert 0.98 * epsilon <= protection.epsilon <= epsilon * (1 + 1e-9)
    assert protection.delta in (0.0, DELTA)


def test_local_reports_are_bounded_unbiased_and_carry_their_price(monkeypatch, ratings):
    _, releases = record(monkeypatch, "shin-ldp-mf", 6.0, ratings)
    for release in releases:
        assert release.price.mechanism == "local report"
        assert np.abs(release.answer).max() <= release.price.scale
        assert release.price.epsilon == pytest.approx(1.0)
    noise = np.concatenate([release.noise for release in releases])
    assert abs(noise.mean()) < 4 * noise.std() / np.sqrt(len(noise))
