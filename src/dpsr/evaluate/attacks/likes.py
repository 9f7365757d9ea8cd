"""Was this person there? Did they do this? Asked of what a method of lists puts out.

Canaries are planted and left out again by coin flips, and guessed from the fitted item side:

    person        somebody whose items nobody else has; all of them are there or none is
    interaction   one more item, which nobody else has, of somebody who is there anyway

The items are in the declared catalogue whatever the coins say. Two kinds of attacker, both of whom know the items:

    folder        everything the item side says to a stranger and to somebody who shows one item of the canary's:
                  popularity of the canary's items, and how far one of them raises the others
    lists         only what is listed: how many of the canary's items stand among the first 20 of those two

A score adds up what each of these is worth, in deviations. Coins are independent, so one fit has a trial for every
canary. Neighbours of the unit "user" differ in a person: a person's presence is bounded by (epsilon, delta). One
interaction more replaces a person by another, which is one removed and one added: (2 epsilon, (1 + e^epsilon) delta).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from dpsr.arrays import AnyArray, Bools, Floats, Ints
from dpsr.data import Interactions
from dpsr.evaluate.attacks.guessing import Guesses, judge
from dpsr.evaluate.likes.contract import ListModel
from dpsr.evaluate.metrics.ranking import top_items

MOST, ITEMS, LISTED = 200, 6, 20
"""Canaries at most, items of a planted person, and places of a list that are looked at."""


@dataclass(frozen=True, eq=False)
class Planted:
    """Interactions with what the coins put there; `items` are codes of each canary's own, `known` what one shows."""

    likes: Interactions
    coins: Bools
    items: Ints
    known: Ints


def plant_people(likes: Interactions, seed: int) -> Planted:
    """New people, each with items of their own, there if the coin says so."""
    n = _canaries(likes)
    everyone, items = _with_new_items(likes, n * ITEMS, np.repeat(np.arange(n), ITEMS), new_people=True)
    coins = np.random.default_rng([seed, 7]).random(n) < 0.5
    own = items.reshape(n, ITEMS)
    gone = np.isin(everyone.mask.items, own[~coins])
    there = np.flatnonzero(np.bincount(everyone.mask.users[~gone], minlength=everyone.n_users))
    return Planted(everyone[~gone].of_people(there), coins, own, own[:, 0])


def plant_interactions(likes: Interactions, seed: int) -> Planted:
    """One new item each of people who are there anyway, if the coin says so; an old item of theirs is known."""
    rng = np.random.default_rng([seed, 8])
    people = rng.permutation(np.flatnonzero(likes.mask.user_counts))[: _canaries(likes)]
    old = likes.mask.items[likes.mask.indptr[people]]
    everyone, items = _with_new_items(likes, len(people), people, new_people=False)
    coins = rng.random(len(people)) < 0.5
    gone = np.isin(everyone.mask.items, items[~coins])
    return Planted(everyone[~gone], coins, items[:, None], _codes(everyone, likes.item_ids.take(pa.array(old))))


def attack_likes(fit: Callable[[Interactions], ListModel], planted: Planted, seed: int) -> dict[str, Guesses]:
    """What attackers of both kinds reach against one fit."""
    model = fit(planted.likes)
    n, width = planted.items.shape[0], planted.likes.n_items
    stranger = _finite(model.scores_of(sp.csr_matrix((1, width))))[0]
    probes = sp.csr_matrix((np.ones(n), (np.arange(n), planted.known)), shape=(n, width))
    shown = _finite(model.scores_of(probes))
    own = np.take_along_axis(shown, planted.items, axis=1)
    raised = (own - stranger[planted.items]).mean(axis=1)
    folder = _standard(stranger[planted.items].mean(axis=1)) + _standard(raised)
    listed = _listed(shown, planted.items) + _listed(stranger[None, :], planted.items)
    learn = np.asarray(np.random.default_rng([seed, 9]).random(n) < 0.5)
    return {name: judge(scores, planted.coins, learn=learn) for name, scores in (("folder", folder), ("lists", listed))}


def _canaries(likes: Interactions) -> int:
    return max(4, min(MOST, likes.n_users // 4))


def _with_new_items(likes: Interactions, n: int, people: Ints, *, new_people: bool) -> tuple[Interactions, Ints]:
    """All interactions and one new item for each of `people`, in order; the codes of the new items."""
    rows = likes.to_arrow()
    users, items = ([str(one) for one in rows[name].to_pylist()] for name in ("user", "item"))
    names = [f"canary {place}" for place in range(n)]
    ids = likes.user_ids.to_pylist()
    whose = [f"planted {person}" if new_people else str(ids[person]) for person in people]
    everyone = Interactions.from_arrays([*users, *whose], [*items, *names])
    return everyone, _codes(everyone, pa.array(names))


def _codes(likes: Interactions, ids: pa.Array) -> Ints:
    return likes.mask.item_codes(pa.array([str(one) for one in ids.to_pylist()]))


def _finite(scores: Floats) -> Floats:
    """What may not be named stands below everything else."""
    known = np.isfinite(scores)
    return np.where(known, scores, scores[known].min(initial=0.0) - 1)


def _standard(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / (values.std() or 1.0))


def _listed(scores: Floats, items: AnyArray) -> Floats:
    """How many of each canary's items are among the first of its row (or of the one row there is)."""
    lists = top_items(scores, LISTED)
    lists = np.broadcast_to(lists, (len(items), lists.shape[1]))
    return np.array([np.isin(row, own).sum() for row, own in zip(lists, items, strict=True)], dtype=np.float64)
