"""How well scores tell two cases apart, and the most that epsilon allows any attacker.

**Bounds.** An attacker guesses which of two values a rating has; TPR and FPR are how often the first is called when
it is and when it is not. (epsilon, delta)-DP says TPR <= e^epsilon FPR + delta and the same of the complements, hence

    advantage = max (TPR - FPR)  <=  (e^epsilon - 1 + 2 delta) / (e^epsilon + 1)        (tanh(epsilon / 2) at delta = 0)
    TPR at a given FPR           <=  min( e^epsilon FPR + delta,  1 - e^-epsilon (1 - FPR - delta) ).

With k values and prior probabilities pi the posterior odds of a value are at most e^epsilon its prior odds, so the
share of right guesses is at most e^epsilon p / (1 + (e^epsilon - 1) p), p the largest pi; for a uniform prior this is
e^epsilon / (e^epsilon + k - 1), which k-ary randomised response attains (Alvim et al. 2011).

**Judging.** Thresholds are chosen on one half of the trials and judged on the other, so that the figures are not
flattered by the choice. `epsilon_low` is the largest epsilon that the judged half refutes at 95 %: log of the lower
confidence limit of the TPR over the upper one of the FPR (Clopper and Pearson), both ways round, at thresholds fixed
beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, log, tanh

import numpy as np
from scipy import stats

from dpsr.arrays import Bools, Floats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Guesses:
    """What an attacker reached on the judged half. `advantage_low` is a 95 % lower confidence limit."""

    advantage: float
    advantage_low: float
    tpr_at_5: float
    tpr_at_1: float
    epsilon_low: float
    trials: int


def judge(scores: Floats, truth: Bools, *, learn: Bools) -> Guesses:
    """`scores` are higher where the attacker believes `truth`; thresholds come from the trials in `learn`."""
    cut = best_threshold(scores[learn], truth[learn])
    high, low = scores[~learn & truth], scores[~learn & ~truth]
    tpr, fpr = _share(high > cut), _share(low > cut)
    ranks = _ranks(scores)
    tails = [_at(ranks[learn & ~truth], ranks[~learn & truth], rate) for rate in (0.05, 0.01)]
    return Guesses(
        advantage=tpr - fpr,
        advantage_low=max(-1.0, tpr - fpr - _margin(len(high), len(low))),
        tpr_at_5=tails[0],
        tpr_at_1=tails[1],
        epsilon_low=epsilon_shown(int((high > cut).sum()), len(high), int((low > cut).sum()), len(low)),
        trials=len(high) + len(low),
    )


def best_threshold(scores: Floats, truth: Bools) -> float:
    """Where TPR - FPR is largest: scores above it are called true."""
    order = np.argsort(-scores, kind="stable")
    hits = np.where(truth[order], 1.0 / max(int(truth.sum()), 1), -1.0 / max(int((~truth).sum()), 1))
    gain = np.cumsum(hits)
    last = np.append(np.diff(scores[order]) != 0, True)  # equal scores are on one side
    best = int(np.argmax(np.where(last, gain, -np.inf)))
    if gain[best] <= 0:
        return float("inf")
    following = scores[order[best + 1]] if best + 1 < len(order) else scores[order[best]] - 1
    return float((scores[order[best]] + following) / 2)


def epsilon_shown(hits: int, n_true: int, alarms: int, n_false: int) -> float:
    """The epsilon that counts of right and false calls refute at 95 %, by the call or by its complement."""
    level = (1 - CONFIDENCE) / 4  # two limits, two directions
    ways = [((hits, n_true), (alarms, n_false)), ((n_false - alarms, n_false), (n_true - hits, n_true))]
    shown = 0.0
    for (k, n), (j, m) in ways:
        least = stats.beta.ppf(level, k, n - k + 1) if k else 0.0
        most = stats.beta.ppf(1 - level, j + 1, m - j) if j < m else 1.0
        if least > 0:
            shown = max(shown, log(least / most))
    return float(shown)


def _ranks(scores: Floats) -> Floats:
    """Places in ascending order, equal scores in random order: a randomised test reaches every false positive rate."""
    chance = np.random.default_rng(0).random(len(scores))
    ranks = np.empty(len(scores))
    ranks[np.lexsort((chance, scores))] = np.arange(len(scores))
    return ranks


def _at(null: Floats, high: Floats, rate: float) -> float:
    """TPR where the learning half's FPR is at most `rate`."""
    cut = float(np.quantile(null, 1 - rate, method="higher")) if len(null) else float("inf")
    return _share(high > cut)


def _share(calls: Bools) -> float:
    return float(np.mean(calls)) if len(calls) else float("nan")


def _margin(n_true: int, n_false: int) -> float:
    """Hoeffding's margin for a difference of two shares at 95 %, one-sided."""
    return float(np.sqrt(np.log(1 / (1 - CONFIDENCE)) / 2 * (1 / max(n_true, 1) + 1 / max(n_false, 1))))


def most_advantage(epsilon: float, delta: float = 0.0) -> float:
    """The largest TPR - FPR.

    >>> round(most_advantage(1.0), 4), most_advantage(float("inf"))
    (0.4621, 1.0)
    """
    if epsilon == inf:
        return 1.0
    return min(1.0, tanh(epsilon / 2) + 2 * delta / (exp(epsilon) + 1))


def most_true_positives(epsilon: float, false_positives: float, delta: float = 0.0) -> float:
    """The largest TPR at a given FPR.

    >>> round(most_true_positives(1.0, 0.01), 4)
    0.0272
    """
    if epsilon > 500:
        return 1.0
    first = exp(epsilon) * false_positives + delta
    second = 1 - exp(-epsilon) * (1 - false_positives - delta)
    return min(1.0, first, second)


def most_right(epsilon: float, prior: float) -> float:
    """The largest share of right guesses among k values whose likeliest has the given prior probability.

    >>> round(most_right(1.0, 0.2), 4)  # five values, all alike: e / (e + 4)
    0.4046
    """
    if epsilon > 500:
        return 1.0
    return exp(epsilon) * prior / (1 + expm1(epsilon) * prior)
