"""Made-up people: tables of nobody, drawn from a released item side, or from a likes side where nobody rates.

Arrays in, arrays out. Nothing here can see a rating: a released side is all there is, so whatever is drawn from it is
post-processing and costs nothing. The seed is public. It makes a table reproducible, which is how anyone can see that
nothing but the released side is in it, and it hides nothing: privacy comes from the noise in that side.

**What they meet.** The number n of a person's items follows the noisy numbers of people by octave, with a density ~ 1/n
within one. Items are drawn one after another without repetition, each with a probability proportional to its
*propensity* p_j. Somebody with n items then meets item j with probability about

    1 - exp(-t_n p_j),      t_n such that these add up to n,

so that counts of popular items would fall short if propensities were counts. They are found such that expected counts
are the noisy ones; at the unit `user` these are weighted, as people with many ratings count less for each.

**How they rate.**

    w_u ~ N(m, P)     own level, slopes and tastes
    y_uj              mean level(n_u) + effect_j + w_u . (1, F_j), variance residual + uncertainty_j

A rating is a normal number, rounded to the nearest level and cut at the ends of the scale, which bends its mean. A
table of means is inverted, so that the mean of a rating is what was asked for wherever levels can have it at all; its
variance is, away from the ends. Which items somebody rates depends on their popularity alone: no question asks which
are met together, so the tables know nothing about it.

**Where nobody rates** there is no rating to draw, and which items go together is known:

    f_u ~ N(0, I)     own taste, on the axes that were learned
    items             without repetition, in proportion to  propensity_j max(1 + v_j . f_u, 0)

v are the loadings of frequent cells, zero elsewhere: which frequent items go together is kept as far as taste was
learned, rare items are met by popularity alone. Every interaction weighs one: how often somebody did the same was told
by no question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.errors import ParameterError
from dpsr.types.item_side import ACTIVITY_BINS, Crowd, ItemSide
from dpsr.types.likes_side import LikesSide

_MOST_MET = 0.95
"""Of all people: nobody's noisy count says more than this of an item."""

MEAN_MET: Floats = np.array(
    [(n := np.arange(2**k, 2 ** (k + 1))) @ np.log2(1 + 1 / n) for k in range(ACTIVITY_BINS)], dtype=np.float64
)
"""Of people in each octave: the mean of 2^(k + U), rounded down."""

_GRID = 512
_TURNS, _NEWTON, _ROUNDS = 40, 30, 100
_LONGEST = 8
"""Draws for each item that somebody is to meet, at most, in a round."""

_AT_ONCE, _REFUSED = 1 << 20, 4
"""Draws at a time, which bounds memory, and how many there are for one that is kept."""

_MOST_WORK = 1 << 31
"""People times cells that are looked at one by one, where drawing again does not end."""


@dataclass(frozen=True, eq=False)
class Meetings:
    """Who met what: people one after another, their cells ascending."""

    indptr: Ints
    cells: Ints

    @property
    def n_people(self) -> int:
        return len(self.indptr) - 1

    @property
    def owners(self) -> Ints:
        """Of every meeting, the person."""
        return np.repeat(np.arange(self.n_people), np.diff(self.indptr))


def numbers_met(people: int, activity: Floats, rng: np.random.Generator) -> Ints:
    """How many items each of `people` meets: an octave k in proportion to `activity`, then 2^(k + U), rounded down."""
    total = np.cumsum(np.maximum(activity, 0.0))
    octave = np.searchsorted(total / total[-1], rng.random(people), side="right")
    return np.floor(2.0 ** (np.minimum(octave, ACTIVITY_BINS - 1) + rng.random(people))).astype(np.int64)


def plausible_activity(counts: Floats) -> Floats:
    """People by activity without what noise alone put far from all others; the same number in all.

    Numbers of people fall away from the commonest octave as those of a log-concave law do, within a factor of two: c_k
    <= 2 c_(k-1)^2 / c_(k-2). A handful of people that noise invents at thousands of ratings would be most ratings.
    """
    found, peak = np.maximum(counts, 0.0), int(np.argmax(counts))
    for step in (1, -1):
        for k in range(peak + step, len(found) if step > 0 else -1, step):
            before = found[k - 2 * step] if k != peak + step else found[k - step]
            found[k] = min(found[k], 2 * found[k - step] ** 2 / max(before, 1e-9))
    return np.asarray(found * max(float(counts.sum()), 0.0) / max(float(found.sum()), 1e-9))


def propensities(counts: Floats, activity: Floats, weights: Floats) -> Floats:
    """Of every cell, adding up to one, such that its expected weighted count is in proportion to `counts`.

    Cells of like popularity are treated alike: the fixed point p <- p wanted / expected is found on a grid of them.
    It is remembered for a few item sides: people are made up, and made up again to see whether a table holds just them.
    """
    return _propensities(*(np.asarray(one, dtype=np.float64).tobytes() for one in (counts, activity, weights)))


