"""Attacks on mechanisms whose tables are known: the best guess there is at one rating, and the paper's leaking mean.

The attacker knows every other rating, so that noisy sums and counts are noisy observations of the target alone, and
sees every answer of the mechanism. For one finite table the advantage between levels x and x' is the total variation

    TV(x, x') = 1/2 sum_y |P(y | x) - P(y | x')|,

attained by calling x where P(y | x) is the larger. A release of several parts is attacked by the sum of their
log-likelihood ratios, which is optimal (Neyman and Pearson). Whatever the release computes from its parts is
post-processing and tells nothing more. A part that publishes sums is granted its worst case: the whole sensitivity
falls on one sum. Where a division says which ratings are asked one by one, the target is one of those that pay most.

**The mean leak**: the paper's Stage 1 as published, attacked by somebody who knows all ratings but one.
Every noise scale depends on the exact mean, so everybody's noisy rating says something about the target's; and the
target's own scale depends on the target. The data set is the worst one of `privacy.published`: one person turns from
the lowest to the highest rating while a crowd stands where it hurts. The attacker sees all noisy ratings and calls by
the likelihood ratio; `own=False` takes the target's own noisy rating away, so that only the mean can tell.

epsilon-DP allows TPR <= e^epsilon FPR at *every* threshold, so the attacker looks for the one that shows most.
Outputs that betray much can be rare: where the attack shows less than the nominal epsilon, more trials are needed, and
the closed form of `privacy.published` says what they would converge to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Bools, Floats
from dpsr.certify import Certificate, Part
from dpsr.certify.parts import (
    ChannelPart,
    DividedSumsPart,
    LaplacePart,
    PricedPart,
    price_one_by_one,
    price_together,
)
from dpsr.evaluate.attacks.guessing import Guesses, epsilon_shown, judge
from dpsr.privacy.channels.published import AsPublished, worst_data_set
from dpsr.types import Scale


def best_advantage(table: Floats) -> float:
    """The largest total variation between two rows of a channel."""
    return max(0.5 * float(np.abs(row - table).sum(axis=1).max()) for row in table)


def attack_certificate(certificate: Certificate, *, trials: int, seed: int) -> Guesses:
    """Draw the answers of every part under either value and call by the likelihood ratio."""
    rng = np.random.default_rng(seed)
    truth = rng.random(trials) < 0.5
    scores = np.sum([_ratios(part, truth, rng) for part in _parts_of_dearest(certificate)], axis=0)
    return judge(scores, truth, learn=rng.random(trials) < 0.5)


def _parts_of_dearest(certificate: Certificate) -> list[Part]:
    """The parts that a rating is in which pays most: all, or those of one side of a division."""
    priced = [part for part in certificate.parts if isinstance(part, PricedPart)]
    if price_together(priced) == price_one_by_one(priced):
        light = {part: replace(part, weights=()) for part in priced if isinstance(part, DividedSumsPart)}
        asked = [light.get(part, part) if isinstance(part, DividedSumsPart) else part for part in certificate.parts]
        return [part for part in asked if not isinstance(part, DividedSumsPart) or part.light]
    return [part for part in certificate.parts if not isinstance(part, ChannelPart)]


def _ratios(part: Part, truth: Bools, rng: np.random.Generator) -> Floats:
    """Log-likelihood ratios of one part's answers, one per trial."""
    if isinstance(part, ChannelPart):
        return _table_ratios(part, truth, rng)
    if not isinstance(part, LaplacePart):
        raise ValueError(f"the part {part.name} shows neither a table nor a sensitivity")
    scale = float(Fraction(part.noise_scale))
    shift = np.where(truth, part.sensitivity, 0)
    answer = shift + _discrete_laplace(scale, len(truth), rng)
    return np.asarray((np.abs(answer) - np.abs(answer - part.sensitivity)) / scale)


def _table_ratios(part: ChannelPart, truth: Bools, rng: np.random.Generator) -> Floats:
    """The table and the pair of levels that tell most."""
    tables = [np.array(table, dtype=np.float64) / 2.0**part.bits for table in part.tables]
    table = max(tables, key=best_advantage)
    pair = max(
        ((x, z) for x in range(len(table)) for z in range(x)),
        key=lambda pair: float(np.abs(table[pair[0]] - table[pair[1]]).sum()),
    )
    one, other = table[pair[0]], table[pair[1]]
    with np.errstate(divide="ignore"):
        ratio = np.log(one) - np.log(other)
    drawn = np.where(truth, *(rng.choice(len(row), len(truth), p=row / row.sum()) for row in (one, other)))
    return np.asarray(ratio[drawn])


def _discrete_laplace(scale: float, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """P[k] proportional to exp(-|k| / scale): the difference of two geometric variables."""
    stop = -np.expm1(-1 / scale)
    return np.asarray(rng.geometric(stop, n) - rng.geometric(stop, n))


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
