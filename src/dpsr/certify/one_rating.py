r"""How far one rating more or less moves sums to which every rating adds: squared bounds in whole steps.

**coefficients, scores of people.** A person adds one vector of length at most b; one rating more replaces it by another
of such length, so the sum moves by at most 2 b.

**activity.** The same, and the vectors are positive multiples of (1, a) with -(1 + C) <= a <= 1 - C for one C above 0.
No two of them have an obtuse angle, for 1 + a a' >= 1 - (1 + C) (1 - C), which is above 0. So one in the place of
another moves the sum by squares of at most b^2 + b^2, in the same octave or in another one.

**levels.** Somebody's n ratings x, from -L = -5/4 to H = 3/4, have the mean a and squares W around it. They count
n / (n + k), so that one rating more moves them little however few there are. In units of b they add

    k / (n + k) (n, n a, q n a^2, q W, q (n - 1)),      q = 2/5,      and n / 10.

One rating x more, with u = k / (n + 1 + k), h = n / (n + k), r = n / (n + 1), moves these by

    u (1 - h),    u (x - h a),    q u (x^2 - r (x - a)^2 - h a^2),    q u (r (x - a)^2 - W / (n + k)),
    q u (1 + k) / (n + k)    (0 for the first rating),    1/10,

for S^2 / n grows by x^2 - r (x - a)^2, S = n a, and W by r (x - a)^2. W is at most n, for x lies in a range of length
2. So they move by at most

    u (1 - h),    u (L + H h),    q u max(L^2, 4 r + L^2 h - H^2),    4 q u r,    q u (1 + k) / (n + k),    1/10,

of which the third is least, for n >= 1, at a = -L and x = H. Every number is rounded towards zero: two steps more. The
bound is the largest sum of squares over n from 0 to 8 k; beyond, every term falls.

**second moments.** Over T chosen cells, a person with exactly one rating in n of them adds what is above the diagonal
of a_n x x', with x as below (own level included), on a grid of sqrt b steps, and a_n = 1 / sqrt(n + r). One rating more
adds a cell to the n, or takes one away (a second rating in a cell removes it), or neither; the pairs with that cell
have length at most b a_n+1 sqrt n, for |x| <= 1, and the pairs of the n others move by at most

    b (a_n sqrt 2 n D + (a_n - a_n+1) n / sqrt 2),      D = 2 c / (a (n + 1 + s)) + 1 / sqrt b,

for |x x' - y y'| <= (|x| + |y|) |x - y|, of which a part 1 / sqrt 2 lies above the diagonal. The two are different
entries, so their squares add up; rounding moves each entry by at most one step more. The bound is the largest over n
from 0 to T.

**names, weighted counts.** A rating, or an interaction, adds the weight b to its item, or less, and nothing else moves.

**numbers of interactions.** A person adds b to the octave of their number of interactions; one more takes it from there
to another, or leaves it: squares 2 b^2.

**second moments of presence.** As of people: above the diagonal a person adds a vector of length at most b / sqrt 2;
one interaction more replaces it by another, so the sum moves by at most sqrt 2 b.

**pairs of presence.** A person with n of the T cells asked about adds A_n = floor(b / sqrt n) on each pair of them. One
interaction more in a new cell adds n pairs of A_n+1 and moves the n (n - 1) / 2 others from A_n to A_n+1; in a cell
that they have already it moves nothing. The squares are at most

    n A_n+1^2 + n (n - 1) / 2 (A_n - A_n+1)^2  <=  b^2 (n / (n + 1) + 1 / (8 n)) + b sqrt n / 2 + n^2 / 2  <=  b^2,

for A_n - A_n+1 <= b / (2 n^(3/2)) + 1 and n <= T <= 4,096. So pairs weigh as much as an interaction does in counts, and
those of somebody with n cells sqrt n times as much as in second moments whose rows have length one.

**scores.** In units of the spread, with the residual e of a rating against the item side,

    m = sum clip(e, -c, c) / (n + s)       the person's own level, n ratings, shrunk by s
    z = e - m,   x = z / sqrt(z^2 + a^2),   psi(z) = g (x, (1 - x^2)^(3/2)),

and psi is added to the rating's cell, rounded towards zero; where several ratings of a person share a cell, their mean
is. |psi| <= g, because x^2 + (1 - x^2)^3 <= 1, and |d psi / dz| <= g l / a with l = max_t sqrt((1 + t^2)^-3 + 9 t^2
(1 + t^2)^-5) < 1.1531. One rating more, for somebody who had n, adds a psi; m moves by at most 2 c / (n + 1 + s), for
|clip(e)| and |m| are at most c; so each of the n others, and every mean of some, moves by at most d = g K / (n + 1 + s)
+ sqrt 2, K = 2 c l / a, rounding included. In a cell where k >= 1 of them are, the new one moves the mean besides by
|psi - mean| / (k + 1) <= 2 g / (k + 1) <= g; at most n - 1 other cells are left then:

    (g + d)^2 + (n - 1) d^2 = g^2 + 2 g d + n d^2.

With v = 1 / (n + 1 + s) the part without rounding is g^2 (1 + (2 K + K^2) v - K^2 (1 + s) v^2), n K v <= K bounds the
rest, and nobody has more than 2^30 ratings:

    g^2 (1 + max_v [(2 K + K^2) v - K^2 (1 + s) v^2]) + 2 sqrt 2 g (1 + K) + 2^31,      0 < v <= 1 / (2 + s).

Without own levels (s infinite, written 0) nothing else moves, and the bound is g^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt

from dpsr.errors import PrivacyError

Settings = Mapping[str, float]

LIPSCHITZ = Fraction("1.1531")
"""Above the steepest that (x, (1 - x^2)^(3/2)) gets, times a."""

_ROOT_TWO, _ROOT_HALF = Fraction("1.4142136"), Fraction("0.7071068")
_MOST_RATINGS = 1 << 30

CLIP, WIDTH = 1.5, 0.8
"""The settings of our own questions. Residuals, in spreads, are cut at CLIP for the own level, and count half from
about WIDTH on in scores."""

SHRINK = 40.0
"""Ratings' worth of zero that pull a person's own level: so many that one rating moves it little, and few enough that
people with a hundred ratings are understood."""

RAMP = 8
"""Somebody with n cells weighs 1 / sqrt(n + RAMP) in second moments: few ratings tell little about taste."""

LEVELS_RAMP = 16
"""Somebody with n ratings counts n / (n + LEVELS_RAMP) among levels: the larger, the more do people with many ratings
count beside what one rating moves, and the fewer people the answer is about."""

LOWEST, HIGHEST = Fraction(-5, 4), Fraction(3, 4)
"""Between which ratings lie, in half-widths around where levels are measured from."""

SECOND_ORDER, PER_RATING = Fraction(2, 5), Fraction(1, 10)
"""Weights beside the level's of squares among levels, and of the number of ratings: with them the bound is a fifth
larger than the level alone would make it."""

SETTING_NAMES = ("bound", "clip", "shrink", "width", "ramp", "cells")

MOST_CELLS, MOST_RAMP = 4096, 1024
"""Of second moments and of levels: more would make the bound slow to check."""


def replaced(settings: Settings) -> int:
    """A person's vector, of length at most `bound`, is replaced by another."""
    return 4 * _whole(settings, "bound") ** 2


