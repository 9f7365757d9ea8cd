"""Which items can be among a user's n best: found in single precision, with none left out.

Let p and r be the products A_u . B_j and R_u . S_j as single precision gives them, in whatever order they were summed.
With d factors and u = 2^-24 (rounding of either input, of every product and of every sum),

    | p - A_u . B_j |  <=  gamma |A_u| |B_j|,     gamma = 2 (d + 8) u  >  (1 + u)^(d + 3) - 1,

and the score increases in both, so it lies between `low` and `high`, the scores at the ends of the two intervals. Let t
be the n-th largest `low` of a user. At least n items score t or more, hence an item with high < t is not among the n
best; all others are candidates, whose order is then settled in double precision (`exact`). t only grows while items
pass by, so those that fail are dropped on the way. Room for candidates is limited; a user with more of them (many equal
items) is reported instead, and ranked over all items.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from dpsr.errors import ParameterError
from dpsr.release.kernels import MARGIN, drop_all, see_tile
from dpsr.types import Mask, Model
from dpsr.types.model import HARDLY

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

TILE = 2_048
"""Items scored at a time: a block of users times a tile stays within the processor's cache."""

_UNIT = 2.0**-24
_LARGEST = 1e15
"""Norms up to this cannot overflow in single precision."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one side in single precision, and gamma times their norms in double."""

    single: Singles
    doubt: Floats

    @classmethod
    def of(cls, rows: Floats) -> Rows:
        """Norms are rounded up a little, since the bound needs them whole."""
        norms = np.sqrt(np.einsum("rd,rd->r", rows, rows)) * (1 + MARGIN)
        return cls(np.ascontiguousarray(rows, dtype=np.float32), norms * sqrt(2 * (rows.shape[1] + 8) * _UNIT))


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Items of each user of a block that may be among its best; a count of -1 says that there was no room."""

    items: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


class Candidates:
    """Finds the shortlists of blocks of users. Holds the item side in single precision; safe to use from threads."""

    def __init__(self, model: Model, n: int) -> None:
        if not isinstance(model.mask, Mask):
            raise ParameterError(
                "lists leave out what was rated, and this model does not hold it. Load the release folder."
            )
        self.model, self.mask, self.n = model, model.mask, n
        factors = [(model.user_factors, model.item_factors)]
        if model.affinity is not None:
            factors.append((model.affinity.users, model.affinity.items))
        self.representable = all(bool((np.abs(side) < _LARGEST).all()) for pair in factors for side in pair)
        """Whether the numbers fit single precision at all."""
        self._sides = [(users, Rows.of(items)) for users, items in factors]

    def of_block(self, start: int, stop: int) -> Shortlist:
        """The shortlists of the users `start:stop`."""
        mask, block = self.mask, _Block(self.model, self.mask, self.n, start, stop)
        users = [Rows.of(side[start:stop]) for side, _ in self._sides]
        pages = [np.empty((stop - start) * TILE, dtype=np.float32) for _ in users]
        for first in range(0, mask.n_items, TILE):
            tile = slice(first, min(first + TILE, mask.n_items))
            items = [Rows(rows.single[tile], rows.doubt[tile]) for _, rows in self._sides]
            block.see(first, users, items, [_product(*three) for three in zip(users, items, pages, strict=True)])
        return block.shortlist()


def _product(users: Rows, items: Rows, page: Singles) -> Singles:
    shape = len(users.single), len(items.single)
    return np.matmul(users.single, items.single.T, out=page[: shape[0] * shape[1]].reshape(shape))


class _Block:
    """What is remembered of a block of users while tiles of items pass by."""

    def __init__(self, model: Model, mask: Mask, n: int, start: int, stop: int) -> None:
        height, room = stop - start, 4 * n + 64
        self.weights = model.affinity is not None, model.overall, model.deviation * sqrt(2.0), HARDLY
        self.rated = mask.items, mask.indptr[start:stop].copy(), mask.indptr[start + 1 : stop + 1]
        self.best = np.full((height, n), -inf)  # a heap of the n largest `low`, the least of them first
        self.items = np.empty((height, room), dtype=np.int32)
        self.highs = np.empty((height, room))
        self.counts = np.zeros(height, dtype=np.int64)

    def see(self, first: int, users: list[Rows], items: list[Rows], products: list[Singles]) -> None:
        pairs = list(zip(users, items, products, strict=True))
        predicted, meets = (
            (product, own.doubt, theirs.doubt) for own, theirs, product in (pairs[0], pairs[-1])
        )  # without an affinity they are the same
        kept = self.best, self.items, self.highs, self.counts
        see_tile(first, predicted, meets, self.weights, self.rated, kept)

    def shortlist(self) -> Shortlist:
        drop_all(self.best, self.items, self.highs, self.counts)
        return Shortlist(self.items, self.counts)
