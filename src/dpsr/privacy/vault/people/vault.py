"""The vault for people: raw ratings behind a counter that hands out noisy sums over people and adds up what they cost.

    levels           how many people, their mean level and spread                       5 numbers, 6 of ratings
    activity         people and their levels by number of ratings                       28
    scores           every cell's weighted count and sum of residuals, and of products with people's coefficients
    coefficients     how widely people's coefficients lie
    second moments   products of residuals over the most popular cells
    names            which items may be named: those whose noisy weight passes a threshold

Every question is one pass over blocks of whole people, wherever the ratings are kept; how it is described, priced,
asked and receipted is `asking`. Contributions are integers of bounded length (`contributions`). What a question may
depend on (the item side so far, cells, weights) is made of earlier answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify.certificate import PUBLIC_FACTS, ChargeReference
from dpsr.certify.people import MOMENTS
from dpsr.engine import Block
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.linalg.compiled import kernel
from dpsr.linalg.own_regression import PeopleRows
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.journal import Journal
from dpsr.privacy.vault.people import contributions as add
from dpsr.privacy.vault.people.asking import AskedOfPeople, NoisyAnswer
from dpsr.types import Scale
from dpsr.types.coordinates import MAX_LEVELS
from dpsr.types.item_side import ACTIVITY_BINS, ItemSide, activity_of

_LEVEL_BITS = MAX_LEVELS.bit_length()


@kernel
def _sort_each(indptr: Ints, keys: Ints) -> None:
    """Sort each person's keys, in place."""
    for u in range(len(indptr) - 1):
        keys[indptr[u] : indptr[u + 1]].sort()


@dataclass(frozen=True, eq=False)
class RowReader:
    """Turns blocks into rows: `cell_of` an item (-1: left out) and `y_of` a level.

    Passes carry this to wherever the ratings are, and nothing else of the vault: not its key.
    """

    cell_of: Ints
    y_of: Floats

    def rows(self, block: Block) -> PeopleRows:
        """One row for each person and cell."""
        return PeopleRows.by_cell(block.indptr, self.cell_of[block.items], self.y_of[block.columns[LEVEL]])

    def ratings(self, block: Block) -> tuple[Ints, Floats]:
        """The cell and value of every rating, in half-widths around the midpoint; each person's by cell and value.

        Sums of floats depend on their order in the last bits. That of a block follows from the order of all ids, which
        is another one if a single one is text; this one follows from the person's own ratings.
        """
        keys = (self.cell_of[block.items] << _LEVEL_BITS) | block.columns[LEVEL].astype(np.int64)
        _sort_each(block.indptr, keys)
        return keys >> _LEVEL_BITS, self.y_of[keys & ((1 << _LEVEL_BITS) - 1)]


class PeopleVault(AskedOfPeople):
    """Raw ratings and a budget for people. Ask; do not look."""

    column = LEVEL
    scores_name = "scores"

    replaced = 1.0
    """How far a person's vector of length one moves a sum, at most, between neighbours."""

    moments_bound = sqrt(0.5)
    """The same for second moments, of vectors of length one."""

    def __init__(
        self,
        ratings: RawTable,
        epsilon: float,
        delta: float,
        *,
        noise: NoiseSource,
        declared: pa.Array | None = None,
        journal: Journal | None = None,
        charge: ChargeReference | None = None,
    ) -> None:
        super().__init__(ratings.table, epsilon, delta, noise=noise, declared=declared, journal=journal, charge=charge)
        self.scale: Scale = ratings.scale
        self._reader = RowReader(self._cell_of, (self.scale.values - self.scale.midpoint) / (self.scale.width / 2))

    def totals(self, share: float) -> NoisyAnswer:
        """Sums of 1, a, a^2, nu v, nu over people (`contributions.add_levels`)."""
        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_levels(rows.indptr, rows.y, out)

        return self._ask("levels", share, one, (5,), reach=add.LEVELS_REACH)

    def activity(self, share: float) -> NoisyAnswer:
        """Sums of (1, a) over people, by octave of their number of ratings."""
        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_activity(rows.indptr, rows.y, activity_of(np.diff(rows.indptr)), out)

        return self._ask("activity", share, one, (ACTIVITY_BINS, 2), reach=add.ACTIVITY_REACH)

    def scores(
        self, share: float, side: ItemSide, *, alpha: float, gamma: float = 0.0, floor: float = 0.0
    ) -> NoisyAnswer:
        """Sums over people, by cell, of scores at the item side so far (`contributions.add_scores`).

        `alpha` weighs counts against sums, `gamma` products with coefficients against sums; below the squared length
        `floor` a person's vector is not scaled up.
        """
        d = side.n_factors
        deviation = np.sqrt(np.diag(side.covariance)[3:])

        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            own = side.own_side(rows)
            f = gamma * (own.coefficients[:, 3:] - side.mean[3:]) / deviation
            add.add_scores(
                rows.indptr, rows.cells, own.residuals, own.leverages, np.ascontiguousarray(f), own.covariances,
                side.features, gamma / deviation, alpha, floor, out,
            )  # fmt: skip

        return self._ask(self.scores_name, share, one, (self.n_cells, d + 2))

    def coefficients(self, share: float, side: ItemSide) -> NoisyAnswer:
        """Sums over people of what their own regressions say about the prior (`contributions.add_coefficients`)."""
        k = len(side.mean)
        reach = add.coefficients_reach(k)

        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            own = side.own_side(rows)
            add.add_coefficients(rows.indptr, own.coefficients, own.covariances, side.mean, side.covariance, reach, out)

        return self._ask("coefficients", share, one, (3 * k + k * (k + 1) // 2,), reach=reach)

    def second_moments(self, share: float, side: ItemSide, cells: Ints, floor: float) -> NoisyAnswer:
        """Sums over people of x x', x their weighted residuals over `cells`; zero on and below the diagonal."""
        place, reader = self._places(cells), self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            own = side.own_side(rows)
            add.add_second_moments(rows.indptr, rows.cells, own.residuals, place, floor, out)

        return self._ask_above_diagonal(MOMENTS, share, one, len(cells))

    @property
    def public(self) -> dict[str, Any]:
        """See `AskedTable`."""
        return {
            "facts": PUBLIC_FACTS[self.unit],
            "scale": str(self.scale),
            "levels": self.scale.n_levels,
            "cells": self.n_cells,
            "declared_items": None if self.declared is None else len(self.declared),
        }
