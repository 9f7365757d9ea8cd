"""The public design: who rated what, by user and by item, with features of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsr.design.embeddings import mask_embeddings
from dpsr.design.features import public_features
from dpsr.engine import MemoryTable, Table
from dpsr.engine.products import Incidence
from dpsr.types import Affinity, Census, Mask

Floats = npt.NDArray[np.float64]

RANK = 8
"""Columns of the mask embeddings. More cost time with the square and gained nothing on any set tried."""


@dataclass(frozen=True, eq=False)
class Design:
    """Everything that is computed from the mask alone.

    `x` (users) and `z` (items) have the constant first and the mask embedding in their last `embedding` columns.
    """

    table: Table
    x: Floats
    z: Floats
    embedding: int
    affinity: Affinity

    @classmethod
    def of(cls, table: Table | Mask, *, rank: int = RANK) -> Design:
        """Features of a table's mask."""
        table = MemoryTable(table) if isinstance(table, Mask) else table
        embeddings = mask_embeddings(table, rank)
        x, z = public_features(table, embeddings)
        return cls(table, x, z, embeddings.items.shape[1], embeddings.affinity)

    @property
    def census(self) -> Census:
        return self.table.census

    @cached_property
    def user_counts(self) -> Floats:
        return self.census.user_counts.astype(np.float64)

    @cached_property
    def item_counts(self) -> Floats:
        return self.census.item_counts.astype(np.float64)

    @cached_property
    def incidence(self) -> Incidence:
        """The 0/1 mask as a linear map."""
        return Incidence(self.table)

    @cached_property
    def weight_groups(self) -> npt.NDArray[np.int64]:
        """Entries of W in z' W x that share a ridge.

        0 the constant; 1 and 2 an item's counts and embedding; 3 and 4 a user's; 5 products of both.
        """
        q, d = self.z.shape[1], self.x.shape[1]
        groups = np.full((q, d), 5)
        groups[0, 0] = 0
        groups[1 : q - self.embedding, 0], groups[q - self.embedding :, 0] = 1, 2
        groups[0, 1 : d - self.embedding], groups[0, d - self.embedding :] = 3, 4
        return groups
