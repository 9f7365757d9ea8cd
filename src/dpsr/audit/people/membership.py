"""Telling who is there from numbers about each canary: a linear rule from a pilot, counted on the rest.

The pilot's canaries are revealed: with m1, m0 the means with and without, and C the covariance within, the rule is
C^-1 (m1 - m0), which finds numbers that cancel noise as well as numbers that show somebody (noise used twice leaves a
combination of answers without any).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.audit.bounds import epsilon_of_mu, epsilon_of_one_run, mu_at_least

_PILOT = 0.25
_CUTS = 41
_FRACTIONS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Told:
    """A lower bound, and the counts behind it."""

    lower: float
    detail: str
    trials: int


def rule(numbers: Floats, bits: Bools) -> Floats:
    """The direction in which canaries who are there differ most from those who are not."""
    means = [numbers[bits == bit].mean(axis=0) for bit in (True, False)]
    within = np.concatenate([numbers[bits == bit] - mean for bit, mean in zip((True, False), means, strict=True)])
    covariance = within.T @ within / max(len(within) - 2, 1)
    size = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    scaled = covariance / np.outer(size, size) + 1e-9 * np.eye(len(size))
    return np.asarray(np.linalg.solve(scaled, (means[0] - means[1]) / size) / size)


def tell(numbers: Floats, bits: Bools, delta: float, alpha: float) -> Told:
    """For a question: independent canaries, one event chosen on the pilot, a bound on mu."""
    pilot = int(_PILOT * len(bits))
    score = numbers @ rule(numbers[:pilot], bits[:pilot])
    cuts = np.quantile(score[:pilot], np.linspace(0.02, 0.98, _CUTS))
    cut = max(cuts, key=lambda c: _counted(score[:pilot], bits[:pilot], c, alpha)[0])
    mu, hits, trials, alarms, others = _counted(score[pilot:], bits[pilot:], cut, alpha)
    detail = f"of people who are there {hits:,} of {trials:,} are called, of others {alarms:,} of {others:,}"
    return Told(epsilon_of_mu(mu, delta), detail, len(bits))


def _counted(score: Floats, bits: Bools, cut: float, alpha: float) -> tuple[float, int, int, int, int]:
    with_, without = score[bits] > cut, score[~bits] > cut
    counts = int(with_.sum()), len(with_), int(without.sum()), len(without)
    return mu_at_least(*counts, alpha), *counts


def tell_one_run(numbers: Floats, bits: Bools, delta: float, alpha: float) -> Told:
    """For one run of anything: guess the surest, count right guesses.

    The pilot is revealed. Its scores are log-odds, if numbers are normal, so they say how many of the surest to guess;
    if they are not, that was a bad choice and no false one.
    """
    pilot, counted = int(_PILOT * len(bits)), len(bits) - int(_PILOT * len(bits))
    direction = rule(numbers[:pilot], bits[:pilot])
    score = numbers @ direction
    score = score - float(np.mean([score[:pilot][bits[:pilot] == bit].mean() for bit in (True, False)]))
    sure = np.sort(1 / (1 + np.exp(-np.abs(score[:pilot]))))[::-1]

    def promised(fraction: float) -> float:
        guesses = max(round(fraction * counted), 1)
        right = int(guesses * sure[: max(round(fraction * pilot), 1)].mean())
        return epsilon_of_one_run(right, guesses, counted, delta, alpha)

    fraction = max(_FRACTIONS, key=promised)
    surest = pilot + np.argsort(-np.abs(score[pilot:]), kind="stable")[: max(round(fraction * counted), 1)]
    correct = int(((score[surest] > 0) == bits[surest]).sum())
    lower = epsilon_of_one_run(correct, len(surest), counted, delta, alpha)
    detail = f"{correct:,} of {len(surest):,} guesses right, {len(bits):,} canaries in one run"
    return Told(lower, detail, len(surest))
