"""Where inference from noisy ratings starts: variances of effects from pairs of ratings, factors from directions.

**Variances.** Pseudo-observations z_e with weights w_e, less what everybody shares, are x_e = effect_j + the user's
part + noise. Two ratings of one item, by two users, have nothing in common but the item's effect, so with t its prior
variance

    E[ sum_{e != f of j} w_e x_e w_f x_f ] = t sum_{e != f of j} w_e w_f,

whatever the noise, the users' effects and tastes are: no iteration, no start, no other variance is needed. Rows are
weighed by 1 / (1 + t0 W_j)^2, W_j = sum w_e, t0 a typical t, so that a few long ones do not decide alone. The estimate
has variance s^2 = 2 sum (W_j (1 + t W_j) share_j)^2 / (sum of pairs)^2. It moves what is believed already, from the
sums, as far as that is less certain: t0^2 / (1 + k/2) where k rows are known from sums. Likewise for users.

**Factors.** The leading directions of what the means leave unexplained: the residuals of the noisy ratings, weighted
and scaled by degree so that heavy rows do not drown the others, on the observed cells; their left singular vectors, in
units of their own size, are the users' first factors. With signs drawn at random the same residuals have singular
values that noise alone would give: how far the leading ones exceed these tells whether there is taste to be found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Singles
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import ColumnStack, add_by_item, at_ratings, by_user
from dpsr.engine.place_hash import hashed_places
from dpsr.engine.table import zeros
from dpsr.linalg.lanczos import leading_right
from dpsr.value.design import degree_scales
from dpsr.value.sweep import CHOICE, SYMBOL, Reader

Thin = tuple[Floats | ColumnStack, Floats]
"""Two factors: user rows and item rows."""


@dataclass(frozen=True)
class Belief:
    """A variance, and from how many rows it is known."""

    variance: float
    known: float


def effect_variances(
    table: Table,
    means: Thin,
    shared: Thin,
    reader: Reader,
    residual: float,
    beliefs: tuple[Belief, Belief],
    typical: float,
) -> tuple[float, float]:
    """Of items and of users; symbols are read at the `means`, and what is `shared` is no effect."""
    n_items = table.census.n_items

    def add(block: Block, items: Floats) -> BlockResult:
        z, w = reader.read(block, at_ratings(block, means[0][block.users], means[1]), residual)
        score = w * (z - at_ratings(block, shared[0][block.users], shared[1]))
        each_user, each_item, users = np.ones((block.n_users, 1)), np.ones((n_items, 1)), []
        for sums, values in zip(items, (score, w, score**2, w**2), strict=True):
            add_by_item(block, each_user, sums, values)
            users.append(by_user(block, each_item, values))
        return BlockResult(rows=(np.hstack(users),))

    answer = table.run(add, [zeros(4, n_items, 1)], reads=[CHOICE, SYMBOL])
    sides = zip(beliefs, (answer.sums[0][:, :, 0], answer.rows[0].T), strict=True)
    items, users = (moved(belief, *pair_variance(sums, typical), typical) for belief, sums in sides)
    return items, users


def pair_variance(sums: Floats, typical: float) -> tuple[float, float]:
    """t and s^2 from the sums of w x, w, (w x)^2 and w^2 of every row."""
    score, weight, score2, weight2 = sums
    share = 1 / (1 + typical * weight) ** 2
    pairs = float(share @ (weight**2 - weight2))
    if pairs <= 0:
        return 0.0, np.inf
    found = float(share @ (score**2 - score2)) / pairs
    return found, 2 * float(np.sum((share * weight * (1 + max(found, 0.0) * weight)) ** 2)) / pairs**2


def moved(belief: Belief, found: float, error: float, typical: float) -> float:
    """The belief after pairs were looked at."""
    before = typical**2 / (1 + belief.known / 2)
    return max(belief.variance + before / (before + error) * (found - belief.variance), 0.0)


_EXCESS, _BY_CHANCE = "excess", "by_chance"
_TOLERANCE, _PRODUCTS = 1e-2, 5
"""A start needs directions, not digits."""

_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Directions:
    """Where the unexplained points: k user factors of unit size, none beyond three, and how far they stand out.

    `strength` is the sum of the leading singular values over that of the same residuals with random signs: one where
    there is nothing but noise. It takes as long as the directions themselves and is None unless it was asked for.
    """

    users: Floats
    strength: float | None


def leading_directions(
    table: Table,
    left: ColumnStack,
    right: Floats,
    reader: Reader,
    residual: float,
    k: int,
    *,
    compare: bool,
) -> Directions:
    """The k leading directions, compared with chance if asked to."""
    users, items = degree_scales(table.census.user_counts), degree_scales(table.census.item_counts)
    columns = [_EXCESS, _BY_CHANCE] if compare else [_EXCESS]

    def write(block: Block) -> BlockResult:
        eta = at_ratings(block, left[block.users], right)
        z, w = reader.read(block, eta, residual)
        excess = (w * (z - eta) * np.repeat(users[block.users], block.counts) * items[block.items]).astype(np.float32)
        return BlockResult(dict(zip(columns, (excess, _random_signs(block) * excess), strict=False)))

    def leading(column: str) -> tuple[Floats, Floats]:
        def gram(X: Floats) -> Floats:
            def add(block: Block, sums: Floats) -> None:
                values = block.columns[column].astype(np.float64)
                add_by_item(block, by_user(block, X, values), sums, values)

            return table.run(add, [zeros(*X.shape)], reads=[column]).sums[0]

        return leading_right(gram, table.census.n_items, k, tol=_TOLERANCE, products=_PRODUCTS)

    def project(block: Block) -> BlockResult:
        return BlockResult(rows=(by_user(block, V, block.columns[_EXCESS].astype(np.float64)),))

    table.run(write, reads=[CHOICE, SYMBOL], writes=columns)
    found, V = leading(_EXCESS)
    strength = float(found.sum() / max(leading(_BY_CHANCE)[0].sum(), _TINY)) if compare else None
    U = table.run(project, reads=[_EXCESS]).rows[0]
    for column in columns:
        table.drop(column)
    size = np.sqrt(np.mean(U**2, axis=0))
    return Directions(np.clip(U / np.where(size > 0, size, 1.0), -3, 3), strength)


def _random_signs(block: Block) -> Singles:
    """They depend on the places of ratings alone: the same however the table is cut."""
    return np.where(hashed_places(block) >> np.uint64(63), np.float32(1), np.float32(-1))
