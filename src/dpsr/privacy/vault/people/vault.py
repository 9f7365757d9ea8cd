"""The vault for people: raw ratings behind a counter that hands out noisy sums over people and adds up what they cost.

    levels           how many people, their mean level and spread                       5 numbers
    activity         people and their levels by number of ratings                       28
    scores           every cell's weighted count and sum of residuals, and of products with people's coefficients
    coefficients     how widely people's coefficients lie
    second moments   products of residuals over the most popular cells
    names            which items may be named: those whose noisy weight passes a threshold

Every question is one pass over blocks of whole people, wherever the ratings are kept. Contributions are integers of
bounded length (`contributions`), noise is exactly rounded normal (`privacy.noise.normal`), and the price is a mu whose
squares add up to what (epsilon, delta) allow. A question is described, priced and refused before it is asked; what it
may depend on (the item side so far, cells, weights) is made of earlier answers. No pass carries the noise's key: noise
is added here, to the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from math import ceil, sqrt

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify import Certificate
from dpsr.certify.amounts import check_delta, check_epsilon
from dpsr.certify.certificate import PUBLIC_FACTS, ChargeReference
from dpsr.certify.normal import affordable_squared_mu
from dpsr.certify.people import (
    GRID,
    MOMENT,
    MOMENTS,
    MOST_NAMED,
    NAMES,
    SQUARED_MOMENT_BOUND,
    NormalPart,
    PersonPart,
    person_threshold,
)
from dpsr.engine import Block
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.errors import PrivacyError
from dpsr.privacy.noise.normal import rounded_normal
from dpsr.privacy.noise.source import NoiseSource
from dpsr.privacy.vault.journal import Journal
from dpsr.privacy.vault.people import contributions as add
from dpsr.privacy.vault.people.rows import RowReader
from dpsr.privacy.vault.privatise import SEEDED
from dpsr.types import Scale
from dpsr.types.item_side import ACTIVITY_BINS, HASHED_CELLS, ItemSide, activity_of, hashed_cells, hashes, spelt
from dpsr.types.mask import codes_of

DELTA_FOR_NAMES = 0.1
"""Share of delta for the chance that an item of one person alone is named."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Noisy numbers in real units, and the deviation of the noise in each."""

    values: Floats
    noise: float


