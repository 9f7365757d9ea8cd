"""The card of a release: the page that fits what it protects, and the page of released ratings.

The users whose lists are shown are chosen by a rule that reads public counts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

import numpy as np

from dpsr.arrays import Codes, Ints
from dpsr.certify import Certificate
from dpsr.certify.amounts import PersonOdds, epsilon_text, odds_of_person, ratings_until
from dpsr.certify.parts import DividedSumsPart, PricedPart
from dpsr.release.folder.budget_page import Budget
from dpsr.release.folder.layout import BUDGET, CARD
from dpsr.release.folder.write import AnyContents
from dpsr.release.likes import LikesRelease
from dpsr.release.lists.ranking import best_items, score_pairs
from dpsr.release.people import ItemRelease
from dpsr.release.release import Contents
from dpsr.report.likes_card import likes_card
from dpsr.report.page import Limit, Name, display_name, render
from dpsr.report.people_card import people_card
from dpsr.report.plots import (
    BASE,
    HEIGHT,
    MARGIN,
    Bin,
    RatingsSummary,
    bar_plot,
    doubling_bins,
    doubling_labels,
    expected_accuracy,
    frontier_plot,
    scale_labels,
    summarise_ratings,
    this_release,
)
from dpsr.types import Census
from dpsr.value.allocation import Forecast

LIMITS = (
    Limit(
        "high",
        "Who rated what is public",
        "That a person rated an item, and how often, is not hidden, nor when, if times are in it. If that alone is a "
        "secret, do not publish.",
    ),
    Limit(
        "high",
        "Releases add up",
        "Every further release of the same ratings adds its epsilon. Keep a ledger, and release once.",
    ),
    Limit(
        "medium",
        "A person is weaker than a rating",
        "Someone with k ratings is protected at k times epsilon as a whole; for heavy users that is no protection.",
    ),
    Limit(
        "medium",
        "Taste can be inferred",
        "What other ratings say about a person can still be concluded; epsilon bounds what their own value adds.",
    ),
    Limit(
        "medium",
        "Accuracy is a forecast",
        "Expected accuracy assumes typical shares of variance and was not measured on these ratings.",
    ),
    Limit(
        "low",
        "Released ratings are estimates",
        "They lie closer together than the ratings people gave, and a single one may be far off.",
    ),
    Limit(
        "low",
        "Timing is not protected",
        "How long the release took was not hidden from somebody who watched the machine.",
    ),
)


def folder_pages(contents: AnyContents, budget: Budget | None = None, signer: str | None = None) -> dict[str, str]:
    """The further pages of a release folder by name: the card, and what the ledger said if one was used."""
    found = {CARD: card(contents, budget=budget, signer=signer)}
    return found if budget is None else {**found, BUDGET: budget.to_json()}


def card(contents: AnyContents, *, budget: Budget | None = None, signer: str | None = None) -> str:
    """The page for people about what a folder holds.

    It reads the release, public counts and what a ledger said (`budget`, if one was used). `signer` is the fingerprint
    of the key that signs the release, if one does.
    """
    if isinstance(contents, ItemRelease):
        return people_card(contents, budget=budget, signer=signer)
    if isinstance(contents, LikesRelease):
        return likes_card(contents, budget=budget, signer=signer)
    chosen = sample_users(contents.table.census)
    seen = summarise_ratings(contents, list(chosen))
    certificate = contents.certificate
    return render(
        "card.html.jinja",
        certificate,
        budget=budget,
        signer=signer,
        **_data(contents, seen),
        **_accuracy(expected_accuracy(contents), certificate),
        method=contents.method,
        people=_people(certificate, contents.table.census),
        until=ratings_until(0.95, certificate.epsilon),
        costs=costs(certificate, contents.method),
        samples=samples(contents, chosen, seen.rated),
        limits=LIMITS,
        settings={name: value for name, value in contents.settings.items() if value is not None},
    )


def _people(certificate: Certificate, census: Census) -> list[PersonOdds]:
    """One rating, the median user and the heaviest one; users without ratings have nothing to protect."""
    counts = census.user_counts
    rows = [("One rating", 1)]
    if counts.max(initial=0):
        rows += [("The median user", middle_count(counts)), ("The heaviest user", int(counts.max()))]
    return [odds_of_person(certificate.epsilon_for_user(k), who, k) for who, k in rows]


def _data(contents: Contents, seen: RatingsSummary) -> dict[str, Any]:
    census, scale = contents.table.census, contents.model.scale
    reads = [f"{b.low:g} to {b.high:g}: {b.count:,} released ratings" for b in seen.bins]
    return {
        "census": census,
        "scale": scale,
        "density": f"{100 * census.n_ratings / (census.n_users * census.n_items):.3g} %",
        "per_user": _shape_plot(census.user_counts, "users"),
        "per_item": _shape_plot(census.item_counts, "items"),
        "spread": bar_plot(seen.bins, reads, scale_labels(seen.bins, scale.n_levels)),
        "rating_mean": f"{seen.mean:.2f}",
        "rating_deviation": f"{seen.deviation:.2f}",
        "rows": [_row(contents, *row) for row in seen.rows],
        "MARGIN": MARGIN,
        "BASE": BASE,
        "HEIGHT": HEIGHT,
    }


def _row(contents: Contents, user: int, item: int, rating: float) -> tuple[Name, Name, str]:
    name = display_name(contents.table.census.user_ids[user].as_py())
    return name, item_name(contents, item), f"{rating:.3f}"


def _shape_plot(counts: Ints, things: str) -> dict[str, Any]:
    bins = doubling_bins(counts)
    reads = [f"{_range(b)}: {b.count:,} {things}" for b in bins]
    return {
        "plot": bar_plot(bins, reads, doubling_labels(bins)),
        "median": f"{middle_count(counts):,}",
        "most": f"{int(counts.max()):,}",
    }


def _range(b: Bin) -> str:
    if b.high <= 1:
        return "no rating" if b.high == 0 else "1 rating"
    return f"{b.low:,} to {b.high:,} ratings"


def _accuracy(forecasts: Sequence[Forecast], certificate: Certificate) -> dict[str, Any]:
    if not forecasts:
        return {"frontier": None, "here": None, "forecasts": []}
    here = this_release(forecasts, certificate)
    rows = [
        (epsilon_text(f.epsilon), f"{100 * f.share:.1f} %", *(f"{x:.3f}" for x in f[1:]), f is here) for f in forecasts
    ]
    return {
        "frontier": frontier_plot(forecasts, here),
        "here": here and f"{100 * here.share:.1f} %",
        "without_noise": f"{100 * forecasts[0].without_noise:.1f} %",
        "forecasts": rows,
    }


def middle_count(counts: Ints) -> int:
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
        return part.epsilon, epsilon_text(part.epsilon)
    return part.light_epsilon, f"{epsilon_text(part.light_epsilon)}, or {epsilon_text(part.epsilon)}"


def _share(epsilon: float, certificate: Certificate) -> float:
    if isinf(epsilon) or len(certificate.parts) == 1:
        return 1.0
    return 0.0 if isinf(certificate.epsilon) else epsilon / certificate.epsilon
