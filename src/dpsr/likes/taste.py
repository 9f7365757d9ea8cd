r"""Axes of taste in noisy second moments of presence: a posterior for every frequent cell, by variational Bayes.

Somebody with taste f ~ N(0, I) and n interactions did something in cell j with expectation n p_j (1 + v_j . f). Rows of
second moments are r = c g (x - n p), so off the diagonal

    M_ij  =  a_i . a_j + e_ij,     a_j = sqrt(w) p_j g_j v_j,     w = sum over people of n^2 c^2,

with e the noise that was added (deviation s) and that of the sample, whose variance is N h_i h_j, h = p g^2 / sum p g^2
(rows have length about one and spread like popularity). Cells are scaled so that all e_ij have about variance one.

v_j ~ N(0, diag(strength / k)), k = 1, 2, ...: axes of falling importance. The posterior of all a_j is approximated by a
product over cells, updated block by block from the shrunk leading eigenvectors of M on; means and covariances come out.
Cells of a block differ in their prior by a factor and in what they add themselves, so one small eigenvalue problem
serves all of them (`_Cells`).
An axis that does not stand out of the noise shrinks to nothing: no rank is chosen.

**Without any taste** moments are not empty (`moments_of_rows`). Somebody with n of the frequent cells has cell j with
p_j(n) = 1 - exp(-t q_j), t such that sum_j p_j(n) = n and q such that popularity is p: not n p_j, since nobody has a
cell twice, and the more often some cells are had, the less is left of n for others. So off the diagonal their rows add,
on average and with v_j = p_j(n) (1 - p_j(n)),

    c^2 g_i g_j ((p_i(n) - n p_i) (p_j(n) - n p_j) - v_i v_j / sum v).

That is no taste, and evidence does without it. It is an axis of activity all the same: where taste is learned it stays,
for who did much is served by other lists than who did little. h, too, is what such rows have.

**Where single interactions are protected** the moments come from pairs of cells (`moments_of_pairs`). Somebody with n
of the frequent cells adds 1 / sqrt n on each of their pairs, so rows are not centred. Without taste they have cell j
with p_j(n) = 1 - exp(-t centre_j), t such that sum_j p_j(n) = n, and the sum over people would be

    E_ij = sum_u p_i(n_u) p_j(n_u) / sqrt n_u.

What pairs are above that is W p_i p_j v_i . v_j, W = sum_u n_u^(3/2): the model above with g = 1 and without c. The
sample's noise in a pair has the variance sum_u x_i x_j / n_u, about p_i p_j sum_u n_u. Numbers of people come in
octaves and with noise, so E is scaled to the sum of all pairs, which is known best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from dpsr.arrays import Floats
from dpsr.likes.activity import Activity, presence
from dpsr.types.item_side import SIZES

STRONGEST = 0.7
"""Prior variance of v along the first axis, at strength one."""

MOST_AXES = 32
_SWEEPS, _BLOCKS, _BLOCK = 10, 8, 25


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy second moments, symmetric with an empty diagonal, and all that is known about how they came about."""

    values: Floats
    noise: float
    people: float
    squares: float
    centre: Floats
    favour: Floats
    own: float | None = None
    """Sum of the dropped diagonal; None where every row has length one."""
    chance: Floats | None = None
    """What popularity and activity would give without any taste; None where the values are less that already."""
    lengths: Floats | None = None
    """Expected squares of the cells of rows, all people together; None where they spread like p g^2."""

    @property
    def spread(self) -> Floats:
        """h: the share of each cell in the length of a row."""
        h = self.centre * self.favour**2 if self.lengths is None else self.lengths
        return np.asarray(h / h.sum())

    @property
    def deviations(self) -> Floats:
        """d_j with e_ij of variance about d_i^2 d_j^2."""
        return np.asarray((self.noise**2 + self.people * self.spread**2) ** 0.25)

    @property
    def diagonal(self) -> Floats:
        """What the dropped diagonal is believed to be."""
        return (self.people if self.own is None else self.own) * self.spread

    @property
    def scale(self) -> Floats:
        """a_j / v_j."""
        return np.asarray(np.sqrt(self.squares) * self.centre * self.favour)

    @cached_property
    def scaled(self) -> Floats:
        """Values in units of their deviations."""
        return self.values / np.outer(self.deviations, self.deviations)

    @cached_property
    def start(self) -> tuple[Floats, Floats]:
        """The leading eigenvalues and vectors of the scaled values, from which every posterior begins."""
        return leading(self.scaled, max(1, min(MOST_AXES, len(self.values) - 2)))

    @property
    def unexplained(self) -> Floats:
        """Values less what chance gives, as far as it is there: by least squares, and never more than all of it."""
        if self.chance is None:
            return self.values
        chance = self.chance / np.outer(self.deviations, self.deviations)
        part = float((self.scaled * chance).sum()) / max(float((chance * chance).sum()), 1e-9)
        return np.asarray(self.values - min(max(part, 0.0), 1.0) * self.chance)

    def with_values(self, values: Floats, noise: float, people: float) -> Moments:
        """Others of the same cells."""
        return replace(self, values=values, noise=noise, people=people)