class PeopleVault:
    """Raw ratings and a budget for people. Ask; do not look."""

    unit = "user"
    scores_name = "scores"

    replaced = 1.0
    """How far a person's vector of length one moves a sum, at most, between neighbours."""

    moments_bound = sqrt(0.5)
    """The same for second moments, of vectors of length one."""

    def __init__(
        self,
        ratings: RawTable,
        epsilon: float,
        delta: float,
        *,
        noise: NoiseSource,
        declared: pa.Array | None = None,
        journal: Journal | None = None,
        charge: ChargeReference | None = None,
    ) -> None:
        self.scale: Scale = ratings.scale
        self.epsilon, self.delta = check_epsilon(epsilon), check_delta(delta)
        self.declared = declared
        self.n_cells = HASHED_CELLS if declared is None else len(declared)
        self._raw, self._noise, self._journal, self._charge_reference = ratings.table, noise, journal, charge
        self._items: pa.Array = ratings.table.census.item_ids
        cell_of = hashed_cells(self._items) if declared is None else codes_of(self._items, declared)
        self._reader = RowReader(cell_of, (self.scale.values - self.scale.midpoint) / (self.scale.width / 2))
        self._names_delta = 0.0 if declared is not None else DELTA_FOR_NAMES * delta
        self.squared_mu = affordable_squared_mu(self.epsilon, delta - self._names_delta)
        self._parts: list[NormalPart] = []

    @property
    def mu(self) -> float:
        """What everything together may cost."""
        return sqrt(self.squared_mu)

    @property
    def left(self) -> float:
        """The share of mu^2 that is not spent yet."""
        return float(1 - self.spent / self.squared_mu)

    @property
    def spent(self) -> Fraction:
        return sum((part.squared_mu(self.unit) or Fraction(0) for part in self._parts), Fraction(0))

    def totals(self, share: float) -> Answer:
        """Sums of 1, a, a^2, nu v, nu over people (`contributions.add_levels`)."""
        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_levels(rows.indptr, rows.y, out)

        return self._ask("levels", share, one, (5,), add.LEVELS_REACH)

    def activity(self, share: float) -> Answer:
        """Sums of (1, a) over people, by octave of their number of ratings."""
        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            add.add_activity(rows.indptr, rows.y, activity_of(np.diff(rows.indptr)), out)

        return self._ask("activity", share, one, (ACTIVITY_BINS, 2), add.ACTIVITY_REACH)

    def scores(self, share: float, side: ItemSide, *, alpha: float, gamma: float = 0.0, floor: float = 0.0) -> Answer:
        """Sums over people, by cell, of scores at the item side so far (`contributions.add_scores`).

        `alpha` weighs counts against sums, `gamma` products with coefficients against sums; below the squared length
        `floor` a person's vector is not scaled up.
        """
        d = side.n_factors
        deviation = np.sqrt(np.diag(side.covariance)[3:])

        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            own = side.own_side(rows)
            f = gamma * (own.coefficients[:, 3:] - side.mean[3:]) / deviation
            add.add_scores(
                rows.indptr, rows.cells, own.residuals, own.leverages, np.ascontiguousarray(f), own.covariances,
                side.features, gamma / deviation, alpha, floor, out,
            )  # fmt: skip

        return self._ask(self.scores_name, share, one, (self.n_cells, d + 2), 1.0)

    def coefficients(self, share: float, side: ItemSide) -> Answer:
        """Sums over people of what their own regressions say about the prior (`contributions.add_coefficients`)."""
        k = len(side.mean)
        reach = add.coefficients_reach(k)

        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            own = side.own_side(rows)
            add.add_coefficients(rows.indptr, own.coefficients, own.covariances, side.mean, side.covariance, reach, out)

        return self._ask("coefficients", share, one, (3 * k + k * (k + 1) // 2,), reach)

    def second_moments(self, share: float, side: ItemSide, cells: Ints, floor: float) -> Answer:
        """Sums over people of x x', x their weighted residuals over `cells`; zero on and below the diagonal."""
        place, reader = self._places(cells), self._reader

        def one(block: Block, out: Ints) -> None:
            rows = reader.rows(block)
            own = side.own_side(rows)
            add.add_second_moments(rows.indptr, rows.cells, own.residuals, place, floor, out)

        return self._ask_above_diagonal(share, one, len(cells), squared_bound=SQUARED_MOMENT_BOUND)

    def names(self, share: float, cells: Ints) -> tuple[pa.Array, Answer]:
        """Of the items in `cells`, those whose noisy weight passes the threshold, as text, ascending; their weights.

        An item to which nobody gave a weight does not exist here: it cannot pass. How many items there are is told by
        nothing: the receipt counts none. Names are text in one spelling, for whether all ids are numbers is a secret.
        """
        wanted = np.zeros(self.n_cells, dtype=np.bool_)
        wanted[cells] = True
        names, place = np.unique(np.array(spelt(self._items), dtype=object), return_inverse=True)
        order = np.argsort(np.argsort(hashes(pa.array(names, pa.string())), kind="stable"), kind="stable")
        shown = np.zeros(len(names), dtype=np.bool_)
        shown[place] = wanted[self._reader.cell_of]
        order[~shown] = -1
        add_names = self._add_names

        def one(block: Block, out: Ints) -> None:
            add_names(block.indptr, place[block.items], order, out)

        part = self._describe(NAMES, share, 0, GRID**2, {}, names_delta=self._names_delta)
        noisy = self._noisy(part, one, (len(names),), None, absent=-(1 << 62))
        passed = np.flatnonzero(noisy > (part.cut or 0))
        answer = Answer(noisy[passed].astype(np.float64) / GRID, sqrt(part.variance) / GRID)
        return pa.array(names[passed], pa.string()), answer

    def naming_threshold(self, share: float) -> float:
        """The weight an item needs to be named, in whole ratings of people with one."""
        part = self._describe(NAMES, share, 0, GRID**2, {}, names_delta=self._names_delta)
        return (part.cut or 0) / GRID

    def certificate(self) -> Certificate:
        """The receipt for everything asked so far."""
        reasons = () if self._noise.private else (SEEDED,)
        public = {
            "facts": PUBLIC_FACTS[self.unit],
            "scale": str(self.scale),
            "levels": self.scale.n_levels,
            "cells": self.n_cells,
            "declared_items": None if self.declared is None else len(self.declared),
        }
        return Certificate(
            nominal=self.epsilon,
            parts=tuple(self._parts),
            public=public,
            randomness=self._noise.kind,
            private=not reasons,
            id=self._noise.identity,
            reasons=reasons,
            unit=self.unit,
            nominal_delta=self.delta,
            charge=self._charge_reference,
            software=f"dpsr {version('dpsr')}",
        )

    def _ask(
        self,
        name: str,
        share: float,
        contribute: Callable[..., None],
        shape: tuple[int, ...],
        reach: float,
        *,
        squared_bound: int = GRID**2,
        only: tuple[Ints, ...] | None = None,
        settings: Mapping[str, float] | None = None,
    ) -> Answer:
        """Describe, price, pass over the people, add noise. `reach` is what the bound stands for in real units."""
        numbers = int(np.prod(shape)) if only is None else len(only[0])
        part = self._describe(name, share, numbers, squared_bound, settings)
        noisy = self._noisy(part, contribute, shape, only)
        step = reach / (MOMENT**2 if name == MOMENTS else GRID)
        values = noisy.astype(np.float64) * step
        return Answer(values if only is not None else values.reshape(shape), sqrt(part.variance) * step)

    def _ask_above_diagonal(
        self,
        share: float,
        contribute: Callable[..., None],
        n: int,
        *,
        squared_bound: int = GRID**2,
        settings: Mapping[str, float] | None = None,
    ) -> Answer:
        """Second moments of n cells: what is above the diagonal, with zeros elsewhere."""
        above, moments = np.triu_indices(n, 1), np.zeros((n, n))
        found = self._ask(
            MOMENTS, share, contribute, (n, n), 1.0, squared_bound=squared_bound, only=above, settings=settings
        )
        moments[above] = found.values
        return Answer(moments, found.noise)

    def _places(self, cells: Ints) -> Ints:
        """The place of every cell among `cells`, -1 for the others."""
        place = np.full(self.n_cells, -1, dtype=np.int64)
        place[cells] = np.arange(len(cells))
        return place

    def _noisy(
        self,
        part: NormalPart,
        contribute: Callable[..., None],
        shape: tuple[int, ...],
        only: tuple[Ints, ...] | None,
        absent: int | None = None,
    ) -> Ints:
        """Charge, then add exactly rounded normal noise to every sum (or to those `only`).

        With `absent`, that is the answer where the sum is zero: there is nothing of which it would be the sum.
        """
        self._charge(part)
        noisy = self._journal.answered(part) if self._journal else None
        if noisy is None:
            sums = self._raw.run(contribute, [np.zeros(shape, dtype=np.int64)], reads=[LEVEL]).sums[0]
            exact = sums.ravel() if only is None else sums[only]
            noisy = exact + self._draw(part.variance, len(exact))
            if absent is not None:
                noisy[exact == 0] = absent
            if self._journal:
                self._journal.keep(part, noisy)
        return noisy

    def _draw(self, variance: int, n: int) -> Ints:
        """Noise for n sums."""
        return rounded_normal(variance, n, self._noise)

    def _describe(
        self,
        name: str,
        share: float,
        numbers: int,
        squared_bound: int,
        settings: Mapping[str, float] | None,
        *,
        names_delta: float = 0.0,
    ) -> NormalPart:
        """The receipt of a question that takes at most `share` of mu^2, with the least noise."""
        variance = ceil(squared_bound / (self.squared_mu * Fraction(share)))
        if name != NAMES:
            return PersonPart(name, variance, numbers, squared_bound)
        return PersonPart(name, variance, numbers, squared_bound, person_threshold(variance, names_delta))

    @staticmethod
    def _add_names(indptr: Ints, items: Ints, order: Ints, out: Ints) -> None:
        add.add_names(indptr, items, order, MOST_NAMED, out)

    def _charge(self, part: NormalPart) -> None:
        price = part.squared_mu(self.unit)
        if price is None or self.spent + price > self.squared_mu:
            raise PrivacyError(
                f"{part.name} would cost more than the {self.left:.2%} of the budget that are left. Nothing was drawn. "
                "Ask for less."
            )
        self._parts.append(part)
