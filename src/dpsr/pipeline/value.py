"""The default pipeline: three questions to the vault, then inference on the answers.

    1. a noisy histogram of levels           how the scale is used, and the mean
    2. noisy windowed item and user sums     weights of public features, item and user effects     (`value.effects`)
    3. one channel symbol for some ratings   slopes and factors, by evidence                       (`value.evidence`)

A public division (`value.allocation`) says which ratings are asked for a symbol; the others spend all they have on the
sums. On so little budget that the mean alone is worth buying, one noisy sum of all ratings is the only question. Each
question depends on the public mask and on earlier answers alone, so what a rating pays for them adds up to epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.certify.amounts import check_epsilon
from dpsr.certify.certificate import ChargeReference
from dpsr.engine import Block, BlockResult, MemoryTable, Table
from dpsr.engine.division import DividedIncidence
from dpsr.engine.incidence import at_ratings
from dpsr.engine.raw import InteractionTable, RawTable, raw_table
from dpsr.linalg.compiled import one_blas_thread
from dpsr.people import cells
from dpsr.pipeline.compiling import compile_once
from dpsr.pipeline.estimator import PrivateRecommender, announce, checked_ratings
from dpsr.pipeline.likes import check_likes, learn_likes
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.people import check_unit, declared_items, learn_people, learn_ratings
from dpsr.privacy.channels import optimal_channel
from dpsr.privacy.vault import Vault
from dpsr.privacy.vault.journal import Journal
from dpsr.privacy.vault.people import PeopleVault, RatingVault
from dpsr.privacy.vault.people.likes_vault import PeopleLikesVault, SingleLikesVault
from dpsr.release import Contents, Release
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.types import Mask, Model, NoisyRatings, Scale
from dpsr.types.catalogue import Catalogue
from dpsr.types.mask import Ids
from dpsr.types.raw import RawInteractions, RawRatings
from dpsr.value import sweep
from dpsr.value.allocation import Allocation, Components, Forecast, allocate, forecast
from dpsr.value.assembly import assemble
from dpsr.value.design import Design
from dpsr.value.effects import NoisySums, learn_effects, own_observations
from dpsr.value.evidence import N_FACTORS, EvidenceState
from dpsr.value.learning import learn_from_symbols
from dpsr.value.levels import (
    GRID,
    LevelFamily,
    Usage,
    choose_window,
    level_bins,
    mean_usage,
    scale_usage,
    tabulate,
    window_moments,
    with_variance,
)
from dpsr.value.personal import personal_prior
from dpsr.value.priors import EFFECT, ridge
from dpsr.value.sweep import CHOICE, NOISY, SYMBOL, WEIGHT

RELEASED = "released"
"""The column of private ratings that the pipeline ends with."""

_CHANNEL_EVERY = 3
"""Channels are built for every third mean of the grid, a tenth of a half-width apart: at most twenty a fit."""


class DPSR(PrivateRecommender):
    """Differentially private sparse reconstruction.

    Args:
        epsilon: The privacy budget: smaller is more private. Common choices are 0.5 to 3.
        unit: What is protected. "value": the value of every single rating, while who rated what is public and the
            release holds a row for every rating. "rating": that a rating exists, with its value. "user": every whole
            person with all their ratings. At the last two the release holds the item side and nothing about anybody;
            `personalise` then predicts for people from their own ratings.
        delta: The chance that the promise may fail, for "rating" and "user", where it is needed: below one over the
            number of people, for example 1e-6. At "value" none is taken: pure noise is the smaller one there.
        items: For "rating" and "user": the public list of items, if there is one (ids, or a `Catalogue`). Without it
            only items that many people rated are named.
        random_state: A seed, for experiments: the result is marked NOT PRIVATE.

    `DPSR.paper(...)` is the paper's own pipeline.

    >>> model = DPSR(epsilon=1.0, unit="user", delta=1e-6).fit(ratings)                     # doctest: +SKIP
    >>> model.personalise(ratings).recommend("ann", n=10)                                   # doctest: +SKIP
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        unit: str = "value",
        delta: float | None = None,
        items: Ids | Catalogue | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.unit = unit
        self.delta = delta
        self.items = items
        self.random_state = random_state

    @staticmethod
    def paper(epsilon: float = 1.0, **settings: Any) -> PaperDPSR:
        """The paper's three stages; see `PaperDPSR` for the settings."""
        return PaperDPSR(epsilon, **settings)

    @staticmethod
    def plan(
        mask: Mask, scale: Scale, epsilons: Sequence[float], components: Components | None = None
    ) -> list[Forecast]:
        """The accuracy to expect at each epsilon, before anything is spent: reads the mask and no values."""
        return [forecast(mask, scale, epsilon, components) for epsilon in epsilons]

    charged_as = "default"

    def checked(self, ratings: object) -> RawRatings | RawInteractions:
        """Ratings, or interactions at a unit that can protect them."""
        if not isinstance(ratings, RawInteractions):
            return checked_ratings(ratings)
        check_likes(self.unit, self.epsilon, self.delta)
        return ratings

    def fit_ratings(self, ratings: RawRatings | RawInteractions, *, charge: ChargeReference | None = None) -> Self:
        """Spend the budget on rows in memory; `charge` is the entry of a ledger that paid."""
        contents = self.fit_table(raw_table(ratings), charge=charge)
        if isinstance(contents, ItemRelease | LikesRelease):
            self.release_ = contents
            return self
        table = cast(MemoryTable, contents.table)
        noisy = None if contents.noisy is None else NoisyRatings(*(table[column] for column in contents.noisy))
        self.release_ = Release(
            contents.model, table[RELEASED], contents.certificate, contents.method, contents.settings, noisy
        )
        return self

    def fit_table(
        self,
        ratings: RawTable | InteractionTable,
        journal: Journal | None = None,
        *,
        charge: ChargeReference | None = None,
        recipe: Recipe | None = None,
    ) -> Contents | ItemRelease | LikesRelease:
        """Spend the budget on a table, wherever it is kept; the private ratings become a column of it.

        With a `journal`, answers that were given before are taken from it and not asked again. `charge` is the entry of
        a ledger that paid. A `recipe` other than the default one is for ablations.
        """
        self.check()
        if isinstance(ratings, InteractionTable):
            check_likes(self.unit, self.epsilon, self.delta)
            return self._fit_likes(ratings, journal, charge)
        if self.unit != "value":
            return self._fit_people(ratings, journal, charge)
        compile_once(DPSR(10.0, random_state=0).fit_table, sweep)
        vault = Vault(ratings, self.epsilon, noise=self._noise(), journal=journal, charge=charge)
        with one_blas_thread():
            model = self._learn(vault, recipe or Recipe())
        noisy = (NOISY, WEIGHT) if self.allocation_.asks_ratings else None
        settings = self._public_settings()
        return Contents(model, vault.table, vault.certificate(), "default", settings, RELEASED, noisy=noisy)

    def check(self) -> None:
        """Refuse settings that do not go together, before anything is spent."""
        check_epsilon(self.epsilon)
        check_unit(self.unit, self.epsilon, self.delta, self.items is not None)
        declared_items(self.items)

    def _fit_people(self, ratings: RawTable, journal: Journal | None, charge: ChargeReference | None) -> ItemRelease:
        assert self.delta is not None
        compile_once(DPSR(10.0, unit=self.unit, delta=1e-3, random_state=0).fit_table, cells)
        declared, noise = declared_items(self.items), self._noise()
        asked: dict[str, Any] = {"noise": noise, "declared": declared, "journal": journal, "charge": charge}
        with one_blas_thread():
            if self.unit == "user":
                vault = PeopleVault(ratings, self.epsilon, self.delta, **asked)
                side, index = learn_people(vault)
            else:
                vault = RatingVault(ratings, self.epsilon, self.delta, **asked)
                side, index = learn_ratings(vault)
        settings = {"epsilon": self.epsilon, "unit": self.unit, "delta": self.delta}
        return ItemRelease(side, index, vault.certificate(), "people", settings).with_people()

    def _fit_likes(
        self, likes: InteractionTable, journal: Journal | None, charge: ChargeReference | None
    ) -> LikesRelease:
        assert self.delta is not None
        kind = PeopleLikesVault if self.unit == "user" else SingleLikesVault
        asked: dict[str, Any] = {"noise": self._noise(), "declared": declared_items(self.items)}
        with one_blas_thread():
            vault = kind(likes.table, self.epsilon, self.delta, **asked, journal=journal, charge=charge)
            side, index = learn_likes(vault)
        settings = {"epsilon": self.epsilon, "unit": self.unit, "delta": self.delta}
        return LikesRelease(side, index, vault.certificate(), "likes", settings).with_people()

    def _learn(self, vault: Vault, recipe: Recipe) -> Model:
        announce("Reading the public mask")
        self.allocation_ = shares = recipe.allocate(vault.census, vault.scale, self.epsilon)
        design = recipe.design(vault.table)
        y = (vault.scale.values - vault.scale.midpoint) / (vault.scale.width / 2)
        announce("Asking how the scale is used")
        usage = ask_usage(vault, y, shares.histogram) if shares.division else ask_mean(vault)
        announce("Asking for noisy sums of items and users")
        sums = recipe.ask_sums(vault, design, usage, y, shares) if shares.division else NoisySums.unasked(design)
        prior = ridge(usage.variance, usage.mean_variance)
        effects = learn_effects(design, sums, prior, usage.variance)
        k = recipe.n_factors if shares.asks_ratings else 0
        state = EvidenceState(design, effects, prior, mean=usage.mean, variance=usage.variance, k=k)
        observations = own_observations(design, sums, effects)
        if shares.asks_ratings:
            announce("Drawing noise for every rating")
            around = with_variance(y, usage.log_base, state.residual + state.mean_uncertainty, state.sample)
            tables = recipe.ask_ratings(vault, around, state, shares)
            announce("Learning tastes from the noisy ratings")
            state = recipe.learn(state, tables, y, usage.log_base, observations, RELEASED)
        else:
            state.release_means(RELEASED)
        to_rating_points(vault.table, vault.scale, noisy=shares.asks_ratings)
        around = with_variance(y, usage.log_base, state.residual, state.sample)
        personal = personal_prior(state, around, effects, observations[1])
        return assemble(vault.table.cells, vault.scale, state, personal)


