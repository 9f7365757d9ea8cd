"""The vault: raw ratings behind a counter that hands out noisy answers and adds up what they cost.

A pipeline that asks several questions about the same ratings holds a `Vault` and never a rating. Every answer comes
with its price; a question that would exceed the budget is refused before any noise is drawn. What may be asked:

    histogram      how many ratings have each (pooled) level                       one rating moves two counts by one
    total          the sum of all ratings' distances from a centre                 the scale's width
    divided_sums   sums over items, over users, and over all ratings with public
                   signs, of  weight x clip(r - centre); in turns, each sum once   at most  all weights x window width
    symbols        one symbol per rating from one of several finite channels       at most the dearest channel
    noisy_ratings  one symbol per rating, all from one finite channel              that channel

A division (`engine.incidence`) says of every rating whether it is asked for a symbol, in public: then a rating pays for
symbols and its light weight in the sums, or for its full weight in the sums and no symbol.

Centres, weights, windows, divisions and channels are functions of the public mask and of earlier answers. Integers
only: values are rounded to a fixed grid before they are added, and the noise is discrete. Every question is one pass
over blocks of users, wherever the ratings are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts, Floats
from dpsr.certify import Certificate
from dpsr.certify.amounts import check_epsilon, float_up
from dpsr.certify.certificate import PUBLIC_FACTS, ChargeReference, software
from dpsr.certify.parts import (
    MECHANISMS,
    OWN_TABLE,
    VALUE_GRID,
    ChannelPart,
    DividedSumsPart,
    HistogramPart,
    LaplacePart,
    Price,
    PricedPart,
    SumsPart,
    price_one_by_one,
    price_together,
)
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.contrasts import Contrasts
from dpsr.engine.incidence import AT_ONCE, GRID, Division, RowSums, Turns
from dpsr.engine.raw import LEVEL, RawRatings, RawTable
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import BITS, Channel, Sampler
from dpsr.privacy.noise import NoiseSource, discrete_laplace, laplace_scale
from dpsr.privacy.vault.journal import Journal
from dpsr.types import Census, Scale

SEEDED = "the noise came from a seed, and whoever has the seed can subtract it"


@dataclass(frozen=True)
class NoisyStatistic:
    """A noisy statistic and the variance of the noise in each of its numbers."""

    values: Floats
    noise_variance: float


class Vault:
    """Raw ratings and a budget. Ask; do not look."""

    def __init__(
        self,
        ratings: RawRatings | RawTable,
        epsilon: float,
        *,
        noise: NoiseSource,
        journal: Journal | None = None,
        charge: ChargeReference | None = None,
    ) -> None:
        raw = RawTable.of(ratings) if isinstance(ratings, RawRatings) else ratings
        raw.table.check_keeps_secrets()
        self.scale: Scale = raw.scale
        self.census: Census = raw.table.census
        self.table: Table = raw.public
        self.epsilon = check_epsilon(epsilon)
        self._raw = raw.table
        self._noise = noise
        self._journal = journal
        self._charge_reference = charge
        self._parts: list[PricedPart] = []
        self._division: Division | None = None
        self._summed: RowSums | None = None
        self._sums_epsilon = 0.0
        self._turns, self._turn = AT_ONCE, 0

    @property
    def spent(self) -> Fraction:
        """What the rating that paid most has paid."""
        return price_together(self._parts)

    @property
    def left(self) -> float:
        """What is left of the budget for ratings that are asked one by one, rounded down."""
        return -float_up(price_one_by_one(self._parts) - Fraction(self.epsilon))

    def histogram(self, bins: AnyInts, *, epsilon: float) -> NoisyStatistic:
        """Noisy counts of `bins[level]`."""

        def count(block: Block, counts: AnyInts) -> None:
            counts += np.bincount(bins[block.columns[LEVEL]], minlength=len(counts))

        counts = self._raw.run(count, [np.zeros(int(bins.max()) + 1, dtype=np.int64)], reads=[LEVEL]).sums[0]
        scale = laplace_scale(2, epsilon)
        part = HistogramPart("level histogram", str(scale), tuple(bins.tolist()))
        return self._release(part, counts, unit=1.0)

    def total(self, centre: float, *, epsilon: float) -> NoisyStatistic:
        """The noisy sum of value - centre over all ratings, in rating points."""
        step = self.scale.width / 2 / VALUE_GRID
        steps = np.rint((self.scale.values - centre) / step).astype(np.int64)

        def add(block: Block, sums: AnyInts) -> None:
            sums += steps[block.columns[LEVEL]].sum()

        found = self._raw.run(add, [np.zeros(1, dtype=np.int64)], reads=[LEVEL]).sums[0]
        scale = laplace_scale(int(np.ptp(steps)), epsilon)
        part = SumsPart("total", str(scale), tuple(steps.tolist()), (1,), (("all ratings", 1),), step)
        return self._release(part, found, unit=step)

    def divided_sums(
        self,
        centre: float | Floats,
        half_width: float,
        *,
        division: Division,
        epsilon: float,
        contrasts: Contrasts | None = None,
        rows: RowSums | None = None,
        choice: str | None = None,
    ) -> tuple[NoisyStatistic, ...]:
        """Noisy sums of weight x clip(value - centre, -half_width, half_width), over each item and over each user.

        `centre` and `half_width` are in rating points; where there are several centres, a rating has the one whose
        number the column `choice` holds. Weights are those of a public division, which holds from now on. A division
        with a `pooled` weight has `contrasts`: the third answer are sums over all ratings with their signs.
        `epsilon` is what a rating pays that is in the sums alone, for all of its sums together. One that is asked one
        by one pays `light` of `GRID` of it, and its symbol.

        Sums may be asked in turns: `rows` are those that this turn asks and answers; `contrasts` belong to the first
        turn. A sum is in one turn, and every turn's windows are as many steps wide, so that all turns together cost
        what they would cost at once.
        """
        _check_public(choice)
        rows = RowSums.all(self.census) if rows is None else rows
        before = self._sums_before(rows, division, contrasts, epsilon)
        steps, step = self._windows(np.atleast_1d(centre), half_width, before)
        item, user, pooled = division.item_weights, division.user_weights, division.pooled_weights
        sizes = {"items": self.census.n_items, "users": self.census.n_users}
        sizes |= {"contrasts": contrasts.n**2} if contrasts is not None else {}
        last = len(steps) - 1

        def add(block: Block, items: AnyInts, used: AnyInts, seen: AnyInts, together: AnyInts) -> BlockResult:
            window = np.zeros(1, dtype=np.int64) if choice is None else np.minimum(block.columns[choice], last)
            clipped, codes = steps[window, block.columns[LEVEL]], division.codes(block)
            used += np.bincount(codes, minlength=len(used))
            seen += np.bincount(window, minlength=len(seen))
            items += np.bincount(block.items, clipped * item[codes], len(items)).astype(np.int64)
            if contrasts is not None:
                place, sign = contrasts.places(block)
                together += np.bincount(place, sign * clipped * pooled[codes], len(together)).astype(np.int64)
            users = np.bincount(block.rows, clipped * user[codes], block.n_users)  # exact below 2**53
            return BlockResult(rows=(users.astype(np.int64),))

        numbers = sizes["items"], len(item), len(steps), sizes.get("contrasts", 0)
        reads = [LEVEL] if choice is None else [choice, LEVEL]
        answer = self._raw.run(add, [np.zeros(n, dtype=np.int64) for n in numbers], reads=reads)
        weights, used = np.column_stack([item, user, pooled])[:, : len(sizes)].tolist(), np.flatnonzero(answer.sums[1])
        one_by_one, seen = division.asks_code(used), steps[np.flatnonzero(answer.sums[2])]
        part = DividedSumsPart(
            name="window sums",
            noise_scale=str(laplace_scale(int(np.ptp(seen, axis=1).max()) * GRID, epsilon)),
            steps=as_table(seen),
            weights=tuple(tuple(weights[code]) for code in used[~one_by_one]),
            light=tuple(tuple(weights[code]) for code in used[one_by_one]),
            families=tuple(sizes.items()),
            step=(step / GRID,) * len(seen),
        )
        if before is not None:
            part = replace(before, steps=before.steps + part.steps, step=before.step + part.step)
        of_items, of_users, together = answer.sums[0][rows.items], answer.rows[0][rows.users], answer.sums[3]
        values, about = np.concatenate([of_items, of_users, together]), _digest(rows, division)
        noisy = self._release(part, values, unit=step / GRID, before=before, about=about)
        self._division, self._sums_epsilon = division, epsilon
        self._summed = rows | (self._summed or rows)
        ends = np.cumsum([len(of_items), len(of_users), len(together)])[: len(sizes) - 1]
        return tuple(NoisyStatistic(values, noisy.noise_variance) for values in np.split(noisy.values, ends))

    def _sums_before(
        self, rows: RowSums, division: Division, contrasts: Contrasts | None, epsilon: float
    ) -> DividedSumsPart | None:
        """The part of the sums' earlier turns, which this one belongs to; None where it is the first."""
        if self._summed is None:
            if (division.pooled > 0) != (contrasts is not None):
                raise PrivacyError(
                    "a weight in the sums over all ratings and their signs go together. Nothing was drawn."
                )
            return None
        before = self._parts[-1]
        if not isinstance(before, DividedSumsPart) or self._summed.meets(rows):
            raise PrivacyError("the ratings are divided already. Nothing was drawn. Ask for each of the sums once.")
        if self._division is not division or self._sums_epsilon != epsilon or contrasts is not None:
            raise PrivacyError(
                "sums in turns have one division and one epsilon, and those over all ratings are in the first turn. "
                "Nothing was drawn."
            )
        return before

    def _windows(self, centres: Floats, half_width: float, before: DividedSumsPart | None) -> tuple[AnyInts, float]:
        """What a rating of each level adds to a sum, in whole steps, by its window; what a step is in rating points.

        In later turns a step is such that windows are as many steps wide as those of the first.
        """
        if before is None:
            step = self.scale.width / 2 / VALUE_GRID
            limit = max(int(half_width / step), 1)
        else:
            limit = max(before.widest // 2, 1)
            step = half_width / limit
        return np.clip(np.rint((self.scale.values - centres[:, None]) / step), -limit, limit).astype(np.int64), step

    def symbols(self, channels: Mapping[int, Channel], *, choice: str, symbol: str, turns: Turns = AT_ONCE) -> None:
        """One symbol per rating: each passes once through the channel whose number the column `choice` holds.

        They become the column `symbol` of the table. Where a division holds, ratings that it keeps out have the symbol
        zero, whatever their value; their `choice` is not looked at. With several `turns`, each call asks the ratings of
        the next one, and the others have the symbol zero: a rating is asked in one of them, so all turns together cost
        what the dearest of their channels costs.
        """
        _check_public(choice)
        before = self._turns_before(turns)
        mechanism = _named(next(iter(channels.values())))
        tables = tuple(as_table(channel.weights) for channel in channels.values())
        part = ChannelPart("ratings", mechanism, BITS, (() if before is None else before.tables) + tables)
        k, most = self.scale.n_levels, max(channel.weights.shape[1] for channel in channels.values())
        stacked, at = np.zeros((len(channels) * k, most), dtype=np.uint64), np.zeros(max(channels) + 1, dtype=np.int64)
        for place, (number, channel) in enumerate(channels.items()):
            at[number] = place * k
            stacked[place * k : (place + 1) * k, : channel.weights.shape[1]] = channel.weights
        last = len(at) - 1

        def rows(block: Block) -> AnyInts:
            return at[np.minimum(block.columns[choice], last)] + block.columns[LEVEL]

        turn = self._turn
        self._draw(
            part,
            Sampler(stacked),
            symbol,
            rows,
            choice,
            before=before,
            now=lambda block: turns.of(block) == turn,
            about=str(turns.shares),
        )
        self._turns, self._turn = turns, (turn + 1) % turns.number

    def _turns_before(self, turns: Turns) -> ChannelPart | None:
        """The part of the turns that were had already, and which this one belongs to; None where it is the first."""
        if self._turn == 0:
            return None
        if turns != self._turns or not isinstance(self._parts[-1], ChannelPart):
            raise PrivacyError(
                "ratings are asked in turns that were announced, one after the other. Nothing was drawn. Ask for the "
                "next turn."
            )
        return self._parts[-1]

    def noisy_ratings(self, channel: Channel, *, symbol: str) -> None:
        """One symbol per rating, all through one channel, as the column `symbol` of the table.

        Under one key these are the symbols that `privatise` draws, and the receipt is the same.
        """
        if self._division is not None:
            raise PrivacyError("the ratings are divided: not all of them may be asked. Nothing was drawn.")
        part = channel_part(channel)
        self._draw(part, Sampler(channel.weights), symbol, lambda block: block.columns[LEVEL])

    def _draw(
        self,
        part: PricedPart,
        sampler: Sampler,
        symbol: str,
        rows: Callable[[Block], AnyInts],
        *public: str,
        before: PricedPart | None = None,
        now: Callable[[Block], npt.NDArray[np.bool_]] | None = None,
        about: str = "",
    ) -> None:
        """Charge, then draw a symbol for every rating from the sampler's row that `rows` says, at its own place.

        `before` is the part of earlier turns, in whose place this one is charged; ratings that are not asked `now` have
        the symbol zero. A run that goes on was `about` the same ratings.
        """
        self._charge(part, before)
        if self._journal and self._journal.answered(part, about) is None:
            self._journal.keep(part, np.empty(0, dtype=np.int64), about)  # the symbols are kept block by block
        stream, division = self._noise.stream(), self._division

        def draw(block: Block) -> BlockResult:
            symbols = sampler.draw(rows(block), stream, block.start)
            if division is not None:
                symbols[~division.asks(block)] = 0
            if now is not None:
                symbols[~now(block)] = 0
            return BlockResult({symbol: symbols})

        self._raw.run(draw, reads=[*public, LEVEL], writes=[symbol], secret=True, keep=self._journal is not None)

    def certificate(self, nominal: float | None = None) -> Certificate:
        """The receipt for everything asked so far."""
        reasons = () if self._noise.private else (SEEDED,)
        return Certificate(
            nominal=self.epsilon if nominal is None else nominal,
            parts=tuple(self._parts),
            public=public_facts(self.census, self.scale),
            randomness=self._noise.kind,
            private=not reasons,
            id=self._noise.identity,
            reasons=reasons,
            charge=self._charge_reference,
            software=software(),
        )

    def _release(
        self, part: LaplacePart, values: AnyInts, *, unit: float, before: PricedPart | None = None, about: str = ""
    ) -> NoisyStatistic:
        """Charge, then add discrete Laplace noise: the price and the noise come from the same description.

        `before` is the part of earlier turns, in whose place this one is charged. A run that goes on was `about` the
        same sums.
        """
        self._charge(part, before)
        scale = Fraction(part.noise_scale)
        noisy = self._journal.answered(part, about) if self._journal else None
        if noisy is None:
            noisy = values + discrete_laplace(scale, len(values), self._noise)
            if self._journal:
                self._journal.keep(part, noisy, about)
        return NoisyStatistic(noisy.astype(np.float64) * unit, 2 * (float(scale) * unit) ** 2)

    def _charge(self, part: PricedPart, instead_of: PricedPart | None = None) -> None:
        others = [one for one in self._parts if one is not instead_of]
        if price_together([*others, part]) > Fraction(self.epsilon):
            raise PrivacyError(
                f"{part.name} would cost {part.epsilon:.6g} and only {self.left:.6g} of {self.epsilon:g} is left. "
                "Nothing was drawn. Ask for less."
            )
        self._parts = [*others, part]


def _check_public(choice: str | None) -> None:
    """Refuse windows and channels that the secret itself would choose."""
    if choice == LEVEL:
        raise PrivacyError(
            f"the column {LEVEL} is the secret: a public column says how each rating is asked. Nothing was drawn."
        )


def _digest(rows: RowSums, division: Division) -> str:
    """Which sums are asked, and which ratings weigh what in them; a part does not say."""
    said = hashlib.sha256()
    for one in (rows.items, rows.users, division.item_class, division.user_class, division.item, division.asked):
        said.update(one.tobytes())
    return said.hexdigest()


def public_facts(census: Census, scale: Scale) -> dict[str, Any]:
    """What the promise does not protect, with the numbers a reader needs to judge it."""
    counts = census.user_counts
    return {
        "facts": PUBLIC_FACTS["value"],
        "scale": str(scale),
        "levels": scale.n_levels,
        "n_users": census.n_users,
        "n_items": census.n_items,
        "n_ratings": census.n_ratings,
        "median_ratings_per_user": float(np.median(counts)),
        "max_ratings_per_user": int(counts.max()),
        "has_timestamps": census.timed,
    }


def as_table(weights: AnyInts | npt.NDArray[np.uint64]) -> tuple[tuple[int, ...], ...]:
    """A table as the certificate holds it: plain integers."""
    return tuple(map(tuple, weights.tolist()))


def _named(channel: Channel) -> str:
    """What a certificate calls a channel: one of ours by its name, and anybody else's table what it is."""
    return channel.mechanism if channel.mechanism in MECHANISMS else OWN_TABLE


def channel_part(channel: Channel, at_epsilon: float | None = None) -> ChannelPart:
    """The receipt for ratings that passed once through one channel: its table, and all that was public about it."""
    part = ChannelPart(
        name="ratings",
        mechanism=_named(channel),
        bits=BITS,
        tables=(as_table(channel.weights),),
        at_epsilon=at_epsilon,
        settings=dict(channel.settings),
        outputs=tuple(channel.outputs.tolist()),
    )
    if at_epsilon is not None:  # the channel knows which pairs of its rows to compare: the part would compare them all
        part.__dict__["price"] = Price(at_epsilon, channel.delta(at_epsilon))
    return part
