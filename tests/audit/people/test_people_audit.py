"""`audit --unit user`: ours is not rejected, every planted error is, and the bound is not an empty one."""

import re
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from planting import planted

from dpsr import DPSR, Scale
from dpsr.audit.people.auditing import audit_one_run, audit_people, finding_of
from dpsr.audit.people.crowd import CanaryPeople
from dpsr.audit.people.invariance import audit_blocks, audit_noise, audit_other_people
from dpsr.audit.people.membership import tell, tell_one_run
from dpsr.audit.people.planted import PLANTED
from dpsr.audit.people.questions import Setting, people_counted, scores, scores_twice
from dpsr.audit.request import AuditRequest
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people import PeopleVault

STARS, DELTA, RISK = Scale(1, 5), 1e-5, 1e-6
DOCUMENT = Path(__file__).parents[3] / "docs" / "audit.md"


def setting(epsilon, unit="user"):
    return Setting(unit, STARS, epsilon, DELTA)


def asked(trial, epsilon=3.0, unit="user", **options):
    found = trial(setting(epsilon, unit), NoiseSource.seeded(2), np.random.default_rng(1), **options)
    return finding_of(found, DELTA, RISK)


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 8.0])
@pytest.mark.parametrize("error", PLANTED, ids=lambda error: error.__name__)
def test_every_planted_error_is_rejected_at_every_epsilon(error, epsilon, monkeypatch):
    """A number that has no noise is known from the first few hundred vaults."""
    monkeypatch.setattr("dpsr.audit.people.planted.people_counted", partial(people_counted, n=1 << 9))
    trial = error(setting(epsilon), NoiseSource.seeded(1), np.random.default_rng(3))
    assert finding_of(trial, DELTA, 0.01).rejected


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_questions_are_not_rejected_and_the_bound_comes_near_the_claim(unit):
    found = asked(scores, unit=unit, n=1 << 14)
    assert 0.6 * found.claimed < found.lower < found.claimed
    assert not asked(scores_twice, unit=unit, n=1 << 12).rejected
    assert not asked(people_counted, unit=unit, n=1 << 9).rejected
    assert audit_blocks(setting(3.0, unit)).lower == 0
    assert audit_other_people(DPSR(3.0, unit=unit, delta=DELTA, random_state=0), STARS, claim=3.0).lower == 0


@pytest.mark.parametrize("epsilon", [3.0, 10.0])
def test_one_run_finds_a_third_of_what_is_certified_and_no_more_than_all_of_it(epsilon):
    pipeline = DPSR(epsilon, unit="user", delta=DELTA, random_state=4)
    rng = np.random.default_rng(5)
    found = audit_one_run(pipeline, STARS, delta=DELTA, alpha=0.025, rng=rng, canaries=10_000)
    assert epsilon / 3 < found.lower < epsilon


def test_a_pipeline_sold_below_its_price_is_rejected_in_one_run():
    """The planted error: epsilon = 8 sold as 2."""
    pipeline = DPSR(8.0, unit="user", delta=DELTA, random_state=4)
    found = audit_one_run(pipeline, STARS, delta=DELTA, alpha=0.025, rng=np.random.default_rng(5), canaries=6_000)
    assert found.lower > 2.0


def test_canaries_that_cannot_be_told_are_not_told():
    """The other planted error: numbers that know nothing of the coins. One report in a thousand may be wrong."""
    rng = np.random.default_rng(0)
    numbers, bits = rng.normal(size=(20_000, 6)), rng.random(20_000) < 0.5
    assert tell(numbers, bits, DELTA, 1e-3).lower == 0
    assert tell_one_run(numbers, bits, DELTA, 1e-3).lower == 0


