"""Randomised response on baskets: local DP at the level of people, no curator is trusted.

A person keeps m items drawn at random from the basket, and says of every item of the catalogue whether it is among
them, by optimised unary encoding (Wang et al. 2017): "yes" with probability 1/2 for a kept item, q = 1 / (e^(epsilon/m)
+ 1) for another. To replace one kept item by another changes two bits and costs log((1/2) / q) + log((1 - q) / (1/2))
= epsilon / m; m of them cost epsilon, and any two baskets differ by no more. Absent people are the empty basket.

Reports are debiased, x = (report - q) / (1/2 - q). Their sum estimates popularity and, bits being independent, products
of different items estimate how often two were kept together; the closed-form item-item model is fitted to what stands
above the noise edge of the most reported items. m grows with the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Bools, Floats, Ints
from dpsr.data import Interactions
from dpsr.evaluate.contract import FLOATING, Protection
from dpsr.evaluate.likes.baselines import OfSomeItems
from dpsr.evaluate.likes.contract import PEOPLE_AT_ONCE, ItemToItem, ListModel, PrivateLists, SameForAll
from dpsr.evaluate.likes.peers.noisy_popularity import ITEMS
from dpsr.types import Mask

MOST_KEPT, LARGEST = 8, 1000


@dataclass
class RandomisedBaskets(PrivateLists):
    """Popularity and an item-item model from everybody's randomised report."""

    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]:
        kept = int(np.clip(round(self.epsilon / 2), 1, MOST_KEPT))
        reports, each = self._reports(likes.mask, kept), self.epsilon / kept
        everything = np.arange(likes.n_items)
        counts = sum((_debiased(one, everything, each).sum(axis=0) for one in reports), np.zeros(likes.n_items))
        top = np.sort(np.argsort(-counts)[:LARGEST])
        gram = sum((x.T @ x for x in (_debiased(one, top, each) for one in reports)), np.zeros((len(top), len(top))))
        protection = Protection("user", kept * pair_price(each), 0.0, ITEMS, f"local; {FLOATING}")
        return _model(counts, gram, top, likes.n_users, each), protection

    def _reports(self, mask: Mask, kept: int) -> list[npt.NDArray[np.uint8]]:
        """What everybody says, a block of people at a time, a bit an item."""
        chance, noise, q = self._chance(), self._noise(), no_probability(self.epsilon / kept)
        blocks = []
        for start in range(0, mask.n_users, PEOPLE_AT_ONCE):
            truth = keep(mask, np.arange(start, min(start + PEOPLE_AT_ONCE, mask.n_users)), kept, chance)
            blocks.append(np.packbits(noise.random(truth.shape) < np.where(truth, 0.5, q), axis=1))
        return blocks


def _debiased(reports: npt.NDArray[np.uint8], items: Ints, epsilon: float) -> Floats:
    """Right on average: one for a kept item, zero for another."""
    q = no_probability(epsilon)
    said = np.unpackbits(reports, axis=1, count=None)[:, items]
    return np.asarray((said - q) / (0.5 - q))


def no_probability(epsilon: float) -> float:
    """q: how often "yes" is said of an item that is not kept."""
    return exp(-epsilon) / (1 + exp(-epsilon))


def pair_price(epsilon: float) -> float:
    """What one kept item in the place of another costs: two bits."""
    q = no_probability(epsilon)
    return float(np.log(0.5 / q) + np.log((1 - q) / 0.5))


def keep(mask: Mask, people: Ints, kept: int, chance: np.random.Generator) -> Bools:
    """Which items each of some people keeps, `kept` at most, drawn without looking at anything but their basket."""
    truth = np.zeros((len(people), mask.n_items), dtype=np.bool_)
    for row, user in enumerate(people):
        items = mask.items[mask.indptr[user] : mask.indptr[user + 1]]
        truth[row, chance.permutation(items)[:kept]] = True
    return truth


def _model(counts: Floats, gram: Floats, top: Ints, n: int, epsilon: float) -> ListModel:
    """Popularity, and on the top items what the products say above their noise."""
    q = no_probability(epsilon)
    variance = q * (1 - q) / (0.5 - q) ** 2
    edge = 2 * variance * np.sqrt(n * len(top))
    np.fill_diagonal(gram, 0.0)
    values, vectors = np.linalg.eigh(gram)
    strong = values > edge
    if not strong.any():
        return SameForAll(counts)
    signal = (vectors[:, strong] * values[strong]) @ vectors[:, strong].T
    base = counts / max(float(counts.max()), 1.0)
    return OfSomeItems(ItemToItem(signal / np.abs(signal).max(), base[top]), top, counts)
