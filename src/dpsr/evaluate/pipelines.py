"""The pipelines of this project as methods of the comparison, and ours with one of its parts replaced.

Their protection is copied from their certificate, which computes it; as published, the paper's Stage 1 costs more than
it says (docs/published.md), and the figure here is what it really costs.

What each idea of the default pipeline contributes is measured by leaving it out. A recipe is a value of the pipeline
with one part replaced, so it spends the same epsilon through the same vault:

    window                 sums of whole ratings, centred on the scale's midpoint: sensitivity the width of the scale
    turns of sums          all around the mean, in one turn
    reading again          sums are read around what was expected when they were asked for
    Laplace's law          noise of sums is taken for normal
    embeddings             counts alone as public features
    places of items        the order of their ids tells nothing
    degree regularisation  N = D_u^-1/2 M D_j^-1/2 without the average degree added
    factors                slopes on public features only
    smooth taste           slopes and factors, without a taste that the mask makes smooth
    pairs                  variances of effects start from the sums alone
    three starts           the cautious one only
    tuned channels         one channel for all ratings, tuned to their average distribution
    weights by counts      the item and the user of a rating have half of its weight in the sums each
    ratings, sums          everything that the histogram leaves for one of the two questions

Known gap: the budget is shared as for the full pipeline, not tuned to each recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.engine import BlockResult
from dpsr.engine.incidence import AT_ONCE, GRID, DividedIncidence, Division
from dpsr.engine.raw import RawRatings, RawTable
from dpsr.evaluate.contract import ITEMS_AND_SCALE, JOINT, MASK, SCALE_ALONE, SEEDED, PrivateMethod, Protection, Unit
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.pipeline import DPSR
from dpsr.pipeline.value import Recipe, ask_sums
from dpsr.privacy.channels import optimal_channel
from dpsr.privacy.vault import Vault
from dpsr.release import Contents, Personalised
from dpsr.release.people import PersonalisedPeople
from dpsr.types import Census, Scale
from dpsr.value.allocation import Allocation, Components, allocate, divide, tables_in_sums, turns_of
from dpsr.value.assembly import MaskTaste
from dpsr.value.design import Design
from dpsr.value.evidence import SAMPLE, EvidenceState, moments_at_ratings
from dpsr.value.levels import Usage
from dpsr.value.noisy_sums import NoisySums
from dpsr.value.schedule import learn_from_symbols
from dpsr.value.sweep import CHOICE, SYMBOL
from dpsr.value.windows import ExpectedRatings, at_once


@dataclass
class DefaultPipeline(PrivateMethod):
    """`DPSR(epsilon)`, or a recipe other than its own."""

    recipe: Recipe | None = None

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        pipeline = DPSR(self.epsilon, random_state=self.noise_seed)
        fitted = pipeline.fit_table(RawTable.of(ratings), recipe=self.recipe)
        assert isinstance(fitted, Contents)
        price = fitted.certificate
        return fitted.model, Protection("rating value", price.epsilon, price.delta, MASK, SEEDED)


@dataclass
class PersonalisedPipeline(PrivateMethod):
    """`DPSR(epsilon)`, and everybody's own raw ratings for their own predictions (joint DP)."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        fitted = DPSR(self.epsilon, random_state=self.noise_seed).fit(ratings)
        price = fitted.certificate
        protection = Protection("rating value", price.epsilon, price.delta, MASK, f"{JOINT}; {SEEDED}")
        personal = fitted.personalise(ratings)
        assert isinstance(personal, Personalised)
        return personal.model(), protection