def moved(settings: Settings) -> int:
    """One vector gives way to another, at no obtuse angle; or two of half that squared length at any."""
    return 2 * _whole(settings, "bound") ** 2


def levels(settings: Settings) -> int:
    """See the module.

    >>> levels({"bound": 1 << 20, "ramp": 16}) / 2**40 < 3.41
    True
    """
    return _largest_levels(_whole(settings, "bound"), _whole(settings, "ramp"))


@lru_cache(maxsize=64)
def _largest_levels(b: int, ramp: int) -> int:
    if ramp > MOST_RAMP:
        raise PrivacyError(f"levels have a ramp of at most {MOST_RAMP} ratings")
    return max(sum((ceil(b * one) + 2) ** 2 for one in levels_moves(n, ramp)) for n in range(8 * ramp + 1))


def levels_moves(n: int, ramp: int) -> tuple[Fraction, ...]:
    """How far one rating more moves each number of somebody who has n, at most."""
    u, h, r = Fraction(ramp, n + 1 + ramp), Fraction(n, n + ramp), Fraction(n, n + 1)
    squares = max(LOWEST**2, 4 * r + h * LOWEST**2 - HIGHEST**2)
    known = Fraction(1 + ramp, n + ramp) if n else Fraction(0)
    q = SECOND_ORDER
    return u * (1 - h), u * (h * HIGHEST - LOWEST), q * u * squares, 4 * q * u * r, q * u * known, PER_RATING


