"""The best guess there is at one rating, for mechanisms whose tables are known: exactly, or by drawing from them.

The attacker knows every other rating, so that noisy sums and counts are noisy observations of the target alone, and
sees every answer of the mechanism. For one finite table the advantage between levels x and x' is the total variation

    TV(x, x') = 1/2 sum_y |P(y | x) - P(y | x')|,

attained by calling x where P(y | x) is the larger. A release of several parts is attacked by the sum of their
log-likelihood ratios, which is optimal (Neyman and Pearson). Whatever the release computes from its parts is
post-processing and tells nothing more. A part that publishes sums is granted its worst case: the whole sensitivity
falls on one sum.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Bools, Floats
from dpsr.certify import Certificate, Part
from dpsr.certify.parts import ChannelPart, LaplacePart
from dpsr.evaluate.attacks.guessing import Guesses, judge


def best_advantage(table: Floats) -> float:
    """The largest total variation between two rows of a channel."""
    return max(0.5 * float(np.abs(row - table).sum(axis=1).max()) for row in table)


def most_right_guesses(table: Floats, prior: npt.ArrayLike) -> float:
    """The share of right guesses of the level itself: sum_y max_x pi(x) P(y | x)."""
    return float((np.asarray(prior)[:, None] * table).max(axis=0).sum())


def attack_certificate(certificate: Certificate, *, trials: int, seed: int) -> Guesses:
    """Draw the answers of every part under either value and call by the likelihood ratio."""
    rng = np.random.default_rng(seed)
    truth = rng.random(trials) < 0.5
    scores = np.sum([_ratios(part, truth, rng) for part in certificate.parts], axis=0)
    return judge(scores, truth, learn=rng.random(trials) < 0.5)


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
