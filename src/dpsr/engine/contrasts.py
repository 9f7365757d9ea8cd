r"""Sums over all ratings with public signs: what tells how features of items and of users go together.

Every row has a class and a sign, read off its public features (`value.design`). A rating of user u for item j is in the
sum (class of u, class of j) with the sign of either, s_u s_j. So a rating is in one of n x n sums, whoever it is from,
and changes no other.

With K and L the matrices of signs, one entry a row, these sums are K' Y L, Y the weighted ratings. What a model
z_j' W x_u + item_j + user_u says of them is linear in it (`ContrastMap`), and is found in one pass over the mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Codes, Floats, Ints
from dpsr.engine.incidence import GRID, Division
from dpsr.engine.table import Block, BlockResult, Table, zeros
from dpsr.linalg.compiled import kernel

SignedClasses = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Contrasts:
    """A signed class of every user and item: plus or minus (class + 1), zero where a row has none; `n` classes a side.

    >>> both = Contrasts(np.array([1, -2], np.int8), np.array([-1, 0, 2], np.int8), 2)
    >>> both.signs(both.items).tolist()
    [[-1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """

    users: SignedClasses
    items: SignedClasses
    n: int

    @classmethod
    def of(cls, users: Floats, items: Floats) -> Contrasts:
        """The class of a row is its largest feature, the sign that feature's."""
        return cls(_largest(users), _largest(items), users.shape[1])

    def places(self, block: Block) -> tuple[Ints, Ints]:
        """Of every rating of a block, which sum it is in, and its sign there."""
        users, items = self.users[block.users].astype(np.int64)[block.rows], self.items[block.items].astype(np.int64)
        place = np.maximum(np.abs(users) - 1, 0) * self.n + np.maximum(np.abs(items) - 1, 0)
        return place, np.sign(users) * np.sign(items)

    def signs(self, classes: SignedClasses) -> Floats:
        """K, or L: a row's sign in the column of its class."""
        found = np.zeros((len(classes), self.n))
        some = np.flatnonzero(classes)
        found[some, np.abs(classes[some]) - 1] = np.sign(classes[some])
        return found


def _largest(features: Floats) -> SignedClasses:
    if features.shape[1] == 0:
        return np.zeros(len(features), dtype=np.int8)
    at = np.abs(features).argmax(axis=1)
    return (np.sign(features[np.arange(len(features)), at]) * (at + 1)).astype(np.int8)


@dataclass(frozen=True, eq=False)
class ContrastMap:
    """Contrasts of z_j' W x_u, item_j and user_u, all weighted, before any gain.

    `weights[kl, qd]` is the sum of signs x z x for W; `by_user` (users x n) and `by_item` (items x n) say with what
    weight a row reaches the sums of its own class; `squares` are sums of squared weights, and `user_slopes`,
    `item_slopes` the variance that slopes of variance one on the feature of a class would add.
    """

    weights: Floats
    by_user: Floats
    by_item: Floats
    squares: Floats
    user_slopes: Floats
    item_slopes: Floats

    @property
    def signed_sizes(self) -> Floats:
        """What a constant of one would add: the first weight is that of the constant."""
        return self.weights[:, 0]


def contrast_map(table: Table, division: Division, contrasts: Contrasts, x: Floats, z: Floats) -> ContrastMap:
    """One pass over the mask; `x` and `z` are features of users and items, the constant first."""
    n, d, q, n_items = contrasts.n, x.shape[1], z.shape[1], len(z)
    share = division.pooled_weights / GRID

    def add(block: Block, weights: Floats, items: Floats, squares: Floats, slopes: Floats) -> BlockResult:
        users = contrasts.users[block.users]
        rows = np.zeros((block.n_users, n))
        own = share[division.codes(block)]
        _add(block.indptr, block.items, own, users, contrasts.items, x[block.users], z, weights, items, rows, slopes)
        place, sign = contrasts.places(block)
        squares += np.bincount(place, (sign * own) ** 2, n * n)
        return BlockResult(rows=(rows,))

    sums = [zeros(n, n, q, d), zeros(2, n_items, n), zeros(n * n), zeros(n, n)]
    answer = table.mask_only().run(add, sums)
    weights, items, squares, user_slopes = answer.sums
    item_slopes = (items[1] ** 2).T @ np.abs(contrasts.signs(contrasts.items))
    flat = weights.reshape(n * n, q * d)
    return ContrastMap(flat, answer.rows[0], items[0], squares, user_slopes.ravel(), item_slopes.ravel())


@kernel
def _add(
    indptr: Ints,
    items: Codes,
    share: Floats,
    user_class: SignedClasses,
    item_class: SignedClasses,
    x: Floats,
    z: Floats,
    weights: Floats,
    by_item: Floats,
    by_user: Floats,
    slopes: Floats,
) -> None:
    """A user's ratings by class of item first, then the outer product with the user's features."""
    n, q, d = weights.shape[0], z.shape[1], x.shape[1]
    own, reach = np.zeros((n, q)), np.zeros(n)
    for u in range(len(indptr) - 1):
        if user_class[u] == 0:
            continue
        k, sign = abs(user_class[u]) - 1, 1.0 if user_class[u] > 0 else -1.0
        size = abs(x[u, x.shape[1] - n + k])
        own[:], reach[:] = 0.0, 0.0
        for e in range(indptr[u], indptr[u + 1]):
            j = np.uint32(items[e])
            if item_class[j] == 0:
                continue
            line, w = abs(item_class[j]) - 1, share[e]
            signed = w if item_class[j] > 0 else -w
            for a in range(q):
                own[line, a] += signed * z[j, a]
            reach[line] += w * abs(z[j, q - n + line])
            by_item[0, j, k] += sign * w
            by_item[1, j, k] += w * size
        for line in range(n):
            by_user[u, line] = own[line, 0]
            slopes[k, line] += reach[line] ** 2
            for a in range(q):
                part = sign * own[line, a]
                for b in range(d):
                    weights[k, line, a, b] += part * x[u, b]
