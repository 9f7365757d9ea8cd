"""The vaults of interactions: who did what is the secret, and questions are about presence alone.

At the unit `user` everybody adds one vector of bounded length (`presence`). At the unit `rating` one interaction more
or less is the secret (`certify.one_rating`): counts are added up interaction by interaction, each of them whole, pairs
of cells weigh 1 / sqrt n for somebody with n of them, so that all pairs of one interaction together weigh one, and in
numbers of interactions one of them moves its person from an octave to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.certificate import LIKES_FACTS
from dpsr.certify.one_rating import MOST_CELLS, pair_weight
from dpsr.certify.people import COUNTS, GRID, INTERACTIONS, PAIRS, PRESENCE, PRESENCE_GRID
from dpsr.engine import Block
from dpsr.engine.raw import WEIGHT
from dpsr.errors import PrivacyError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.privacy.vault.people import presence as add
from dpsr.privacy.vault.people.asking import AskedOfPeople, AskedOfRows, AskedTable, NoisyAnswer
from dpsr.types.item_side import ACTIVITY_BINS
from dpsr.types.likes_side import strengths


@dataclass(frozen=True, eq=False)
class PresenceReader:
    """Turns blocks into rows of strengths, one for each person and cell (`cell_of` an item; -1: left out).

    Passes carry this to wherever the interactions are, and nothing else of the vault: not its key.
    """

    cell_of: Ints

    def rows(self, block: Block) -> PeopleRows:
        """Cells ascending and strengths; of items that share a cell, their mean."""
        indptr = np.asarray(block.indptr, dtype=np.int64)
        x = strengths(indptr, np.asarray(block.columns[WEIGHT], dtype=np.float64))
        return PeopleRows.by_cell(indptr, self.cell_of[block.items], x)


class LikesVault(AskedTable):
    """Raw interactions and a budget. Ask; do not look."""

    column = WEIGHT

    def numbers(self, share: float, cells: Ints) -> NoisyAnswer:
        """How many people did something in 1, 2 to 3, 4 to 7, ... of `cells`."""
        place, reader = self._places(cells), self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_numbers(rows.indptr, rows.cells, place, out)

        return self._ask(INTERACTIONS, share, one, (ACTIVITY_BINS,))

    def counts(self, share: float, cells: Ints) -> NoisyAnswer:
        """Weighted counts of `cells`: everybody's strengths there, scaled to length one."""
        place, reader = self._places(cells), self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_counts(rows.indptr, rows.cells, rows.y, place, out)

        return self._ask(COUNTS, share, one, (len(cells),))

    def counts_noise(self, share: float) -> float:
        """The deviation of the noise that `counts` would have."""
        return sqrt(self._describe(COUNTS, share, 1).variance) / GRID

    def presence_moments(self, share: float, cells: Ints, centre: Floats, favour: Floats) -> NoisyAnswer:
        """Sums over people of r r', r = c favour (x - n centre) over `cells`; zero on and below the diagonal."""
        place, reader = self._places(cells), self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_second_moments(rows.indptr, rows.cells, rows.y, place, centre, favour, out)

        return self._ask_above_diagonal(PRESENCE, share, one, len(cells))

    def moments_noise(self, share: float) -> float:
        """The deviation of the noise that `presence_moments` would have."""
        return sqrt(self._describe(PRESENCE, share, 1).variance) / PRESENCE_GRID**2

    @property
    def public(self) -> dict[str, Any]:
        """See `AskedTable`."""
        declared = None if self.declared is None else len(self.declared)
        return {"facts": LIKES_FACTS, "cells": self.n_cells, "declared_items": declared}

    @property
    def _reader(self) -> PresenceReader:
        return PresenceReader(self._cell_of)


class PeopleLikesVault(LikesVault, AskedOfPeople):
    """Raw interactions and a budget for people."""


class SingleLikesVault(LikesVault, AskedOfRows):
    """Raw interactions and a budget for single ones of them."""

    def counts(self, share: float, cells: Ints) -> NoisyAnswer:
        """How many interactions there are in each of `cells`; nobody's other interactions matter."""
        place, cell_of = self._places(cells), self._cell_of

        def one(block: Block, out: Ints) -> None:
            found = cell_of[block.items]
            found = place[found[found >= 0]]
            out += np.bincount(found[found >= 0], minlength=len(out)) * GRID

        return self._ask(COUNTS, share, one, (len(cells),))

    def presence_moments(self, share: float, cells: Ints, centre: Floats, favour: Floats) -> NoisyAnswer:
        """Sums over people of 1 / sqrt n on every pair of their n `cells`, neither centred nor favoured."""
        if len(cells) > MOST_CELLS:
            raise PrivacyError(f"pairs have at most {MOST_CELLS:,} cells, found {len(cells):,}. Ask about fewer.")
        place, reader = self._places(cells), self._reader
        weights = np.array([pair_weight(n, GRID) for n in range(len(cells) + 1)], dtype=np.int64)

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_pairs(rows.indptr, rows.cells, place, weights, out)

        return self._ask_above_diagonal(PAIRS, share, one, len(cells))

    def moments_noise(self, share: float) -> float:
        """The deviation of the noise that `presence_moments` would have."""
        return sqrt(self._describe(PAIRS, share, 1).variance) / GRID