@lru_cache(maxsize=4)
def _propensities(*of: bytes) -> Floats:
    counts, activity, weights = (np.frombuffer(one) for one in of)
    found = _fixed_point(counts, activity, weights)
    found.setflags(write=False)
    return found


def _fixed_point(counts: Floats, activity: Floats, weights: Floats) -> Floats:
    some, people = counts > 0, np.maximum(activity, 0.0)
    if some.sum() < 2:
        return np.asarray(np.where(some, 1.0, 0.0) if some.any() else np.full(len(counts), 1 / len(counts)))
    group, many, typical = _grouped(counts[some])
    sizes = np.minimum(MEAN_MET, 0.9 * many.sum())
    weight = people * weights / (people @ weights)
    wanted = _shared_out(typical, many, float(weight @ sizes))
    p = typical / (many @ typical)
    for _ in range(_TURNS):
        met = weight @ (1 - np.exp(-np.outer(_times(sizes, p, many), p)))
        p = p * wanted / met
        p /= many @ p
    found = np.zeros(len(counts))
    found[some] = counts[some] * (p / typical)[group]
    return found / found.sum()


def _grouped(values: Floats) -> tuple[Ints, Floats, Floats]:
    """Cells in groups of like value: the group of each, how many there are and their mean; zeros join the smallest."""
    depth = np.log(values.max() / np.maximum(values, 1e-9 * values.max())) / np.log(1e9)
    _, group = np.unique(np.minimum((_GRID * depth).astype(np.int64), _GRID - 1), return_inverse=True)
    many = np.bincount(group).astype(np.float64)
    return group, many, np.maximum(np.bincount(group, values) / many, 1e-300)


def _shared_out(typical: Floats, many: Floats, total: float) -> Floats:
    """Chances in proportion to `typical`, none above the most, adding up to `total` with multiplicities `many`."""
    low, high = 0.0, 1 / max(float(typical.min()), 1e-300)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if many @ np.minimum(middle * typical, _MOST_MET) >= total else (middle, high)
    return np.asarray(np.minimum(high * typical, _MOST_MET))


def _times(sizes: Floats, p: Floats, many: Floats) -> Floats:
    """t with sum_j many_j (1 - exp(-t p_j)) = n for every n of `sizes`: Newton's method from below, which is safe."""
    t = sizes / (many @ p)
    for _ in range(_NEWTON):
        left, before = np.exp(-np.outer(t, p)), t
        t = t + (sizes - (1 - left) @ many) / (left @ (many * p))
        if np.array_equal(t, before):
            break
    return t


def chances_met(count: int, propensity: Floats) -> Floats:
    """How likely somebody with `count` items has met each cell."""
    n = float(min(count, 0.99 * (propensity > 0).sum()))
    return np.asarray(1 - np.exp(-_times(np.array([n]), propensity, np.ones(len(propensity)))[0] * propensity))


Welcome = Callable[[Ints, Ints], Floats]
"""With which chance a draw is kept, of people and cells."""


Look = Callable[[Ints, Ints], None]
"""Is shown people and the cells they met, group after group; an error that it raises ends the drawing."""


def items_met(
    counts: Ints,
    propensity: Floats,
    rng: np.random.Generator,
    welcome: Welcome | None = None,
    look: Look | None = None,
) -> tuple[Ints, Ints]:
    """Cells met by people with so many items each, none twice: pointers, and cells ascending for each person.

    With `welcome` (people, cells), a draw is kept with that chance: a person's propensities are the products. People
    are served in groups, so that memory does not grow with them.
    """
    wanted = np.minimum(counts, int((propensity > 0).sum()))
    length = np.ceil(np.minimum(1.1 * _draws_needed(wanted, propensity), _LONGEST * wanted)).astype(np.int64) + 4
    length *= 1 if welcome is None else _REFUSED
    group = np.cumsum(length) // _AT_ONCE
    numbers, cells = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for people in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(group)) + 1):
        owners, met = _met(people, wanted[people], length[people], propensity, rng, welcome)
        if look is not None:
            look(people[owners], met)
        numbers.append(np.bincount(owners, minlength=len(people)))
        cells.append(met)
    return np.cumsum(np.concatenate(numbers)), np.concatenate(cells)