def added(settings: Settings) -> int:
    """A weight is added, and nothing else moves."""
    return _whole(settings, "bound") ** 2


def scores(settings: Settings) -> int:
    """See the module.

    >>> scores({"bound": 1 << 20, "clip": 1.5, "shrink": 40.0, "width": 0.8}) / 2**40 < 1.25
    True
    """
    g, shrink = _whole(settings, "bound"), _setting(settings, "shrink")
    clip, width = _setting(settings, "clip"), _setting(settings, "width")
    if shrink == 0:
        return g * g
    if shrink < 0 or clip <= 0 or width <= 0:
        raise PrivacyError("scores have a positive clip and width, and a shrinkage that is not negative")
    K = 2 * clip * LIPSCHITZ / width
    linear, square = 2 * K + K * K, K * K * (1 + shrink)
    v = min(linear / (2 * square), 1 / (2 + shrink))
    return ceil(g * g * (1 + linear * v - square * v * v) + 2 * _ROOT_TWO * g * (1 + K) + 2 * _MOST_RATINGS)


def second_moments(settings: Settings) -> int:
    """See the module; everything is rounded up to whole steps.

    >>> settings = {"bound": 1 << 30, "clip": 1.5, "shrink": 40.0, "width": 0.8, "ramp": 8, "cells": 100}
    >>> second_moments(settings) / 2**60 < 1.2
    True
    """
    b, T, ramp = (_whole(settings, name) for name in ("bound", "cells", "ramp"))
    clip, shrink, width = (_setting(settings, name) for name in ("clip", "shrink", "width"))
    if T > MOST_CELLS or shrink <= 0 or clip <= 0 or width <= 0:
        raise PrivacyError("second moments have a positive clip, width and shrinkage, and at most 4,096 cells")
    return _largest_moments(T, b, clip, shrink, width, ramp)


@lru_cache(maxsize=64)
def _largest_moments(T: int, b: int, clip: Fraction, shrink: Fraction, width: Fraction, ramp: int) -> int:
    """Over all n, remembered: what is left of a budget is asked for again and again."""
    return max(_moments_at(n, b, clip, shrink, width, ramp) for n in range(T + 1))


def _moments_at(n: int, b: int, clip: Fraction, shrink: Fraction, width: Fraction, ramp: int) -> int:
    """The squared bound for somebody with n cells, rounded up."""
    now, later = moment_weight(n, ramp), moment_weight(n + 1, ramp)
    shift = 2 * clip / (width * (n + 1 + shrink)) + Fraction(1, isqrt(b))
    new = ceil(Fraction(b * later, MOMENT_WEIGHT) * (isqrt(n << 40) + 1) / (1 << 20)) + n + 1
    old = ceil(Fraction(b, MOMENT_WEIGHT) * n * (now * _ROOT_TWO * shift + (now - later) * _ROOT_HALF)) + n + 1
    return new * new + old * old


def moment_settings(n_cells: int) -> dict[str, float]:
    """Of our own question about second moments over so many cells."""
    return {"clip": CLIP, "shrink": SHRINK, "width": WIDTH, "ramp": RAMP, "cells": n_cells}


MOMENT_WEIGHT = 1 << 20


def pair_weight(n: int, bound: int) -> int:
    """A_n: what somebody with n cells adds on each of their pairs.

    >>> [pair_weight(n, 1000) for n in (1, 2, 4)]
    [1000, 707, 500]
    """
    return isqrt(bound * bound // max(n, 1))


def moment_weight(n: int, ramp: int) -> int:
    """a_n in steps of one over `MOMENT_WEIGHT`, rounded down."""
    return isqrt(MOMENT_WEIGHT**2 // (n + ramp))


SQUARED_BOUNDS: dict[str, Callable[[Settings], int]] = {
    "levels": levels,
    "activity": moved,
    "coefficients": replaced,
    "scores": scores,
    "scores of people": replaced,
    "second moments": second_moments,
    "names": added,
    "weighted counts": added,
    "numbers of interactions": moved,
    "second moments of presence": moved,
    "pairs of presence": added,
}


def _setting(settings: Settings, name: str) -> Fraction:
    if name not in settings:
        raise PrivacyError(f"{name} is missing among the settings")
    return Fraction(settings[name])


def _whole(settings: Settings, name: str) -> int:
    value = _setting(settings, name)
    if value <= 0 or value.denominator != 1:
        raise PrivacyError(f"{name} is a whole number above 0")
    return int(value)
