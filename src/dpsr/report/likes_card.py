"""The card of a release of likes: the page of people's releases, about popularity and taste.

Lists are shown of people who do not exist. What they did is drawn from the release itself, with a fixed seed: the first
item by popularity, four more by the scores that the ones before give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify.certificate import unit_names
from dpsr.release.folder.budget_page import Budget
from dpsr.release.likes import LikesRelease, model_of, own_rows
from dpsr.release.lists.ranking import score_pairs
from dpsr.report.page import Limit, Name, display_name
from dpsr.report.people_card import (
    LIMITS,
    ComparedFigure,
    KnownItem,
    Protected,
    compared_activity,
    item_side_card,
    percent,
)
from dpsr.synthesis import MEAN_MET, MadeUpLikes
from dpsr.types.item_side import activity_of

_PROTECTED = {
    "user": Protected(
        "People are protected",
        "one person",
        "with everything they did: that they are there at all",
        "whether one person is there",
        "what somebody did who is known to be there",
    ),
    "rating": Protected(
        "Interactions are protected",
        "one interaction",
        "that it exists, its weight and its time",
        "whether one interaction exists",
        "the weight of one that is known to exist",
    ),
}

_SAID_OF_LIKES = {
    "Made-up people are made up": "They have what was asked about real ones and nothing else: which items go together "
    "beyond the axes of taste, how often and when somebody did the same thing, is the model's, not the people's."
}
"""Limits that say something else of interactions than of ratings."""

_SEED, _PEOPLE, _DONE, _LIST, _SHOWN = 0, 60, 5, 10, 4


@dataclass(frozen=True)
class ExampleLists:
    """Lists of people who do not exist: a few of them, and how much of the catalogue all of them together see."""

    people: int
    coverage: str
    popularity: str
    lists: list[tuple[list[Name], list[Name]]]


def likes_card(release: LikesRelease, *, budget: Budget | None = None, signer: str | None = None) -> str:
    """The page. `budget` is what a ledger said, if one was used; `signer` the fingerprint of the key that signs."""
    return item_side_card(
        "likes.html.jinja",
        release,
        _PROTECTED[release.certificate.unit],
        unit_names(likes=True),
        budget,
        signer,
        row="interaction",
        rows="interactions",
        factors=release.side.n_axes,
        frequent=f"{len(release.side.frequent):,}",
        popular=_popular(release),
        examples=example_lists(release),
        made_up=made_up_likes_facts(release),
        limits=_limits(),
    )


def _limits() -> tuple[Limit, ...]:
    """Those of people's releases, in words for interactions."""
    return tuple(
        Limit(
            one.severity,
            one.name,
            _SAID_OF_LIKES.get(
                one.name, one.words.replace("raw ratings", "raw interactions").replace("people rated", "people met")
            ),
        )
        for one in LIMITS
    )


def _popular(release: LikesRelease, n: int = 10) -> list[KnownItem]:
    found = release.popular(n)
    most = max([*found.scores.tolist(), 1e-300])
    names = found.items if found.titles is None else [t or i for t, i in zip(found.titles, found.items, strict=True)]
    return [
        KnownItem(display_name(name), f"{score:.3f}", float(score / most))
        for name, score in zip(names, found.scores, strict=True)
    ]


def example_lists(release: LikesRelease) -> ExampleLists:
    """People drawn from the release, and their lists."""
    n = len(release.index.named)
    if n <= _DONE + _LIST or not len(release.side.frequent):
        return ExampleLists(0, "", "", [])
    rng = np.random.default_rng(_SEED)
    popularity = release.side.popularity[release.index.named_cells]
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(-popularity, kind="stable")] = np.arange(1, n + 1)
    lists: list[tuple[list[Name], list[Name]]] = []
    seen: set[int] = set()
    ranks: list[int] = []
    for _ in range(_PEOPLE):
        done = [int(rng.choice(n, p=popularity / popularity.sum()))]
        while len(done) < _DONE:
            chance = np.maximum(_scores(release, np.array(done)), 0.0)
            chance[done] = 0.0
            if not chance.sum() > 0:
                break
            done.append(int(rng.choice(n, p=chance / chance.sum())))
        shown = _best(release, np.array(done))
        seen.update(shown)
        ranks += [int(rank[code]) for code in shown]
        if len(lists) < _SHOWN:
            lists.append(([_name(release, code) for code in done], [_name(release, code) for code in shown[:5]]))
    return ExampleLists(_PEOPLE, f"{100 * len(seen) / n:.1f} %", f"{int(np.median(ranks)):,}", lists)


def _scores(release: LikesRelease, done: Ints) -> Floats:
    cells = release.index.named_cells[done]
    rows = own_rows(np.array([0, len(done)]), cells, np.ones(len(done)))
    model = model_of(release.placed, pa.array(["nobody"]), rows)
    n = len(release.index.named)
    return score_pairs(model, np.zeros(n, dtype=np.int64), np.arange(n)).scores


def _best(release: LikesRelease, done: Ints) -> list[int]:
    scores = _scores(release, done)
    scores[done] = -np.inf
    return [int(code) for code in np.argsort(-scores, kind="stable")[:_LIST]]


def _name(release: LikesRelease, code: int) -> Name:
    title = None if release.titles is None else release.titles[code]
    return display_name(title or release.index.named[code].as_py())


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