def _met(
    people: Ints,
    wanted: Ints,
    length: Ints,
    propensity: Floats,
    rng: np.random.Generator,
    welcome: Welcome | None,
) -> tuple[Ints, Ints]:
    """Places among `people`, ascending, and the cells they met.

    The first n different ones of a sequence of independent draws are n draws without repetition. Sequences are as long
    as n different ones take; whoever lacks some draws on, and after some rounds gets the rest at once: of the others
    those with the smallest exponential numbers over p, which is the same law (Efraimidis and Spirakis 2006). Where that
    would take too long they end with less.
    """
    total, n, m = np.cumsum(propensity), len(propensity), len(people)
    keys, missing, done = np.zeros(0, dtype=np.int64), wanted, []
    for _ in range(_ROUNDS):
        owner = np.repeat(np.arange(m), length)
        cells = np.minimum(np.searchsorted(total, rng.random(len(owner)) * total[-1], side="right"), n - 1)
        if welcome is not None:
            kept = rng.random(len(owner)) < welcome(people[owner], cells)
            owner, cells = owner[kept], cells[kept]
        keys = _first_different(np.concatenate([keys, owner * n + cells]), wanted, n)
        missing = wanted - np.bincount(keys // n, minlength=m)
        whole = missing[keys // n] == 0
        done.append(keys[whole])
        keys, wanted = keys[~whole], np.where(missing == 0, 0, wanted)
        if not missing.any():
            break
        length = 2 * missing * (1 if welcome is None else _REFUSED)
    owners = np.unique(keys // n)
    if len(owners) * n <= _MOST_WORK:
        keys = np.sort(keys)
        ends = np.searchsorted(keys, [owners * n, (owners + 1) * n]).T
        done += [
            _rest(keys[first:last] % n, int(missing[u]), propensity, rng) + u * n
            for u, (first, last) in zip(owners, ends, strict=True)
        ]
    met = np.sort(np.concatenate([*done, keys]))
    return met // n, met % n


def _draws_needed(counts: Ints, propensity: Floats) -> Floats:
    """About how many independent draws give so many different cells; cells of like propensity are treated alike."""
    _, many, typical = _grouped(propensity)
    most = 0.97 * many.sum()
    sizes = np.unique(np.minimum(np.geomspace(1, max(int(counts.max(initial=1)), 1), 40), most))
    return np.asarray(np.interp(np.minimum(counts, most), sizes, _times(sizes, typical / (many @ typical), many)))


def _first_different(keys: Ints, wanted: Ints, n: int) -> Ints:
    """Of keys person times n plus cell, in the order drawn, every person's first `wanted` different ones."""
    different, first = np.unique(keys, return_index=True)
    owner = different // n
    order = np.lexsort((first, owner))
    starts = np.searchsorted(owner, np.arange(len(wanted)))
    rank = np.arange(len(order)) - starts[owner[order]]
    kept = order[rank < wanted[owner[order]]]
    return different[kept]


def _rest(have: Ints, missing: int, propensity: Floats, rng: np.random.Generator) -> Ints:
    """`missing` further cells of somebody who has met those in `have`."""
    waiting = rng.standard_exponential(len(propensity)) / np.maximum(propensity, 1e-300)
    waiting[have] = np.inf
    return np.argpartition(waiting, missing)[:missing] if missing < len(waiting) else np.arange(len(waiting))


MOST_PEOPLE = 100_000_000
USUAL_RATINGS = 2_000_000
"""As many people as there are, noisily, are made up unless told; fewer where they would have more ratings than this."""


_NARROWEST = 0.35
"""Deviation before rounding, in steps between levels: below it means would go up in stairs."""

_WIDTHS, _CENTRES, _POINTS = 8, 241, 801


@dataclass(frozen=True)
class Synthesis:
    """What a table of made-up people follows from, beside the item side."""

    people: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.people <= MOST_PEOPLE or self.seed < 0:
            raise ParameterError(
                f"people are made up by a number from 1 to {MOST_PEOPLE:,} and a seed that is not negative, found "
                f"{self.people:,} and {self.seed}."
            )


@dataclass(frozen=True, eq=False)
class MadeUpPeople(Meetings):
    """Ratings of nobody; `places` of ratings on the scale."""

    places: Ints


def usual_people(crowd: Crowd) -> int:
    """The noisy number of people, or as many as have USUAL_RATINGS."""
    activity = np.maximum(crowd.activity, 0.0)
    ratings = float(activity @ MEAN_MET) / max(float(activity.sum()), 1e-9)
    return int(np.clip(round(min(crowd.people, USUAL_RATINGS / max(ratings, 1.0))), 1, MOST_PEOPLE))


def planned_ratings(crowd: Crowd, asked: Synthesis) -> int:
    """About how many ratings they will have: at most this, and hardly less."""
    counts = numbers_met(asked.people, crowd.activity, np.random.default_rng(asked.seed))
    return int(np.minimum(counts, int((crowd.met > 0).sum()) or len(crowd.counts)).sum())


def make_up(side: ItemSide, asked: Synthesis, look: Look | None = None) -> MadeUpPeople:
    """As many people as asked for; the same item side, number and seed give the same people."""
    if side.crowd is None:
        raise ParameterError("people are made up from an item side that knows how many people meet what.")
    rng = np.random.default_rng(asked.seed)
    counts = numbers_met(asked.people, side.crowd.activity, rng)
    crowd = side.crowd
    indptr, cells = items_met(counts, propensities(crowd.met, crowd.activity, crowd.weights), rng, look=look)
    owners = np.repeat(np.arange(asked.people), np.diff(indptr))
    mean, variance = _ratings(side, np.diff(indptr), owners, cells, rng)
    return MadeUpPeople(indptr, cells, draw_levels(mean, variance, side.scale.n_levels, rng))


def _ratings(
    side: ItemSide, counts: Ints, owners: Ints, cells: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean and variance of every rating, in half-widths around the midpoint."""
    k = len(side.mean)
    root = np.linalg.cholesky(side.covariance + 1e-12 * np.eye(k))
    own = side.mean + rng.standard_normal((len(counts), k)) @ root.T
    y = (side.level_of(counts) + own[:, 0])[owners] + side.effects[cells]
    for a in range(k - 1):
        y += own[owners, a + 1] * side.features[cells, a]
    return side.spread * y, side.spread**2 * (side.residual + side.uncertainty[cells])


def draw_levels(mean: Floats, variance: Floats, n_levels: int, rng: np.random.Generator) -> Ints:
    """One level, 0 to `n_levels` - 1, for each mean and variance; both in half-widths around the midpoint."""
    step = 2 / (n_levels - 1)
    m, v = (mean + 1) / step, variance / step**2  # in levels
    deviation = np.sqrt(np.maximum(v - 1 / 12, _NARROWEST**2))
    widths = np.geomspace(deviation.min(initial=1.0), deviation.max(initial=1.0), _WIDTHS)
    nearest = np.argmin(np.abs(np.log(deviation)[:, None] - np.log(widths)), axis=1)
    centre = np.empty(len(m))
    for w, width in enumerate(widths):
        here = nearest == w
        centres, means = _means(float(width), n_levels)
        centre[here] = np.interp(m[here], means, centres)
    drawn = np.rint(centre + widths[nearest] * rng.standard_normal(len(m)))
    return np.clip(drawn, 0, n_levels - 1).astype(np.int64)


def _means(width: float, n_levels: int) -> tuple[Floats, Floats]:
    """Centres of the normal, and what the mean of the rounded and cut number is at each; both ascending."""
    z = np.linspace(-6, 6, _POINTS)
    p = np.exp(-0.5 * z**2)
    p /= p.sum()
    centres = np.linspace(-3 * width - 1, n_levels + 3 * width, _CENTRES)
    means = np.clip(np.rint(centres[:, None] + width * z), 0, n_levels - 1) @ p
    return centres, np.maximum.accumulate(means)


_MOST_WELCOME = 4.0
"""Nobody is more than so many times as fond of an item as everybody is on average."""

_TASTES_AT_ONCE = 1 << 16
"""Draws whose taste is looked at together: two dozen megabytes."""


@dataclass(frozen=True, eq=False)
class MadeUpLikes(Meetings):
    """Interactions of nobody."""


def make_up_likes(side: LikesSide, asked: Synthesis, look: Look | None = None) -> MadeUpLikes:
    """As many people as asked for; the same side, number and seed give the same people."""
    if side.crowd is None:
        raise ParameterError("people are made up from a likes side that knows how many people do how much.")
    rng, crowd, loadings = np.random.default_rng(asked.seed), side.crowd, side.loadings
    counts = numbers_met(asked.people, crowd.activity, rng)
    tastes = rng.standard_normal((asked.people, loadings.shape[1]))
    place = np.full(side.n_cells, -1, dtype=np.int64)
    place[side.frequent] = np.arange(len(side.frequent))

    def welcome(people: Ints, cells: Ints) -> Floats:
        chance = np.ones(len(cells))
        for start in range(0, len(cells), _TASTES_AT_ONCE):
            part = slice(start, start + _TASTES_AT_ONCE)
            known = np.flatnonzero(place[cells[part]] >= 0)
            v = loadings[place[cells[part][known]]]
            chance[start + known] += np.einsum("ia,ia->i", v, tastes[people[part][known]])
        return np.asarray(np.clip(chance / _MOST_WELCOME, 0.0, 1.0))

    p = propensities(crowd.met, crowd.activity, crowd.weights)
    return MadeUpLikes(*items_met(counts, p, rng, welcome if loadings.shape[1] else None, look))
