"""The card of a release that protects people or ratings: the same page, about an item side.

It shows made-up people beside what the release says of real ones: what is kept, and what is not. Both columns are made
from the release: what its noisy answers say, and what the people drawn from them have. No figure of the real table is
here, nor could one be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify import Certificate
from dpsr.certify.amounts import epsilon_text
from dpsr.certify.certificate import unit_names
from dpsr.certify.normal_price import chance_beyond
from dpsr.certify.people import NormalPart
from dpsr.release.folder.budget_page import Budget
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.report.page import Limit, Name, display_name, render
from dpsr.synthesis import MEAN_MET, MadeUpPeople
from dpsr.types.item_side import ACTIVITY_BINS, activity_of

_ASKED = {
    "levels": "how many people there are, their mean level and spread",
    "activity": "how many people have how many ratings, and their levels",
    "scores": "every cell's weighted count of ratings, and how far they lie from what was expected",
    "scores of people": "the same person by person, with products of residuals and tastes",
    "coefficients": "how differently people use effects, popularity and factors",
    "second moments": "which of the most popular cells are rated alike: directions of taste",
    "numbers of interactions": "how many people did how much",
    "weighted counts": "how popular cells are, everybody's interactions together weighing one",
    "second moments of presence": "which of the most popular cells go together: taste",
    "pairs of presence": "which of the most popular cells go together: taste",
    "names": "which items may be named: those whose noisy weight passes a threshold",
}

_ALSO_RATINGS = "; people with many ratings count more, and how many ratings there are is asked, too"
"""Of levels at the unit `rating`."""


class Protected(NamedTuple):
    """What a card says is protected, what its odds are about, and what is left to hide where that is known."""

    headline: str
    thing: str
    scope: str
    about: str
    known: str


_PROTECTED = {
    "user": Protected(
        "People are protected",
        "one person",
        "with all their ratings: that they are there at all",
        "whether one person is there",
        "what somebody rated who is known to be there",
    ),
    "rating": Protected(
        "Ratings are protected",
        "one rating",
        "that it exists, its value and its time",
        "whether one rating exists",
        "the value of one that is known to exist",
    ),
}


LIMITS = (
    Limit(
        "high",
        "Releases add up",
        "Every further release of the same people adds its epsilon and delta. Keep a ledger, and release once.",
    ),
    Limit(
        "high",
        "Personal lists are personal",
        "What dpsr personalise makes is computed from a person's own raw ratings and goes to that person alone.",
    ),
    Limit(
        "medium",
        "Taste can be inferred",
        "What a crowd does can be concluded about its members; epsilon bounds what their own data add to that.",
    ),
    Limit(
        "medium",
        "Rare items stay unnamed",
        "Without a declared catalogue only items that many people rated have names; about the others their cells tell.",
    ),
    Limit(
        "medium",
        "Made-up people are made up",
        "They have what was asked about real ones and nothing else: which items go together and how levels are used "
        "beyond mean and spread is the model's, not the people's.",
    ),
    Limit(
        "low",
        "Cells are shared",
        "Without a declared catalogue two items may share a cell, and what is known about one is said of both.",
    ),
    Limit(
        "low",
        "Timing is not protected",
        "How long the release took was not hidden from somebody who watched the machine.",
    ),
)


@dataclass(frozen=True)
class Question:
    """One row of what was asked: `share` of the whole price (of mu squared) and where its piece of the bar begins."""

    name: str
    words: str
    noise: str
    share: float
    start: float


def questions(certificate: Certificate) -> list[Question]:
    """The parts of the price, in the order in which they were first asked; what was asked in rounds is one row."""
    kinds: dict[str, list[NormalPart]] = {}
    for part in certificate.parts:
        if isinstance(part, NormalPart):
            kinds.setdefault(part.name, []).append(part)
    squares = [float(sum(part.squared_mu(certificate.unit) or 0 for part in parts)) for parts in kinds.values()]
    total, start, rows = sum(squares) or 1.0, 0.0, []
    for (name, parts), square in zip(kinds.items(), squares, strict=True):
        times = f", {len(parts)} times" if len(parts) > 1 else ""
        words = _ASKED[name] + (_ALSO_RATINGS if name == "levels" and certificate.unit == "rating" else "")
        rows.append(Question(name.capitalize() + times, words, _noise_of(parts, square), square / total, start))
        start += square / total
    return rows


def _noise_of(parts: list[NormalPart], square: float) -> str:
    """Of a question, or of its rounds together: mu adds up by its squares."""
    if len(parts) == 1:
        return parts[0].noise
    numbers = [float(part.numbers) for part in parts if part.numbers]
    asked = f"{_from_to(numbers)} numbers, " if numbers else ""
    deviations = _from_to([sqrt(part.variance) for part in parts])
    return f"normal, {asked}deviation {deviations}, mu = {sqrt(square):.4g}"


def _from_to(values: list[float]) -> str:
    """The least and the largest, in whole numbers."""
    least, most = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return least if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class KnownItem:
    """An item that may be named: what a stranger is expected to give it."""

    item: Name
    predicted: str
    share: float


def people_card(release: ItemRelease, *, budget: Budget | None = None, signer: str | None = None) -> str:
    """The page. `budget` is what a ledger said, if one was used; `signer` the fingerprint of the key that signs."""
    return item_side_card(
        "people.html.jinja",
        release,
        _PROTECTED[release.certificate.unit],
        unit_names(),
        budget,
        signer,
        row="rating",
        rows="ratings",
        factors=release.side.n_factors,
        popular=_popular(release),
        made_up=made_up_facts(release),
        limits=LIMITS,
    )


def item_side_card(
    template: str,
    release: ItemRelease | LikesRelease,
    protected: Protected,
    unit_names: dict[str, str],
    budget: Budget | None,
    signer: str | None,
    **own: Any,
) -> str:
    """The page of a release that knows items alone; `own` is what ratings, or likes, show besides."""
    certificate = release.certificate
    return render(
        template,
        certificate,
        budget=budget,
        signer=signer,
        **protected._asdict(),
        beyond=epsilon_text(chance_beyond(certificate.epsilon, certificate.delta), 2) if certificate.private else "",
        units=_units(certificate, unit_names),
        questions=questions(certificate),
        release=release,
        named=f"{len(release.index.named):,}",
        cells=f"{release.side.n_cells:,}",
        **own,
    )


def _units(certificate: Certificate, names: dict[str, str]) -> list[tuple[str, str, bool]]:
    """The price for each unit, in words; whether it is the release's own."""
    rows = []
    for unit, price in certificate.protection.items():
        cost = "not protected"
        if price is not None:
            cost = f"ε = {epsilon_text(price.epsilon)}, δ = {epsilon_text(price.delta)}"
        rows.append((names[unit], cost, unit == certificate.unit))
    return rows


