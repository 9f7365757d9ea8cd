"""Trials of Stage 1: every way in which a raw rating meets noise, through the code that a release runs.

    one rating      a channel's symbol, all pairs of levels                               claim: its exact epsilon
    two ratings     the symbols of two ratings together, one of them changed              claim: the same
    two releases    the same rating through two channels, one after the other             claim: the sum
    sums            one rating in its item's and its user's noisy sum                     claim: the epsilon asked
    histogram       one rating in the noisy histogram of levels                           claim: the epsilon asked
    crowds          a few ratings and their exact mean, as the paper publishes them       claim: what the paper says

The second and third find noise that is used twice, which no histogram of single ratings can show.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpsr.arrays import Floats, Levels
from dpsr.audit.trials import Labels, Trial, alone, among, as_table, crowds, one_by_one, one_rating, two_ratings
from dpsr.engine import BlockResult
from dpsr.engine.incidence import GRID, Division
from dpsr.engine.raw import RawTable
from dpsr.privacy.channels import AsPublished, Channel
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault, privatise
from dpsr.types import Scale

Draw = Callable[[Levels, NoiseSource], npt.NDArray[np.integer]]

NOTICE = 0.05
"""The relative error of epsilon that a trial of one channel should notice."""

ITEM_SHARE = 9 / 16
"""Of a rating's weight in the trials of sums, what its item has; its user has the rest."""

MOST_DRAWS, _FEWEST_RUNS = 1 << 26, 1 << 16
_EDGES = 9


