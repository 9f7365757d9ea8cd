"""Made-up people of a release of likes beside what the release says of real ones: what is kept, and what is not.

As in `made_up`, both columns are made from the release; no figure of the real table is here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.release.likes import LikesRelease
from dpsr.report.facts import Name, display_name
from dpsr.report.made_up import ComparedFigure, compared_activity, percent
from dpsr.synthesis.likes import MadeUpLikes
from dpsr.synthesis.meeting import MEAN_MET
from dpsr.types.item_side import activity_of

_SHOWN = 8


@dataclass(frozen=True)
class ComparedItem:
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
    items: list[ComparedItem]


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
    return MadeUpLikesFacts(*shown, asked.seed, figures, activity, _items(release, people))


def _items(release: LikesRelease, people: MadeUpLikes) -> list[ComparedItem]:
    """The most popular items that may be named."""
    index, released = release.index, release.crowd.met / release.crowd.met.sum()
    if len(index.named) == 0:
        return []
    made = _weighted_shares(release, people)
    top = np.argsort(-released[index.named_cells], kind="stable")[:_SHOWN]
    titles = release.titles or [None] * len(index.named)
    names = [titles[place] or index.named[place].as_py() for place in top.tolist()]
    return [
        ComparedItem(display_name(name), percent(released[cell]), percent(made[cell]))
        for name, cell in zip(names, index.named_cells[top].tolist(), strict=True)
    ]


def _weighted_shares(release: LikesRelease, people: MadeUpLikes) -> Floats:
    """Of all that made-up people did, weighted as it was asked for."""
    weights = release.crowd.weights[activity_of(np.diff(people.indptr))][people.owners]
    return np.asarray(np.bincount(people.cells, weights, minlength=release.side.n_cells) / weights.sum())