def _popular(release: ItemRelease, n: int = 10) -> list[KnownItem]:
    """What a stranger would be recommended; nothing where no item may be named."""
    if len(release.index.named) == 0:
        return []
    found = release.popular(n)
    low, width = release.scale.low, release.scale.width
    names = found.items if found.titles is None else [t or i for t, i in zip(found.titles, found.items, strict=True)]
    return [
        KnownItem(display_name(name), f"{score:.2f}", float((score - low) / width))
        for name, score in zip(names, found.scores, strict=True)
    ]


NOT_ASKED = "not asked"


@dataclass(frozen=True)
class ComparedFigure:
    """One figure as the release has it, and as the made-up people have it."""

    name: str
    released: str
    made_up: str


@dataclass(frozen=True)
class ComparedItem:
    """A popular item: its mean and its share of all ratings, weighted, as released and among made-up people."""

    item: Name
    mean: str
    made_up_mean: str
    share: str
    made_up_share: str


@dataclass(frozen=True)
class MadeUpFacts:
    """Everything the card shows of made-up people."""

    people: str
    ratings: str
    seed: int
    figures: list[ComparedFigure]
    activity: list[ComparedFigure]
    items: list[ComparedItem]
    scale: list[tuple[str, str]]
    """Levels with their shares among made-up ratings."""


def made_up_facts(release: ItemRelease) -> MadeUpFacts | None:
    """Of the people in the folder; None if there are none."""
    people, asked = release.made_up, release.synthetic
    if people is None or asked is None or not len(people.cells):
        return None
    shares = np.bincount(people.places, minlength=release.scale.n_levels) / len(people.places)
    return MadeUpFacts(
        f"{people.n_people:,}",
        f"{len(people.cells):,}",
        asked.seed,
        _figures(release, people),
        compared_activity(release.crowd.activity, np.diff(people.indptr)),
        _items(release, people),
        [(f"{value:g}", percent(share)) for value, share in zip(release.scale.values, shares, strict=True)],
    )