@dataclass
class PeoplePipeline(PrivateMethod):
    """`DPSR(epsilon, unit=..., delta=...)`, and everybody's own raw ratings for their own predictions (joint DP)."""

    unit: str = "user"
    listed: bool = False
    """Whether the list of items is declared public, as it is for every other method of the comparison."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        items = ratings.mask.item_ids if self.listed else None
        pipeline = DPSR(self.epsilon, unit=self.unit, delta=self.delta, items=items, random_state=self.noise_seed)
        fitted = pipeline.fit(ratings)
        price, personal = fitted.certificate, fitted.personalise(ratings)
        assert isinstance(personal, PersonalisedPeople)
        public = ITEMS_AND_SCALE if self.listed else SCALE_ALONE
        protection = Protection(PEOPLE_UNITS[self.unit], price.epsilon, price.delta, public, f"{JOINT}; {SEEDED}")
        return OwnPredictions(personal, ratings), protection


PEOPLE_UNITS: Mapping[str, Unit] = {"user": "user", "rating": "rating (add/remove)"}
"""What the comparison calls the units that protect people."""


@dataclass(frozen=True, eq=False)
class OwnPredictions:
    """What people get from `personalise`, asked by codes; -1 is a stranger, or an item nobody has heard of."""

    personal: PersonalisedPeople
    ratings: RawRatings

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Ratings inside the scale; of strangers, and of strange items, the level alone is told."""
        u, j = (np.atleast_1d(codes) for codes in np.broadcast_arrays(users, items))
        mask, side = self.ratings.mask, self.personal.release.side
        known = (u >= 0) & (j >= 0)
        nobody = np.zeros(np.count_nonzero(~known), dtype=np.int64)
        predicted = np.empty(len(u))
        predicted[~known] = side.predict(side.stranger, nobody, nobody - 1)
        ids = (
            of.take(codes[known]).to_numpy(zero_copy_only=False)
            for of, codes in ((mask.user_ids, u), (mask.item_ids, j))
        )
        predicted[known] = self.personal.predict(*ids)
        return predicted

    def scores(self, user: int) -> Floats:
        """One unclipped rating per item."""
        side, everything = self.personal.release.side, np.zeros(self.ratings.mask.n_items, dtype=np.int64)
        own = side.stranger if user < 0 else self.personal.own_side(np.array([user]))
        y = side.expected(own, everything, self._cells, self.personal.order.places())
        return np.asarray(side.scale.midpoint + side.scale.width / 2 * y)

    @cached_property
    def _cells(self) -> Ints:
        return self.personal.release.index.cells_of(self.ratings.mask.item_ids)


@dataclass
class PaperPipeline(PrivateMethod):
    """The paper's three stages, Stage 1 repaired or as published."""

    as_published: bool = False

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        fitted = DPSR.paper(self.epsilon, as_published=self.as_published, random_state=self.noise_seed).fit(ratings)
        note = f"nominal epsilon {self.epsilon:g} is not kept; {SEEDED}" if self.as_published else SEEDED
        price = fitted.certificate
        return fitted.model_, Protection("rating value", price.epsilon, price.delta, MASK, note)


def whole_sums(vault: Vault, design: Any, usage: Usage, y: Floats, shares: Allocation) -> NoisySums:
    """Question 2 without a window: clipping at the ends of the scale cuts nothing and costs its whole width."""
    assert shares.division is not None
    division = replace(shares.division, pooled=0)
    half, weights = vault.scale.width / 2, DividedIncidence(design.table, division)
    spend, sizes = min(shares.rest, vault.left), weights.sizes()
    items, users = vault.divided_sums(vault.scale.midpoint, half, division=division, epsilon=spend)
    noise = items.noise_variance / half**2
    return NoisySums(
        item_values=items.values / half - usage.mean * sizes.item,
        item_variance=noise + usage.variance * sizes.item_square,
        user_values=users.values / half - usage.mean * sizes.user,
        user_variance=noise + usage.variance * sizes.user_square,
        item_scale=np.full(vault.census.n_items, np.sqrt(noise / 2)),
        user_scale=np.full(vault.census.n_users, np.sqrt(noise / 2)),
        gain=1.0,
        weights=weights,
    )


def sums_with_normal_noise(*asked: Any) -> NoisySums:
    """Question 2, read as if its noise were normal and not Laplace's."""
    sums = ask_sums(*asked)
    return replace(sums, item_scale=np.zeros_like(sums.item_scale), user_scale=np.zeros_like(sums.user_scale))


