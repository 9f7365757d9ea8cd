"""What must make no difference at all: other people behind the same answers, and how people lie in blocks; and what
must differ: the noise of any two numbers.

None of these has a false alarm, and there is no epsilon for what they find: it is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.audit.findings import Finding
from dpsr.audit.people.crowd import OTHER_ITEMS, CanaryPeople
from dpsr.audit.people.questions import Setting, unlearned
from dpsr.audit.replay import Tape, same_value
from dpsr.engine.raw import InteractionTable, RawTable
from dpsr.pipeline.dpsr import DPSR
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people import NoisyAnswer, PeopleVault, RatingVault
from dpsr.release.people import ItemRelease
from dpsr.types import Scale

_PEOPLE = 60

FAINT = 0.01
"""The epsilon at which noise is compared: its deviation is thousands of millions of steps, so that numbers of different
questions that come from the same draw agree in nine digits."""

_APART = 1e-8
"""Deviations by which two numbers differ that have noise of their own, under the seed that is looked at."""


def audit_other_people(pipeline: DPSR, scale: Scale, *, claim: float) -> Finding:
    """Fit once, fit again on other people with the same answers, compare everything that is released."""
    rng = np.random.default_rng(11)
    crowds = [CanaryPeople.toss(_PEOPLE, 5, scale, rng) for _ in range(3)]
    tables = [crowd.table(others) for others, crowd in zip((90, 40, 0), crowds, strict=True)]
    return differences(pipeline.unfitted().set_params(items=crowds[0].declared), tables, _facts, claim=claim)


def differences(
    pipeline: DPSR,
    tables: Sequence[RawTable | InteractionTable],
    facts_of: Callable[[Any], dict[str, Any]],
    *,
    claim: float,
) -> Finding:
    """Whether anything that `facts_of` a release says differs between tables, all given the answers of the first."""
    tape, facts = Tape(), []
    differ: set[str] = set()
    for table in tables:
        try:
            facts.append(facts_of(pipeline.unfitted().fit_table(table, tape)))
        except Exception:  # it went well with these answers once: that it does not any more is the people's doing
            differ.add("whether it runs at all")
        tape.rewind()
    for again in facts[1:]:
        differ |= {name for name in facts[0] if not same_value(facts[0][name], again.get(name))}
    if not tape.same_questions:
        differ.add("the questions")
    detail = f"these differ: {', '.join(sorted(differ))}" if differ else "the same release, bit for bit"
    return Finding("everything after the noisy answers, on other people", claim, np.inf if differ else 0.0, 2, detail)


def _facts(release: Any) -> dict[str, Any]:
    """Everything that a folder is written from, by name; the name of the draws is new in every run and is left out."""
    assert isinstance(release, ItemRelease)
    side = {f"item side: {one.name}": getattr(release.side, one.name) for one in fields(release.side)}
    receipt = {name: value for name, value in release.certificate.to_record().items() if name != "id"}
    named = {"named": release.index.named.to_pylist(), "synthetic": release.synthetic, "settings": release.settings}
    return {**side, **{f"certificate: {name}": value for name, value in receipt.items()}, **named}


def audit_blocks(setting: Setting) -> Finding:
    """The same people in blocks of many sizes: with the same noise, every answer is the same to the last step."""
    crowd = CanaryPeople.toss(_PEOPLE, 4, setting.scale, np.random.default_rng(12))
    answers = []
    sizes = (3, 7, 1 << 20)
    for block in sizes:
        vault = setting.open(crowd.table(50, block=block), crowd.declared, NoiseSource.seeded(3))
        answers.append([one.values for one in _asked(setting, vault)])
    same = all(np.array_equal(a, b) for again in answers[1:] for a, b in zip(answers[0], again, strict=True))
    detail = "the same answers, to the last step" if same else "a person in two blocks counts as two"
    return Finding("the same people in other blocks", setting.epsilon, 0.0 if same else np.inf, len(sizes), detail)


def _asked(setting: Setting, vault: PeopleVault) -> list[NoisyAnswer]:
    """One question of every kind."""
    side = unlearned(setting.scale, vault.n_cells)
    asked = [
        vault.totals(0.1),
        vault.activity(0.1),
        vault.coefficients(0.1, side),
        vault.scores(0.1, side, alpha=1.0),
    ]
    if isinstance(vault, RatingVault):
        asked.append(vault.rating_scores(0.1, side, level=0.0, shrink=40.0))
    return asked


def audit_noise(setting: Setting) -> Finding:
    """Nobody rated anything on the list, so that answers are noise alone."""
    crowd = CanaryPeople.toss(_PEOPLE, 4, setting.scale, np.random.default_rng(13))
    vault = replace(setting, epsilon=FAINT).open(crowd.table(50), unknown_items(crowd), NoiseSource.seeded(3))
    return own_noise([one.values / one.noise for one in _asked(setting, vault)], claim=setting.epsilon)


def unknown_items(crowd: CanaryPeople) -> pa.Array:
    """A list of items, none of which anybody in a crowd has."""
    return pa.array(np.arange(OTHER_ITEMS, dtype=np.int64) + len(crowd.declared))


def own_noise(answers: Sequence[Floats], *, claim: float) -> Finding:
    """Whether every number of answers that are noise alone, in deviations, has some, and no two the same to a sign.

    Whoever sees a number without noise knows its sum; of two with the same, their sums' difference, or their sum.
    """
    noise = np.sort(np.abs(np.concatenate([one.ravel() for one in answers])))
    own = bool(np.diff(noise, prepend=0.0).min() > _APART)
    detail = "no two alike, and none without" if own else "a number is without noise, or two have the same"
    return Finding("noise of its own for every number", claim, 0.0 if own else np.inf, len(noise), detail)