def ask_usage(vault: Vault, y: Floats, epsilon: float) -> Usage:
    """Question 1: how the scale is used."""
    bins = level_bins(len(y), vault.census.n_ratings, epsilon)
    counts = vault.histogram(bins, epsilon=epsilon)
    return scale_usage(y, bins, counts.values, counts.noise_variance, vault.census.n_ratings)


def ask_mean(vault: Vault) -> Usage:
    """Question 1 where epsilon buys nothing but the mean: one noisy sum of all ratings, for all of it."""
    half = vault.scale.width / 2
    y = (vault.scale.values - vault.scale.midpoint) / half
    total = vault.total(vault.scale.midpoint, epsilon=vault.left)
    return mean_usage(y, float(total.values[0]) / half, total.noise_variance / half**2, vault.census.n_ratings)


def ask_sums(vault: Vault, design: Design, usage: Usage, y: Floats, shares: Allocation) -> NoisySums:
    """Question 2: sums over items and users of ratings clipped to a window around the private mean."""
    assert shares.division is not None
    weights = DividedIncidence(design.table, shares.division)
    sizes = weights.sizes()
    half, spend = vault.scale.width / 2, min(shares.rest, vault.left)  # shares are floats; the vault counts exactly
    family = tabulate(y, usage.log_base, 0.0)
    point = int(family.nearest(np.array([usage.mean]))[0])
    width = choose_window(family, point, spend, np.concatenate([sizes.item, sizes.user]), EFFECT * usage.variance)
    centre = vault.scale.midpoint + half * family.means[point]
    items, users = vault.divided_sums(centre, half * width, division=shares.division, epsilon=spend)
    offset, slope, spread = window_moments(family, point, width)
    level = offset + slope * (usage.mean - family.means[point])  # what a rating at the mean adds to its sums
    noise = items.noise_variance / half**2
    return NoisySums(
        item_values=items.values / half - level * sizes.item,
        item_variance=noise + spread * sizes.item_square,
        user_values=users.values / half - level * sizes.user,
        user_variance=noise + spread * sizes.user_square,
        gain=slope,
        weights=weights,
    )


