"""Noisy sums as linear observations of a model: values, variances, and how each sum depends on what is to be learned.

    T_j  = g sum_u p_uj eta_uj + noise      of every item, u over its raters
    T_u  = g sum_j q_uj eta_uj + noise      of every user, j over what was rated
    T_kl = g sum w_uj s_u s_j eta_uj + noise    of all ratings with public signs, by class of user and of item

with eta_uj = z_j' W x_u + l_j + user_u, l_j what is an item's own (`effects.py`), weights p, q, w by a public
division and g the slope of the window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.engine.contrasts import ContrastMap, Contrasts
from dpsr.engine.incidence import GRID, DividedIncidence, Division, RowSums, Sizes
from dpsr.value.design import Design
from dpsr.value.windows import AtMean, View

_UNKNOWN = 1e12
"""Variance of a sum nobody asked for."""


@dataclass(frozen=True, eq=False)
class PooledSums:
    """T_kl and their variances, all in one line, and the map from the model to them, the gain included.

    `of_users` are the rows' signs K, with `reach_users` how far each reaches the sums of its class; items likewise.
    """

    values: Floats
    variance: Floats
    weights: Floats
    of_users: Floats
    of_items: Floats
    reach_users: Floats
    reach_items: Floats

    @classmethod
    def of(
        cls,
        contrasts: Contrasts,
        through: ContrastMap,
        values: Floats,
        *,
        noise: float,
        spread: float,
        gain: float,
        one_slope: float,
    ) -> PooledSums:
        """`values` around the mean; `one_slope` is the typical variance of a slope of a user, or of an item.

        Slopes are no part of the model yet: what they add to a sum counts as noise.
        """
        off = one_slope * (through.user_slopes + through.item_slopes)
        return cls(
            values,
            noise + spread * through.squares + gain**2 * off,
            gain * through.weights,
            contrasts.signs(contrasts.users),
            contrasts.signs(contrasts.items),
            gain * through.by_user,
            gain * through.by_item,
        )

    def forward(self, weights: Floats, item: Floats, user: Floats) -> Floats:
        """What a model says of them."""
        from_users = (self.of_users * user[:, None]).T @ self.reach_users
        from_items = self.reach_items.T @ (self.of_items * item[:, None])
        return self.weights @ weights.ravel() + (from_users + from_items).ravel()

    def back(self, sums: Floats) -> tuple[Floats, Floats, Floats]:
        """The transpose of `forward`: to weights, items and users."""
        table = sums.reshape(self.of_users.shape[1], -1)
        items = np.einsum("jl,jl->j", self.reach_items @ table, self.of_items)
        users = np.einsum("uk,uk->u", self.reach_users @ table.T, self.of_users)
        return self.weights.T @ sums, items, users

    def precision(self, item_variance: float, user_variance: float) -> Floats:
        """Of vec(W), with effects of these variances integrated out sum by sum."""
        users = np.abs(self.of_users).T @ self.reach_users**2
        items = (self.reach_items**2).T @ np.abs(self.of_items)
        spread = self.variance + (user_variance * users + item_variance * items).ravel()
        return np.asarray(self.weights.T @ (self.weights / spread[:, None]))


class Heard(NamedTuple):
    """What one turn answered: sums of these rows, in half-widths of the scale, through this view."""

    rows: RowSums
    view: View
    items: Floats
    users: Floats


@dataclass(frozen=True, eq=False)
class NoisySums:
    """Item and user sums as linear observations of eta: values and variances, the gain, and whose weights they have.

    Variances are those around what a model says of a sum, its noise included; of that noise, which is Laplace's, the
    scales are those of the laws (zero where a sum was not asked, or is taken for a normal observation). `turns` are the
    answers, so that they can be read again.
    """

    item_values: Floats
    item_variance: Floats
    user_values: Floats
    user_variance: Floats
    item_scale: Floats
    user_scale: Floats
    gain: float
    weights: DividedIncidence
    pooled: PooledSums | None = None
    turns: tuple[Heard, ...] = ()

    @classmethod
    def unasked(cls, design: Design, weights: DividedIncidence | None = None, *, gain: float = 0.5) -> NoisySums:
        """Sums nobody asked for, or not yet: they say nothing."""
        items, users = np.zeros(design.census.n_items), np.zeros(design.census.n_users)
        weights = DividedIncidence(design.table, halves(design)) if weights is None else weights
        return cls(items, items + _UNKNOWN, users, users + _UNKNOWN, items, users, gain, weights)

    def with_turn(self, heard: Heard, at_mean: AtMean, *, noise: float, sizes: Sizes) -> NoisySums:
        """These and the sums of one more turn, with this variance of their noise.

        They are scaled so that all have one gain.
        """
        scale, i, u = self.gain / heard.view.gain, heard.rows.items, heard.rows.users
        law, spread = np.sqrt(noise / 2) * scale, heard.view.spread
        return replace(
            self.read(heard, at_mean),
            item_variance=_put(self.item_variance, i, scale**2 * (noise + spread * sizes.item_square[i])),
            user_variance=_put(self.user_variance, u, scale**2 * (noise + spread * sizes.user_square[u])),
            item_scale=_put(self.item_scale, i, law),
            user_scale=_put(self.user_scale, u, law),
            turns=(*self.turns, heard),
        )

    def read(self, heard: Heard, at_mean: AtMean) -> NoisySums:
        """With the sums of a turn read as this much above what they would be at the mean."""
        scale, i, u = self.gain / heard.view.gain, heard.rows.items, heard.rows.users
        return replace(
            self,
            item_values=_put(self.item_values, i, scale * (heard.items - at_mean.items[i])),
            user_values=_put(self.user_values, u, scale * (heard.users - at_mean.users[u])),
        )


def _put(values: Floats, at: npt.NDArray[np.bool_], new: Floats | float) -> Floats:
    values = values.copy()
    values[at] = new
    return values


def halves(design: Design) -> Division:
    """All ratings in the sums, with half their weight on either side."""
    users, items = (np.zeros(n, dtype=np.uint8) for n in design.census.shape)
    return Division(items, users, np.array([[GRID // 2]]), np.array([[0]]), 0)
