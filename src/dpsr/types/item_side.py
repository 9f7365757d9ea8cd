"""What is released where people are protected: the item side, and nothing about anybody.

Statistics are kept by *cell*. If the list of items was declared public, every item has a cell of its own. If not, an
item's cell follows from its id by a public hash, so that no item has to be named for something to be known about it:
every cell has noise, whether anybody rated an item in it or not. Items that many people rated may be named besides.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.linalg.own_curve import OwnCurves
from dpsr.linalg.own_regression import PeopleRows, predict_pairs, regress
from dpsr.types.coordinates import Ids, Scale, codes_of, id_array
from dpsr.types.id_order import IdOrder, spelt

HASHED_CELLS = 1 << 16
"""Cells where no list of items was declared: some three times the items of the largest catalogues we have in mind, and
their noise costs nothing, for it is the same on every cell."""

CENTRE = 0.25
"""Own levels are measured from a quarter of the half-width above the middle of the scale: ratings lie there, as a guess
before anything is asked."""

MOST_KNOTS = 32
"""Places in the order of ids at which lists look at a person's curve."""

ACTIVITY_BINS = 14
"""Octaves of the number of ratings of a person: 1, 2 to 3, 4 to 7, ..., 8192 and more."""


_MOST_OWN = 0.9
"""A rating is believed to have made up at most so much of an effect: which weight it had is known by octave alone."""

_CLOSE = 1.1
"""What people did in all is known to about a tenth, from noisy numbers of people by activity."""

SIZES: Floats = np.concatenate([[1.0], 1.45 * 2.0 ** np.arange(1, ACTIVITY_BINS)])
"""Typical number of ratings in an octave of activity: the mean of a density ~ 1/n."""


def left_for_names(counts: Floats, share: float, n_cells: int, most: int) -> float:
    """Of what people's items weigh for names, the part that is left where at most `most` items of a person count.

    `counts` are people by octave of activity. Somebody with n interactions has about m = n `share` of them among the
    `n_cells` asked about, and no more than there are: they weigh 1 / sqrt m each, sqrt m together, and sqrt `most` if
    only so many count.

    >>> left_for_names(np.eye(ACTIVITY_BINS)[4], 1.0, 1000, 5), left_for_names(np.eye(ACTIVITY_BINS)[4], 1.0, 5, 5)
    (0.46423834544262965, 1.0)
    """
    items = np.minimum(SIZES * share, n_cells)
    whole = float(counts @ np.sqrt(items))
    return float(counts @ np.sqrt(np.minimum(items, most))) / whole if whole > 0 else 1.0


def hashed_cells(ids: pa.Array) -> Ints:
    """The cell of every item: the first 16 bits of the BLAKE2 hash of its id, written as text."""
    return (hashes(ids) & np.uint64(HASHED_CELLS - 1)).astype(np.int64)


