"""The audits a command asks for: which trials, how the risk is shared, what is compared with what.

All bounds of one report hold together at 95 % confidence. Trials share the 5 % risk equally; where there is a run with
canaries, which cannot be repeated as often as one likes, it gets half of the risk and the trials the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsr.audit.canaries import guess, plant
from dpsr.audit.certificate_trials import certificate_trials
from dpsr.audit.findings import CONFIDENCE, AuditReport, Finding
from dpsr.audit.planted import planted
from dpsr.audit.questions import (
    WINDOWS,
    contrasts,
    divided,
    far_apart,
    in_turns,
    several_channels,
    sums_in_turns,
    total,
    two_blocks,
    window,
)
from dpsr.audit.replay import audit_replay
from dpsr.audit.stage1 import histogram, paired, published, repeated, single, sums, through_privatise, through_vault
from dpsr.audit.trials import Trial, run
from dpsr.certify.amounts import check_epsilon
from dpsr.data import realistic
from dpsr.engine.raw import RawRatings
from dpsr.pipeline.dpsr import build
from dpsr.pipeline.estimator import PrivateRecommender
from dpsr.privacy.channels import AsPublished, Channel, calibrated_laplace, optimal_channel
from dpsr.privacy.noise import NoiseSource
from dpsr.release import Release
from dpsr.types import Scale

Report = Callable[[str], None]

_SHARE = 0.5
"""How many of the ratings become canaries."""

_FEW, _OTHER_BUDGETS = 1_000, (5.0, 0.002)
"""Ratings of a replay, which needs no statistics, and budgets that buy every question there is on so few."""


def audit_method(
    method: str,
    scale: Scale,
    epsilon: float,
    ratings: RawRatings | None = None,
    *,
    seed: int | None = None,
    progress: Report = lambda _: None,
) -> AuditReport:
    """Stage 1 of a method by trials, what follows it by replay, the whole pipeline by one run with canaries.

    Canaries are hidden among `ratings`, or among made-up ones.
    """
    trials = stage1_trials(method, scale, check_epsilon(epsilon))
    half = (1 - CONFIDENCE) / 2
    findings = _findings(trials, NoiseSource.of_seed(seed), half / len(trials), progress)
    if method == "as-published":
        worst, certified = max(findings, key=lambda finding: finding.lower), AsPublished(scale, epsilon).epsilon
        findings.append(replace(worst, what="the same against its certificate", claimed=certified))
    findings.append(fresh_keys(epsilon))
    pipeline = build(method, epsilon).set_params(random_state=seed)
    table = made_up(scale) if ratings is None else ratings
    if method != "as-published":  # which reads raw values after its noise, says so, and has no answers to keep
        progress("the same answers on other ratings")
        pipelines = [build(method, e).set_params(random_state=seed) for e in (epsilon, *_OTHER_BUDGETS)]
        findings.append(audit_replay(pipelines, made_up(scale, ratings=_FEW), claim=epsilon))
    progress("whole pipeline, one run with canaries")
    findings.append(audit_pipeline(pipeline, table, claim=epsilon, alpha=half, seed=seed))
    return AuditReport(f"{method} at epsilon = {epsilon:g}, scale {scale}", tuple(findings), ratings is not None)


def audit_release(release: Release, *, seed: int | None = None, progress: Report = lambda _: None) -> AuditReport:
    """Every table and every noise a certificate states, drawn from again; no rating is needed."""
    trials = certificate_trials(release)
    findings = _findings(trials, NoiseSource.of_seed(seed), (1 - CONFIDENCE) / len(trials), progress)
    return AuditReport(f"certificate of a release, {release.method}, scale {release.scale}", tuple(findings))


def audit_planted(
    scale: Scale, epsilon: float, *, seed: int | None = None, progress: Report = lambda _: None
) -> AuditReport:
    """Mechanisms with a planted error: each of them is to be rejected."""
    trials = planted(scale, check_epsilon(epsilon))
    findings = _findings(trials, NoiseSource.of_seed(seed), (1 - CONFIDENCE) / len(trials), progress)
    return AuditReport(f"planted errors at epsilon = {epsilon:g}, scale {scale}", tuple(findings))


def audit_pipeline(
    pipeline: PrivateRecommender,
    ratings: RawRatings,
    *,
    claim: float,
    alpha: float = 1 - CONFIDENCE,
    seed: int | None = None,
) -> Finding:
    """Hide canaries among `ratings`, fit `pipeline` once, guess them from its release."""
    # the secret bits must not come from the stream that feeds the noise, also where both come from one seed
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    table, canaries = plant(ratings, _SHARE, rng)
    found = guess(pipeline.fit(table).release, canaries, alpha=alpha)
    detail = f"{found.correct:,} of {found.guesses:,} guesses right, {found.canaries:,} canaries in one run"
    return Finding("whole pipeline, guessing canaries", claim, found.lower, found.guesses, detail)


def stage1_trials(method: str, scale: Scale, epsilon: float) -> list[Trial]:
    """Every way in which the method lets a raw rating meet noise."""
    if method == "as-published":
        mechanism = AsPublished(scale, epsilon)
        return [published(f"Stage 1 as published, {n} ratings", mechanism, n) for n in (2, 3)]
    make, through = (_optimal, through_vault) if method == "default" else (calibrated_laplace, through_privatise)
    one, half = make(scale, epsilon), make(scale, epsilon / 2)
    trials = [
        single("one rating, all pairs of levels", one, through(one), one.epsilon),
        paired("two ratings, one of them changed", one, through(one), one.epsilon),
        repeated("one rating in two releases", one, half, (through(one), through(half))),
    ]
    trials += [two_blocks("two ratings in two blocks", one), far_apart("two ratings far apart", one)]
    if method == "default":
        trials += [
            several_channels("one rating, several channels", scale, epsilon),
            in_turns("symbols in turns", scale, epsilon),
            sums("noisy sums of an item and a user", scale, epsilon),
            *(window(f"noisy sums, window {i}", scale, epsilon, *w) for i, w in enumerate(WINDOWS, start=1)),
            divided("divided sums and symbols", scale, epsilon),
            total("noisy sum of all ratings", scale, epsilon),
            contrasts("noisy sums with signs", scale, epsilon),
            sums_in_turns("noisy sums in turns", scale, epsilon),
            histogram("noisy histogram of levels", scale, epsilon),
        ]
    return trials


def fresh_keys(claim: float, runs: int = 1_000) -> Finding:
    """Whether every run has a key of its own: the names of what so many would draw are all different.

    Two releases with one key have the same noise, so that their difference has none.
    """
    names = {NoiseSource.system().identity for _ in range(runs)}
    detail = f"{len(names):,} different keys in {runs:,} runs"
    return Finding("keys of the operating system", claim, 0.0 if len(names) == runs else np.inf, runs, detail)


def made_up(scale: Scale, seed: int = 20_240_602, ratings: int = 30_000) -> RawRatings:
    """Ratings with the habits of people on any scale: stars, spread over its levels."""
    side = round((3 * ratings) ** 0.5)  # one cell in six is rated
    stars = realistic(seed, n_users=2 * side, n_items=side, n_ratings=ratings)
    within = np.random.default_rng(seed).random(len(stars))
    levels = ((stars.levels + within) / 5 * scale.n_levels).astype(np.uint16)
    return RawRatings(stars.mask, levels, scale)


def _findings(trials: Sequence[Trial], noise: NoiseSource, alpha: float, progress: Report) -> list[Finding]:
    found = []
    for trial in trials:
        progress(trial.name)
        seen = run(trial, noise, alpha=alpha)
        a, b = (trial.datasets[row] for row in seen.pair)
        detail = f"levels {a}: {seen.hits:,} hits, levels {b}: {seen.others:,}, of {seen.trials:,} releases each"
        found.append(Finding(trial.name, trial.claim, seen.lower, trial.runs, detail))
    return found


def _optimal(scale: Scale, epsilon: float) -> Channel:
    """A channel as the default pipeline builds them: for a prior with most ratings somewhat above the middle."""
    place = np.linspace(-1, 1, scale.n_levels)
    prior: npt.NDArray[np.float64] = np.exp(-((place - 0.3) ** 2) / 0.5)
    return optimal_channel(scale, epsilon, prior)
