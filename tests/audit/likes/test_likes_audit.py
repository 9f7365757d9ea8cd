"""`audit --likes`: ours is not rejected, every planted error is, and the bound is not an empty one."""

from functools import partial

import numpy as np
import pytest

from dpsr import DPSR
from dpsr.audit.likes import auditing
from dpsr.audit.likes.auditing import audit_blocks, audit_likes, audit_one_run, audit_other_people
from dpsr.audit.likes.planted import PLANTED_LIKES
from dpsr.audit.likes.questions import LikesSetting, counts, counts_twice, moments, names, pairs, people_numbered
from dpsr.audit.people.auditing import finding_of
from dpsr.audit.request import AuditRequest
from dpsr.errors import ParameterError
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people.likes_vault import LikesVault

DELTA, RISK = 1e-5, 1e-6


def asked(trial, epsilon=3.0, unit="user", **options):
    setting = LikesSetting(unit, epsilon, DELTA)
    return finding_of(trial(setting, NoiseSource.seeded(2), np.random.default_rng(1), **options), DELTA, RISK)


@pytest.mark.parametrize("error", PLANTED_LIKES, ids=lambda error: error.__name__)
def test_every_planted_error_is_rejected(error, monkeypatch):
    """A number that has no noise is known from the first few hundred vaults."""
    monkeypatch.setattr("dpsr.audit.likes.planted.people_numbered", partial(people_numbered, n=1 << 9))
    setting = LikesSetting("user", 3.0, DELTA)
    assert finding_of(error(setting, NoiseSource.seeded(1), np.random.default_rng(3)), DELTA, 0.01).rejected


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_questions_are_not_rejected_and_the_bound_comes_near_the_claim(unit):
    found = asked(counts, unit=unit, n=1 << 14)
    assert 0.6 * found.claimed < found.lower < found.claimed
    assert not asked(counts_twice, unit=unit, n=1 << 12).rejected
    assert not asked(people_numbered, unit=unit, n=1 << 9).rejected
    assert audit_blocks(LikesSetting(unit, 3.0, DELTA)).lower == 0
    assert audit_other_people(DPSR(3.0, unit=unit, delta=DELTA, random_state=0), claim=3.0).lower == 0


def test_somebody_with_two_cells_adds_all_that_second_moments_allow():
    found = asked(moments, n=1 << 12)
    assert 0.5 * found.claimed < found.lower < found.claimed


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_the_weight_of_a_named_item_tells_no_more_of_one_person_than_the_receipt_says(unit):
    found = asked(names, unit=unit, n=1 << 13)
    assert 0.4 * found.claimed < found.lower < found.claimed


def test_an_interaction_of_a_busy_person_moves_pairs_by_nearly_all_that_they_allow():
    found = asked(pairs, epsilon=8.0, unit="rating", n=1 << 12)
    assert 0.3 * found.claimed < found.lower < found.claimed


def test_one_run_finds_a_part_of_what_is_certified_and_a_pipeline_sold_below_its_price_is_rejected():
    pipeline = DPSR(8.0, unit="user", delta=DELTA, random_state=4)
    rng = np.random.default_rng(5)
    found = audit_one_run(pipeline, delta=DELTA, alpha=0.025, rng=rng, canaries=6_000)
    assert 1.0 < found.lower < 8.0, "epsilon = 8 sold as 1 is refuted"


def test_noise_that_two_numbers_share_is_found(monkeypatch):
    """The planted error: the second half of every answer has the noise of the first."""
    assert not auditing.audit_noise(LikesSetting("rating", 3.0, DELTA)).rejected
    drawn = LikesVault._draw
    monkeypatch.setattr(LikesVault, "_draw", lambda self, variance, n: np.resize(drawn(self, variance, n // 2), n))
    assert auditing.audit_noise(LikesSetting("rating", 3.0, DELTA)).rejected


def test_a_fact_that_depends_on_people_is_found_behind_the_same_answers(monkeypatch):
    """The planted error: a number of people that nobody answered slips into what is released."""
    sound, seen = auditing._facts, []

    def leaking(release):
        seen.append(release)
        return sound(release) | {"people": len(seen)}

    monkeypatch.setattr(auditing, "_facts", leaking)
    found = auditing.audit_other_people(DPSR(3.0, unit="user", delta=DELTA, random_state=0), claim=3.0)
    assert found.rejected
    assert "people" in found.detail


def test_a_report_has_a_line_for_every_attack_and_a_release_is_audited_by_what_it_states():
    report = audit_likes("user", 3.0, DELTA, seed=1, canaries=2_000)
    assert not report.rejected
    assert not report.curator_only
    assert len(report.findings) == 9


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="no scale"):
        AuditRequest(likes=True, unit="user", demo=True).answer()
    with pytest.raises(ParameterError, match="needs --epsilon"):
        AuditRequest(likes=True, unit="user").answer()
    with pytest.raises(ParameterError, match="unit='value'"):
        AuditRequest(likes=True, unit="value", epsilon=1.0).answer()
