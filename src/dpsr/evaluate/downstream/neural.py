"""Neural collaborative filtering (He et al. 2017): a product of embeddings and a perceptron on them, plus biases.

    r_uj = b_u + c_j + w . (P_u * Q_j) + MLP([P'_u, Q'_j]),     on standardised values, squared loss, Adam.

A tenth of the table is held back to stop when it no longer improves. Optional: needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.baselines.base import hold_out
from dpsr.evaluate.downstream.learners import RatingTable
from dpsr.types import Scale

SIZE, EPOCHS, BATCH, RATE, DECAY, PATIENCE = 16, 30, 1024, 3e-3, 1e-5, 3


class NeuMF(torch.nn.Module):  # type: ignore[misc]
    """He et al.'s two towers, small."""

    def __init__(self, n_users: int, n_items: int) -> None:
        super().__init__()
        self.users, self.items = torch.nn.Embedding(n_users, 2 * SIZE + 1), torch.nn.Embedding(n_items, 2 * SIZE + 1)
        self.perceptron = torch.nn.Sequential(
            torch.nn.Linear(2 * SIZE, 2 * SIZE), torch.nn.ReLU(), torch.nn.Dropout(0.2),
            torch.nn.Linear(2 * SIZE, SIZE), torch.nn.ReLU(), torch.nn.Linear(SIZE, 1),
        )  # fmt: skip
        self.product = torch.nn.Linear(SIZE, 1, bias=False)
        for table in (self.users, self.items):
            torch.nn.init.normal_(table.weight, std=0.05)

    def forward(self, users: Any, items: Any) -> Any:
        """Standardised ratings."""
        p, q = self.users(users), self.items(items)
        deep = self.perceptron(torch.cat([p[:, SIZE:-1], q[:, SIZE:-1]], dim=1))
        return (self.product(p[:, :SIZE] * q[:, :SIZE]) + deep).squeeze(1) + p[:, -1] + q[:, -1]


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with the mean and spread it was trained around; strangers get the mean."""

    network: NeuMF
    mean: float
    spread: float
    n_items: int
    scale: Scale

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Inside the scale."""
        return self.scale.clip(self._raw(*np.broadcast_arrays(users, items)))

    def scores(self, user: int) -> Floats:
        """Unclipped."""
        items = np.arange(self.n_items)
        return self._raw(np.full(len(items), user), items)

    def _raw(self, users: Ints, items: Ints) -> Floats:
        known = (users >= 0) & (items >= 0)
        u, j = (torch.as_tensor(np.where(known, codes, 0), dtype=torch.long) for codes in (users, items))
        with torch.no_grad():
            values = self.network(u, j).numpy().astype(np.float64)
        return np.where(known, self.mean + self.spread * values, self.mean)


def train(table: RatingTable, seed: int) -> Trained:
    """Fit to the table; keeps the weights of the best epoch on its held-back part."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    mean, spread = float(table.values.mean()), float(table.values.std()) or 1.0
    held = hold_out(table.mask, 0.1, seed)
    users, items = (torch.as_tensor(codes.astype(np.int64)) for codes in (table.mask.users, table.mask.items))
    target = torch.as_tensor(((table.values - mean) / spread).astype(np.float32))
    network = NeuMF(*table.mask.shape)
    _descend(network, users, items, target, torch.as_tensor(held), torch.Generator().manual_seed(seed))
    network.train(False)
    return Trained(network, mean, spread, table.mask.n_items, table.scale)


def fold_in(trained: Trained, own: RatingTable, seed: int) -> Trained:
    """People who were not in the table: their embeddings alone are learned, from their own ratings, at the items and
    the perceptron as they are."""
    torch.manual_seed(seed)
    network = NeuMF(own.mask.n_users, trained.n_items)
    kept = {name: value for name, value in trained.network.state_dict().items() if not name.startswith("users.")}
    network.load_state_dict(kept, strict=False)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith("users."))
    users, items = (torch.as_tensor(codes.astype(np.int64)) for codes in (own.mask.users, own.mask.items))
    target = torch.as_tensor(((own.values - trained.mean) / trained.spread).astype(np.float32))
    held = torch.as_tensor(hold_out(own.mask, 0.1, seed))
    _descend(network, users, items, target, held, torch.Generator().manual_seed(seed))
    network.train(False)
    return replace(trained, network=network)


def _descend(network: NeuMF, users: Any, items: Any, target: Any, held: Any, order: Any) -> None:
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    steps = torch.optim.Adam(learned, lr=RATE, weight_decay=DECAY)
    inside, outside = torch.nonzero(~held).squeeze(1), torch.nonzero(held).squeeze(1)
    best, kept, waited = float("inf"), network.state_dict(), 0
    for _ in range(EPOCHS):
        network.train()
        for rows in torch.split(inside[torch.randperm(len(inside), generator=order)], BATCH):
            steps.zero_grad()
            loss = torch.mean((network(users[rows], items[rows]) - target[rows]) ** 2)
            loss.backward()
            steps.step()
        network.train(False)
        with torch.no_grad():
            rows = outside if len(outside) else inside
            error = float(torch.mean((network(users[rows], items[rows]) - target[rows]) ** 2))
        waited = 0 if error < best else waited + 1
        if error < best:
            best, kept = error, {name: value.clone() for name, value in network.state_dict().items()}
        if waited >= PATIENCE:
            break
    network.load_state_dict(kept)
