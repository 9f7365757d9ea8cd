"""What must make no difference at all: other people behind the same answers, and how people lie in blocks.

A difference has no false alarm, and there is no epsilon for it: what is found then is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from dpsr.audit.findings import Finding
from dpsr.audit.people.crowd import CanaryPeople
from dpsr.audit.people.questions import Setting, unlearned
from dpsr.audit.replay import Tape, same_value
from dpsr.engine.raw import InteractionTable, RawTable
from dpsr.pipeline.dpsr import DPSR
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people import RatingVault
from dpsr.release.people import ItemRelease
from dpsr.types import Scale

_PEOPLE = 60


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
        side = unlearned(setting.scale, vault.n_cells)
        asked = [
            vault.totals(0.1),
            vault.activity(0.1),
            vault.coefficients(0.1, side),
            vault.scores(0.1, side, alpha=1),
        ]
        if isinstance(vault, RatingVault):
            asked.append(vault.rating_scores(0.1, side, level=0.0, shrink=40.0))
        answers.append([one.values for one in asked])
    same = all(np.array_equal(a, b) for again in answers[1:] for a, b in zip(answers[0], again, strict=True))
    detail = "the same answers, to the last step" if same else "a person in two blocks counts as two"
    return Finding("the same people in other blocks", setting.epsilon, 0.0 if same else np.inf, len(sizes), detail)
