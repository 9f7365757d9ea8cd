"""Made-up people beside what the release says of real ones: what is kept, and what is not.

Both columns are made from the release: what its noisy answers say, and what the people drawn from them have. No figure
of the real table is here, nor could one be. The second half is for releases where nobody rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.report.page import Name, display_name
from dpsr.synthesis.meeting import MEAN_MET
from dpsr.synthesis.people import MadeUpLikes, MadeUpPeople
from dpsr.types.item_side import ACTIVITY_BINS, activity_of

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


@dataclass(frozen=True)
class ComparedShare:
    """A popular item: its share of all interactions, weighted, as released and among made-up people."""

    item: Name
    share: str
    made_up_share: str


@dataclass(frozen=True)
class MadeUpLikesFacts:
    """Everything the card shows of made-up people who do not rate."""

    people: str
    interactions: str
    seed: int
    figures: list[ComparedFigure]
    activity: list[ComparedFigure]
    items: list[ComparedShare]


def made_up_likes_facts(release: LikesRelease) -> MadeUpLikesFacts | None:
    """Of the people in the folder; None if there are none."""
    people, asked, crowd = release.made_up, release.synthetic, release.crowd
    if people is None or asked is None or not len(people.cells):
        return None
    per_person = float(crowd.activity @ MEAN_MET / crowd.activity.sum())
    figures = [
        ComparedFigure("people", f"about {float(f'{crowd.people:.2g}'):,.0f}", f"{people.n_people:,}"),
        ComparedFigure(
            "interactions of a person, on average", f"{per_person:.1f}", f"{len(people.cells) / people.n_people:.1f}"
        ),
    ]
    activity = compared_activity(crowd.activity, np.diff(people.indptr))
    shown = f"{people.n_people:,}", f"{len(people.cells):,}"
    return MadeUpLikesFacts(*shown, asked.seed, figures, activity, _shares(release, people))


def _shares(release: LikesRelease, people: MadeUpLikes, n: int = 8) -> list[ComparedShare]:
    """The most popular items that may be named."""
    index, released = release.index, release.crowd.met / release.crowd.met.sum()
    if len(index.named) == 0:
        return []
    made = _weighted_shares(release, people)
    top = np.argsort(-released[index.named_cells], kind="stable")[:n]
    titles = release.titles or [None] * len(index.named)
    names = [titles[place] or index.named[place].as_py() for place in top.tolist()]
    return [
        ComparedShare(display_name(name), percent(released[cell]), percent(made[cell]))
        for name, cell in zip(names, index.named_cells[top].tolist(), strict=True)
    ]


def _weighted_shares(release: LikesRelease, people: MadeUpLikes) -> Floats:
    """Of all that made-up people did, weighted as it was asked for."""
    weights = release.crowd.weights[activity_of(np.diff(people.indptr))][people.owners]
    return np.asarray(np.bincount(people.cells, weights, minlength=release.side.n_cells) / weights.sum())
