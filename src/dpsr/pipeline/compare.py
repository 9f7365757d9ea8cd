"""Releases side by side: what each promises, what it was to be worth, and how far their answers lie apart.

    difference(a, b) = mean |prediction_a - prediction_b|      over pairs of users and items that all releases know
    overlap(a, b)    = mean |top-10_a and top-10_b| / 10       over users that all know; lists may be shorter

Releases that know nobody are asked about people who do not exist, drawn from the first of them, with their ratings, or
what they did, among the items that all may name.

Everything is computed from what was released, so a comparison is as private as the releases are. Accuracy is expected,
not measured: who holds the raw ratings can measure it with `dpsr.evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import hypot, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.certify.amounts import MAX_EPSILON, MIN_EPSILON
from dpsr.certify.people import NormalPart
from dpsr.errors import ParameterError
from dpsr.release import Release
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.types import Scale
from dpsr.types.coordinates import Ids
from dpsr.value.allocation import forecast
from dpsr.value.design import released_components

Lists = list[frozenset[str]]
KnowsNobody = ItemRelease | LikesRelease

PAIRS, USERS, TOP = 20_000, 100, 10
_ITEMS = 200
"""Items whose ratings by made-up people are compared."""

_SAMPLE_SEED = 0  # of which pairs are compared, so that a comparison can be repeated


@dataclass(frozen=True)
class Column:
    """One release. `expected` is RMSE as a share of predicting one constant, or None where no forecast exists.

    `parts` are what its questions cost: epsilon, or mu where noise is normal, whose squares add up. Where it
    knows nobody there are no numbers of users and ratings, and `n_items` are those that may be named.
    """

    name: str
    method: str
    unit: str
    private: bool
    epsilon: float
    delta: float
    nominal: float | None
    parts: dict[str, float]
    scale: str | None
    n_users: int | None
    n_items: int
    n_ratings: int | None
    expected: float | None


@dataclass(frozen=True)
class ReleaseDifference:
    """How far two releases lie apart. There is no `difference` between predictions on different scales."""

    a: str
    b: str
    difference: float | None
    overlap: float


@dataclass(frozen=True)
class Comparison:
    """Columns in the order given, and every two of them; nothing `between` if they have nothing in common.

    `n_users` are made up where releases know nobody (`made_up`).
    """

    columns: tuple[Column, ...]
    n_pairs: int
    n_users: int
    between: tuple[ReleaseDifference, ...]
    made_up: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For scripts; an infinite epsilon is spelt "inf", since JSON has no number for it."""
        record = asdict(self)
        for column in record["columns"]:
            column["epsilon"] = "inf" if column["epsilon"] == inf else column["epsilon"]
            column["parts"] = {name: "inf" if part == inf else part for name, part in column["parts"].items()}
        return record


@dataclass(frozen=True, eq=False)
class Answers:
    """What one release says about the common pairs, and the common users' lists."""

    scale: Scale | None
    predictions: Floats
    lists: Lists


def compare(releases: Sequence[Release] | Sequence[KnowsNobody], names: Sequence[str]) -> Comparison:
    """Compare releases of one kind; users and items count as the same when their ids are."""
    if len(releases) != len(names) or not releases:
        raise ParameterError("a comparison needs at least one release, and a name for each.")
    if len({type(release) for release in releases}) > 1:
        raise ParameterError(
            "releases of one kind are compared: with a row for each rating, of people who rate, or of interactions; "
            "found several kinds. Compare those of each kind by themselves."
        )
    known = [release for release in releases if isinstance(release, Release)]
    return _of_users(known, names) if known else _of_nobody([r for r in releases if not isinstance(r, Release)], names)


def _of_users(releases: Sequence[Release], names: Sequence[str]) -> Comparison:
    rng = np.random.default_rng(_SAMPLE_SEED)
    users = _known_to_all([r.mask.user_codes for r in releases], releases[0].mask.user_ids)
    items = _known_to_all([r.mask.item_codes for r in releases], releases[0].mask.item_ids)
    columns = tuple(_column(release, name) for release, name in zip(releases, names, strict=True))
    if not len(users) or not len(items):
        return Comparison(columns, 0, 0, ())
    if len(users) * len(items) <= PAIRS:
        pairs = np.repeat(users, len(items)).tolist(), np.tile(items, len(users)).tolist()
    else:
        pairs = rng.choice(users, PAIRS).tolist(), rng.choice(items, PAIRS).tolist()
    some = rng.permutation(users)[:USERS].tolist()
    answers = [Answers(r.scale, r.predict(*pairs), _lists(r, some)) for r in releases]
    return Comparison(columns, len(pairs[0]), len(some), _between(answers, names))


