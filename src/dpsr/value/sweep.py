"""One pass over noisy ratings: users' posteriors given the items, then what they say to the items.

**Symbols.** A symbol s of a finite channel, read at the current mean m of its rating, says r_s = E[y | s, m]. With
rho = Var(r_s) / V(m) the share of the rating's variance that the channel explains, Fisher scoring gives

    z = m + (r_s - m) / rho    with weight   rho / v,

v the residual variance. A channel without noise has rho = 1: z is the rating itself. On two levels z is a function of
the symbol alone and the channel adds the same variance V(m) (1 / rho - 1) to it at every mean, so that its weight is
1 / (v + that). There rho / v would fall to zero towards an end of the scale: readings that lower a mean would count
more than those that raise it, and where nearly all thumbs are up all means would sink.

**The pass.** The means eta at the present state turn symbols into pseudo-observations (z, w). Users see z less what
their items say about everybody; items see z less what is shared and what these users, freshly updated, say about every
item. Nothing of the size of the ratings outlives the block: item-side normal equations are added up, user rows are
returned.

**The residual variance** v follows once users are updated, in two ways. From the scores: for a mean fitted to the same
data with posterior variance d, E[((z - eta) w)^2] = w - w^2 d (MacKay's fixed point). And from what is
left: the variance of ratings, which the histogram tells, is that of the means, their posterior variance, and v. Where
channels explain little, rho of what a score shows is the rating and the rest is the channel, so that a small error of
the family of levels becomes an error of v that is 1 / rho times as large: scores count by rho^2, what is left by the
rest; less where it is less than half of the variance, since it is a difference. Half a step, in logs, is taken at a
time: the items' part of d belongs to the v of the pass before, and whole steps would swing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import prange

from dpsr.arrays import AnyFloats, AnyInts, Floats, Singles
from dpsr.engine import Block, BlockResult
from dpsr.engine.incidence import Turns, at_ratings
from dpsr.linalg.compiled import fast_parallel_kernel, threads_for
from dpsr.value.effects import EffectObservation
from dpsr.value.kernels import add_normal_equations, packed_size, root_and_product, tally_ratings
from dpsr.value.levels import GRID, LevelFamily
from dpsr.value.side import Evidence, Posterior, Prior, Rows, congruence, posterior

CHOICE, SYMBOL = "choice", "symbol"
"""The columns of a table that say through which channel a rating went, and what came out."""

NOISY, WEIGHT = "noisy", "weight"
"""The columns that the last pass leaves of them: symbols as pseudo-observations at the released means."""

_LEAST_LEFT = 0.5
"""A residual is not believed to fall below this share of itself: factors that were found just now explain too much."""

_LEAST = 1e-6
_RAREST = 1e-300
"""A chance that rounding may make zero."""


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the symbols of a block at given means, for one family of levels.

    On the grid of means, `guesses` are r_s (channel, symbol, mean), `explained` is rho (channel, mean) and, on
    two levels, `added` the variance that the channel adds. Ratings after the first turn of `held_out` weigh nothing.
    """

    guesses: Floats
    explained: Floats
    added: Floats
    first: float
    spacing: float
    held_out: Turns | None = None

    @classmethod
    def of(cls, tables: Mapping[int, Floats], family: LevelFamily) -> Reader:
        """From P[symbol | level] of every channel in use."""
        n, most = max(tables) + 1, max(table.shape[1] for table in tables.values())
        beside = np.zeros((len(family.y), n, most))
        for c, table in tables.items():
            beside[:, c, : table.shape[1]] = table
        flat = beside.reshape(len(family.y), n * most)
        chance = family.table @ flat
        r = (family.table * family.y) @ flat / np.maximum(chance, _RAREST)
        squares = (chance * (r - family.means[:, None]) ** 2).reshape(GRID, n, most).sum(axis=2)
        explained = np.clip(np.ascontiguousarray(squares.T) / family.variance, _LEAST, 1.0)
        guesses = np.ascontiguousarray(r.T).reshape(n, most, GRID)
        added = family.variance * (1 / explained - 1) if len(family.y) == 2 else np.zeros((0, GRID))
        return cls(guesses, explained, added, float(family.means[0]), family.spacing)

    def read(self, block: Block, m: Floats, residual: float) -> tuple[Floats, Floats]:
        """Pseudo-observations of the means and their weights."""
        z, w = np.empty(len(m)), np.empty(len(m))
        choice, symbol = block.columns[CHOICE], block.columns[SYMBOL]
        with threads_for(8 * len(m)):
            tables = self.guesses, self.explained, self.added
            _read(m, choice, symbol, *tables, self.first, self.spacing, residual, z, w)
        if self.held_out is not None:
            w[self.held_out.of(block) > 0] = 0.0
        return z, w


