"""What was asked of the raw ratings, described so that its price follows: nothing that can be derived is stored.

    channel      integer tables P[symbol | level] = w / 2^bits; every rating passes once through one of them:
                 epsilon = the worst log-ratio in a column of the dearest table; or, where a delta is allowed, the exact
                 delta at the epsilon it states
    histogram    the bin of every level; changing one rating moves two counts by one, so epsilon = 2 / b
    sums         what a rating of each level adds, in whole steps, times one whole weight for every family of sums it is
                 in; changing one rating moves them by at most (largest - smallest step) x (sum of weights) =: D in all,
                 so discrete Laplace noise of scale b costs epsilon = D / b
    divided      sums over one item and one user, and perhaps one of several over all ratings with a public sign, whose
                 weights depend on the rating, by public counts; ratings of the
                 light weights alone are also asked one by one. A rating of full weight pays D / b for its sums; one
                 that is asked pays D' / b, D' from the light weights, and the channel: the dearer of the two counts.
                 Sums may be asked in turns, each sum in one of them, of ratings seen through windows that earlier
                 answers choose: whatever the window, a rating moves a sum by no more than the widest, times its weight
    person, rating       integer sums with normal noise: `certify.people`
    published, declared  what no description here can bear out: `certify.unproved`

Whoever holds the description can do this; it needs no rating. Results are rounded up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from dpsr.certify.amounts import float_up
from dpsr.certify.table_price import delta_of, epsilon_of
from dpsr.errors import PrivacyError

Table: TypeAlias = tuple[tuple[int, ...], ...]

VALUE_GRID = 1 << 12
"""Half the scale's width is this many steps of the grid on which values are added up."""

WEIGHT_GRID = 1 << 4
"""Weights of sums were multiples of one over this in folders made before ratings were divided."""

DIVIDED_GRID = 1 << 8
"""Weights of sums are multiples of one over this."""

_MOST_BITS = 62
_MOST_COMPARISONS = 5_000_000
"""Cells compared when the deltas of a part are recomputed: some ten seconds."""


