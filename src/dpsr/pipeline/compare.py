"""Releases side by side: what each promises, what it was to be worth, and how far their answers lie apart.

    difference(a, b) = mean |prediction_a - prediction_b|      over pairs of users and items that all releases know
    overlap(a, b)    = mean |top-10_a and top-10_b| / 10       over users that all know; lists may be shorter

Everything is computed from what was released, so a comparison is as private as the releases are. Accuracy is expected,
not measured: who holds the raw ratings can measure it with `dpsr.evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.certify.amounts import MAX_EPSILON, MIN_EPSILON
from dpsr.errors import ParameterError
from dpsr.release import Release
from dpsr.types import Scale
from dpsr.types.mask import Ids
from dpsr.value.allocation import forecast
from dpsr.value.design import released_components

Lists = list[frozenset[str]]

PAIRS, USERS, TOP = 20_000, 100, 10
_SAMPLE_SEED = 0  # of which pairs are compared, so that a comparison can be repeated


@dataclass(frozen=True)
class Column:
    """One release. `expected` is RMSE as a share of predicting one constant, or None where no forecast exists."""

    name: str
    method: str
    private: bool
    epsilon: float
    delta: float
    nominal: float | None
    parts: dict[str, float]
    scale: str
    n_users: int
    n_items: int
    n_ratings: int
    expected: float | None


@dataclass(frozen=True)
class Between:
    """How far two releases lie apart. There is no `difference` between predictions on different scales."""

    a: str
    b: str
    difference: float | None
    overlap: float


@dataclass(frozen=True)
class Comparison:
    """Columns in the order given, and every two of them; nothing `between` if they have nothing in common."""

    columns: tuple[Column, ...]
    n_pairs: int
    n_users: int
    between: tuple[Between, ...]

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

    scale: Scale
    predictions: Floats
    lists: Lists


def compare(releases: Sequence[Release], names: Sequence[str]) -> Comparison:
    """Compare releases; users and items count as the same when their ids are."""
    if len(releases) != len(names) or not releases:
        raise ParameterError("a comparison needs at least one release, and a name for each.")
    rng = np.random.default_rng(_SAMPLE_SEED)
    users = _known_to_all([r.mask.user_codes for r in releases], releases[0].mask.user_ids)
    items = _known_to_all([r.mask.item_codes for r in releases], releases[0].mask.item_ids)
    columns = tuple(_column(release, name) for release, name in zip(releases, names, strict=True))
    if not len(users) or not len(items):
        return Comparison(columns, 0, 0, ())
    pairs = rng.choice(users, PAIRS).tolist(), rng.choice(items, PAIRS).tolist()
    some = rng.permutation(users)[:USERS].tolist()
    answers = [Answers(r.scale, r.predict(*pairs), _lists(r, some)) for r in releases]
    between = tuple(
        Between(names[a], names[b], _difference(answers[a], answers[b]), _overlap(answers[a].lists, answers[b].lists))
        for a, b in combinations(range(len(releases)), 2)
    )
    return Comparison(columns, PAIRS, len(some), between)


def _column(release: Release, name: str) -> Column:
    certificate, mask = release.certificate, release.mask
    parts: dict[str, float] = {}
    for part in certificate.parts:
        parts[part.name] = parts.get(part.name, 0.0) + next(iter(part.stated.values()))
    return Column(
        name, release.method, certificate.private, certificate.epsilon, certificate.delta, certificate.nominal, parts,
        str(release.scale), mask.n_users, mask.n_items, mask.n_ratings, _expected(release),
    )  # fmt: skip


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
    same = (a.scale.low, a.scale.high) == (b.scale.low, b.scale.high)
    return float(np.abs(a.predictions - b.predictions).mean()) if same else None


def _lists(release: Release, users: Sequence[Any]) -> Lists:
    """Ids as text, so that 42 and "42" are one item, as everywhere else."""
    return [frozenset(map(str, release.recommend(user, TOP).items)) for user in users]


def _overlap(a: Lists, b: Lists) -> float:
    """Who rated everything has no list, and is left out."""
    shares = [len(x & y) / max(len(x), len(y)) for x, y in zip(a, b, strict=True) if x or y]
    return float(np.mean(shares)) if shares else 1.0
