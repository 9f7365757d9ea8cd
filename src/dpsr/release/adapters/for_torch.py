"""The private ratings as a PyTorch dataset. Importing this module imports torch, so `Release.to_torch` does it late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.utils.data import Dataset

from dpsr.release.adapters.matrices import IdMap

if TYPE_CHECKING:
    from dpsr.release.release import Release

Sample = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class RatingDataset(Dataset[Sample]):  # type: ignore[misc]
    """One sample per private rating: user code and item code (int64), rating (float32).

    `n_users` and `n_items` are the sizes of the embeddings a model needs; `ids` leads back to raw ids. The class is at
    the top of its module and holds tensors only, so that a `DataLoader` can hand it to its worker processes.
    """

    def __init__(self, release: Release) -> None:
        self.users = torch.from_numpy(release.mask.users.astype(np.int64))
        self.items = torch.from_numpy(release.mask.items.astype(np.int64))
        self.ratings = torch.from_numpy(release.ratings.astype(np.float32))
        self.n_users, self.n_items = release.mask.shape
        self.ids = IdMap(release.mask)

    def __len__(self) -> int:
        return len(self.ratings)

    def __getitem__(self, index: int) -> Sample:
        return self.users[index], self.items[index], self.ratings[index]