class Price(NamedTuple):
    """Epsilon and delta, never understated."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Part(ABC):
    """One question to the raw ratings. Its fields are its public description; what it costs follows from them."""

    kind: ClassVar[str]

    name: str

    @property
    @abstractmethod
    def stated(self) -> dict[str, float]:
        """What it costs, by the name of the figure; an error says why that cannot be computed."""

    @property
    @abstractmethod
    def noise(self) -> str:
        """The noise in words, for people."""

    def to_record(self) -> dict[str, Any]:
        """Plain data: the kind, the description, and for readers the price that follows from it."""
        price = {name: "inf" if figure == inf else figure for name, figure in self.stated.items()}
        return {"kind": self.kind, **{one.name: _plain(getattr(self, one.name)) for one in fields(self)}, **price}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """From plain data of the right form (`certify.form`); a price in it is not read."""
        return cls(**{one.name: _frozen(record[one.name]) for one in fields(cls)})


@dataclass(frozen=True)
class PricedPart(Part):
    """A question with an epsilon and a delta of its own, which add up over questions."""

    @cached_property
    @abstractmethod
    def price(self) -> Price:
        """What it costs; an error says why that cannot be computed."""

    @property
    def epsilon(self) -> float:
        return self.price.epsilon

    @property
    def delta(self) -> float:
        return self.price.delta

    @property
    def stated(self) -> dict[str, float]:
        """See `Part`."""
        return {"epsilon": self.epsilon, "delta": self.delta}


OWN_TABLE = "a table of somebody's own"

MECHANISMS = (
    "optimal interval channel",
    "calibrated laplace, repaired, clipped",
    "calibrated laplace around a given centre, clipped",
    "laplace, clipped",
    "gaussian, analytic",
    "gaussian, classical",
    "randomised response",
    OWN_TABLE,
)
"""What a channel may be called. Cards show it, so that free text would be a sentence by whoever wrote the file."""


@dataclass(frozen=True)
class ChannelPart(PricedPart):
    """Every rating once through one of some finite channels (`tables`: rows are levels, a row sums to `2**bits`).

    `at_epsilon` is the epsilon at which a delta is stated; None for pure differential privacy. `settings` and `outputs`
    (the rating that each symbol of the only table is published as) are public and cost nothing.
    """

    kind: ClassVar[str] = "channel"

    mechanism: str
    bits: int
    tables: tuple[Table, ...]
    at_epsilon: float | None = None
    settings: dict[str, float] = field(default_factory=dict)
    outputs: tuple[float, ...] = ()

    @cached_property
    def price(self) -> Price:
        for table in self.tables:
            check_table(table, self.bits)
        if not self.tables:
            raise PrivacyError("a channel shows at least one table, this one has none")
        if self.at_epsilon is None:
            return Price(max(map(epsilon_of, self.tables)))
        if sum(len(table) ** 2 * len(table[0]) for table in self.tables) > _MOST_COMPARISONS:
            raise PrivacyError("tables with a delta are too large to compare all pairs of their rows")
        return Price(self.at_epsilon, max(delta_of(table, self.bits, self.at_epsilon) for table in self.tables))

    @property
    def noise(self) -> str:
        n, rows, columns = len(self.tables), len(self.tables[0]), max(len(table[0]) for table in self.tables)
        tables = "one table" if n == 1 else f"{n} tables"
        return f"{self.mechanism}: {tables} of {rows} × {columns} integers"


@dataclass(frozen=True)
class LaplacePart(PricedPart):
    """Integer statistics with discrete Laplace noise of scale `noise_scale`, a fraction."""

    noise_scale: str

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """By how much all numbers together move when one rating changes its level."""

    @cached_property
    def price(self) -> Price:
        return Price(_laplace_epsilon(self.sensitivity, self.noise_scale))

    @property
    def noise(self) -> str:
        return f"discrete Laplace, sensitivity {self.sensitivity:,}, scale {self.noise_scale}"


@lru_cache(maxsize=1024)  # audits price the same question thousands of times
def _laplace_epsilon(sensitivity: int, noise_scale: str) -> float:
    try:
        scale = Fraction(noise_scale)
    except (ValueError, ZeroDivisionError):
        scale = Fraction(0)
    if scale <= 0 or sensitivity <= 0:
        raise PrivacyError(
            f"noise needs a positive sensitivity and a positive fraction as its scale, found "
            f"{sensitivity} and {noise_scale[:20]!r}"
        )
    return float_up(sensitivity / scale)


@dataclass(frozen=True)
class HistogramPart(LaplacePart):
    """How many ratings fall into each bin; `bins[x]` is the bin of level x."""

    kind: ClassVar[str] = "histogram"

    bins: tuple[int, ...]

    @property
    def sensitivity(self) -> int:
        return 2 if len(set(self.bins)) > 1 else 0


@dataclass(frozen=True)
class SumsPart(LaplacePart):
    """Sums of `steps[level]` over families of ratings: a rating adds weight x steps to one sum of each family.

    `families` names each family and how many sums it has; `step` is what one step stands for, in rating points.

    >>> SumsPart("total", "12", (-2, 0, 2), (1,), (("all ratings", 1),), 1.0).sensitivity
    4
    """

    kind: ClassVar[str] = "sums"

    steps: tuple[int, ...]
    weights: tuple[int, ...]
    families: tuple[tuple[str, int], ...]
    step: float

    @property
    def sensitivity(self) -> int:
        if len(self.weights) != len(self.families) or min(self.weights, default=0) < 0:
            raise PrivacyError("sums have one weight, not negative, for each of their families")
        return (max(self.steps) - min(self.steps)) * sum(self.weights)


@dataclass(frozen=True)
class DividedSumsPart(LaplacePart):
    """Sums over one item and one user, weights (item, user) by a public division of the ratings.

    `steps` has a row for every window that ratings were seen through: what one of each level adds to a sum; `step` says
    what a step stands for there, in rating points. Where there is a third family, a rating is in one of its sums, with
    a public sign and the third of its weights. Ratings with some of the `weights` are in no other answer about single
    ratings; those with some of the `light` ones may be asked one by one too.

    >>> sizes = ("items", 3), ("users", 5)
    >>> part = DividedSumsPart("window sums", "64", ((-2, 2),), ((16, 0), (8, 8)), ((1, 1),), sizes, (1.0,))
    >>> part.epsilon, part.light_epsilon
    (1.0, 0.125)
    """

    kind: ClassVar[str] = "divided"

    steps: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[int, ...], ...]
    light: tuple[tuple[int, ...], ...]
    families: tuple[tuple[str, int], ...]
    step: tuple[float, ...]

    @property
    def sensitivity(self) -> int:
        return self._moves(self.weights + self.light)

    @property
    def light_epsilon(self) -> float:
        """What the sums cost a rating that is asked one by one too."""
        return float_up(self._moves(self.light) / Fraction(self.noise_scale))

    @property
    def widest(self) -> int:
        """How many steps a rating may move in the widest of the windows."""
        return max((max(row) - min(row) for row in self.steps), default=0)

    def _moves(self, weights: tuple[tuple[int, ...], ...]) -> int:
        if any(len(one) != len(self.families) or min(one) < 0 for one in weights):
            raise PrivacyError("divided sums have one weight, not negative, for each of their families")
        if len(self.steps) != len(self.step):
            raise PrivacyError("divided sums say of every window what a step stands for")
        return self.widest * max((sum(one) for one in weights), default=0)


def price_together(parts: Sequence[PricedPart]) -> Fraction:
    """What some questions cost the rating that pays most.

    A division says of every rating whether it is asked one by one from then on: it pays for later channels and the
    light sums, or for the sums alone. Channels before it asked everybody. Without exactly one division everything adds
    up.
    """
    divided = [place for place, part in enumerate(parts) if isinstance(part, DividedSumsPart)]
    if len(divided) != 1:
        return _exact_sum(part.epsilon for part in parts)
    later = divided[0] + 1
    in_sums = [*parts[:later], *(part for part in parts[later:] if not isinstance(part, ChannelPart))]
    return max(_exact_sum(part.epsilon for part in in_sums), price_one_by_one(parts))


def price_one_by_one(parts: Sequence[PricedPart]) -> Fraction:
    """What some questions cost a rating that is asked one by one."""
    return _exact_sum(part.light_epsilon if isinstance(part, DividedSumsPart) else part.epsilon for part in parts)


def _exact_sum(prices: Iterable[float]) -> Fraction:
    return sum((Fraction(price) for price in prices), Fraction(0))


def check_table(table: Table, bits: int) -> None:
    """Refuse a table whose rows are no distributions over 2**bits."""
    if not 1 <= bits <= _MOST_BITS:
        raise PrivacyError(f"a table's rows sum to 2**bits with bits from 1 to {_MOST_BITS}, found bits = {bits}")
    if len(table) < 2 or len({len(row) for row in table}) != 1:
        raise PrivacyError(f"a table has at least two rows of one length, found {len(table)}")
    for x, row in enumerate(table):
        if min(row, default=0) < 0 or sum(row) != 1 << bits:
            raise PrivacyError(f"row {x} of a table is no distribution: its cells do not add up to 2**{bits}")


def _plain(value: Any) -> Any:
    """Tuples as JSON's lists."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    """Lists as tuples, all the way down."""
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value