def sums_read_once(*asked: Any) -> NoisySums:
    """Question 2, not read again once all sums say where ratings are."""
    return replace(ask_sums(*asked), turns=())


def one_channel(vault: Vault, expected: ExpectedRatings, shares: Allocation, _: Any) -> dict[int, Floats]:
    """Question 3 in one turn and through one channel, tuned to the average of the ratings' distributions."""
    prior, division = expected.around, shares.division
    _, _, sample = moments_at_ratings(vault.table, expected.left, expected.right, SAMPLE)
    points = np.bincount(prior.nearest(sample), minlength=len(prior.means))
    channel = optimal_channel(vault.scale, vault.left, points @ prior.table / points.sum())
    assert division is not None
    vault.table.run(lambda block: BlockResult({CHOICE: (~division.asks(block)).astype(np.uint8)}), writes=[CHOICE])
    vault.symbols({0: channel}, choice=CHOICE, symbol=SYMBOL)
    return {0: channel.probabilities, 1: np.ones((vault.scale.n_levels, 1))}


def even_weights(mask: Census, scale: Scale, epsilon: float, components: Components | None = None) -> Allocation:
    """Half of every weight on either side, whatever the counts."""
    shares = allocate(mask, scale, epsilon, components)
    return _divided(shares, lambda one: replace(one, item=np.full_like(one.item, GRID // 2)))


def no_taste(state: EvidenceState, _: str) -> MaskTaste:
    """Slopes and factors alone."""
    return MaskTaste.none(state.design)


def plain_scales(counts: npt.NDArray[np.int64]) -> Floats:
    """1 / sqrt(count), without the average count."""
    return 1 / np.sqrt(np.maximum(counts, 1.0))


def fixed_share(
    share: float, light: float, mask: Census, scale: Scale, epsilon: float, components: Components | None = None
) -> Allocation:
    """A fixed share of all ratings asked one by one, whatever their counts, leaving `light` of their budget to sums.

    Where that is nobody, weights are divided as is best then.
    """
    shares = allocate(mask, scale, epsilon, components)
    if share == 0 and shares.division is not None:
        return replace(shares, division=divide(mask, tables_in_sums(mask, shares.rest, components)[0]), turns=AT_ONCE)
    asked, left = round(share * GRID), int(light * GRID)
    shares = replace(shares, turns=turns_of(scale, shares.rest, share * mask.n_ratings))
    return _divided(shares, lambda one: replace(one, asked=np.full_like(one.asked, asked), light=left))


def _divided(shares: Allocation, change: Callable[[Division], Division]) -> Allocation:
    return shares if shares.division is None else replace(shares, division=change(shares.division))


RECIPES: Mapping[str, Recipe] = {
    "without window": Recipe(ask_sums=whole_sums),
    "all sums at once": Recipe(ask_sums=partial(ask_sums, turns=at_once)),
    "sums read once": Recipe(ask_sums=sums_read_once),
    "noise of sums read as normal": Recipe(ask_sums=sums_with_normal_noise),
    "without mask embeddings": Recipe(design=partial(Design.of, rank=0)),
    "without places of items": Recipe(design=partial(Design.of, places=0)),
    "without degree regularisation": Recipe(design=partial(Design.of, scales=plain_scales)),
    "without factors": Recipe(n_factors=0),
    "without smooth taste": Recipe(learn_taste=no_taste),
    "without pairs": Recipe(learn=partial(learn_from_symbols, effects_from_pairs=False)),
    "cautious start only": Recipe(learn=partial(learn_from_symbols, may_be_bold=False)),
    "one channel for all ratings": Recipe(ask_ratings=one_channel),
    "half of every weight to either side": Recipe(allocate=even_weights),
    "sums only": Recipe(allocate=partial(fixed_share, 0.0, 0.0)),
    "ratings only": Recipe(allocate=partial(fixed_share, 1.0, 1 / GRID)),
}
"""The pipeline with one of its parts replaced."""
