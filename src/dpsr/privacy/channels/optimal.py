"""The channel that tells most about a rating for its price, given a public prior over levels.

Every optimal epsilon-DP channel is a mixture of columns whose cells are 1 or e^epsilon (Kairouz, Oh, Viswanath 2016).
For squared error, columns that are e^epsilon on one interval I of levels suffice in every case tried (the tests compare
with all 2^k columns). With y_I >= 0 the weight of such a column and g = e^epsilon - 1, the channel

    P[I | x] = y_I (1 + g [x in I]),     sum_I P[I | x] = 1 for every level x

is epsilon-DP whatever y, and the variance of the rating that its output explains is linear in y:

    Var(E[X | I]) = sum_I y_I v_I,     v_I = (g sum_{x in I} q_x (x - mean))^2 / (1 + g sum_{x in I} q_x)

**What the best one looks like.** Rows that sum to one cover every level equally: sum_{I with x} y_I = (1 - sum_I y_I)/g
for all x. An interval is an arc from its first level to the one after its last, so equal cover says that y is a flow
from the lowest level to the end, and a flow is a mixture of paths. A path is a partition of the levels into intervals,
and the mixture obeys one linear condition, so its best point is a single path: with m intervals, every y_I is
1 / (g + m). The optimal channel therefore tells which interval of a partition the rating is in, by m-ary randomised
response, and the partition is found by dynamic programming:

    max over m and partitions into m intervals of  sum_I v_I / (g + m).

**The price.** Randomised response over m symbols has two numbers. `low` is the least integer with
high = 2**62 - (m - 1) low <= e^epsilon low, so the price of the table is at most epsilon by construction, for every
epsilon there is; e^30 is about 1e13, which leaves `low` six digits.

Scales with more than 32 levels are first pooled into 32 blocks of neighbouring levels, a function of the prior alone: a
channel on blocks is a channel on levels.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, expm1

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.certify.amounts import check_epsilon
from dpsr.certify.table_price import exp_down
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import BITS, Channel
from dpsr.types import Scale

MAX_BLOCKS = 32

_REMEMBERED = 256
"""Channels kept in memory: a fit uses at most twenty, and fits that are repeated ask for the same ones."""


def optimal_channel(scale: Scale, epsilon: float, prior: npt.ArrayLike) -> Channel:
    """The best interval channel for squared error under `prior`; outputs are published as posterior means."""
    return _built(scale, check_epsilon(epsilon), _check_prior(scale, prior).tobytes())


@lru_cache(maxsize=_REMEMBERED)
def _built(scale: Scale, asked: float, prior: bytes) -> Channel:
    q = np.frombuffer(prior)
    part = best_partition(scale.values, q, asked)
    weights = response_table(part, asked)
    mass = q @ (weights / 2.0**BITS)
    outputs = (q * scale.values) @ (weights / 2.0**BITS) / mass
    return Channel(scale, outputs, weights, "optimal interval channel", {"nominal": asked})


def pool_levels(prior: Floats, blocks: int = MAX_BLOCKS) -> Ints:
    """The block of each level: cut where the cumulated cube root of the prior passes equal steps.

    The cube root is the density of points that quantises a distribution with least squared error (Panter and Dite).
    """
    if len(prior) <= blocks:
        return np.arange(len(prior))
    mass = np.cumsum(np.cbrt(prior))
    label = np.minimum((mass - mass[0] / 2) / mass[-1] * blocks, blocks - 1e-9).astype(np.int64)
    return np.unique(label, return_inverse=True)[1]


def best_partition(values: Floats, q: Floats, epsilon: float) -> Ints:
    """The interval of each level, numbered from the lowest."""
    label = pool_levels(q)
    mass = np.bincount(label, q).astype(np.float64)
    first = np.bincount(label, q * (values - q @ values)).astype(np.float64)
    return _cut(_explained_by_intervals(mass, first, epsilon), expm1(epsilon))[label]


def response_table(part: Ints, epsilon: float) -> npt.NDArray[np.uint64]:
    """Randomised response on the intervals `part`: rows are levels, and no column is dearer than `epsilon`."""
    m = int(part.max()) + 1
    low = ceil((1 << BITS) / (exp_down(epsilon) + m - 1))
    weights = np.full((len(part), m), low, dtype=np.uint64)
    weights[np.arange(len(part)), part] = (1 << BITS) - (m - 1) * low
    return weights


def _check_prior(scale: Scale, prior: npt.ArrayLike) -> Floats:
    q = np.asarray(prior, dtype=np.float64)
    if q.shape != (scale.n_levels,) or not np.isfinite(q).all() or (q < 0).any() or q.sum() <= 0:
        raise PrivacyError(f"a prior gives each of the {scale.n_levels} levels a probability, found shape {q.shape}.")
    floor = 1e-9 / scale.n_levels
    return (q / q.sum() + floor) / (1 + scale.n_levels * floor)  # no level is impossible: the data may disagree


def _explained_by_intervals(mass: Floats, first: Floats, epsilon: float) -> Floats:
    """v[i, j] for the interval of blocks i, ..., j - 1, in units of g; minus infinity where there is none."""
    below_mass, below_first = np.r_[0, np.cumsum(mass)], np.r_[0, np.cumsum(first)]
    inside, moment = (below[None, :] - below[:, None] for below in (below_mass, below_first))
    gain = expm1(epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.tri(len(inside), k=0, dtype=bool), -np.inf, moment**2 * gain / (1 + gain * inside))


def _cut(explained: Floats, gain: float) -> Ints:
    """The interval of each block in the partition with the largest sum of v over g + m; at least two intervals."""
    n = len(explained) - 1
    best = np.full((n + 1, n + 1), -np.inf)  # best[m, j]: m intervals that end before block j
    came = np.zeros((n + 1, n + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for m in range(1, n + 1):
        sums = best[m - 1][:, None] + explained
        came[m], best[m] = sums.argmax(axis=0), sums.max(axis=0)
    m = 2 + int(np.argmax(best[2:, n] / (gain + np.arange(2, n + 1))))
    part, end = np.empty(n, dtype=np.int64), n
    for number in range(m - 1, -1, -1):
        start = came[number + 1, end]
        part[start:end], end = number, start
    return part
