"""Slopes and factors from noisy ratings, by evidence: the state between passes, and how it is learned.

    eta_uj = mean + z_j' W x_u + b_j . x_u + c_u . z_j + f_u . g_j

starts from the effects found in the sums (W, and the constants of b_j and c_u). Users are updated given items, items
given users, each side with a full prior covariance over its effect, slopes and factors together (`side.py`): slopes on
mask features matter where the mask tells taste, free factors where it does not, and the covariances, learned from the
noisy ratings, weigh them. Sums reach each row as one observation of its effect. One sweep is one pass (`sweep.py`).

**Which start, how many sweeps.** Averaging over uncertain factors shrinks them, and where noise hides them it may
shrink them away before they can show: variational inference has several fixed points there, and the start decides on
one. So there are two starts,

    cautious    what is not explained yet is residual: factors must show
    bold        factors are taken for known, as alternating least squares does

and noisy ratings that were held out choose between them after a few sweeps; the chosen one learns on with all ratings.
Where no direction stands out of what random signs give (`start.py`) there is no taste to hide, and on large sets rows
are well known: there the cautious start is the only one.

Sweeps end when the means move by a small part of their own posterior deviation: what they may be off by anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.engine import Block, BlockResult
from dpsr.engine.incidence import ColumnStack, at_ratings, moments_at_ratings
from dpsr.value.design import Design
from dpsr.value.effects import EffectObservation, Effects
from dpsr.value.kernels import packed_size
from dpsr.value.levels import LevelFamily, with_variance
from dpsr.value.priors import COEFFICIENT, EFFECT, FACTORS, SLOPES, doubted_ridge
from dpsr.value.side import Evidence, Posterior, Prior, Rows, posterior
from dpsr.value.start import Belief, effect_variances, leading_directions
from dpsr.value.sweep import CHOICE, NOISY, SYMBOL, WEIGHT, Reader, Sides, Sweep, Tally, held_out

Tables = Mapping[int, Floats]
"""P[symbol | level] of every channel in use."""

N_FACTORS = 8
SAMPLE = 500
"""Means looked at when the spread of ratings around them is set."""

_LEAST_EFFECT = 0.01
"""Of the typical variance; one that is zero could never grow."""

_FIRST_RESIDUAL, _LEAST_RESIDUAL = 0.4, 0.003
"""Shares of the variance below which the residual is not believed to lie: before any rating was bought, and after."""


class EvidenceState:
    """The state of Stage 3: coefficients of both sides, their priors, and the residual variance."""

    def __init__(
        self, design: Design, effects: Effects, ridge: Floats, *, mean: float, variance: float, k: int
    ) -> None:
        self.design, self.variance, self.k = design, variance, k
        self.item_prior, self.user_prior = self._priors(effects, ridge)
        shares = effects.item_prior_variance, effects.user_prior_variance
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
        self.item_rows: Rows | None = None
        counts = (
            design.item_counts @ effects.item_posterior_variance + design.user_counts @ effects.user_posterior_variance
        )
        self.mean_uncertainty = float(counts) / max(design.census.n_ratings, 1)
        _, spread, self.sample = moments_at_ratings(design.table, self.left, self.right, SAMPLE)
        self.residual = float(np.clip(variance - spread - self.mean_uncertainty, _FIRST_RESIDUAL * variance, variance))

    def _priors(self, effects: Effects, ridge: Floats) -> tuple[Prior, Prior]:
        design, variance, k = self.design, self.variance, self.k
        d, q = design.x.shape[1], design.z.shape[1]
        factors = np.full(k, FACTORS * variance / max(k, 1))
        item = np.diag(np.r_[effects.item_prior_variance, np.full(d - 1, SLOPES * variance / (d - 1)), factors])
        user = np.diag(np.r_[effects.user_prior_variance, np.full(q - 1, SLOPES * variance / (q - 1)), np.ones(k)])
        start_ridge = np.r_[ridge[0], effects.ridge[1:]]
        user_groups = np.r_[0, np.ones(d - 1, dtype=np.int64)][:, None]
        user_ridge = np.array([1e6, 1 / (COEFFICIENT[3] * variance)])
        return (
            Prior.of(design.z, design.weight_groups, start_ridge, doubted_ridge(ridge), item),
            Prior.of(design.x, user_groups, user_ridge, doubted_ridge(user_ridge), user),
        )

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
        return Sides(self.design.x, self.c, self.f, self.user_variance, self.b, self.design.z, self.g, self.items)

    def fork(self) -> EvidenceState:
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

    def find_factors(self, tables: Tables, family: LevelFamily, *, trial: bool = False, compare: bool = True) -> bool:
        """Start the factors where the noisy ratings point (`start.py`); whether any direction stands out of chance.

        Unless they are to be compared, nobody knows.
        """
        k = min(self.k, *self.design.census.shape)
        if k == 0:
            return False
        reader = Reader.of(tables, family)
        found = leading_directions(
            self.design.table, self.left, self.right, reader, self.residual, k, trial=trial, compare=compare
        )
        self.f[:, :k] = found.users
        return found.strength is not None and found.strength > _STANDS_OUT

    def held_out(self, tables: Tables, family: LevelFamily) -> Floats:
        """How likely the held-out symbols were, in logs."""
        left, right, reader = self.left, self.right, Reader.of(tables, family)

        def look(block: Block) -> BlockResult:
            eta = at_ratings(block, left[block.users], right)
            return BlockResult(rows=(reader.log_chances(block, eta, held_out(block)),))

        return self.design.table.run(look, reads=[CHOICE, SYMBOL]).rows[0]

    def sweep(
        self,
        tables: Tables,
        family: LevelFamily,
        observations: tuple[EffectObservation, EffectObservation],
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
        sweep = self._pass(tables, family, observations[1], users=users, bold=bold, trial=trial)
        n, d = self.design.census.n_items, self.item_prior.dimensions
        self.item_rows = None  # there is room for one set of normal equations
        sums = [np.zeros((n, packed_size(d))), np.zeros((n, d)), tally.sums, *evidence.sums]
        rows = self.design.table.run(sweep, sums, reads=[CHOICE, SYMBOL]).rows
        if users:
            self._take_users(rows[0], rows[1], evidence)
        self._solve_items(sums[0], sums[1], observations[0])
        self.sample = rows[-1][:: max(1, len(rows[-1]) // SAMPLE)]
        self.residual = float(np.clip(self.residual * tally.ratio, _LEAST_RESIDUAL * self.variance, self.variance))
        return tally.moved

    def finish(self, tables: Tables, family: LevelFamily, observation: EffectObservation, released: str) -> None:
        """Users once more given the items; the mean of every rating as the column `released`, its symbol read there."""
        evidence, nothing = Evidence.none(self.user_prior), np.zeros((0, 0))
        last = self._pass(tables, family, observation, released=released)
        sums = [nothing, nothing, Tally.none().sums, *evidence.sums]
        rows = self.design.table.run(last, sums, reads=[CHOICE, SYMBOL], writes=[released, NOISY, WEIGHT]).rows
        self._take_users(rows[0], rows[1], evidence)

    def _pass(self, tables: Tables, family: LevelFamily, observation: EffectObservation, **how: Any) -> Sweep:
        reader = Reader.of(tables, family)
        priors = self.user_prior, self.item_prior.root
        return Sweep(self.sides, reader, self.residual, self.shared, *priors, observation, self.k, **how)

    def release_means(self, released: str) -> None:
        """The means themselves as the column `released`, where no rating was bought."""
        left, right = self.left, self.right

        def write(block: Block) -> BlockResult:
            return BlockResult({released: at_ratings(block, left[block.users], right)})

        self.design.table.run(write, writes=[released])

    def _take_users(self, mean: Floats, variance: npt.NDArray[np.float32], evidence: Evidence) -> None:
        q = self.design.z.shape[1]
        self.c, self.f, self.user_variance = mean[:, :q], mean[:, q:], variance
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


_SWEEPS, _STABLE = 8, 0.04
"""Sweeps at most, and how far the means may still move, in deviations of what is uncertain about them: a thousandth of
the error that noise leaves."""

_BOLD_SWEEPS, _LEAST_BOLD, _STALLED = 60, 4, 0.96

_TRIAL, _BOLD_TRIAL, _AFTER_BOLD = 1, 3, 2
"""Sweeps after which starts are compared, beside a first one of items that they share: of the cautious one; of the bold
one, and then as the cautious one learns."""

_STANDS_OUT = 1.03
"""Strength of directions from which on a bold start is tried; chance alone moves it by less than a hundredth."""

TRIAL_RATINGS = 20_000
"""The most ratings with which two starts are tried: on more, rows are known well enough for caution to find what there
is (decision 40)."""


def learn_from_symbols(
    state: EvidenceState,
    tables: Tables,
    y: Floats,
    log_base: Floats,
    observations: tuple[EffectObservation, EffectObservation],
    released: str,
    *,
    several_starts: bool = True,
    effects_from_pairs: bool = True,
) -> EvidenceState:
    """Run the whole stage; the mean of every rating becomes the column `released`.

    `tables` are P[symbol | level] of every channel in use, `y` and `log_base` the levels and how they are used,
    `observations` what the sums say about items and about users. The two switches are for ablations.
    """
    starts = Starts(tables, y, log_base, observations)
    several = several_starts and state.design.census.n_ratings <= TRIAL_RATINGS
    if effects_from_pairs:
        state.find_effects(tables, starts.family(state))
    if state.find_factors(tables, starts.family(state), trial=several, compare=several):
        state = starts.from_better_start(state)
    else:
        starts.sweep_until_stable(state, begin=True)
    state.finish(tables, starts.family(state), observations[1], released)
    return state


@dataclass(frozen=True)
class Starts:
    """How a state is learned from each start, and which is chosen; the fields are what all starts share."""

    tables: Tables
    y: Floats
    log_base: Floats
    observations: tuple[EffectObservation, EffectObservation]

    def family(self, state: EvidenceState) -> LevelFamily:
        """Ratings around their means as a state sees them."""
        return with_variance(self.y, self.log_base, state.residual, state.sample)

    def from_better_start(self, state: EvidenceState) -> EvidenceState:
        """Both starts learn a little without the ratings held out; the likelier one learns on with them."""
        self._sweep(state, 1, begin=True, trial=True)  # users know nothing yet: the same for both
        cautious, bold = state.fork(), state.fork()
        self._sweep(cautious, _TRIAL, trial=True)
        self._sweep(bold, _BOLD_TRIAL, bold=True, trial=True)
        self._sweep(bold, _AFTER_BOLD, trial=True)
        better = self.likelier(cautious, bold)
        if better is bold:
            self._take_for_known(better)
            self._sweep(better, _SWEEPS)  # all of them: the residual variance has fallen too far and has to come back
        else:
            self.sweep_until_stable(better, _SWEEPS - _TRIAL - 1)
        return better

    def _take_for_known(self, state: EvidenceState) -> None:
        """Bold sweeps, two by two, as long as each pair leaves clearly less unexplained."""
        before = np.inf
        for done in range(2, _BOLD_SWEEPS + 1, 2):
            self._sweep(state, 2, bold=True)
            if done >= _LEAST_BOLD and state.residual > _STALLED * before:
                break
            before = state.residual

    def sweep_until_stable(self, state: EvidenceState, most: int = _SWEEPS, *, begin: bool = False) -> None:
        """Sweep until the means are stable; the spread of ratings around them is learned on the way."""
        self._sweep(state, most, begin=begin, enough=_STABLE)

    def _sweep(self, state: EvidenceState, most: int, *, begin: bool = False, enough: float = 0.0, **how: bool) -> None:
        """At most so many sweeps, until one moves the means by less than `enough`.

        At the beginning items come first, because users know nothing yet about their factors. The spread of ratings
        around their means is looked at every second time.
        """
        for sweep in range(most):
            if sweep % 2 == 0:
                now = self.family(state)
            moved = state.sweep(self.tables, now, self.observations, users=sweep > 0 or not begin, **how)
            if moved < enough:
                break

    def likelier(self, cautious: EvidenceState, bold: EvidenceState) -> EvidenceState:
        """The one under which held-out symbols are more likely."""
        family = self.family(cautious)  # one spread for both, because the bold one knows least how far it is off
        gain = bold.held_out(self.tables, family) - cautious.held_out(self.tables, family)
        return bold if gain.sum() > 0 else cautious
