"""How people are asked, whatever the question: describe, price, pass over the people, add noise, keep the receipt.

Contributions are integers of bounded length, noise is exactly rounded normal (`privacy.noise`), and the price is
a mu whose squares add up to what (epsilon, delta) allow. A question is described, priced and refused before it is
asked. No pass carries the noise's key: noise is added here, to the sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify import Certificate
from dpsr.certify.amounts import check_delta, check_epsilon, float_below
from dpsr.certify.certificate import ChargeReference, software
from dpsr.certify.normal_price import affordable_squared_mu
from dpsr.certify.one_rating import SQUARED_BOUNDS, Settings
from dpsr.certify.people import (
    GRID,
    MOST_NAMED,
    NAMES,
    NAMES_DELTA,
    SQUARED_BOUND,
    NormalPart,
    PersonPart,
    RatingPart,
    check_most_named,
    near_threshold,
    person_threshold,
    rating_threshold,
    squared_bound_of,
    steps_of_bound,
)
from dpsr.engine import Block, Table
from dpsr.errors import PrivacyError
from dpsr.privacy.noise import NoiseSource, rounded_normal
from dpsr.privacy.vault.journal import Journal
from dpsr.privacy.vault.people.contributions import add_names
from dpsr.privacy.vault.vault import SEEDED
from dpsr.types.coordinates import codes_of
from dpsr.types.id_order import spelt
from dpsr.types.item_side import HASHED_CELLS, hashed_cells, hashes

Contribute = Callable[..., None]
"""Adds what the people of a block contribute to a sum."""


@dataclass(frozen=True, eq=False)
class NoisyAnswer:
    """Noisy numbers in real units, and the deviation of the noise in each."""

    values: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class NamedItems(NoisyAnswer):
    """Items that passed the threshold, as text, ascending, with the noisy weights by which they did."""

    names: pa.Array


class AskedTable(ABC):
    """A raw table and a budget: the machinery that every vault of people shares."""

    unit: ClassVar[str]
    column: ClassVar[str]
    """The secret column that passes read."""

    def __init__(
        self,
        table: Table,
        epsilon: float,
        delta: float,
        *,
        noise: NoiseSource,
        declared: pa.Array | None = None,
        journal: Journal | None = None,
        charge: ChargeReference | None = None,
    ) -> None:
        self.epsilon, self.delta, self.declared = check_epsilon(epsilon), check_delta(delta), declared
        self.n_cells = HASHED_CELLS if declared is None else len(declared)
        self._raw, self._noise, self._journal, self._charge_reference = table, noise, journal, charge
        self._items: pa.Array = table.census.item_ids
        self._cell_of = hashed_cells(self._items) if declared is None else codes_of(self._items, declared)
        self._names_delta = 0.0 if declared is not None else NAMES_DELTA * self.delta
        self.squared_mu = affordable_squared_mu(self.epsilon, self.delta - self._names_delta)
        self._parts: list[NormalPart] = []

    @property
    def mu(self) -> float:
        """What everything together may cost."""
        return sqrt(self.squared_mu)

    @property
    def left(self) -> float:
        """The share of mu^2 that is not spent yet, rounded down: all of it may be asked for."""
        return float_below(1 - self.spent / self.squared_mu)

    @property
    def spent(self) -> Fraction:
        return sum((part.squared_mu(self.unit) or Fraction(0) for part in self._parts), Fraction(0))

    def names(self, share: float, cells: Ints, most: int = MOST_NAMED) -> pa.Array:
        """Of the items in `cells`, those whose noisy weight passes the threshold, as text, ascending.

        One person helps to name `most` of them at most.
        """
        return self.named(share, cells, most).names

    def named(self, share: float, cells: Ints, most: int = MOST_NAMED) -> NamedItems:
        """The same with the noisy weights that passed.

        They are free: but for the chance that an item of one person alone passes, which is a part of delta, what comes
        back follows from noisy weights of items that others have too, and these are what mu is the price of.

        An item to which nobody gave a weight does not exist here: it cannot pass. How many items there are is told by
        nothing: the receipt counts none. Names are text in one spelling, for whether all ids are numbers is a secret.
        """
        wanted = np.zeros(self.n_cells, dtype=np.bool_)
        wanted[cells] = True
        names, place = np.unique(np.array(spelt(self._items), dtype=object), return_inverse=True)
        order = np.argsort(np.argsort(hashes(pa.array(names, pa.string())), kind="stable"), kind="stable")
        shown = np.zeros(len(names), dtype=np.bool_)
        shown[place] = wanted[self._cell_of]
        order[~shown] = -1
        add_weights = self._add_names

        def one(block: Block, out: Ints) -> None:
            add_weights(block.indptr, place[block.items], order, most, out)

        part = self._describe_names(share, most)
        noisy = self._noisy(part, one, (len(names),), None, absent=-(1 << 62))
        passed = np.flatnonzero(noisy > (part.cut or 0))
        return NamedItems(noisy[passed] / GRID, sqrt(part.variance) / GRID, pa.array(names[passed], pa.string()))

    def naming_threshold(self, share: float, most: int = MOST_NAMED) -> float:
        """The weight an item needs to be named, but for a trace, in whole ratings or interactions of people with one.

        One row names one item more at most; a person, as many as count.
        """
        return near_threshold(self.naming_noise(share), self._names_delta, most if self.unit == "user" else 1)

    def naming_noise(self, share: float) -> float:
        """The deviation of the noise in such weights."""
        return sqrt(SQUARED_BOUND / (self.squared_mu * Fraction(share))) / GRID

    @property
    @abstractmethod
    def public(self) -> dict[str, Any]:
        """What the certificate says was public."""

    def certificate(self) -> Certificate:
        """The receipt for everything asked so far."""
        reasons = () if self._noise.private else (SEEDED,)
        return Certificate(
            nominal=self.epsilon,
            parts=tuple(self._parts),
            public=self.public,
            randomness=self._noise.kind,
            private=not reasons,
            id=self._noise.identity,
            reasons=reasons,
            unit=self.unit,
            nominal_delta=self.delta,
            charge=self._charge_reference,
            software=software(),
        )

    def _ask(
        self,
        name: str,
        share: float,
        contribute: Contribute,
        shape: tuple[int, ...],
        *,
        reach: float = 1.0,
        only: tuple[Ints, ...] | None = None,
        settings: Settings | None = None,
    ) -> NoisyAnswer:
        """Describe, price, pass over the people, add noise. `reach` is what the bound stands for in real units."""
        numbers, step = int(np.prod(shape)) if only is None else len(only[0]), reach / steps_of_bound(name)
        part = self._describe(name, share, numbers, settings)
        values = self._noisy(part, contribute, shape, only).astype(np.float64) * step
        return NoisyAnswer(values if only is not None else values.reshape(shape), sqrt(part.variance) * step)

    def _ask_above_diagonal(
        self, name: str, share: float, contribute: Contribute, n: int, settings: Settings | None = None
    ) -> NoisyAnswer:
        """Second moments of n cells: what is above the diagonal, with zeros elsewhere."""
        above, moments = np.triu_indices(n, 1), np.zeros((n, n))
        found = self._ask(name, share, contribute, (n, n), only=above, settings=settings)
        moments[above] = found.values
        return NoisyAnswer(moments, found.noise)

    def _places(self, cells: Ints) -> Ints:
        """The place of every cell among `cells`, -1 for the others."""
        place = np.full(self.n_cells, -1, dtype=np.int64)
        place[cells] = np.arange(len(cells))
        return place

    def _noisy(
        self,
        part: NormalPart,
        contribute: Contribute,
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
            sums = self._raw.run(contribute, [np.zeros(shape, dtype=np.int64)], reads=[self.column]).sums[0]
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

    @abstractmethod
    def _describe(self, name: str, share: float, numbers: int, settings: Settings | None = None) -> NormalPart:
        """The receipt of a question that takes at most `share` of mu^2, with the least noise."""

    @abstractmethod
    def _describe_names(self, share: float, most: int) -> NormalPart:
        """The same for names, with the lowest threshold, where one person helps to name `most` items at most."""

    @staticmethod
    @abstractmethod
    def _add_names(indptr: Ints, items: Ints, order: Ints, most: int, out: Ints) -> None:
        """What people add to the weights of their items."""

    def _charge(self, part: NormalPart) -> None:
        if sum(Fraction(one.tail(self.unit)) for one in (*self._parts, part)) > Fraction(self._names_delta):
            raise PrivacyError(
                f"{part.name} would take more of delta than the {self._names_delta:.3g} that is kept for them. Nothing "
                "was drawn. Ask for names once."
            )
        price = part.squared_mu(self.unit)
        if price is None or self.spent + price > self.squared_mu:
            raise PrivacyError(
                f"{part.name} would cost more than the {self.left:.2%} of the budget that are left. Nothing was drawn. "
                "Ask for less."
            )
        self._parts.append(part)


class AskedOfPeople(AskedTable):
    """One person more or less is the secret."""

    unit = "user"

    def _describe(self, name: str, share: float, numbers: int, settings: Settings | None = None) -> NormalPart:
        square = squared_bound_of(name)
        return PersonPart(name, ceil(square / (self.squared_mu * Fraction(share))), numbers, square)

    def _describe_names(self, share: float, most: int) -> NormalPart:
        check_most_named(NAMES, most)
        variance = ceil(SQUARED_BOUND / (self.squared_mu * Fraction(share)))
        threshold = person_threshold(variance, self._names_delta, most)
        return PersonPart(NAMES, variance, 0, SQUARED_BOUND, threshold, most)

    @staticmethod
    def _add_names(indptr: Ints, items: Ints, order: Ints, most: int, out: Ints) -> None:
        add_names(indptr, items, order, most, out)


class AskedOfRows(AskedTable):
    """One row more or less is the secret."""

    unit = "rating"

    def _describe(self, name: str, share: float, numbers: int, settings: Settings | None = None) -> NormalPart:
        settings = {"bound": float(steps_of_bound(name)), **(settings or {})}
        variance = ceil(SQUARED_BOUNDS[name](settings) / (self.squared_mu * Fraction(share)))
        return RatingPart(name, variance, numbers, settings)

    def _describe_names(self, share: float, most: int) -> NormalPart:
        """One row names one item more at most, however many of them its person has: `most` changes nothing."""
        settings = {"bound": float(steps_of_bound(NAMES))}
        sensitivity = SQUARED_BOUNDS[NAMES](settings)
        variance = ceil(sensitivity / (self.squared_mu * Fraction(share)))
        cut = rating_threshold(isqrt(sensitivity), variance, self._names_delta)
        return RatingPart(NAMES, variance, 0, settings, cut)

    @staticmethod
    def _add_names(indptr: Ints, items: Ints, order: Ints, most: int, out: Ints) -> None:
        """A row adds the whole weight to its item; nobody's other rows matter."""
        out += np.where(order >= 0, np.bincount(items, minlength=len(out)), 0) * GRID
