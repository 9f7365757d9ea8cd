"""What a card shows of a release: ids, counts, a look at the private table, lists of a few users, and what it cost.

Ids are text by strangers. Markup is escaped by the template. What escaping cannot help is done here: characters that
are not printable (direction overrides, line separators, control characters) are spelled out, so that no id can disguise
itself or its neighbours, and long ids are cut, with more of them in the tooltip.

The private table is seen in one pass over its blocks, since it may be larger than memory. The users whose lists are
shown are chosen by a rule that reads public counts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Codes
from dpsr.certify import Certificate, odds
from dpsr.certify.parts import DividedSumsPart, PricedPart
from dpsr.release.lists.ranking import best_items, score_pairs
from dpsr.release.release import Contents
from dpsr.types import Census, Scale

MAX_SHOWN, MAX_TITLE = 40, 400
_JOINER = "\u200d"
"""Joins emoji into one; invisible alone, harmless, and without it a family falls apart."""


class Name(NamedTuple):
    """An id as display_name, and what its tooltip says (empty if all of it is shown)."""

    text: str
    title: str


def display_name(identifier: object) -> Name:
    """An id fit for a page.

    >>> display_name("abc"), display_name("a\\u202eb").text, len(display_name("x" * 10_000).text)
    (Name(text='abc', title=''), 'a⟨U+202E⟩b', 40)
    """
    full = str(identifier)
    spelled = _spelled(full[:MAX_TITLE])
    if len(spelled) <= MAX_SHOWN and len(full) <= MAX_TITLE:
        return Name(spelled or "(empty)", "")
    more = f"… ({len(full):,} characters)" if len(full) > MAX_TITLE else ""
    return Name(spelled[: MAX_SHOWN - 1] + "…", spelled + more)


def _spelled(text: str) -> str:
    return "".join(c if c.isprintable() or c == _JOINER else f"⟨U+{ord(c):04X}⟩" for c in text)


_FINEST = 40
"""No plot has more bars; on a phone they would be thinner than a line."""


@dataclass(frozen=True)
class Bin:
    """How many things lie between `low` and `high`."""

    low: float
    high: float
    count: int


def doubling_bins(counts: npt.NDArray[np.int64]) -> list[Bin]:
    """How many users (or items) have 1, 2 to 3, 4 to 7, ... ratings; 0 first, if there is anybody without.

    >>> [(b.low, b.high, b.count) for b in doubling_bins(np.array([0, 1, 3, 5]))]
    [(0, 0, 1), (1, 1, 1), (2, 3, 1), (4, 7, 1)]
    """
    positive = counts[counts > 0]
    powers = np.frexp(positive.astype(np.float64))[1] - 1  # floor(log2 n), exactly
    tally = np.bincount(powers, minlength=1)
    bins = [Bin(2**k, 2 ** (k + 1) - 1, int(n)) for k, n in enumerate(tally)]
    missing = len(counts) - len(positive)
    return [Bin(0, 0, missing), *bins] if missing else bins


def rating_bins(ratings: npt.NDArray[np.float64], scale: Scale) -> list[Bin]:
    """Equal bins over the scale, a whole number of them to each step where the steps are coarse enough."""
    steps = scale.n_levels - 1
    n = steps * max(1, _FINEST // steps) if steps <= _FINEST else _FINEST
    edges = np.linspace(scale.low, scale.high, n + 1)
    tally, _ = np.histogram(ratings, edges)
    return [Bin(float(a), float(b), int(c)) for a, b, c in zip(edges, edges[1:], tally, strict=False)]


ROWS = 5


@dataclass(frozen=True)
class Glance:
    """Released ratings by value, their mean and deviation, the first rows (codes of user and item, rating), and the
    items that some users rated."""

    bins: list[Bin]
    mean: float
    deviation: float
    rows: list[tuple[int, int, float]]
    rated: dict[int, npt.NDArray[np.int32]]


def glance(contents: Contents, users: Sequence[int] = ()) -> Glance:
    """One pass; `users` are those whose items are wanted."""
    scale, table = contents.model.scale, contents.table
    bins = rating_bins(np.empty(0), scale)
    total, squares = 0.0, 0.0
    rows: list[tuple[int, int, float]] = []
    rated = {}
    for block in table.scan([contents.ratings]):
        ratings = block.columns[contents.ratings]
        bins = [Bin(a.low, a.high, a.count + b.count) for a, b in zip(bins, rating_bins(ratings, scale), strict=True)]
        away = np.subtract(ratings, scale.midpoint, dtype=np.float64)
        total, squares = total + float(away.sum()), squares + float(away @ away)
        missing = ROWS - len(rows)
        firsts = zip(block.rows[:missing] + block.first, block.items[:missing], ratings[:missing], strict=True)
        rows += [(int(user), int(item), float(rating)) for user, item, rating in firsts]
        for user in users:
            if block.users.start <= user < block.users.stop:
                start, stop = block.indptr[user - block.first : user - block.first + 2]
                rated[user] = block.items[start:stop].copy()
    mean, square = (part / table.census.n_ratings for part in (total, squares))
    return Glance(bins, scale.midpoint + mean, sqrt(max(square - mean**2, 0.0)), rows, rated)


def middle_count(counts: npt.NDArray[np.int64]) -> int:
    """The median number of ratings of those who have any: that of one of them, the lower of two in the middle.

    >>> middle_count(np.array([0, 5, 1, 9, 7]))
    5
    """
    active = np.sort(counts[counts > 0])
    return int(active[(len(active) - 1) // 2]) if len(active) else 0


def item_name(contents: Contents, code: int) -> Name:
    """What an item is called: its title with the id in the tooltip, or its id."""
    identifier = contents.table.census.item_ids[code].as_py()
    title = None if contents.titles is None else contents.titles[code]
    if title is None:
        return display_name(identifier)
    shown = display_name(title)
    return Name(shown.text, f"{shown.title or shown.text} ({display_name(identifier).text})")


N_ITEMS = 5
_QUARTILES = ((0.5, "median activity"), (0.25, "lower quartile"), (0.75, "upper quartile"))


@dataclass(frozen=True)
class Suggestion:
    """One recommended item: its prediction on the scale, the same as a share of the scale, and its public count."""

    item: Name
    predicted: str
    share: float
    n_ratings: int


@dataclass(frozen=True)
class Sample:
    """A user and what the release recommends to them."""

    user: Name
    rule: str
    n_ratings: int
    suggestions: list[Suggestion]


def sample_users(census: Census) -> dict[int, str]:
    """The users at the quartiles of activity and why they were chosen; equal activity keeps the order of ids."""
    counts = census.user_counts
    active = np.flatnonzero(counts > 0)
    ranked = active[np.argsort(counts[active], kind="stable")]
    return {int(ranked[int(share * (len(ranked) - 1))]): rule for share, rule in _QUARTILES if len(ranked)}


def samples(contents: Contents, chosen: Mapping[int, str], rated: Mapping[int, Codes]) -> list[Sample]:
    """What the release recommends to each of them, who `rated` those items; the least active first."""
    counts = contents.table.census.user_counts
    return [
        _sample(contents, user, rule, rated[user])
        for user, rule in sorted(chosen.items(), key=lambda pair: counts[pair[0]])
    ]


def _sample(contents: Contents, user: int, rule: str, rated: Codes) -> Sample:
    model, census, scale = contents.model, contents.table.census, contents.model.scale
    best = best_items(model, *score_pairs(model, np.array([user]), np.arange(census.n_items)), rated, N_ITEMS)
    codes = census.item_codes(best.items)
    suggestions = [
        Suggestion(
            item_name(contents, int(code)),
            f"{score:.2f}",
            float((score - scale.low) / scale.width),
            int(census.item_counts[code]),
        )
        for code, score in zip(codes, best.scores, strict=True)
    ]
    return Sample(display_name(census.user_ids[user].as_py()), rule, int(census.user_counts[user]), suggestions)


_BOUGHT = {
    "total": ("Total", "one noisy sum of all ratings: their mean"),
    "level histogram": ("Histogram", "how the scale is used: a noisy count of every level"),
    "window sums": (
        "Window sums",
        "noisy sums of each item's and each user's ratings, cut to a window; ratings that are not asked one by one "
        "spend all on these",
    ),
    "ratings": ("Ratings", "ratings once through a randomising table: those that public counts choose"),
}
_ABSENT = "nothing: at this epsilon {tells} more"


@dataclass(frozen=True)
class Cost:
    """One row of the table: `share` of the whole price between 0 and 1, `start` where its piece of the bar begins."""

    name: str
    bought: str
    noise: str
    epsilon: str
    share: float
    start: float


def costs(certificate: Certificate, method: str) -> list[Cost]:
    """One row per part, in the order asked; the default pipeline names the question it did not ask, too."""
    rows, start, asked = [], 0.0, {part.name for part in certificate.parts}
    for part in certificate.parts:
        if not isinstance(part, PricedPart):
            continue
        paid, told = _paid(part, asked)
        share = _share(paid, certificate)
        name, bought = _BOUGHT.get(part.name, (part.name, part.noise))
        if isinstance(part, DividedSumsPart) and len(part.families) > 2:
            bought += "; a small part of every weight is in sums of all ratings with public signs"
        rows.append(Cost(name, bought, part.noise, told, share, start))
        start += share
    if method == "default" and "ratings" not in asked:
        tells = "sums alone tell" if "window sums" in asked else "the mean alone tells"
        rows.append(Cost(_BOUGHT["ratings"][0], _ABSENT.format(tells=tells), "", "0", 0.0, start))
    return rows


def _paid(part: PricedPart, asked: set[str]) -> tuple[float, str]:
    """What a rating that is asked one by one pays for a part; in words, what one pays that is not, too."""
    if not isinstance(part, DividedSumsPart) or "ratings" not in asked or not part.weights:
        return part.epsilon, odds.epsilon_text(part.epsilon)
    return part.light_epsilon, f"{odds.epsilon_text(part.light_epsilon)}, or {odds.epsilon_text(part.epsilon)}"


def _share(epsilon: float, certificate: Certificate) -> float:
    if isinf(epsilon) or len(certificate.parts) == 1:
        return 1.0
    return 0.0 if isinf(certificate.epsilon) else epsilon / certificate.epsilon
