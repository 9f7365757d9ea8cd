"""The audit of a unit of people: questions by trials, what must make no difference, the whole pipeline in one run.

All bounds of one report hold together at 95 % confidence: half of the risk is the one run's, the trials share the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsr.audit.findings import CONFIDENCE, AuditReport, Finding
from dpsr.audit.people.invariance import audit_blocks, audit_other_people
from dpsr.audit.people.membership import tell
from dpsr.audit.people.one_run import CANARIES, audit_one_run
from dpsr.audit.people.planted import PLANTED
from dpsr.audit.people.questions import Setting, Trial, people_counted, scores, scores_twice
from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.estimator import check_unit
from dpsr.privacy.noise import NoiseSource
from dpsr.types import Scale

Report = Callable[[str], None]

TRIALS = {"scores of items": scores, "scores of items, asked twice": scores_twice, "how many people": people_counted}


def audit_people(
    unit: str,
    scale: Scale,
    epsilon: float,
    delta: float,
    *,
    seed: int | None = None,
    canaries: int = CANARIES,
    progress: Report = lambda _: None,
) -> AuditReport:
    """Every finding for one unit; made-up people only, so that anybody may see it."""
    check_unit(unit, epsilon, delta, declared=True)
    setting, noise = Setting(unit, scale, epsilon, delta), noise_of(seed)
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    half, findings = (1 - CONFIDENCE) / 2, []
    for name, trial in TRIALS.items():
        progress(name)
        findings.append(finding_of(trial(setting, noise, rng), delta, half / len(TRIALS)))
    progress("the same people in other blocks, other people behind the same answers")
    pipeline = DPSR(epsilon, unit=unit, delta=delta, random_state=seed)
    findings += [audit_blocks(setting), audit_other_people(pipeline, scale, claim=epsilon)]
    progress("whole pipeline, one run with canary people")
    told = audit_one_run(pipeline, scale, delta=delta, alpha=half, rng=rng, canaries=canaries)
    name = "whole pipeline, guessing who is there" if unit == "user" else "whole pipeline, guessing which ratings exist"
    findings.append(Finding(name, epsilon, told.lower, told.trials, told.detail))
    return AuditReport(_subject("", unit, scale, epsilon, delta), tuple(findings))


def audit_planted_people(
    scale: Scale, epsilon: float, delta: float, *, seed: int | None = None, progress: Report = lambda _: None
) -> AuditReport:
    """Vaults of people with a planted error: each of them is to be rejected."""
    check_unit("user", epsilon, delta, declared=True)
    setting, noise = Setting("user", scale, epsilon, delta), noise_of(seed)
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    findings = []
    for planted in PLANTED:
        progress((planted.__doc__ or "").rstrip("."))
        findings.append(finding_of(planted(setting, noise, rng), delta, (1 - CONFIDENCE) / len(PLANTED)))
    return AuditReport(_subject("planted errors, ", "user", scale, epsilon, delta), tuple(findings))


def finding_of(trial: Trial, delta: float, alpha: float) -> Finding:
    """A trial's lower bound beside its claim."""
    told = tell(trial.numbers, trial.bits, delta, alpha)
    return Finding(trial.name, trial.claim, told.lower, told.trials, told.detail)


def _subject(what: str, unit: str, scale: Scale, epsilon: float, delta: float) -> str:
    return f"{what}unit {unit} at epsilon = {epsilon:g}, delta = {delta:g}, scale {scale}"


def noise_of(seed: int | None) -> NoiseSource:
    """The system's noise, or a seeded one for experiments."""
    return NoiseSource.system() if seed is None else NoiseSource.seeded(seed)