def _figures(release: ItemRelease, people: MadeUpPeople) -> list[ComparedFigure]:
    side, crowd, half = release.side, release.crowd, release.scale.width / 2
    per_person = float(crowd.activity @ MEAN_MET / crowd.activity.sum())
    values = release.scale.values[people.places]
    together = _met_together(people, np.argsort(-crowd.counts, kind="stable")[:2])
    return [
        ComparedFigure("people", f"about {float(f'{crowd.people:.2g}'):,.0f}", f"{people.n_people:,}"),
        ComparedFigure(
            "ratings of a person, on average", f"{per_person:.1f}", f"{len(people.cells) / people.n_people:.1f}"
        ),
        ComparedFigure("mean rating", f"{_expected(release, people).mean():.2f}", f"{values.mean():.2f}"),
        ComparedFigure(
            "deviation of a rating around its person’s mean", f"{half * side.spread:.2f}", _spread(people, values)
        ),
        ComparedFigure("people who met both of the two most popular items", NOT_ASKED, percent(together)),
    ]


def _spread(people: MadeUpPeople, values: Floats) -> str:
    counts = np.diff(people.indptr)
    sums, squares = (np.bincount(people.owners, x, minlength=people.n_people) for x in (values, values**2))
    several = counts > 1
    if not several.any():
        return "–"
    inner = squares[several] - sums[several] ** 2 / counts[several]
    return f"{np.sqrt(max(inner.sum(), 0.0) / (counts[several] - 1).sum()):.2f}"


def _met_together(people: MadeUpPeople, pair: Ints) -> float:
    if len(pair) < 2:
        return 0.0
    met = [np.bincount(people.owners[people.cells == cell], minlength=people.n_people) > 0 for cell in pair]
    return float((met[0] & met[1]).mean())


def compared_activity(activity: Floats, numbers: Ints) -> list[ComparedFigure]:
    """People by octave, as released and as made up; octaves that are empty on both sides are left out."""
    noisy = activity / activity.sum()
    made = np.bincount(activity_of(numbers), minlength=ACTIVITY_BINS) / len(numbers)
    names = ["1", *(f"{2**k:,} to {2 ** (k + 1) - 1:,}" for k in range(1, ACTIVITY_BINS - 1)), f"{2**13:,} and more"]
    rows = zip(names, noisy, made, strict=True)
    return [ComparedFigure(name, percent(a), percent(b)) for name, a, b in rows if max(a, b) >= 5e-4]


def _items(release: ItemRelease, people: MadeUpPeople, n: int = 8) -> list[ComparedItem]:
    """The most popular items that may be named."""
    side, crowd, index = release.side, release.crowd, release.index
    if len(index.named) == 0:
        return []
    top = np.argsort(-crowd.counts[index.named_cells], kind="stable")[:n]
    cells = index.named_cells[top]
    weights = crowd.weights[activity_of(np.diff(people.indptr))][people.owners]
    weighted = np.bincount(people.cells, weights, minlength=side.n_cells) / weights.sum()
    many = np.maximum(np.bincount(people.cells, minlength=side.n_cells), 1)
    means = np.bincount(people.cells, release.scale.values[people.places], minlength=side.n_cells) / many
    expected = np.bincount(people.cells, _expected(release, people), minlength=side.n_cells) / many
    titles = release.titles or [None] * len(index.named)
    names = [titles[place] or index.named[place].as_py() for place in top.tolist()]
    return [
        ComparedItem(
            display_name(name), f"{expected[c]:.2f}", f"{means[c]:.2f}",
            percent(crowd.met[c] / crowd.met.sum()), percent(weighted[c]),
        )
        for name, c in zip(names, cells.tolist(), strict=True)
    ]  # fmt: skip


def _expected(release: ItemRelease, people: MadeUpPeople) -> Floats:
    """Of every made-up rating, what a stranger of that activity is expected to give."""
    side = release.side
    y = side.level_of(np.diff(people.indptr))[people.owners] + side.effects[people.cells] + side.mean[0]
    return side.to_scale(side.spread * (y + side.features[people.cells] @ side.mean[1:]))


def percent(share: float) -> str:
    """With one decimal, or two digits of what would be nothing with one.

    >>> percent(0.273), percent(0.000123), percent(0.0)
    ('27.3 %', '0.012 %', '0.0 %')
    """
    return f"{100 * share:.2g} %" if 0 < share < 0.001 else f"{100 * share:.1f} %"