def hashes(ids: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """64 bits that follow from an id alone, as it is `spelt`."""
    digests = b"".join(hashlib.blake2b(one.encode(), digest_size=8).digest() for one in spelt(ids))
    return np.frombuffer(digests, dtype="<u8")


def activity_of(counts: AnyInts) -> Ints:
    """The octave of each number of ratings; nobody has none."""
    octave = np.frexp(np.maximum(counts, 1).astype(np.float64))[1] - 1
    return np.minimum(octave, ACTIVITY_BINS - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class OwnSide:
    """What some people's own ratings say: coefficients with covariances, residuals and leverages of the ratings, and
    perhaps curves along the order of ids.
    """

    level: Floats
    coefficients: Floats
    covariances: Floats
    residuals: Floats
    leverages: Floats
    curves: OwnCurves | None = None

    def at_knots(self, places: Ints) -> Floats:
        """Everybody's curve at each of these places in the order of ids (people, places), in spreads."""
        m, k = len(self.level), len(places)
        if self.curves is None or k == 0:
            return np.zeros((m, k))
        return self.curves.at(np.repeat(np.arange(m), k), np.tile(places, m)).reshape(m, k)


@dataclass(frozen=True, eq=False)
class Crowd:
    """How many people there are and what they meet, as noisy answers say.

    people                          how many
    activity (ACTIVITY_BINS)        people by octave of their number of ratings
    counts (cells)                  weighted counts: a rating of somebody in octave k counts weights[k]
    weights (ACTIVITY_BINS)
    """

    people: float
    activity: Floats
    counts: Floats
    weights: Floats

    @cached_property
    def met(self) -> Floats:
        """Counts that add up to what people did, which is known to about a tenth.

        No count is shown as less than a part of its own noise, and over thousands of rare cells these parts are more
        than everything else together. Where all is too much, one level is taken from every count, as it would lie under
        all of them if nothing but noise were there.
        """
        counts, total = np.maximum(self.counts, 0.0), _CLOSE * float(self.activity @ (self.weights * SIZES))
        if not 0 < total < counts.sum():
            return counts
        low, high = 0.0, float(counts.max())
        for _ in range(60):
            level = (low + high) / 2
            low, high = (low, level) if np.maximum(counts - level, 0).sum() < total else (level, high)
        return np.maximum(counts - low, 0.0)


@dataclass(frozen=True, eq=False)
class ItemSide:
    """Everything needed to predict for anybody from their own ratings. Ratings are in half-widths around the midpoint.

    effects, uncertainty (cells)    what a cell adds to a rating, in spreads, and the variance of what is unknown of it
    features (cells, k - 1)         the effect again, log popularity, factors of taste
    residual                        variance of a rating that nothing explains, in squared spreads
    spread                          deviation of a rating around its person's own level, in half-widths
    own_levels (ACTIVITY_BINS)      mean own level of people with so many ratings, in half-widths
    mean, covariance (k)            where people's coefficients on (1, features) lie
    crowd                           how many people, how active, and what they meet; None before it was asked
    pull (cells)                    what a residual of weight one added to the effect of its cell; None before
    """

    scale: Scale
    effects: Floats
    uncertainty: Floats
    features: Floats
    residual: float
    spread: float
    own_levels: Floats
    mean: Floats
    covariance: Floats
    crowd: Crowd | None = None
    pull: Floats | None = None

    @property
    def n_cells(self) -> int:
        return len(self.effects)

    @property
    def n_factors(self) -> int:
        return max(self.features.shape[1] - 2, 0)

    @property
    def log_popularity(self) -> Floats:
        """Of every cell, around its mean over ratings; zeros where popularity was not learned."""
        return self.features[:, 1] if self.features.shape[1] > 1 else np.zeros(self.n_cells)

    def level_of(self, counts: AnyInts) -> Floats:
        """The expected own level, in spreads, of people with so many ratings."""
        return self.own_levels[activity_of(counts)] / self.spread

    def own_side(self, rows: PeopleRows) -> OwnSide:
        """What these people's ratings say, each from their own alone."""
        level = self.level_of(np.diff(rows.indptr))
        fitted = regress(
            rows.indptr, rows.cells, rows.y / self.spread, level, self.effects, self.features, self.uncertainty,
            self.residual, self.mean, self.covariance,
        )  # fmt: skip
        return OwnSide(level, *fitted)

    def own_side_of_fitted(self, rows: PeopleRows) -> OwnSide:
        """The same for people from whose ratings, among others', the effects were learned.

        An effect m holds h r of a rating that lies r above its person's level, h = pull times the rating's weight, so
        somebody would find their own ratings confirmed. Without that rating it is (m - h r) / (1 - h): with this their
        coefficients are found again.
        """
        own = self.own_side(rows)
        if self.pull is None or self.crowd is None or self.features.shape[1] == 0:
            return own
        counts, cells = np.diff(rows.indptr), rows.cells
        h = np.minimum(self.pull[cells] * np.repeat(self.crowd.weights[activity_of(counts)], counts), _MOST_OWN)
        effects, features = self.effects[cells], self.features[cells]
        beside = own.residuals + np.repeat(own.coefficients[:, 1], counts) * features[:, 0]  # r - m
        less = h * beside / (1 - h)
        features[:, 0] -= less
        fitted = regress(
            rows.indptr, np.arange(len(cells)), rows.y / self.spread, own.level, effects - less, features,
            self.uncertainty[cells], self.residual, self.mean, self.covariance,
        )  # fmt: skip
        return OwnSide(own.level, *fitted)

    def with_curves(self, own: OwnSide, rows: PeopleRows, places: Ints) -> OwnSide:
        """The same people with curves of their residuals along the order of ids; `places` are those of their rows.

        Nobody else's ratings tell of it, and nothing is asked for it.
        """
        variances = self.residual + self.uncertainty[rows.cells]
        return replace(own, curves=OwnCurves.of(rows.indptr, places, own.residuals, variances))

    def predict(self, own: OwnSide, people: Ints, cells: Ints, places: Ints | None = None) -> Floats:
        """Ratings of pairs, inside the scale; `people` are numbers in `own`, a cell of -1 is an unknown item.

        `places` are the items' in the order of ids, for people with curves.
        """
        return self.to_scale(self.expected(own, people, cells, places))

    def expected(self, own: OwnSide, people: Ints, cells: Ints, places: Ints | None = None) -> Floats:
        """The same in half-widths around the midpoint, wherever they lie."""
        y = predict_pairs(people, cells, own.level, self.effects, self.features, own.coefficients)
        if own.curves is not None and places is not None:
            y += own.curves.at(people, places)
        return self.spread * y

    def to_scale(self, y: Floats) -> Floats:
        """Half-widths around the midpoint as ratings inside the scale."""
        return self.scale.clip(self.scale.midpoint + self.scale.width / 2 * y)

    @cached_property
    def stranger(self) -> OwnSide:
        """Somebody of whom nothing is known: coefficients as expected, and the level of people with one rating."""
        k = len(self.mean)
        empty = np.zeros(0)
        return OwnSide(
            self.level_of(np.ones(1, dtype=np.int64)),
            self.mean[None, :],
            self.covariance.reshape(1, k, k),
            empty,
            empty,
        )


@dataclass(frozen=True, eq=False)
class ItemIndex:
    """From ids to cells, and which items may be named in a list.

    `declared` is the public list of items, or None where cells are hashed; `named` are the items that may be named.
    """

    declared: pa.Array | None
    named: pa.Array

    @property
    def n_cells(self) -> int:
        return HASHED_CELLS if self.declared is None else len(self.declared)

    def cells_of(self, ids: Ids) -> Ints:
        """The cell of each item; -1 for one outside a declared list."""
        if self.declared is not None:
            return codes_of(ids, self.declared)
        return hashed_cells(id_array(ids))

    def named_codes(self, ids: Ids) -> Ints:
        """The place of each item among those that may be named, -1 for any other; hashed ones are named as `spelt`."""
        return codes_of(ids if self.declared is not None else spelt(id_array(ids)), self.named)

    @cached_property
    def named_cells(self) -> Ints:
        return self.cells_of(self.named)

    @cached_property
    def knots(self) -> Knots:
        """Where lists look at people's curves."""
        return Knots.among(self.named)


@dataclass(frozen=True, eq=False)
class Knots:
    """Some items that may be named, evenly spaced in the order of ids: between them, lists take curves to be straight.

    So a curve is a few numbers of a person times a few of an item, `hats` (named items, knots), as lists for millions
    need it. The ratings that a list shows are read off the curve itself.
    """

    ids: pa.Array
    hats: Floats

    @classmethod
    def among(cls, named: pa.Array) -> Knots:
        """At most `MOST_KNOTS`; where there are no more items than that, every one is a knot and curves are exact."""
        rank = np.argsort(np.argsort(IdOrder(named).places(), kind="stable"), kind="stable")
        n, k = len(named), min(len(named), MOST_KNOTS)
        if n == 0:
            return cls(named, np.zeros((0, 0)))
        at = np.linspace(0, n - 1, k).round()
        hats = np.column_stack([np.interp(rank, at, one) for one in np.eye(k)])
        return cls(named.take(pa.array(np.argsort(rank)[at.astype(np.int64)])), hats)