def _between(answers: Sequence[Answers], names: Sequence[str]) -> tuple[ReleaseDifference, ...]:
    return tuple(
        ReleaseDifference(
            names[a], names[b], _difference(answers[a], answers[b]), _overlap(answers[a].lists, answers[b].lists)
        )
        for a, b in combinations(range(len(answers)), 2)
    )


def _of_nobody(releases: Sequence[KnowsNobody], names: Sequence[str]) -> Comparison:
    columns = tuple(_column(release, name) for release, name in zip(releases, names, strict=True))
    common = set.intersection(*(set(map(str, release.index.named.to_pylist())) for release in releases))
    people = _made_up(releases[0], common)
    if not people:
        return Comparison(columns, 0, 0, (), made_up=True)
    wanted = np.random.default_rng(_SAMPLE_SEED).permutation(sorted(common))[:_ITEMS].tolist()
    answers = [_answers(release, people, wanted) for release in releases]
    return Comparison(columns, len(people) * len(wanted), len(people), _between(answers, names), made_up=True)


def _made_up(release: KnowsNobody, common: set[str]) -> list[tuple[list[str], list[float]]]:
    """People who do not exist: their items, of those that all releases may name, and ratings where there are any."""
    rows = release.synthesise(USERS, seed=_SAMPLE_SEED).to_pydict()
    people: dict[int, tuple[list[str], list[float]]] = {}
    for user, item, rating in zip(rows["user"], map(str, rows["item"]), rows.get("rating", rows["user"]), strict=True):
        if item in common:
            items, ratings = people.setdefault(user, ([], []))
            items.append(item)
            ratings.append(rating)
    return list(people.values())


def _answers(release: KnowsNobody, people: list[tuple[list[str], list[float]]], wanted: list[str]) -> Answers:
    if isinstance(release, LikesRelease):
        lists = [frozenset(map(str, release.fold_in(items, n=TOP).items)) for items, _ in people]
        return Answers(None, np.zeros(0), lists)
    lists = [frozenset(map(str, release.fold_in(items, ratings, TOP).items)) for items, ratings in people]
    predictions = np.concatenate([release.predict_own(items, ratings, wanted) for items, ratings in people])
    return Answers(release.scale, predictions, lists)


def _column(release: Release | KnowsNobody, name: str) -> Column:
    certificate = release.certificate
    parts: dict[str, float] = {}
    for part in certificate.parts:
        before, price = parts.get(part.name, 0.0), next(iter(part.stated.values()))
        parts[part.name] = hypot(before, price) if isinstance(part, NormalPart) else before + price
    promise = (
        name, release.method, certificate.unit, certificate.private, certificate.epsilon, certificate.delta,
        certificate.nominal, parts,
    )  # fmt: skip
    if isinstance(release, Release):
        mask = release.mask
        return Column(*promise, str(release.scale), mask.n_users, mask.n_items, mask.n_ratings, _expected(release))
    scale = str(release.scale) if isinstance(release, ItemRelease) else None
    return Column(*promise, scale, None, len(release.index.named), None, None)


def _expected(release: Release) -> float | None:
    """The forecast is about the default pipeline at the epsilon that was asked for."""
    asked = release.certificate.nominal
    if release.method != "default" or asked is None or not MIN_EPSILON <= asked <= MAX_EPSILON:
        return None
    shown = released_components(release.mask, release.model.affinity)
    return forecast(release.mask, release.scale, asked, shown).share


def _known_to_all(lookups: Sequence[Any], ids: Ids) -> npt.NDArray[Any]:
    known = np.all([lookup(ids) >= 0 for lookup in lookups], axis=0)
    return np.asarray(ids)[known]


def _difference(a: Answers, b: Answers) -> float | None:
    if a.scale is None or b.scale is None:
        return None
    same = (a.scale.low, a.scale.high) == (b.scale.low, b.scale.high)
    return float(np.abs(a.predictions - b.predictions).mean()) if same else None


def _lists(release: Release, users: Sequence[Any]) -> Lists:
    """Ids as text, so that 42 and "42" are one item, as everywhere else."""
    return [frozenset(map(str, release.recommend(user, TOP).items)) for user in users]


def _overlap(a: Lists, b: Lists) -> float:
    """Who rated everything has no list, and is left out."""
    shares = [len(x & y) / max(len(x), len(y)) for x, y in zip(a, b, strict=True) if x or y]
    return float(np.mean(shares)) if shares else 1.0
