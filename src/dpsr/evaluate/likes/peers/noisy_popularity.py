"""Noisy popularity: the floor for private lists.

Everybody spreads a weight of length one over their items, 1 / sqrt(n_u) on each of n_u, so that the sums move by one
when a person comes or goes, however much the person did. All of the budget goes there, and everybody gets the same
list. Nobody's own items enter it but to be left out, so this is a release that anyone may read.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsr.data import Interactions
from dpsr.evaluate.contract import FLOATING, Protection
from dpsr.evaluate.likes.contract import ListModel, PrivateLists, SameForAll
from dpsr.evaluate.peers.accounting import epsilon_of, gaussian_multiplier
from dpsr.evaluate.peers.adaptive import COUNT_SENSITIVITY, spread_counts
from dpsr.evaluate.peers.floating import gaussian_noise

ITEMS = "item ids"
"""What is public besides the promise: the catalogue."""


@dataclass
class NoisyPopularity(PrivateLists):
    """Items by noisy counts."""

    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]:
        z = gaussian_multiplier(self.epsilon, self.delta)
        counts, price = gaussian_noise(
            spread_counts(likes.mask), sensitivity=COUNT_SENSITIVITY, multiplier=z, rng=self._noise()
        )
        return SameForAll(counts), Protection("user", epsilon_of([price], self.delta), self.delta, ITEMS, FLOATING)
