"""Slopes and factors from noisy ratings, by evidence: the state between passes, and what one sweep makes of it.

    eta_uj = mean + z_j' W x_u + b_j . x_u + c_u . z_j + f_u . g_j

starts from the effects found in the sums (W, and the constants of b_j and c_u). Users are updated given items, items
given users, each side with a full prior covariance over its effect, slopes and factors together (`side.py`): slopes on
mask features matter where the mask tells taste, free factors where it does not, and the covariances, learned from the
noisy ratings, weigh them. Sums reach each row as one observation of its effect. One sweep is one pass (`sweep.py`);
how many there are, and of which kind, is decided in `schedule.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import ColumnStack, Turns, at_ratings
from dpsr.engine.table import zeros
from dpsr.value.design import Design
from dpsr.value.effects import EffectObservation, Effects
from dpsr.value.kernels import packed_size
from dpsr.value.priors import COEFFICIENT, EFFECT, FACTORS, SLOPES, cautious_ridge
from dpsr.value.side import Evidence, Posterior, Prior, Rows, posterior
from dpsr.value.start import Belief, effect_variances, leading_directions
from dpsr.value.sweep import CHOICE, NOISY, SYMBOL, WEIGHT, Reader, Sides, Sweep, Tally

Observations = tuple[EffectObservation, EffectObservation]
"""What the sums say about items, and about users."""

N_FACTORS = 8
SAMPLE = 500
"""Means looked at when the spread of ratings around them is set."""

_LEAST_EFFECT = 0.01
"""Of the typical variance; one that is zero could never grow."""

_RIGHT = 4.0
"""How firmly factors are believed to be right before ratings that were held out are looked at: to a half."""

_FIRST_RESIDUAL, _LEAST_RESIDUAL = 0.4, 0.003
"""Shares of the variance below which the residual is not believed to lie: before any rating was bought, and after."""


class EvidenceState:
    """The state of Stage 3: coefficients of both sides, their priors, and the residual variance."""

    def __init__(
        self, design: Design, effects: Effects, ridge: Floats, *, mean: float, variance: float, k: int
    ) -> None:
        self.design, self.variance = design, variance
        self.item_prior, self.user_prior = self._priors(effects, ridge)
        shares = effects.item_prior_variance, effects.user_prior_variance
        items, users = (Belief(share, known) for share, known in zip(shares, effects.known, strict=True))
        self.beliefs = items, users
        self.shared, self.products = design.z @ effects.weights, effects.products
        self.shared[:, 0] += mean + design.item_products.at(effects.products)
        self.b, self.c = self.shared.copy(), np.zeros((design.census.n_users, design.z.shape[1]))
        self.b[:, 0] += effects.item
        self.c[:, 0] = effects.user
        self.add_factors(k)
        self.item_rows: Rows | None = None
        counts = (
            design.item_counts @ effects.item_posterior_variance + design.user_counts @ effects.user_posterior_variance
        )
        self.mean_uncertainty = float(counts) / max(design.census.n_ratings, 1)
        _, spread, self.sample = moments_at_ratings(design.table, self.left, self.right, SAMPLE)
        self.residual = float(np.clip(variance - spread - self.mean_uncertainty, _FIRST_RESIDUAL * variance, variance))

    def _priors(self, effects: Effects, ridge: Floats) -> tuple[Prior, Prior]:
        design, variance = self.design, self.variance
        d, q = design.x.shape[1], design.z.shape[1]
        item = np.diag(np.r_[effects.item_prior_variance, np.full(d - 1, SLOPES * variance / (d - 1))])
        user = np.diag(np.r_[effects.user_prior_variance, np.full(q - 1, SLOPES * variance / (q - 1))])
        start_ridge = np.r_[ridge[0], effects.ridge[1:]]
        user_groups = np.r_[0, np.ones(d - 1, dtype=np.int64)][:, None]
        user_ridge = np.array([1e6, 1 / (COEFFICIENT[3] * variance)])
        sums: dict[str, Floats | float] = {"centre": effects.weights, "known": effects.pooled_precision}
        return (
            Prior.of(design.z, design.weight_groups, start_ridge, cautious_ridge(ridge), item, **sums),
            Prior.of(design.x, user_groups, user_ridge, cautious_ridge(user_ridge), user),
        )

    def add_factors(self, k: int) -> None:
        """Room for k factors beside what was learned without any; nothing is known about them."""
        self.k, (m, n) = k, self.design.census.shape
        # a fixed start that breaks the symmetry of the factors; while g is zero it says nothing
        self.f, self.g = 0.3 * np.random.default_rng(0).normal(size=(m, k)), np.zeros((n, k))
        self.items: Posterior | None = None
        self.item_prior.widen(np.full(k, FACTORS * self.variance / max(k, 1)))
        self.user_prior.widen(np.ones(k))

    @property
    def left(self) -> ColumnStack:
        """User vectors [x, c, f]."""
        return ColumnStack((self.design.x, self.c, self.f))

    @property
    def right(self) -> Floats:
        """Item vectors [b, z, g]."""
        return np.column_stack([self.b, self.design.z, self.g])

    @property
    def sides(self) -> Sides:
        """Both sides as a pass reads them."""
        return Sides(self.design.x, self.c, self.f, self.b, self.design.z, self.g, self.items)

    def find_effects(self, reader: Reader) -> None:
        """Start the variances of effects where pairs of noisy ratings point (`start.py`)."""
        typical, design = EFFECT * self.variance, self.design
        means, shared = (self.left, self.right), (design.x, self.shared)
        found = effect_variances(design.table, means, shared, reader, self.residual, self.beliefs, typical)
        for prior, variance in zip((self.item_prior, self.user_prior), found, strict=True):
            prior.start_effect_at(max(variance, _LEAST_EFFECT * typical))

    def find_factors(self, reader: Reader, *, compare: bool) -> float | None:
        """Start the factors where the noisy ratings point; how far that stands out of chance, if it is compared."""
        k = min(self.k, *self.design.census.shape)
        if k == 0:
            return None
        found = leading_directions(self.design.table, self.left, self.right, reader, self.residual, k, compare=compare)
        self.f[:, :k] = found.users
        return found.strength

    def factor_slope(self, reader: Reader, held_out: Turns) -> float:
        """By how much held-out ratings rise where factors say one: least squares, meeting the belief that it is one."""
        left, right = ColumnStack((self.design.x, self.c)), np.column_stack([self.b, self.design.z])
        f, g, residual = self.f, self.g, self.residual  # a pass takes what it names along, and the table must stay

        def add(block: Block, sums: Floats) -> None:
            others = at_ratings(block, left[block.users], right)
            taste = at_ratings(block, f[block.users], g)
            z, w = reader.read(block, others + taste, residual)
            w = np.where(held_out.of(block) > 0, w, 0.0)
            sums += w @ (taste * (z - others)), w @ taste**2

        along, size = self.design.table.run(add, [np.zeros(2)], reads=[CHOICE, SYMBOL]).sums[0]
        return float((along + _RIGHT) / (size + _RIGHT))

    def forget_factors(self) -> None:
        """No factors: slopes on public features alone."""
        self.k, self.f, self.g, self.items = 0, self.f[:, :0], self.g[:, :0], None
        self.item_prior.keep(self.design.x.shape[1])
        self.user_prior.keep(self.design.z.shape[1])

    def sweep(self, reader: Reader, observations: Observations, *, users: bool = True, bold: bool = False) -> float:
        """Users given items, unless `users` is off, then items given users; how far the users' update moved the means.

        Root mean square, in deviations of what is uncertain about them. A bold sweep takes the partners' factors for
        known, as alternating least squares does.
        """
        evidence, tally = Evidence.none(self.user_prior), Tally.none()
        sweep = self._pass(reader, observations[1], users=users, bold=bold)
        n, d = self.design.census.n_items, self.item_prior.dimensions
        self.item_rows = None  # there is room for one set of normal equations
        sums = [np.zeros((n, packed_size(d))), np.zeros((n, d)), tally.sums, *evidence.sums]
        rows = self.design.table.run(sweep, sums, reads=[CHOICE, SYMBOL]).rows
        if users:
            self._take_users(rows[0], evidence)
        self._solve_items(sums[0], sums[1], observations[0])
        self.sample = rows[-1][:: max(1, len(rows[-1]) // SAMPLE)]
        new = tally.residual(self.residual, self.variance, self.design.census.n_ratings, bold=bold)
        self.residual = float(np.clip(new, _LEAST_RESIDUAL * self.variance, self.variance))
        return tally.moved

    def finish(self, reader: Reader, observation: EffectObservation, released: str) -> None:
        """Users once more given the items; the mean of every rating as the column `released`, its symbol read there."""
        evidence, nothing = Evidence.none(self.user_prior), np.zeros((0, 0))
        last = self._pass(reader, observation, released=released)
        sums = [nothing, nothing, Tally.none().sums, *evidence.sums]
        rows = self.design.table.run(last, sums, reads=[CHOICE, SYMBOL], writes=[released, NOISY, WEIGHT]).rows
        self._take_users(rows[0], evidence)

    def _pass(self, reader: Reader, observation: EffectObservation, **how: Any) -> Sweep:
        priors = self.user_prior, self.item_prior.root
        return Sweep(self.sides, reader, self.residual, self.shared, *priors, observation, self.k, **how)

    @property
    def predicting(self) -> tuple[Floats, Floats]:
        """User and item vectors for ratings that are not there yet: with them, their rows have one rating more.

        A row whose ratings have the mean m is believed to lie at f + k (m - f), f what its count tells and k the share
        by which it is known. So as the count grows by one, 1 - k of the change of f is new.
        """
        design, users, items = self.design, self.user_prior, self.item_prior
        x, z = design.with_one_more
        x_more = self._unknown(design.user_counts, users) * (x - design.x)
        z_more = self._unknown(design.item_counts, items) * (z - design.z)
        b, c = self.b + z_more @ (items.centre + items.weights), self.c.copy()
        own = replace(design.item_products, features=(design.z + z_more)[:, 1:])
        b[:, 0] += own.at(self.products) - design.item_products.at(self.products)
        c[:, 0] += x_more @ users.weights[:, 0]
        return np.column_stack([design.x + x_more, c, self.f]), np.column_stack([b, design.z + z_more, self.g])

    def _unknown(self, counts: Floats, prior: Prior) -> Floats:
        """1 - k of every row, at least."""
        return 1 / (1 + counts[:, None] * prior.covariance[0, 0] / self.residual)

    def _take_users(self, mean: Floats, evidence: Evidence) -> None:
        q = self.design.z.shape[1]
        self.c, self.f = mean[:, :q], mean[:, q:]
        self.user_prior.learn_weights(evidence)
        self.user_prior.learn_covariance(evidence)

    def _solve_items(self, a: Floats, h: Floats, observation: EffectObservation) -> None:
        """All items given the users: V first, then the rows, then L."""
        rated = self.design.census.item_counts > 0
        rows = Rows(self.item_prior.root, a, h, observation.value, observation.variance, self.design.z, rated)
        evidence = Evidence.none(self.item_prior)
        self.items = posterior(rows, self.item_prior, self.k, evidence, weights_first=True)
        self.item_prior.learn_covariance(evidence)
        self.item_rows = rows
        d = self.design.x.shape[1]
        self.b, self.g = self.items.mean[:, :d] + self.shared, self.items.mean[:, d:]


def moments_at_ratings(
    table: Table, left: Floats | ColumnStack, right: Floats, sample: int
) -> tuple[float, float, Floats]:
    """Mean and variance of left_u . right_j over ratings, and some `sample` of them evenly spread."""
    step = max(1, table.census.n_ratings // sample)

    def add(block: Block, sums: Floats) -> BlockResult:
        values = at_ratings(block, left[block.users], right)
        sums += np.array([len(values), values.sum(), (values**2).sum()])
        return BlockResult(rows=(block.every(step, values),))

    answer = table.run(add, [zeros(3)])
    n, total, squares = answer.sums[0]
    mean = total / max(n, 1)
    return mean, max(squares / max(n, 1) - mean**2, 0.0), answer.rows[0]
