"""The audit of likes: questions by trials, what must make no difference, the whole pipeline in one run.

All bounds of one report hold together at 95 % confidence: half of the risk is the one run's, the trials share the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.audit.findings import CONFIDENCE, AuditReport, Finding
from dpsr.audit.likes.planted import PLANTED_LIKES
from dpsr.audit.likes.questions import (
    STARS,
    LikesSetting,
    counts,
    counts_twice,
    moments,
    names,
    pairs,
    people_numbered,
)
from dpsr.audit.people.auditing import CANARIES, EACH, OTHERS, attempted, every_finding, generator_of
from dpsr.audit.people.crowd import CanaryPeople
from dpsr.audit.people.invariance import FAINT, differences, own_noise, unknown_items
from dpsr.audit.people.membership import Told, tell_one_run
from dpsr.audit.replay import Tape
from dpsr.certify.certificate import check_unit
from dpsr.certify.people import COUNTS, NormalPart
from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.likes import check_likes
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people import NoisyAnswer
from dpsr.privacy.vault.people.likes_vault import LikesVault
from dpsr.release.likes import LikesRelease

Report = Callable[[str], None]

_PEOPLE, _CELLS = 60, 40

_COUNTED = {"weighted counts": counts, "weighted counts, asked twice": counts_twice}
_PEOPLE_NUMBERED = {"how many people": people_numbered, "names": names}

TRIALS = {
    "user": {**_COUNTED, "second moments of presence": moments, **_PEOPLE_NUMBERED},
    "rating": {**_COUNTED, "pairs of presence": pairs, **_PEOPLE_NUMBERED},
}
"""By the unit."""


def audit_likes(
    unit: str,
    epsilon: float,
    delta: float,
    *,
    seed: int | None = None,
    canaries: int = CANARIES,
    progress: Report = lambda _: None,
) -> AuditReport:
    """Every finding for one unit; made-up people only, so that anybody may see it."""
    check_likes(unit, epsilon, delta)
    check_unit(unit, epsilon, delta, declared=True)
    pipeline, rng = DPSR(epsilon, unit=unit, delta=delta, random_state=seed), generator_of(seed)
    setting = LikesSetting(unit, epsilon, delta)

    def same() -> list[Finding]:
        return [audit_noise(setting), audit_blocks(setting), audit_other_people(pipeline, claim=epsilon)]

    def one_run(alpha: float) -> Told:
        return audit_one_run(pipeline, delta=delta, alpha=alpha, rng=rng, canaries=canaries)

    trials = {name: partial(trial, setting) for name, trial in TRIALS[unit].items()}
    what = "who is there" if unit == "user" else "which interactions exist"
    findings = every_finding(trials, same, one_run, what, epsilon, delta, NoiseSource.of_seed(seed), rng, progress)
    return AuditReport(_subject("", unit, epsilon, delta), findings)


def audit_planted_likes(
    epsilon: float, delta: float, *, seed: int | None = None, progress: Report = lambda _: None
) -> AuditReport:
    """Vaults of interactions with a planted error: each of them is to be rejected."""
    check_likes("user", epsilon, delta)
    setting = LikesSetting("user", epsilon, delta)
    found = {(planted.__doc__ or "").rstrip("."): partial(planted, setting) for planted in PLANTED_LIKES}
    findings = attempted(found, delta, 1 - CONFIDENCE, NoiseSource.of_seed(seed), generator_of(seed), progress)
    return AuditReport(_subject("planted errors, ", "user", epsilon, delta), tuple(findings))


def audit_other_people(pipeline: DPSR, *, claim: float) -> Finding:
    """Fit once, fit again on other people with the same answers, compare everything that is released."""
    rng = np.random.default_rng(11)
    crowds = [CanaryPeople.toss(_PEOPLE, 5, STARS, rng) for _ in range(3)]
    tables = [crowd.likes(others) for others, crowd in zip((90, 40, 0), crowds, strict=True)]
    declared = pipeline.unfitted().set_params(items=crowds[0].declared)
    return differences(declared, tables, _facts, claim=claim)


def _facts(release: Any) -> dict[str, Any]:
    """Everything that a folder is written from, by name; the name of the draws is new in every run and is left out."""
    assert isinstance(release, LikesRelease)
    side = {f"likes side: {one.name}": getattr(release.side, one.name) for one in fields(release.side)}
    receipt = {name: value for name, value in release.certificate.to_record().items() if name != "id"}
    named = {"named": release.index.named.to_pylist(), "synthetic": release.synthetic, "settings": release.settings}
    return {**side, **{f"certificate: {name}": value for name, value in receipt.items()}, **named}


def audit_blocks(setting: LikesSetting) -> Finding:
    """The same people in blocks of many sizes: with the same noise, every answer is the same to the last step."""
    crowd = CanaryPeople.toss(_PEOPLE, 4, STARS, np.random.default_rng(12))
    answers, sizes = [], (3, 7, 1 << 20)
    for block in sizes:
        vault = setting.open(crowd.likes(50, block=block), crowd.declared, NoiseSource.seeded(3))
        answers.append([one.values for one in _asked(vault)])
    same = all(np.array_equal(a, b) for again in answers[1:] for a, b in zip(answers[0], again, strict=True))
    detail = "the same answers, to the last step" if same else "a person in two blocks counts as two"
    return Finding("the same people in other blocks", setting.epsilon, 0.0 if same else np.inf, len(sizes), detail)


def _asked(vault: LikesVault) -> list[NoisyAnswer]:
    """One question of every kind, about some cells."""
    cells = np.arange(vault.n_cells)[-_CELLS:]
    flat = np.full(len(cells), 1 / len(cells))
    moments = vault.presence_moments(0.1, cells, flat, np.ones(len(cells)))
    return [vault.numbers(0.1, cells), vault.counts(0.1, cells), moments]


def audit_noise(setting: LikesSetting) -> Finding:
    """Nobody has anything on the list, so that answers are noise alone."""
    crowd = CanaryPeople.toss(_PEOPLE, 4, STARS, np.random.default_rng(13))
    vault = replace(setting, epsilon=FAINT).open(crowd.likes(50), unknown_items(crowd), NoiseSource.seeded(3))
    numbers, counts, moments = (one.values / one.noise for one in _asked(vault))
    return own_noise([numbers, counts, moments[np.triu_indices(_CELLS, 1)]], claim=setting.epsilon)


def audit_one_run(
    pipeline: DPSR, *, delta: float, alpha: float, rng: np.random.Generator, canaries: int = CANARIES
) -> Told:
    """Fit once with canary people among others; guess who is there."""
    crowd, tape = CanaryPeople.toss(canaries, EACH[pipeline.unit], STARS, rng), Tape()
    pipeline.unfitted().set_params(items=crowd.declared).fit_table(crowd.likes(OTHERS), tape)
    return tell_one_run(numbers_of(tape, crowd), crowd.bits, delta, alpha)


def numbers_of(tape: Tape, crowd: CanaryPeople) -> Floats:
    """Of every round of counts over all cells, what stands on each canary's own; later rounds ask about fewer."""
    found = []
    for part, values in tape.kept:
        if isinstance(part, NormalPart) and part.name == COUNTS and len(values) == len(crowd.declared):
            own = values[: crowd.n_items].reshape(len(crowd.bits), crowd.each) / np.sqrt(part.variance)
            found.append(own.sum(axis=1))
    return np.column_stack(found)


def _subject(what: str, unit: str, epsilon: float, delta: float) -> str:
    return f"{what}likes, unit {unit} at epsilon = {epsilon:g}, delta = {delta:g}"