def ask_ratings(vault: Vault, prior: LevelFamily, state: EvidenceState, shares: Allocation) -> dict[int, Floats]:
    """Question 3: ratings once, those that the division asks, through the channel tuned to their private prediction.

    What the channels are: P[symbol | level], by the number that the column `choice` holds. The last number is that of
    ratings which are not asked: a channel that tells nothing.
    """
    centres = np.arange(1, GRID, _CHANNEL_EVERY)
    left, right, division, silent = state.left, state.right, shares.division, len(centres)
    assert division is not None

    def choose(block: Block, used: npt.NDArray[np.int64]) -> BlockResult:
        nearest = prior.nearest(at_ratings(block, left[block.users], right))
        choice = np.clip(np.rint((nearest - 1) / _CHANNEL_EVERY), 0, silent - 1)
        choice = np.where(division.asks(block), choice, silent).astype(np.uint8)
        used += np.bincount(choice, minlength=len(used))
        return BlockResult({CHOICE: choice})

    used = vault.table.run(choose, [np.zeros(silent + 1, dtype=np.int64)], writes=[CHOICE]).sums[0]
    some = np.flatnonzero(used[:silent]) if used[:silent].any() else np.array([silent // 2])
    channels = {int(c): optimal_channel(vault.scale, vault.left, prior.table[centres[c]]) for c in some}
    vault.symbols(channels, choice=CHOICE, symbol=SYMBOL)
    tables = {c: channel.probabilities for c, channel in channels.items()}
    return {**tables, silent: np.ones((vault.scale.n_levels, 1))} if used[silent] else tables


def to_rating_points(table: Table, scale: Scale, *, noisy: bool) -> None:
    """Released columns, from half-widths around the midpoint to rating points; predictions end inside the scale."""
    half = scale.width / 2

    def convert(block: Block) -> BlockResult:
        columns = {RELEASED: scale.clip(scale.midpoint + half * block.columns[RELEASED])}
        if noisy:
            columns[NOISY] = (scale.midpoint + half * block.columns[NOISY]).astype(np.float32)
            columns[WEIGHT] = (block.columns[WEIGHT] / half**2).astype(np.float32)
        return BlockResult(columns)

    names = [RELEASED, NOISY, WEIGHT] if noisy else [RELEASED]
    table.run(convert, reads=names, writes=names)


@dataclass(frozen=True)
class Recipe:
    """The parts that the pipeline is made of; an ablation puts another in the place of one."""

    allocate: Callable[..., Allocation] = allocate
    design: Callable[[Table], Design] = Design.of
    ask_sums: Callable[..., NoisySums] = ask_sums
    ask_ratings: Callable[..., dict[int, Floats]] = ask_ratings
    learn: Callable[..., EvidenceState] = learn_from_symbols
    n_factors: int = N_FACTORS
