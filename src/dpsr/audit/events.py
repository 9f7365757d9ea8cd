"""From counts of what came out to the best lower bound on epsilon over many pairs of neighbours.

A single output loses power and a union of outputs loses ratio, so the event is searched: outputs are ordered by how
much more often they came out under x than under z, and the best prefix of that order is taken (by Neyman and Pearson
the best event of its size). The search looks at *pilot* counts only. The bound comes from *fresh* counts, with exact
intervals for one event a pair and a Bonferroni correction over the pairs; so it holds at 1 - alpha however the event
was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.audit.bounds import epsilon_at_least

Counts = npt.NDArray[np.int64]
Event = npt.NDArray[np.int64]
Pairs = Sequence[tuple[int, int]]

_CAUTION = 3.0
"""Standard errors the search subtracts, so that it prefers events the fresh counts can confirm."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A lower bound on epsilon and where it was found: `pair` of data sets, `event` as a set of labels."""

    lower: float
    pair: tuple[int, int]
    event: Event
    hits: int
    others: int
    trials: int


def best_bound(pilot: Counts, fresh: Counts, pairs: Pairs, *, alpha: float, delta: float = 0.0) -> Evidence:
    """The largest lower bound over `pairs` of rows of two independent tables of counts (rows: data sets)."""
    events = [promising_event(pilot[x], pilot[z]) for x, z in pairs]
    trials = int(fresh[0].sum())
    hits = np.array([fresh[x, event].sum() for (x, _), event in zip(pairs, events, strict=True)])
    others = np.array([fresh[z, event].sum() for (_, z), event in zip(pairs, events, strict=True)])
    bounds = epsilon_at_least(hits, others, trials, alpha / len(pairs), delta)
    best = int(np.argmax(bounds))
    return Evidence(float(bounds[best]), pairs[best], events[best], int(hits[best]), int(others[best]), trials)


def promising_event(counts: Counts, others: Counts) -> Event:
    """The prefix of the likelihood-ratio order with the largest cautious log-ratio; a bad choice only loses power.

    Log-ratios within the noise of their counts order as zero: many rare outputs would else win by luck.
    """
    ratio = np.log((counts + 0.5) / (others + 0.5))
    noise = _CAUTION * np.sqrt(1 / (counts + 0.5) + 1 / (others + 0.5))
    order = np.argsort(-np.sign(ratio) * np.maximum(np.abs(ratio) - noise, 0), kind="stable")
    hits, misses = np.cumsum(counts[order]) + 0.5, np.cumsum(others[order]) + 0.5
    n = counts.sum() + 1.0
    deviation = np.sqrt(np.maximum(1 / hits - 1 / n, 0)) + np.sqrt(np.maximum(1 / misses - 1 / n, 0))
    return order[: int(np.argmax(np.log(hits / misses) - _CAUTION * deviation)) + 1]
