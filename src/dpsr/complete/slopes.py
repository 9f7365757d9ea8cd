"""Stage 3 of the default pipeline: slopes and factors from noisy ratings, by evidence.

    eta_uj = mean + z_j' W x_u + b_j . x_u + c_u . z_j + f_u . g_j

starts from the effects Stage 2 found in the sums (W, and the constants of b_j and c_u). Users are updated given items,
items given users, each side with a full prior covariance over its effect, slopes and factors together (`side.py`):
slopes on mask features matter where the mask tells taste, free factors where it does not, and the covariances, learned
from the noisy ratings, weigh them. Sums reach each row as one message about its effect.

One sweep is one pass over blocks of users (`sweep.py`); this module holds what lives between the passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.complete.kernels import packed_size
from dpsr.complete.pairs import Belief, effect_variances
from dpsr.complete.side import Evidence, Posterior, Prior, Rows, add_evidence_about_weights, posterior
from dpsr.complete.start import leading_users
from dpsr.complete.sweep import Sides, Sweep, Tally, held_out
from dpsr.complete.symbols import CHOICE, SYMBOL, Reader
from dpsr.design import Design
from dpsr.design.priors import COEFFICIENT, EFFECT, FACTORS, SLOPES, doubted_ridge
from dpsr.engine import Block, Made
from dpsr.engine.products import Beside, at_ratings, moments_at_ratings
from dpsr.types.effects import Effects, Message
from dpsr.types.levels import LevelFamily

Floats = npt.NDArray[np.float64]

Tables = Mapping[int, Floats]
"""P[symbol | level] of every channel in use."""

N_FACTORS = 8
SAMPLE = 500
"""Means looked at when the spread of ratings around them is set."""

_LEAST_EFFECT = 0.01
"""Of the typical variance; one that is zero could never grow."""

_FIRST_RESIDUAL, _LEAST_RESIDUAL = 0.4, 0.003
"""Shares of the variance below which the residual is not believed to lie: before any rating was bought, and after."""


class Slopes:
    """The state of Stage 3: coefficients of both sides, their priors, and the residual variance."""

    def __init__(
        self, design: Design, effects: Effects, ridge: Floats, *, mean: float, variance: float, k: int
    ) -> None:
        self.design, self.variance, self.k = design, variance, k
        self.item_prior, self.user_prior = self._priors(effects, ridge)
        shares = effects.item_share, effects.user_share
        items, users = (Belief(share, known) for share, known in zip(shares, effects.known, strict=True))
        self.beliefs = items, users
        self.shared = design.z @ effects.weights
        self.shared[:, 0] += mean
        (m, n), q = design.census.shape, design.z.shape[1]
        self.b, self.g = self.shared.copy(), np.zeros((n, k))
        self.b[:, 0] += effects.item
        # a fixed start that breaks the symmetry of the factors; while g is zero it says nothing
        self.c, self.f = np.zeros((m, q)), 0.3 * np.random.default_rng(0).normal(size=(m, k))
        self.c[:, 0] = effects.user
        self.user_variance: npt.NDArray[np.float32] | None = None
        self.items: Posterior | None = None
        counts = design.item_counts @ effects.item_doubt + design.user_counts @ effects.user_doubt
        self.doubt = float(counts) / max(design.census.n_ratings, 1)
        _, spread, self.sample = moments_at_ratings(design.table, self.left, self.right, SAMPLE)
        self.residual = float(np.clip(variance - spread - self.doubt, _FIRST_RESIDUAL * variance, variance))

    def _priors(self, effects: Effects, ridge: Floats) -> tuple[Prior, Prior]:
        design, variance, k = self.design, self.variance, self.k
        d, q = design.x.shape[1], design.z.shape[1]
        factors = np.full(k, FACTORS * variance / max(k, 1))
        item = np.diag(np.r_[effects.item_share, np.full(d - 1, SLOPES * variance / (d - 1)), factors])
        user = np.diag(np.r_[effects.user_share, np.full(q - 1, SLOPES * variance / (q - 1)), np.ones(k)])
        start_ridge = np.r_[ridge[0], effects.ridge[1:]]
        user_groups = np.r_[0, np.ones(d - 1, dtype=np.int64)][:, None]
        user_ridge = np.array([1e6, 1 / (COEFFICIENT[3] * variance)])
        return (
            Prior.of(design.z, design.weight_groups, start_ridge, doubted_ridge(ridge), item),
            Prior.of(design.x, user_groups, user_ridge, doubted_ridge(user_ridge), user),
        )

    @property
    def left(self) -> Beside:
        """User vectors [x, c, f]."""
        return Beside((self.design.x, self.c, self.f))

    @property
    def right(self) -> Floats:
        """Item vectors [b, z, g]."""
        return np.column_stack([self.b, self.design.z, self.g])

    @property
    def sides(self) -> Sides:
        """Both sides as a pass reads them."""
        return Sides(self.design.x, self.c, self.f, self.user_variance, self.b, self.design.z, self.g, self.items)

    def fork(self) -> Slopes:
        """A copy that learns on its own; the design is shared."""
        other = copy(self)
        other.item_prior, other.user_prior = deepcopy(self.item_prior), deepcopy(self.user_prior)
        return other

    def find_effects(self, tables: Tables, family: LevelFamily) -> None:
        """Start the variances of effects where pairs of noisy ratings point (`pairs.py`)."""
        typical, reader, design = EFFECT * self.variance, Reader.of(tables, family), self.design
        means, shared = (self.left, self.right), (design.x, self.shared)
        found = effect_variances(design.table, means, shared, reader, self.residual, self.beliefs, typical)
        for prior, variance in zip((self.item_prior, self.user_prior), found, strict=True):
            prior.start_effect_at(max(variance, _LEAST_EFFECT * typical))

    def find_factors(self, tables: Tables, family: LevelFamily, *, trial: bool = False) -> None:
        """Start the factors where the noisy ratings point (`start.py`)."""
        k = min(self.k, *self.design.census.shape)
        if k:
            reader = Reader.of(tables, family)
            self.f[:, :k] = leading_users(
                self.design.table, self.left, self.right, reader, self.residual, k, trial=trial
            )

    def expect_factors(self) -> None:
        """Take the factors at their prior size, which leaves less to the residual."""
        self.residual = max(self.residual - FACTORS * self.variance, _FIRST_RESIDUAL * self.variance)

    def held_out(self, tables: Tables, family: LevelFamily) -> Floats:
        """How likely the held-out symbols were, in logs."""
        left, right, reader = self.left, self.right, Reader.of(tables, family)

        def look(block: Block) -> Made:
            eta = at_ratings(block, left[block.users], right)
            return Made(rows=(reader.log_chances(block, eta, held_out(block)),))

        return self.design.table.run(look, reads=[CHOICE, SYMBOL]).rows[0]

    def sweep(
        self,
        tables: Tables,
        family: LevelFamily,
        messages: tuple[Message, Message],
        *,
        users: bool = True,
        bold: bool = False,
        trial: bool = False,
    ) -> float:
        """Users given items, unless `users` is off, then items given users; how far the users' update moved the means.

        In residual deviations, root mean square. A bold sweep takes the partners' factors for known, as alternating
        least squares does.
        """
        evidence, tally = Evidence.none(self.user_prior), Tally.none()
        sweep = self._pass(tables, family, messages[1], users=users, bold=bold, trial=trial)
        n, d = self.design.census.n_items, self.item_prior.dimensions
        sums = [np.zeros((n, packed_size(d))), np.zeros((n, d)), tally.sums, *evidence.sums]
        rows = self.design.table.run(sweep, sums, reads=[CHOICE, SYMBOL]).rows
        if users:
            self._take_users(rows[0], rows[1], evidence)
        self._solve_items(sums[0], sums[1], messages[0])
        self.sample = rows[-1][:: max(1, len(rows[-1]) // SAMPLE)]
        self.residual = float(np.clip(self.residual * tally.ratio, _LEAST_RESIDUAL * self.variance, self.variance))
        return tally.moved

    def finish(self, tables: Tables, family: LevelFamily, message: Message, released: str) -> None:
        """Users once more given the items, and the mean of every rating as the column `released`."""
        evidence, nothing = Evidence.none(self.user_prior), np.zeros((0, 0))
        last = self._pass(tables, family, message, released=released)
        sums = [nothing, nothing, Tally.none().sums, *evidence.sums]
        rows = self.design.table.run(last, sums, reads=[CHOICE, SYMBOL], writes=[released]).rows
        self._take_users(rows[0], rows[1], evidence)

    def _pass(self, tables: Tables, family: LevelFamily, message: Message, **how: Any) -> Sweep:
        reader = Reader.of(tables, family)
        return Sweep(self.sides, reader, self.residual, self.shared, self.user_prior, message, self.k, **how)

    def release_means(self, released: str) -> None:
        """The means themselves as the column `released`, where no rating was bought."""
        left, right = self.left, self.right

        def write(block: Block) -> Made:
            return Made({released: at_ratings(block, left[block.users], right)})

        self.design.table.run(write, writes=[released])

    def _take_users(self, mean: Floats, variance: npt.NDArray[np.float32], evidence: Evidence) -> None:
        q = self.design.z.shape[1]
        self.c, self.f, self.user_variance = mean[:, :q], mean[:, q:], variance
        self.user_prior.learn_weights(evidence)
        self.user_prior.learn_covariance(evidence)

    def _solve_items(self, a: Floats, h: Floats, message: Message) -> None:
        """All items given the users: V first, then the rows, then L."""
        rows = Rows(a, h, message.value, message.variance, self.design.z, self.design.census.item_counts > 0)
        about = Evidence.none(self.item_prior)
        add_evidence_about_weights(rows, self.item_prior, about)
        self.item_prior.learn_weights(about)
        evidence = Evidence.none(self.item_prior)
        self.items = posterior(rows, self.item_prior, self.k, evidence, about_weights=False)
        self.item_prior.learn_covariance(evidence)
        d = self.design.x.shape[1]
        self.b, self.g = self.items.mean[:, :d] + self.shared, self.items.mean[:, d:]
