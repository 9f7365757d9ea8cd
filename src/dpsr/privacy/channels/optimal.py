"""The channel that tells most about a rating for its price, given a public prior over levels.

Every optimal epsilon-DP channel is a mixture of columns whose cells are 1 or e^epsilon (Kairouz, Oh, Viswanath 2016).
For squared error, columns that are e^epsilon on one interval I of levels suffice in every case tried (the tests compare
with all 2^k columns). With y_I >= 0 the weight of such a column, the channel

    P[I | x] = y_I (1 + (e^epsilon - 1) [x in I]),     sum_I P[I | x] = 1 for every level x

is epsilon-DP whatever y, and the variance of the rating that its output explains is linear in y:

    Var(E[X | I]) = sum_I y_I (sum_x q_x c_I(x) (x - mean))^2 / sum_x q_x c_I(x),   c_I(x) = 1 + (e^epsilon-1) [x in I]

so the best one is a linear programme with one row per level. Scales with more than 32 levels are first pooled into 32
blocks of neighbouring levels, a function of the prior alone: a channel on blocks is a channel on levels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from dpsr.arrays import Floats
from dpsr.certify.amounts import check_epsilon
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import Channel
from dpsr.types import Scale

MAX_BLOCKS = 32
_SHAVE = 1e-9
"""The programme is solved for slightly less than epsilon, so that rounding to integers cannot exceed it."""

_REMEMBERED = 256
"""Channels kept in memory: a fit uses at most twenty, and fits that are repeated ask for the same ones."""


def optimal_channel(scale: Scale, epsilon: float, prior: npt.ArrayLike) -> Channel:
    """The best interval channel for squared error under `prior`; outputs are published as posterior means."""
    return _built(scale, check_epsilon(epsilon), _check_prior(scale, prior).tobytes())


@lru_cache(maxsize=_REMEMBERED)
def _built(scale: Scale, asked: float, prior: bytes) -> Channel:
    q = np.frombuffer(prior)
    table = _solve(scale.values, q, asked * (1 - _SHAVE))
    outputs = (q * scale.values) @ table / (q @ table)
    channel = Channel.from_probabilities(
        scale, outputs, table, mechanism="optimal interval channel", settings={"nominal": asked}
    )
    if channel.epsilon > asked:
        raise PrivacyError(
            f"the optimal channel at epsilon = {asked:g} came out dearer than asked; use a smaller epsilon"
        )
    return channel


def pool_levels(prior: Floats, blocks: int = MAX_BLOCKS) -> npt.NDArray[np.int64]:
    """The block of each level: cut where the cumulated cube root of the prior passes equal steps.

    The cube root is the density of points that quantises a distribution with least squared error (Panter and Dite).
    """
    if len(prior) <= blocks:
        return np.arange(len(prior))
    mass = np.cumsum(np.cbrt(prior))
    label = np.minimum((mass - mass[0] / 2) / mass[-1] * blocks, blocks - 1e-9).astype(np.int64)
    return np.unique(label, return_inverse=True)[1]


def _check_prior(scale: Scale, prior: npt.ArrayLike) -> Floats:
    q = np.asarray(prior, dtype=np.float64)
    if q.shape != (scale.n_levels,) or not np.isfinite(q).all() or (q < 0).any() or q.sum() <= 0:
        raise PrivacyError(f"a prior gives each of the {scale.n_levels} levels a probability, found shape {q.shape}.")
    floor = 1e-9 / scale.n_levels
    return (q / q.sum() + floor) / (1 + scale.n_levels * floor)  # no level is impossible: the data may disagree


def _solve(values: Floats, q: Floats, epsilon: float) -> Floats:
    label = pool_levels(q)
    mass = np.bincount(label, q)
    centred = np.bincount(label, q * values) / mass
    centred -= mass @ centred
    b = len(mass)
    low, high = np.triu_indices(b)
    gain = np.expm1(epsilon)
    below_mass, below_first = np.r_[0, np.cumsum(mass)], np.r_[0, np.cumsum(mass * centred)]
    column_mass = 1 + gain * (below_mass[high + 1] - below_mass[low])
    column_first = gain * (below_first[high + 1] - below_first[low])
    inside = (np.arange(b)[:, None] >= low) & (np.arange(b)[:, None] <= high)
    # unknowns are symbol probabilities, y_I times the column's mass: numbers of one size, which the solver likes
    rows = (1 + gain * inside) / column_mass
    explained = (column_first / column_mass) ** 2
    solution = linprog(-explained / explained.max(), A_eq=rows, b_eq=np.ones(b), method="highs-ds")
    if solution.x is None:
        raise PrivacyError(f"no optimal channel was found at epsilon = {epsilon:g}; use a smaller epsilon")
    used = solution.x > 1e-9
    table = rows[:, used] * solution.x[used]
    return (table / table.sum(axis=1, keepdims=True))[label]
