"""Attacks on one method, or on mechanisms alone, as rows: what was reached beside what epsilon allows.

    value           canaries and a trained guesser, against everything the method puts out
    membership      small errors betray training ratings
    reconstruction  ratings read off the output, over those read off for ratings it never saw
    best guess      the likelihood ratio on the mechanism's own tables: nobody can do better
    mean leak       the paper's Stage 1 as published

The bound is that of the epsilon that was *asked for*: a method that breaks its promise is to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.attacks.guessing import Guesses, most_advantage, most_right, most_true_positives
from dpsr.evaluate.attacks.mechanisms import attack_certificate, attack_mean
from dpsr.evaluate.attacks.outputs import attack_membership, attack_reconstruction, attack_values, plant
from dpsr.evaluate.contract import Recommender
from dpsr.evaluate.downstream.training_tables import released_by
from dpsr.evaluate.measure.method import finite
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.protocol import PROTOCOLS
from dpsr.evaluate.registry import build
from dpsr.evaluate.runner.jobs import Job, Row
from dpsr.pipeline import DPSR
from dpsr.privacy.channels import Channel, gaussian, laplace, randomised_response
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import Scale

MEAN_LEAK, BEST_GUESS = "mean-leak", "best-guess"
ON_MECHANISMS = (MEAN_LEAK, BEST_GUESS)
"""What a job may name instead of a method."""

TRIALS = 100_000
PUBLIC_MASK = "who rated what is public here: being in the table is no secret"


def measure_attack(job: Job, _: Path) -> list[Row]:
    """All attacks on one method, or one of the attacks on mechanisms; the option `effort` multiplies trials."""
    train, test = PROTOCOLS[job.protocol].split(job.set, job.seed)
    own, effort, budget = job.noise_seed, job.option("effort", 1), job.epsilon or 0.0
    if job.what == MEAN_LEAK:
        rows = attack_leak(train.scale, budget, own, effort)
    elif job.what == BEST_GUESS:
        rows = attack_best_guess(train, budget, job.delta, own, effort)
    else:

        def fit(ratings: RawRatings) -> tuple[Recommender, Floats | None]:
            fitted = build(job.what, job.epsilon, job.delta, own, job.learner_seed).fit(ratings)
            return fitted, released_by(job.what, ratings, job.epsilon, own)

        rows = attack_method(fit, train, test, job.epsilon, own)
    return [finite(row) for row in rows]


def attack_method(
    method: Callable[[RawRatings], tuple[Recommender, Floats | None]], train: RawRatings, test: RawRatings,
    epsilon: float | None, seed: int,
) -> list[Row]:  # fmt: skip
    """Fit twice, once with canaries, and attack the outputs. `method` fits and also hands over the released table."""
    canaries = plant(train, seed)
    with_coins, coin_table = method(canaries.ratings)
    promise = with_coins.protection
    asked = inf if epsilon is None else epsilon
    joint = getattr(promise, "joint", False)
    found = attack_values(canaries, with_coins, None if joint else coin_table, seed, others_only=joint)
    rows = [attack_row("value", found, asked, promise.delta, promise.note if joint else "")]
    fitted, table = method(train)
    member = attack_membership(fitted, train, test, seed)
    hidden = promise.unit in ("rating (add/remove)", "user")
    rows.append(
        attack_row("membership", member, asked if hidden else inf, promise.delta, "" if hidden else PUBLIC_MASK)
    )
    rows.append(_reconstruction(fitted, table, train, test, asked))
    return [{**row, "unit": promise.unit} for row in rows]


def _reconstruction(fitted: Predictor, table: Floats | None, train: RawRatings, test: RawRatings, asked: float) -> Row:
    seen, unseen = attack_reconstruction(fitted, table, train, test)
    shares = np.bincount(train.levels, minlength=train.scale.n_levels) / len(train)
    best = max(float(shares.max()), unseen)
    note = f"read off: {seen:.3f} of training, {unseen:.3f} of held-out ratings; commonest level {shares.max():.3f}"
    return {
        "attack": "reconstruction", "advantage": seen - unseen, "bound": most_right(asked, best) - best,
        "trials": len(train), "note": note,
    }  # fmt: skip


def attack_best_guess(train: RawRatings, epsilon: float, delta: float, seed: int, effort: int) -> list[Row]:
    """Everything whose tables are known, by the optimal attacker. Only mechanisms are drawn from, nothing is fitted
    twice: our own certificate comes from one fit."""
    rows = []
    for name, certificate in _certificates(train, epsilon, delta, seed).items():
        found = attack_certificate(certificate, trials=TRIALS * effort, seed=seed)
        allowed = delta if name == "gaussian" else 0.0
        rows.append({**attack_row("best guess", found, epsilon, allowed), "method": name, "unit": "rating value"})
    return rows


def _certificates(train: RawRatings, epsilon: float, delta: float, seed: int) -> dict[str, Certificate]:
    noise = NoiseSource.seeded(seed)
    channels: dict[str, Callable[[Scale, float], Channel]] = {
        "laplace": laplace,
        "gaussian": lambda scale, asked: gaussian(scale, asked, delta),
        "randomised response": randomised_response,
    }
    found = {
        name: privatise(train, build(train.scale, epsilon), noise=noise).certificate for name, build in channels.items()
    }
    found["dpsr-paper"] = DPSR.paper(epsilon, random_state=seed).fit(train).certificate
    found["dpsr"] = DPSR(epsilon, random_state=seed).fit(train).certificate
    return found


def attack_leak(scale: Scale, epsilon: float, seed: int, effort: int) -> list[Row]:
    """As published, with and without the target's own noisy rating."""
    rows = []
    for own, name in ((True, "dpsr-as-published"), (False, "dpsr-as-published, own rating withheld")):
        leak = attack_mean(scale, epsilon, trials=4 * TRIALS * effort, seed=seed, own=own)
        note = f"TPR - e^epsilon FPR is {leak.excess:+.4f} at the chosen threshold"
        row = attack_row("mean leak", leak.guesses, epsilon, 0.0, note)
        rows.append({**row, "method": name, "unit": "rating value", "epsilon_low": leak.epsilon_low})
    return rows


def attack_row(attack: str, found: Guesses, epsilon: float, delta: float, note: str = "") -> Row:
    """What was reached, beside what (epsilon, delta) allows."""
    return {
        "attack": attack,
        "advantage": found.advantage,
        "advantage_low": found.advantage_low,
        "bound": most_advantage(epsilon, delta),
        "tpr_at_5": found.tpr_at_5,
        "tpr_at_1": found.tpr_at_1,
        "bound_at_5": most_true_positives(epsilon, 0.05, delta),
        "bound_at_1": most_true_positives(epsilon, 0.01, delta),
        "epsilon_low": found.epsilon_low,
        "trials": found.trials,
        "note": note,
    }