@dataclass(frozen=True, eq=False)
class Taste:
    """Posterior of the loadings v: means (T, k) and covariances (T, k, k)."""

    loadings: Floats
    covariances: Floats

    @property
    def n_axes(self) -> int:
        return self.loadings.shape[1]


def learn_taste(moments: Moments, strength: float, *, sweeps: int = _SWEEPS) -> Taste:
    """The posterior at a prior of this strength."""
    A, q = moments.scaled, moments.scale / moments.deviations
    values, vectors = moments.start
    prior = strength * STRONGEST / np.arange(1, len(values) + 1)
    a = vectors * np.sqrt(np.clip(values, 1e-9, prior * (q @ q)))
    blocks = np.array_split(np.arange(len(A)), max(1, min(_BLOCKS, len(A) // _BLOCK)))
    spreads = np.zeros((len(blocks), len(values), len(values)))
    for _ in range(sweeps):
        found = []
        for i, block in enumerate(blocks):
            gram = a.T @ a + spreads.sum(0) * (1 - 1 / len(A))
            found.append(_Cells.of(gram, prior, a[block], q[block] ** -2))
            a[block], spreads[i] = found[-1].means(A[block] @ a), found[-1].spread
    S = np.concatenate([cells.covariances for cells in found])
    return Taste(a / q[:, None], S / (q * q)[:, None, None])


@dataclass(frozen=True, eq=False)
class _Cells:
    r"""Posteriors of some cells: covariances S_j = (G - a_j a_j' + c_j diag(1 / prior))^-1, c_j = 1 / q_j^2.

    G is the second moment of all loadings. With diag(prior)^1/2 G diag(prior)^1/2 = U diag(D) U', found once for all
    cells, and W = diag(prior)^1/2 U,

        (G + c_j diag(1 / prior))^-1 = W diag(1 / (D + c_j)) W',

    and what a cell has in G by its own mean is taken out by the formula of Sherman and Morrison. What it has there by
    its own covariance is taken for that of an average cell: a T-th of what is small next to G.
    """

    turn: Floats
    inverse: Floats
    """1 / (D + c_j), a row for each cell."""
    own: Floats
    """diag(1 / (D + c_j)) W' a_j."""
    rest: Floats
    """1 - a_j' (G + c_j diag(1 / prior))^-1 a_j."""

    @classmethod
    def of(cls, gram: Floats, prior: Floats, a: Floats, c: Floats) -> _Cells:
        root = np.sqrt(prior)
        values, vectors = np.linalg.eigh(gram * np.outer(root, root))
        turn = root[:, None] * vectors
        inverse = 1 / (np.maximum(values, 0.0) + c[:, None])
        turned = a @ turn
        return cls(turn, inverse, turned * inverse, np.maximum(1 - (turned**2 * inverse).sum(1), 1e-9))

    def means(self, right: Floats) -> Floats:
        """S_j of each row of `right`."""
        turned = right @ self.turn
        along = (self.own * turned).sum(1) / self.rest
        return np.asarray((turned * self.inverse + self.own * along[:, None]) @ self.turn.T)

    @property
    def spread(self) -> Floats:
        """Sum of all S_j."""
        middle = np.diag(self.inverse.sum(0)) + (self.own / self.rest[:, None]).T @ self.own
        return np.asarray(self.turn @ middle @ self.turn.T)

    @property
    def covariances(self) -> Floats:
        """Every S_j."""
        own = self.own @ self.turn.T
        free = (self.turn * self.inverse[:, None, :]) @ self.turn.T
        return np.asarray(free + own[:, :, None] * (own / self.rest[:, None])[:, None, :])


def leading(A: Floats, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues, in falling order, and their vectors; the same bits on every run.

    Those of a large matrix in single precision, to four digits: sweeps that begin at rougher ones end elsewhere, and
    lists are worse.
    """
    T = len(A)
    if T <= 300 or k > T // 4:
        values, vectors = eigh(A, subset_by_index=[T - k, T - 1])
    else:
        v0 = np.random.default_rng(0).normal(size=T).astype(np.float32)
        values, vectors = eigsh(A.astype(np.float32), k=k, which="LA", tol=1e-4, v0=v0)
    order = np.argsort(-values, kind="stable")
    return values[order].astype(np.float64), vectors[:, order].astype(np.float64)


def modelled(moments: Moments, taste: Taste) -> Floats:
    """What the posterior mean says of the moments, diagonal included."""
    a = moments.scale[:, None] * taste.loadings
    return np.asarray(a @ a.T)


def moments_of_rows(products: Floats, noise: float, centre: Floats, favour: Floats, activity: Activity) -> Moments:
    """Symmetric sums of products with an empty diagonal, and what they would be without any taste."""
    chance, lengths = np.zeros(products.shape), np.full(len(centre), 1e-9)
    for rows in activity.rows(centre, favour):
        p, mean = rows.chances, rows.n * centre
        away, spread = favour * (p - mean), favour * p * (1 - p)
        weight = rows.people * rows.squared_factor
        chance += weight * (np.outer(away, away) - np.outer(spread, spread) / max(float((p * (1 - p)).sum()), 1e-9))
        lengths += weight * favour**2 * (p * (1 - mean) ** 2 + (1 - p) * mean**2)
    np.fill_diagonal(chance, 0)
    squares = activity.squares(centre, favour)
    return Moments(products, noise, activity.pairs, squares, centre, favour, chance=chance, lengths=lengths)


_MOST = 0.9
"""Of all cells: who has more is taken for one with so many."""


def moments_of_pairs(pairs: Floats, noise: float, centre: Floats, activity: Activity) -> Moments:
    """Symmetric sums of pairs with an empty diagonal, less what popularity and activity explain."""
    T = len(centre)
    expected, squares, sample, own = np.zeros((T, T)), 0.0, 0.0, 0.0
    for size, people in zip(SIZES, activity.counts, strict=True):
        if people > 0:
            n = min(float(size), _MOST * T)
            p = presence(n, centre)
            expected += people / np.sqrt(n) * np.outer(p, p)
            squares, sample, own = squares + people * n**1.5, sample + people * n, own + people * n**0.5
    np.fill_diagonal(expected, 0)
    scale = max(float(pairs.sum()), 0.0) / max(float(expected.sum()), 1e-9)
    return Moments(
        pairs - scale * expected, noise, max(sample, 1.0), max(squares, 1.0), centre, np.ones(T), max(own, 1.0)
    )
