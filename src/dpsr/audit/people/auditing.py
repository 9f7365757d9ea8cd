"""The audit of a unit of people: questions by trials, what must make no difference, the whole pipeline in one run.

All bounds of one report hold together at 95 % confidence: half of the risk is the one run's, the trials share the rest.

In the one run the attacker sees every noisy answer, which is more than the release holds and what the certificate is
about. A canary is sought where nobody else is: in the scores of items that are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.audit.findings import CONFIDENCE, AuditReport, Finding
from dpsr.audit.people.crowd import CanaryPeople
from dpsr.audit.people.invariance import audit_blocks, audit_noise, audit_other_people
from dpsr.audit.people.membership import Told, tell, tell_one_run
from dpsr.audit.people.planted import PLANTED
from dpsr.audit.people.questions import Setting, Trial, people_counted, scores, scores_twice
from dpsr.audit.replay import Tape
from dpsr.certify.certificate import check_unit
from dpsr.certify.people import NormalPart
from dpsr.pipeline.dpsr import DPSR
from dpsr.privacy.noise import NoiseSource
from dpsr.types import Scale

Report = Callable[[str], None]
Attempt = Callable[[NoiseSource, np.random.Generator], Trial]

CANARIES, OTHERS = 100_000, 2_000
EACH = {"user": 16, "rating": 1}
"""Ratings of a canary: enough for a full weight in every round, or the one whose existence is at stake."""

_SCORES = ("scores", "scores of people")

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
    pipeline, rng = DPSR(epsilon, unit=unit, delta=delta, random_state=seed), generator_of(seed)
    setting = Setting(unit, scale, epsilon, delta)

    def same() -> list[Finding]:
        return [audit_noise(setting), audit_blocks(setting), audit_other_people(pipeline, scale, claim=epsilon)]

    def one_run(alpha: float) -> Told:
        return audit_one_run(pipeline, scale, delta=delta, alpha=alpha, rng=rng, canaries=canaries)

    trials = {name: partial(trial, setting) for name, trial in TRIALS.items()}
    what = "who is there" if unit == "user" else "which ratings exist"
    findings = every_finding(trials, same, one_run, what, epsilon, delta, NoiseSource.of_seed(seed), rng, progress)
    return AuditReport(_subject("", unit, scale, epsilon, delta), findings)


def audit_planted_people(
    scale: Scale, epsilon: float, delta: float, *, seed: int | None = None, progress: Report = lambda _: None
) -> AuditReport:
    """Vaults of people with a planted error: each of them is to be rejected."""
    check_unit("user", epsilon, delta, declared=True)
    setting = Setting("user", scale, epsilon, delta)
    found = {(planted.__doc__ or "").rstrip("."): partial(planted, setting) for planted in PLANTED}
    findings = attempted(found, delta, 1 - CONFIDENCE, NoiseSource.of_seed(seed), generator_of(seed), progress)
    return AuditReport(_subject("planted errors, ", "user", scale, epsilon, delta), tuple(findings))


def every_finding(
    trials: Mapping[str, Attempt],
    same: Callable[[], list[Finding]],
    one_run: Callable[[float], Told],
    what: str,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    rng: np.random.Generator,
    progress: Report,
) -> tuple[Finding, ...]:
    """Trials of single questions, what must differ or must not, and a guess at `what` from one run of everything."""
    half = (1 - CONFIDENCE) / 2
    findings = attempted(trials, delta, half, noise, rng, progress)
    progress("noise number by number, the same people in other blocks, other people behind the same answers")
    findings += same()
    progress("whole pipeline, one run with canary people")
    told = one_run(half)
    return (*findings, Finding(f"whole pipeline, guessing {what}", epsilon, told.lower, told.trials, told.detail))


def audit_one_run(
    pipeline: DPSR, scale: Scale, *, delta: float, alpha: float, rng: np.random.Generator, canaries: int = CANARIES
) -> Told:
    """Fit once with canary people among others; guess who is there."""
    crowd = CanaryPeople.toss(canaries, EACH[pipeline.unit], scale, rng)
    tape = Tape()
    pipeline.unfitted().set_params(items=crowd.declared).fit_table(crowd.table(OTHERS), tape)
    return tell_one_run(numbers_of(tape, crowd), crowd.bits, delta, alpha)


def numbers_of(tape: Tape, crowd: CanaryPeople) -> Floats:
    """Of every round of scores, each canary's own numbers, those of low and of high ratings added up."""
    found: list[Any] = []
    for part, values in tape.kept:
        if isinstance(part, NormalPart) and part.name in _SCORES:
            own = values.reshape(len(crowd.declared), -1)[: crowd.n_items]
            own = own.reshape(len(crowd.bits), crowd.each, -1) / np.sqrt(part.variance)
            found += [own[:, place::2].sum(axis=1) for place in range(min(crowd.each, 2))]
    return np.hstack(found)


def attempted(
    trials: Mapping[str, Attempt],
    delta: float,
    risk: float,
    noise: NoiseSource,
    rng: np.random.Generator,
    progress: Report,
) -> list[Finding]:
    """Every trial's finding; all bounds hold together but for `risk`."""
    findings = []
    for name, trial in trials.items():
        progress(name)
        findings.append(finding_of(trial(noise, rng), delta, risk / len(trials)))
    return findings


def finding_of(trial: Trial, delta: float, alpha: float) -> Finding:
    """A trial's lower bound beside its claim."""
    told = tell(trial.numbers, trial.bits, delta, alpha)
    return Finding(trial.name, trial.claim, told.lower, told.trials, told.detail)


def _subject(what: str, unit: str, scale: Scale, epsilon: float, delta: float) -> str:
    return f"{what}unit {unit} at epsilon = {epsilon:g}, delta = {delta:g}, scale {scale}"


def generator_of(seed: int | None) -> np.random.Generator:
    """Of coins and canaries."""
    return np.random.default_rng(None if seed is None else [seed, 1])