@fast_parallel_kernel
def _read(
    m: Floats, choice: AnyInts, symbol: AnyInts, guesses: Floats, explained: Floats, added: Floats, first: float,
    spacing: float, residual: float, z: Floats, w: Floats,
) -> None:  # fmt: skip
    top = guesses.shape[2] - 2
    for e in prange(len(m)):
        x = (m[e] - first) / spacing
        g = min(max(int(np.floor(x)), 0), top)
        f = min(max(x - g, 0.0), 1.0)
        c, s = choice[e], symbol[e]
        mean = first + (g + f) * spacing
        r = guesses[c, s, g] * (1 - f) + guesses[c, s, g + 1] * f
        rho = explained[c, g] * (1 - f) + explained[c, g + 1] * f
        z[e] = mean + (r - mean) / rho
        if len(added):
            w[e] = 1 / (residual + added[c, g] * (1 - f) + added[c, g + 1] * f)
        else:
            w[e] = rho / residual


_DIRECT = np.empty(0, np.int32)
"""Stands for places that are the entries themselves."""

_SAMPLE_EVERY = 512


@dataclass(frozen=True, eq=False)
class Sides:
    """Both sides between two passes: users [x, c, f], items [b, z, g] and how well these are known."""

    x: Floats
    c: Floats
    f: Floats
    b: Floats
    z: Floats
    g: Floats
    items: Posterior | None


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over ratings that a pass adds up.

    Scores squared and their expectation, squares by which means moved, their variance, means and their squares, weights
    and their squares.
    """

    sums: Floats

    @classmethod
    def none(cls) -> Tally:
        return cls(np.zeros(8))

    def residual(self, before: float, variance: float, n: int, *, bold: bool) -> float:
        """The residual variance after a pass over n ratings of this variance; as it was where nothing is known yet.

        A bold pass takes partners for known and has no posterior variance to speak of: scores alone count.
        """
        squares, expected, _, uncertain, total, total2, weight, weight2 = self.sums
        if expected <= 0:
            return before
        scores = np.log(squares / expected)
        left = variance - (total2 / n - (total / n) ** 2) - uncertain / n
        rest = np.log(max(left / before, _LEAST_LEFT))
        rho = min(before * weight2 / weight, 1.0)
        share = 0.0 if bold else (1 - rho**2) * min(2 * before / variance, 1.0) ** 2
        return float(before * np.exp(((1 - share) * scores + share * rest) / 2))

    @property
    def moved(self) -> float:
        """Root mean square change of the means, in deviations of what is uncertain about them; infinite before."""
        return float(np.sqrt(self.sums[2] / self.sums[3])) if self.sums[3] > 0 else np.inf


@dataclass(frozen=True, eq=False)
class Sweep:
    """The pass as a value: everything it reads but the block.

    `item_root` is the root of the items' prior, in whose coordinates they are told (`side.py`).
    `users` says whether users are updated; a `bold` pass takes the partners' factors for known; `released` names
    the column of means that a last pass writes, beside `NOISY` and `WEIGHT`.
    """

    sides: Sides
    reader: Reader
    residual: float
    shared: Floats
    prior: Prior
    item_root: Floats
    observation: EffectObservation
    k: int
    users: bool = True
    bold: bool = False
    released: str | None = None

    def __call__(self, block: Block, item_a: Floats, item_h: Floats, tally: Floats, *evidence: Floats) -> BlockResult:
        s, who = self.sides, block.users
        of_items = at_ratings(block, s.x[who], s.b)
        eta = of_items + at_ratings(block, np.column_stack([s.c[who], s.f[who]]), self._zg)
        z, w = self.reader.read(block, eta, self.residual)
        if not self.users:
            self._tell_items(block, z, w, s.c[who], s.f[who], None, item_a, item_h)
            return BlockResult(rows=(block.every(_SAMPLE_EVERY, eta),))
        new = self._update(block, z - of_items, w, Evidence(*evidence))
        q = s.z.shape[1]
        after = of_items + at_ratings(block, new.mean, self._zg)
        rows = new.mean, block.every(_SAMPLE_EVERY, eta)
        if self.released is not None:
            noisy, weight = self.reader.read(block, after, self.residual)
            columns = {NOISY: noisy.astype(np.float32), WEIGHT: weight.astype(np.float32)}
            return BlockResult({self.released: after, **columns}, rows)
        self._count(block, eta, after, z, w, new, tally)
        c, f = new.mean[:, :q], new.mean[:, q:]
        self._tell_items(block, z, w, c, f, None if self.bold else new.factor_covariance, item_a, item_h)
        return BlockResult(rows=rows)

    # item-side arrays, put together once a pass and not once a block

    @cached_property
    def _zg(self) -> Floats:
        return np.column_stack([self.sides.z, self.sides.g])

    @cached_property
    def _shared_right(self) -> Floats:
        return np.column_stack([self.shared, self.sides.z])

    @cached_property
    def _items_as_partners(self) -> Singles:
        s = self.sides
        covariance = None if s.items is None or self.bold else s.items.factor_covariance
        return _partners(self._zg, covariance, self.prior.root)

    @cached_property
    def _item_moments(self) -> Floats:
        items = self.sides.items
        assert items is not None
        return np.column_stack([self._zg**2, items.variance])

    def _update(self, block: Block, rest: Floats, w: Floats, evidence: Evidence) -> Posterior:
        """The posterior of the block's users given the items; `rest` is what these leave of the ratings."""
        s, k, n, who = self.sides, self.k, block.n_users, block.users
        d = s.z.shape[1] + k
        a, h = np.zeros((n, packed_size(d)), np.float32), np.zeros((n, d))  # a user is in one block
        _normal(np.arange(n), block.indptr, block.items, _DIRECT, rest, w, self._items_as_partners, a, h)
        observed = self.observation.value[who], self.observation.variance[who]
        return posterior(Rows(self.prior.root, a, h, *observed, s.x[who], block.counts > 0), self.prior, k, evidence)

    def _tell_items(
        self, block: Block, z: Floats, w: Floats, c: Floats, f: Floats, covariance: Singles | None, a: Floats, h: Floats
    ) -> None:
        """Add what the block's users say to the items' normal equations."""
        x = self.sides.x[block.users]
        rest = z - at_ratings(block, np.column_stack([x, c]), self._shared_right)
        by, partners = block.by_item, _partners(np.column_stack([x, f]), covariance, self.item_root)
        _normal(by.items, by.ptr, by.rows, by.places, rest, w, partners, a, h)

    def _count(
        self, block: Block, before: Floats, after: Floats, z: Floats, w: Floats, users: Posterior, tally: Floats
    ) -> None:
        """Add to the tally, once items are known."""
        s = self.sides
        if s.items is None:
            return
        own = np.column_stack([s.x[block.users], users.mean[:, s.z.shape[1] :]]) ** 2
        variance = at_ratings(block, np.column_stack([users.variance, own]), self._item_moments)
        with threads_for(8 * len(w)):
            tally += tally_ratings(before, after, z, w, variance)


def _partners(x: Floats, covariance: Singles | None, root: Floats) -> Singles:
    """What rows see of their partners, in the coordinates of `root`.

    Their vectors and, where they are uncertain, the covariance of their factors, the last coordinates (packed).
    """
    vectors = x.astype(np.float32) @ root.astype(np.float32)
    if covariance is None:
        return vectors
    last = len(root) - (int(np.sqrt(8 * covariance.shape[1] + 1)) - 1) // 2
    return np.hstack([vectors, covariance @ congruence(root[last:, last:].T).T])


def _normal(
    to: AnyInts, ptr: AnyInts, idx: AnyInts, places: AnyInts, target: Floats, weight: Floats, partners: Singles,
    a: AnyFloats, h: Floats,
) -> None:  # fmt: skip
    """Normal equations of rows `to`, with the mean-field terms of partners whose factors are uncertain."""
    d = h.shape[1]
    with threads_for(8 * len(target)):
        pairs = root_and_product(weight, target)
    with threads_for(len(target) * d * d):
        add_normal_equations(to, ptr, idx, places, pairs, partners, d, a, h)
