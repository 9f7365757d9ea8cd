"""Stage 3 of the default pipeline: slopes and factors from noisy ratings, by evidence.

    eta_uj = mean + z_j' W x_u + b_j . x_u + c_u . z_j + f_u . g_j

starts from the effects Stage 2 found in the sums (W, and the constants of b_j and c_u). Items are updated given users,
users given items, each side with a full prior covariance over its effect, slopes and factors together (`side.py`):
slopes on mask features matter where the mask tells taste, free factors where it does not, and the covariances, learned
from the noisy ratings, weigh them. Sums reach each row as one message about its effect.
"""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np
import numpy.typing as npt

from dpsr.complete.side import Entries, Partner, Prior, update_side
from dpsr.complete.symbols import Symbols
from dpsr.design import Design
from dpsr.design.embeddings import degree_scales
from dpsr.design.priors import COEFFICIENT, FACTORS, SLOPES, doubted_ridge
from dpsr.linalg import LowRankPlusSparse, truncated_svd
from dpsr.types.effects import Effects, Message
from dpsr.types.levels import LevelFamily

Floats = npt.NDArray[np.float64]

N_FACTORS = 8
_FIRST_RESIDUAL, _LEAST_RESIDUAL = 0.4, 0.003
"""Shares of the variance below which the residual is not believed to lie: before any rating was bought, and after."""


class Slopes:
    """The state of Stage 3: coefficients of both sides, their priors, and the residual variance."""

    def __init__(
        self, design: Design, effects: Effects, ridge: Floats, *, mean: float, variance: float, k: int
    ) -> None:
        self.design, self.variance, self.k = design, variance, k
        d, q = design.x.shape[1], design.z.shape[1]
        item = np.diag(np.r_[effects.item_share, np.full(d - 1, SLOPES * variance / (d - 1)), self._share(k)])
        user = np.diag(np.r_[effects.user_share, np.full(q - 1, SLOPES * variance / (q - 1)), np.ones(k)])
        start_ridge = np.r_[ridge[0], effects.ridge[1:]]
        self.item_prior = Prior.of(design.z, design.weight_groups, start_ridge, doubted_ridge(ridge), item)
        user_groups = np.r_[0, np.ones(d - 1, dtype=np.int64)][:, None]
        user_ridge = np.array([1e6, 1 / (COEFFICIENT[3] * variance)])
        self.user_prior = Prior.of(design.x, user_groups, user_ridge, doubted_ridge(user_ridge), user)
        self.shared = design.z @ effects.weights
        self.shared[:, 0] += mean
        self.b, self.g = self.shared.copy(), np.zeros((design.mask.n_items, k))
        self.b[:, 0] += effects.item
        self.c = np.zeros((design.mask.n_users, q))
        self.c[:, 0] = effects.user
        # a fixed start that breaks the symmetry of the factors; while g is zero it says nothing
        self.f = 0.3 * np.random.default_rng(0).normal(size=(design.mask.n_users, k))
        self._factor_covariance: npt.NDArray[np.float32] | None = None
        self._fitted: Floats | None = None
        self.doubt = float(np.mean(effects.item_doubt[design.mask.items] + effects.user_doubt[design.mask.users]))
        explained = float(self.fitted.var()) + self.doubt
        self.residual = float(np.clip(variance - explained, _FIRST_RESIDUAL * variance, variance))

    def _share(self, k: int) -> Floats:
        return np.full(k, FACTORS * self.variance / max(k, 1))

    @property
    def left(self) -> Floats:
        """User vectors [x, c, f]."""
        return np.column_stack([self.design.x, self.c, self.f])

    @property
    def right(self) -> Floats:
        """Item vectors [b, z, g]."""
        return np.column_stack([self.b, self.design.z, self.g])

    @property
    def fitted(self) -> Floats:
        """eta at every rating."""
        if self._fitted is None:
            self._fitted = self.design.at_ratings(self.left, self.right)
        return self._fitted

    def fork(self) -> Slopes:
        """A copy that learns on its own; the design is shared."""
        other = copy(self)
        other.item_prior, other.user_prior = deepcopy(self.item_prior), deepcopy(self.user_prior)
        return other

    def find_factors(self, symbols: Symbols, family: LevelFamily) -> None:
        """Start the factors where the noisy ratings point: leading directions of what the means leave unexplained.

        The residuals, weighted and scaled by degree so that heavy rows do not drown the others, on the observed cells.
        """
        mask = self.design.mask
        k = min(self.k, min(mask.shape))
        if not k:
            return
        z, w = symbols.read(family, self.fitted, self.residual)
        left, right = degree_scales(mask.user_counts), degree_scales(mask.item_counts)
        values = w * (z - self.fitted) * np.repeat(left, mask.user_counts) * right[mask.items]
        nothing = np.zeros((mask.n_users, 1)), np.zeros((mask.n_items, 1))
        U, _, _ = truncated_svd(LowRankPlusSparse(*nothing, self.design.pattern, values), k, tol=1e-2)
        size = np.sqrt(np.mean(U**2, axis=0))
        self.f[:, :k] = np.clip(U / np.where(size > 0, size, 1.0), -3, 3)

    def sweep(
        self, symbols: Symbols, family: LevelFamily, messages: tuple[Message, Message], *, bold: bool = False
    ) -> float:
        """Items given users, then users given items; how far the means moved, in residual deviations.

        A bold sweep takes the partners' factors for known, as alternating least squares does.
        """
        design, k, before = self.design, self.k, self.fitted
        z, w = symbols.read(family, before, self.residual)
        pattern = design.pattern
        fixed = design.at_ratings(np.column_stack([design.x, self.c]), np.column_stack([self.shared, design.z]))
        users = Partner(np.column_stack([design.x, self.f]), k, None if bold else self._factor_covariance, design.z)
        by_item = Entries(pattern.column_indptr, pattern.rows)
        places = pattern.places
        items = update_side(by_item, (z - fixed)[places], w[places], users, self.item_prior, messages[0])
        d, q = design.x.shape[1], design.z.shape[1]
        self.b, self.g = items.mean[:, :d] + self.shared, items.mean[:, d:]
        partner = Partner(np.column_stack([design.z, self.g]), k, None if bold else items.factor_covariance, design.x)
        by_user = Entries(design.mask.indptr, design.mask.items)
        rest = z - design.at_ratings(design.x, self.b)
        answer = update_side(by_user, rest, w, partner, self.user_prior, messages[1])
        self.c, self.f = answer.mean[:, :q], answer.mean[:, q:]
        self._factor_covariance, self._fitted = answer.factor_covariance, None
        doubt = design.at_ratings(answer.variance, partner.x**2)
        doubt += design.at_ratings(np.column_stack([design.x, self.f]) ** 2, items.variance)
        moved = float(np.sqrt(np.mean((self.fitted - before) ** 2) / self.residual))
        self._learn_residual(symbols, family, doubt)
        return moved

    def _learn_residual(self, symbols: Symbols, family: LevelFamily, doubt: Floats) -> None:
        """v from the scores: E[((z - m) w)^2] = w - w^2 doubt for a mean fitted to the same data."""
        z, w = symbols.read(family, self.fitted, self.residual)
        spare = np.maximum(w - w**2 * np.minimum(doubt, 0.9 / w), 1e-12)
        ratio = float(np.sum(((z - self.fitted) * w) ** 2) / spare.sum())
        self.residual = float(np.clip(self.residual * ratio, _LEAST_RESIDUAL * self.variance, self.variance))