def test_a_canary_that_is_not_there_leaves_no_trace_in_the_table():
    crowd = CanaryPeople(np.array([True, False, True]), 4, STARS)
    mask = crowd.table(20).table.cells
    assert mask.user_counts[:2].tolist() == [4, 4]
    assert not set(mask.items) & set(crowd.cells()[1])
    assert len(crowd.declared) == mask.n_items


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ParameterError, match="made-up people"):
        AuditRequest(unit="user", delta=1e-5, scale=STARS, epsilon=1.0, method="paper").answer()
    with pytest.raises(ParameterError, match="without a delta"):
        AuditRequest(delta=1e-5, scale=STARS, epsilon=1.0).answer()


def test_a_report_has_a_line_for_every_attack():
    report = audit_people("user", STARS, 3.0, DELTA, seed=1, canaries=2_000)
    assert not report.rejected
    assert not report.curator_only
    assert len(report.findings) == 7


# --- errors planted in the library itself, one line each ---


@dataclass(frozen=True)
class Error:
    name: str
    edits: tuple
    audit: object
    catcher: object


HALVES = "np.sort(np.concatenate([indptr, (indptr[:-1] + indptr[1:]) // 2]))"
SCORES, TWICE = "scores of items, one person or rating each", "scores of items, asked twice"
COUNTED = "levels and activity, one person more"
OTHERS = "everything after the noisy answers, on other people"
OWN = "noise of its own for every number"
DRAWN = "self._draw(part.variance, len(exact))"


def behind_the_same_answers():
    return audit_other_people(DPSR(3.0, unit="user", delta=DELTA, random_state=0), STARS, claim=3.0)


ERRORS = (
    Error(
        "noise for half the bound of a person",
        ((PeopleVault._draw, "rounded_normal(variance, n", "rounded_normal(variance // 4, n"),),
        SCORES,
        lambda: asked(scores, n=1 << 13),
    ),
    Error(
        "a person in two blocks counts as two",
        ((vars(PeopleRows)["by_cell"].__func__, "per_cell(indptr,", f"per_cell({HALVES},"),),
        SCORES,
        lambda: asked(scores, n=1 << 15),
    ),
    Error(
        "one stream of noise for all questions about people",
        ((NoiseSource.stream, "self._asked += 1", "self._asked = 1"),),
        TWICE,
        lambda: asked(scores_twice, n=1 << 11),
    ),
    Error(
        "no noise on the number of people",
        ((PeopleVault._noisy, "if absent is not None:", "noisy[0] = exact[0]\n        if absent is not None:"),),
        COUNTED,
        lambda: asked(people_counted, n=1 << 9),
    ),
    Error(
        "no noise on one number in a hundred",
        ((PeopleVault._noisy, DRAWN, f"np.where(np.arange(len(exact)) % 100 == 99, 0, {DRAWN})"),),
        OWN,
        lambda: audit_noise(setting(3.0)),
    ),
    Error(
        "one noise for two cells that lie apart",
        ((PeopleVault._noisy, DRAWN, "np.resize(self._draw(part.variance, (len(exact) + 1) // 2), len(exact))"),),
        OWN,
        lambda: audit_noise(setting(3.0, "rating")),
    ),
    Error(
        "the exact number of people among the settings",
        ((DPSR._fit_people, "_public_settings()", '_public_settings() | {"delta": ratings.table.census.n_users}'),),
        OTHERS,
        behind_the_same_answers,
    ),
    Error(
        "answers about people drawn again",
        ((PeopleVault._noisy, "self._journal.answered(part) if self._journal else None", "None"),),
        OTHERS,
        behind_the_same_answers,
    ),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name)
def test_an_error_planted_in_the_library_is_caught_and_sound_code_is_not_accused(error):
    for plant, expected in ((nullcontext, False), (lambda: planted(*error.edits), True)):
        with plant():
            found = error.catcher()
        assert found.rejected == expected
        assert found.what == error.audit


def test_the_document_has_exactly_this_table():
    text = DOCUMENT.read_text("utf-8").split("### What catches which error, people")[1].split("\n## ")[0]
    found = re.findall(r"^\|.*\|$", text, flags=re.MULTILINE)
    assert found[2:] == [f"| {error.name} | {error.audit} |" for error in ERRORS]