def through_vault(channel: Channel) -> Draw:
    """Symbols as the default pipeline draws them."""

    def draw(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        table = RawTable.of(as_table(levels, channel.scale)).table
        table.run(lambda block: BlockResult({"choice": np.zeros(len(block.items), dtype=np.uint8)}), writes=["choice"])
        Vault(RawTable(table, channel.scale), channel.epsilon, noise=noise).symbols(
            {0: channel}, choice="choice", symbol="symbol"
        )
        return np.concatenate([block.columns["symbol"] for block in table.scan(["symbol"])]).reshape(levels.shape)

    return draw


def through_privatise(channel: Channel) -> Draw:
    """Symbols as the paper's pipeline draws them, read off the published values."""
    values = np.unique(channel.outputs)

    def draw(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        released = privatise(as_table(levels, channel.scale), channel, noise=noise).values
        return np.searchsorted(values, released).reshape(levels.shape)

    return draw


def by_channel(channel: Channel) -> Draw:
    """Symbols straight from the sampler."""

    def draw(levels: Levels, noise: NoiseSource) -> npt.NDArray[np.integer]:
        rows = np.ascontiguousarray(levels).ravel()
        rows.setflags(write=False)  # as in a table: one kind of array, one compiled sampler
        return channel.sample(rows, noise).reshape(levels.shape)

    return draw


def single(name: str, channel: Channel, draw: Draw, claim: float, delta: float = 0.0) -> Trial:
    """One rating, all pairs of levels, and enough draws to notice an error of five per cent where that is possible."""
    datasets = one_rating(channel.scale.n_levels)

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        return draw(levels, noise)[:, 0].astype(np.int64)

    runs = int(np.clip(runs_to_notice(channel), _FEWEST_RUNS, MOST_DRAWS // len(datasets)))
    return Trial(name, claim, datasets, observe, channel.weights.shape[1], runs, delta)


def paired(name: str, channel: Channel, draw: Draw, claim: float, runs: int = 1 << 19) -> Trial:
    """Two ratings, their symbols taken together, each coarsened to at most sixteen."""
    symbols = channel.weights.shape[1]
    width = -(-symbols // 16)

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        coarse = draw(levels, noise).astype(np.int64) // width
        return coarse[:, 0] * 16 + coarse[:, 1]

    return Trial(name, claim, two_ratings(channel.scale.n_levels), observe, 256, runs)


def repeated(name: str, first: Channel, second: Channel, draws: tuple[Draw, Draw], runs: int = 1 << 19) -> Trial:
    """One rating released twice. The two prices add up; noise that is used twice costs more."""
    widths = [-(-channel.weights.shape[1] // 16) for channel in (first, second)]

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        one, two = (draw(levels, noise)[:, 0].astype(np.int64) // w for draw, w in zip(draws, widths, strict=True))
        return one * 16 + two

    ends = ((0,), (first.scale.n_levels - 1,))
    return Trial(name, first.epsilon + second.epsilon, ends, observe, 256, runs)


def in_sums_alone(vault: Vault) -> Division:
    """No rating is asked one by one, so that each spends everything on its two sums."""
    return Division.uniform(vault.census.shape, round(ITEM_SHARE * GRID))


def sums(name: str, scale: Scale, epsilon: float, runs: int = 1 << 18) -> Trial:
    """Noisy sums of one item and one user, each rating alone in both: one rating moves two numbers."""
    half, shares = scale.width / 2, (ITEM_SHARE, 1 - ITEM_SHARE)

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        vault = Vault(alone(levels, scale), epsilon, noise=noise)
        answers = vault.divided_sums(scale.midpoint, half, division=in_sums_alone(vault), epsilon=epsilon)
        item, user = (_bins(a.values, share * half) for a, share in zip(answers, shares, strict=True))
        return item * (_EDGES + 1) + user

    return Trial(name, epsilon, one_rating(scale.n_levels, most=3), observe, (_EDGES + 1) ** 2, runs)


def histogram(name: str, scale: Scale, epsilon: float, runs: int = 1 << 13) -> Trial:
    """The noisy histogram of a single rating: was there one at the low end, was there one at the high end."""
    last = scale.n_levels - 1

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        bins = np.arange(scale.n_levels)
        counts = np.array([
            Vault(table, epsilon, noise=noise).histogram(bins, epsilon=epsilon).values
            for table in one_by_one(levels, scale)
        ])  # fmt: skip
        return 2 * (counts[:, 0] >= 1).astype(np.int64) + (counts[:, last] >= 1)

    return Trial(name, epsilon, ((0,), (last,)), observe, 4, runs)


def published(name: str, mechanism: AsPublished, size: int, runs: int = 1 << 22) -> Trial:
    """The paper's Stage 1 on `size` ratings with their exact mean.

    Tiling a data set leaves its mean where it is, so one call releases thousands of copies of it independently.
    """

    def release(levels: Levels, noise: NoiseSource) -> Floats:
        return privatise(as_table(levels, mechanism.scale), mechanism, noise=noise).values.reshape(levels.shape)

    return crowd_trial(name, mechanism.scale, mechanism.nominal, release, size, runs)


def crowd_trial(
    name: str, scale: Scale, claim: float, release: Callable[[Levels, NoiseSource], Floats], size: int, runs: int
) -> Trial:
    """A few ratings whose mean moves when one of them does; the label is where each released value lies.

    At either end, or between: at a small epsilon nearly every value is clipped to an end and finer places are rare.
    """
    between = np.linspace(scale.low, scale.high, 5)[1:-1] if claim >= 0.5 else np.empty(0)
    edges = np.r_[np.nextafter(scale.low, np.inf), between, scale.high]
    base = len(edges) + 1

    def observe(levels: Levels, noise: NoiseSource) -> Labels:
        return among(edges, release(levels, noise)) @ base ** np.arange(levels.shape[1])

    return Trial(name, claim, crowds(scale.n_levels, size), observe, base**size, runs)


def runs_to_notice(channel: Channel) -> float:
    """Releases of each level after which the bound probably lies within five per cent of the channel's price.

    For the best event, of probability p at one level and q at another, the bound falls short of log(p/q) by some 5
    deviations of log(p) and of log(q), Bonferroni correction and luck included. A rule of thumb about power alone.
    """
    p = channel.probabilities
    best = np.inf
    for x in (0, len(p) // 2, len(p) - 1):
        for z in range(len(p)):
            with np.errstate(divide="ignore", invalid="ignore"):
                order = np.argsort(-np.nan_to_num(p[x] / p[z]), kind="stable")
                a, b = np.cumsum(p[x][order]), np.cumsum(p[z][order])
                spread = np.sqrt(np.maximum(1 / a - 1, 0)) + np.sqrt(np.maximum(1 / b - 1, 0))
                gap = np.log(a / b) - channel.epsilon / (1 + NOTICE)
            useful = np.isfinite(spread) & (gap > 0)
            best = min(best, np.min((spread[useful] / gap[useful]) ** 2, initial=np.inf))
    luck = abs(float(ndtri(1e-4))) + sqrt(2)
    return float(min(luck**2 * best / (1 - 0.25), 1e18))


def _bins(values: Floats, half: float) -> Labels:
    """Where a noisy sum lies between what the two ends of the scale would add to it."""
    return among(np.linspace(-half, half, _EDGES), values)
