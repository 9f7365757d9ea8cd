"""DP-SGD (Abadi et al. 2016) at the level of people on a small two-tower network, in PyTorch.

    person   x = sum_{i in basket} A_i / sqrt(n)            item   b_j + x . Q_j,     softmax over the modelled items

Half of a basket, at random, is shown and the other half is to be predicted: with e = softmax - target (target 1/n on
each item of the other half) the gradients of a person's cross-entropy are e x' on Q and Q'e / sqrt(n) on each shown row
of A, of squared lengths |e|^2 |x|^2 and |Q'e|^2. So the length over all parameters is known without forming the
gradient, and a person's whole gradient is clipped to C. Every step lets each person in with probability q (Poisson)
and adds N(0, (z C)^2) to every coordinate; z is the smallest with which all steps and the noisy counts together cost
(epsilon, delta), by dp-accounting.

Counts (length one a person) choose the modelled items and give b, the logarithm of popularity; items outside follow by
popularity. Kindly: Adam on the noisy gradients, large samples, the other items are not left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dpsr.arrays import Floats
from dpsr.data import Interactions
from dpsr.evaluate.contract import FLOATING, JOINT, Protection
from dpsr.evaluate.likes.baselines import OfSomeItems
from dpsr.evaluate.likes.contract import Baskets, ListModel, PrivateLists, baskets_of
from dpsr.evaluate.likes.peers.dp_ials import modelled_items
from dpsr.evaluate.likes.peers.noisy_popularity import ITEMS
from dpsr.evaluate.peers.accounting import epsilon_of, sampled_multiplier
from dpsr.evaluate.peers.adaptive import COUNT_SENSITIVITY, most_frequent, spread_counts
from dpsr.evaluate.peers.floating import Price, gaussian_noise

STEPS, SAMPLING, SIZE, CLIP, RATE, START = 40, 0.3, 8, 0.5, 0.02, 0.1
COUNT_SHARE = 0.2
"""Of the budget (in 1 / multiplier^2), what the counts take."""


@dataclass
class TwoTower(PrivateLists):
    """Two embedding tables trained by noisy clipped gradients of whole people."""

    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]:
        torch.set_num_threads(1)
        rng, beside = self._noise(), float(1 / np.sqrt(COUNT_SHARE * SAMPLING**2 * STEPS))
        z = sampled_multiplier(self.epsilon, self.delta, ((1.0, SAMPLING, STEPS), (beside, 1.0, 1)))
        counts, first = gaussian_noise(
            spread_counts(likes.mask), sensitivity=COUNT_SENSITIVITY, multiplier=z * beside, rng=rng
        )
        items = np.flatnonzero(most_frequent(counts, modelled_items(self.epsilon)))
        bias = np.log(np.maximum(counts[items], first.scale))
        towers, prices = self._train(baskets_of(likes.mask)[:, items], Towers.start(bias, self._chance()), z, rng)
        spent = epsilon_of([first, *prices], self.delta)
        return OfSomeItems(towers, items, counts), Protection("user", spent, self.delta, ITEMS, f"{JOINT}; {FLOATING}")

    def _train(
        self, baskets: Baskets, towers: Towers, z: float, rng: np.random.Generator
    ) -> tuple[Towers, list[Price]]:
        tables, prices = (torch.tensor(towers.shown), torch.tensor(towers.listed)), []
        optimiser = torch.optim.Adam(tables, lr=RATE)
        for step in range(STEPS):
            chance = self._chance(1 + step)
            people = baskets[np.flatnonzero(chance.random(baskets.shape[0]) < SAMPLING)].toarray()
            half = chance.random(people.shape) < 0.5
            statistic = clipped_gradients(people * half, people * ~half, towers.bias, *tables, CLIP)
            noisy, price = gaussian_noise(statistic, sensitivity=CLIP, multiplier=z, rng=rng, sampling=SAMPLING)
            for table, gradient in zip(tables, torch.tensor(noisy), strict=True):
                table.grad = gradient
            optimiser.step()
            prices.append(price)
        return Towers(towers.bias, *(table.numpy() for table in tables)), prices


def clipped_gradients(shown: Floats, wanted: Floats, bias: Floats, a: Any, q: Any, clip: float) -> Floats:
    """The sum over people of their gradients on (A, Q), each clipped to length `clip`: (2, items, size)."""
    inside, target = torch.tensor(shown), torch.tensor(wanted)
    inside = inside / torch.sqrt(torch.clamp(inside.sum(1, keepdim=True), min=1.0))
    amount = target.sum(1, keepdim=True)
    x = inside @ a
    error = torch.softmax(torch.tensor(bias) + x @ q.T, dim=1) - target / torch.clamp(amount, min=1.0)
    error = error * (amount > 0)
    back = error @ q
    length = torch.sqrt((error**2).sum(1) * (x**2).sum(1) + (back**2).sum(1) * (inside**2).sum(1))
    share = torch.clamp(clip / torch.clamp(length, min=1e-30), max=1.0)[:, None]
    return np.stack([(inside.T @ (share * back)).numpy(), ((share * error).T @ x).numpy()])


@dataclass(frozen=True, eq=False)
class Towers:
    """b, A and Q."""

    bias: Floats
    shown: Floats
    listed: Floats

    @classmethod
    def start(cls, bias: Floats, chance: np.random.Generator) -> Towers:
        """Popularity alone, nearly."""
        return cls(bias, *(chance.normal(0, START, (len(bias), SIZE)) for _ in range(2)))

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        amount = np.sqrt(np.maximum(np.diff(baskets.indptr), 1))[:, None]
        return np.asarray((baskets @ self.shown) / amount @ self.listed.T + self.bias)
