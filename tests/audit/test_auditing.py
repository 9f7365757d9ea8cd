"""What a whole audit says: of our methods, of a certificate, of planted errors; and what it refuses."""

from dataclasses import replace

import pytest

from dpsr import DPSR, Scale
from dpsr.audit import AuditReport, AuditRequest, Finding, audit_method, audit_planted, audit_release
from dpsr.audit.auditing import made_up
from dpsr.audit.certificate_trials import certificate_trials
from dpsr.audit.findings import CURATOR_ONLY
from dpsr.audit.trials import run
from dpsr.certify.parts import Price
from dpsr.data import realistic
from dpsr.errors import ParameterError, PrivacyError
from dpsr.privacy.noise import NoiseSource

STARS = Scale(1, 5)


@pytest.fixture(scope="module")
def ratings():
    return realistic(5, n_users=200, n_items=100, n_ratings=6_000)


@pytest.fixture(scope="module")
def release(ratings):
    """Seeded: a bound at 95 % is above a true claim once in a while, and what it finds depends on the tables."""
    return DPSR(4.0, random_state=1).fit(ratings).release


@pytest.mark.parametrize("method", ["default", "paper"])
def test_ours_is_not_rejected_and_says_whether_it_read_raw_ratings(ratings, method):
    report = audit_method(method, STARS, 2.0, ratings, seed=1)
    assert not report.rejected
    assert report.to_dict()["private"] is False
    assert report.to_dict()["note"] == CURATOR_ONLY


def test_the_published_method_is_rejected_at_a_tenth_and_its_certificate_is_not():
    report = audit_method("as-published", STARS, 0.1, seed=0)
    assert report.rejected
    assert not report.curator_only, "of made-up ratings everybody may read"
    by_certificate = next(finding for finding in report.findings if "certificate" in finding.what)
    assert not by_certificate.rejected
    assert by_certificate.claimed == pytest.approx(0.9393, abs=1e-4)


def test_every_planted_error_is_found_and_a_lame_audit_would_say_so():
    report = audit_planted(STARS, 1.0, seed=0)
    assert not report.overlooked
    assert len(report.findings) == 8
    lame = replace(report, findings=(*report.findings, Finding("x", 1.0, 0.5, 10)))
    assert lame.overlooked


def test_a_certificate_is_audited_from_its_own_tables(release):
    report = audit_release(release, seed=0)
    assert not report.rejected
    assert not report.curator_only
    assert len(report.findings) == sum(len(getattr(part, "tables", [()])) for part in release.certificate.parts)
    assert all(finding.lower > 0.75 * finding.claimed for finding in report.findings)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_certificate_that_understates_a_part_is_rejected(release, index):
    parts = list(release.certificate.parts)
    parts[index] = replace(parts[index])
    parts[index].__dict__["price"] = Price(0.7 * parts[index].epsilon)
    forged = replace(release, certificate=replace(release.certificate, parts=tuple(parts)))
    trials = [trial for trial in certificate_trials(forged) if trial.name.startswith(parts[index].name)]
    assert any(run(trial, NoiseSource.seeded(0), alpha=0.01).lower > trial.claim for trial in trials)


def test_a_certificate_without_tables_sends_to_the_pipeline(ratings):
    published = DPSR.paper(1.0, as_published=True).fit(ratings).release
    with pytest.raises(PrivacyError, match="dpsr audit RATINGS"):
        audit_release(published)


def test_a_report_is_rejected_if_any_claim_is():
    fine, refuted = Finding("a", 1.0, 0.9, 10), Finding("b", 1.0, 1.1, 10)
    assert not AuditReport("s", (fine,)).rejected
    assert AuditReport("s", (fine, refuted)).rejected
    assert not Finding("c", 1.0, 1.0, 10).rejected


@pytest.mark.parametrize("scale", [Scale(0, 1), STARS, Scale(0.5, 5, step=0.5), Scale(0, 100)], ids=str)
def test_made_up_ratings_use_the_whole_scale(scale):
    table = made_up(scale)
    assert table.levels.min() == 0
    assert table.levels.max() == scale.n_levels - 1


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ({}, "--scale and --epsilon"),
        ({"scale": STARS}, "--scale and --epsilon"),
        ({"demo": True, "planted": True}, "one thing at a time"),
        ({"demo": True, "scale": STARS}, "leave out --scale"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_advice(wish, word):
    with pytest.raises(ParameterError, match=word):
        AuditRequest(**wish).answer()


def test_a_release_states_its_own_scale(release):
    with pytest.raises(ParameterError, match="its own scale"):
        AuditRequest(release=release, epsilon=1.0).answer()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan")])
def test_an_epsilon_that_means_nothing_is_refused(epsilon):
    with pytest.raises(PrivacyError, match="epsilon must be"):
        AuditRequest(scale=STARS, epsilon=epsilon).answer()
    with pytest.raises(PrivacyError, match="epsilon must be"):
        AuditRequest(planted=True, epsilon=epsilon).answer()
