"""The mean leak: the paper's Stage 1 as published, attacked by somebody who knows all ratings but one.

Every noise scale depends on the exact mean, so everybody's noisy rating says something about the target's; and the
target's own scale depends on the target. The data set is the worst one of `privacy.published`: one person turns from
the lowest to the highest rating while a crowd stands where it hurts. The attacker sees all noisy ratings and calls by
the likelihood ratio; `own=False` takes the target's own noisy rating away, so that only the mean can tell.

epsilon-DP allows TPR <= e^epsilon FPR at *every* threshold, so the attacker looks for the one that shows most.
Outputs that betray much can be rare: where the attack shows less than the nominal epsilon, more trials are needed, and
the closed form of `privacy.published` says what they would converge to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.evaluate.attacks.guessing import Guesses, epsilon_shown, judge
from dpsr.privacy.channels.published import AsPublished, worst_data_set
from dpsr.types import Scale


@dataclass(frozen=True)
class Leak:
    """What the attacker reached; at the threshold chosen on the learning half, TPR - e^epsilon FPR (`excess`) and the
    epsilon that the judged half refutes."""

    guesses: Guesses
    excess: float
    epsilon_low: float


def attack_mean(
    scale: Scale, nominal: float, *, alpha: float = 0.3, size: int = 3, trials: int, seed: int, own: bool = True
) -> Leak:
    """Play the game `trials` times on the worst data set of the given size."""
    mechanism, rng = AsPublished(scale, nominal, alpha), np.random.default_rng(seed)
    before, place, new = worst_data_set(scale, nominal, alpha, size)
    after = before.copy()
    after[place] = new
    truth = rng.random(trials) < 0.5
    scores = np.zeros(trials)
    with np.errstate(divide="ignore"):
        logs = [np.log(mechanism.channel(float(data.mean())).probabilities) for data in (before, after)]
    for person in range(size):
        if person != place or own:
            rows = [log[int(scale.encode([data[person]])[0])] for log, data in zip(logs, (before, after), strict=True)]
            scores += _ratio(rows[0], rows[1], truth, rng)
    return _judged(scores, truth, nominal, rng)


def _ratio(one: Floats, other: Floats, truth: Bools, rng: np.random.Generator) -> Floats:
    """Draw one output per trial, from `one` where the truth is so, and its log-likelihood ratio."""
    drawn = np.where(
        truth, *(rng.choice(len(row), len(truth), p=np.exp(row) / np.exp(row).sum()) for row in (one, other))
    )
    return np.asarray((one - other)[drawn])


def _judged(scores: Floats, truth: Bools, nominal: float, rng: np.random.Generator) -> Leak:
    learn = rng.random(len(scores)) < 0.5
    cut = _worst_threshold(scores[learn], truth[learn])
    hits, alarms = scores[~learn & truth] > cut, scores[~learn & ~truth] > cut
    shown = epsilon_shown(int(hits.sum()), len(hits), int(alarms.sum()), len(alarms))
    excess = float(hits.mean() - exp(nominal) * alarms.mean())
    return Leak(judge(scores, truth, learn=learn), excess, shown)


def _worst_threshold(scores: Floats, truth: Bools) -> float:
    """Where the learning half refutes the largest epsilon: neither too rare to count nor too common to tell."""
    shares = np.concatenate([np.linspace(0.0, 1.0, 200)[:-1], 1 - np.geomspace(1e-4, 0.05, 100)])
    values = np.asarray(np.quantile(scores, shares), dtype=np.float64)
    high, low = np.sort(scores[truth]), np.sort(scores[~truth])

    def shown(cut: float) -> float:
        hits, alarms = (len(side) - int(np.searchsorted(side, cut, side="right")) for side in (high, low))
        return epsilon_shown(hits, len(high), alarms, len(low))

    return float(values[int(np.argmax([shown(float(cut)) for cut in values]))])
