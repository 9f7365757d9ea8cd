"""What an epsilon means for one rating and for one person, from exact tables: no rating is needed.

Two figures say how often somebody guesses a rating right who knows nothing but the scale: the most that *any* mechanism
of this epsilon allows, and what the mechanism itself allows, read off its integer table. The table is that of the best
channel for this scale at the whole epsilon, or, for a release, the most telling of the release's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import isfinite, sqrt
from typing import Any

import numpy as np

from dpsr.certify.amounts import belief_at_least, belief_at_most, check_epsilon, guess_right, odds_factor
from dpsr.certify.certificate import check_unit
from dpsr.certify.normal_price import affordable_squared_mu, chance_beyond, gaussian_epsilon, tail_up
from dpsr.certify.parts import ChannelPart
from dpsr.privacy.channels import optimal_channel
from dpsr.release import Release
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.types import Scale

PRIORS = (0.5, 0.2, 0.01)
COUNTS = (1, 5, 20, 100)


@dataclass(frozen=True)
class Belief:
    """What somebody believed, and the least and most they can believe afterwards."""

    prior: float
    least: float
    most: float


@dataclass(frozen=True)
class Person:
    """What `ratings` of one person add up to: a fifty-fifty guess about all of them together becomes at most `most`."""

    ratings: int
    epsilon: float
    odds: float
    most: float


@dataclass(frozen=True)
class UnitPrice:
    """A price for one unit."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Explanation:
    """Epsilon as odds, beliefs, guesses and sums.

    `guess_channel` is None where no symbol per rating was released; without a scale all guesses are.
    """

    epsilon: float
    delta: float
    scale: str | None
    odds: float
    beliefs: tuple[Belief, ...]
    n_levels: int | None
    guess_before: float | None
    guess_at_most: float | None
    guess_channel: float | None
    persons: tuple[Person, ...]
    unit: str = "value"
    units: dict[str, UnitPrice | None] = field(default_factory=dict)
    """At most what each unit costs; None where it is not protected."""

    guess_there: float | None = None
    """Where noise is normal: how often, at most, a fair coin is guessed that decided whether somebody is there."""

    chance_beyond: float | None = None
    """Where noise is normal: how often, at most, odds change by more than the factor. More often than delta."""

    likes: bool = False
    """Whether it is about interactions, not ratings."""

    reasons: tuple[str, ...] = ()
    """Why the release is NOT PRIVATE: then none of the figures is a promise."""

    def to_dict(self) -> dict[str, Any]:
        record = asdict(self)
        prices = [one for one in record["units"].values() if one is not None]
        for place in (*record["persons"], *prices, record):
            for name in {"epsilon", "odds"} & place.keys():  # JSON has no infinity
                place[name] = place[name] if isfinite(place[name]) else "inf"
        return record


def explain(scale: Scale | None, epsilon: float, *, unit: str = "value", delta: float | None = None) -> Explanation:
    """What `epsilon` means, and on a scale, how often a rating is guessed under the most telling lawful channel.

    Where people or ratings are protected, the odds are about whether somebody, or a rating, is there at all.
    """
    asked = check_epsilon(epsilon)
    check_unit(unit, asked, delta, declared=False)
    if unit != "value":
        assert delta is not None
        return _of_people(asked, delta, unit, affordable_squared_mu(asked, delta), {})
    if scale is None:
        return _explanation(None, asked, 0.0, None, COUNTS)
    uniform = np.full(scale.n_levels, 1 / scale.n_levels)
    guess = guess_right(optimal_channel(scale, asked, uniform).weights.tolist())
    return _explanation(scale, asked, 0.0, guess, COUNTS)


def explain_release(release: Release | ItemRelease | LikesRelease) -> Explanation:
    """What a release's own epsilon means, with its own tables and its own heaviest user."""
    certificate = release.certificate
    if isinstance(release, ItemRelease | LikesRelease):
        squared_mu = affordable_squared_mu(certificate.epsilon, certificate.delta)  # whatever the answers, and names
        prices = {
            name: None if one is None else UnitPrice(one.epsilon, one.delta)
            for name, one in certificate.protection.items()
        }
        told = _of_people(certificate.epsilon, certificate.delta, certificate.unit, squared_mu, prices)
        return replace(told, likes=certificate.likes, reasons=certificate.reasons)
    tables = [table for part in certificate.parts if isinstance(part, ChannelPart) for table in part.tables]
    guess = max(map(guess_right, tables), default=None)
    heaviest = int(release.mask.user_counts.max())
    counts = sorted({*(k for k in COUNTS if k < heaviest), heaviest})
    told = _explanation(release.scale, certificate.epsilon, certificate.delta, guess, counts)
    return replace(told, reasons=certificate.reasons)


def _of_people(
    epsilon: float, delta: float, unit: str, squared_mu: Fraction, units: dict[str, UnitPrice | None]
) -> Explanation:
    """Without a release's own prices: one rating replaces its person's numbers, a value one rating by another."""
    replaced = UnitPrice(gaussian_epsilon(4 * squared_mu, delta), delta)
    own = UnitPrice(epsilon, delta)
    if not units and unit == "user":
        units = {"value": replaced, "rating": replaced, "user": own}
    elif not units:
        units = {"value": replaced, "rating": own, "user": None}
    told = _explanation(None, epsilon, delta, None, (), unit)
    there = min(tail_up(-sqrt(squared_mu) / 2) + delta, 1.0)
    return replace(told, units=units, guess_there=there, chance_beyond=chance_beyond(epsilon, delta))


def _explanation(
    scale: Scale | None,
    epsilon: float,
    delta: float,
    channel: float | None,
    counts: Sequence[int],
    unit: str = "value",
) -> Explanation:
    k = None if scale is None else scale.n_levels
    priors = PRIORS if k is None or 1 / k in PRIORS else (*PRIORS, 1 / k)
    return Explanation(
        epsilon=epsilon,
        delta=delta,
        scale=None if scale is None else str(scale),
        odds=odds_factor(epsilon),
        beliefs=tuple(
            Belief(p, belief_at_least(p, epsilon), belief_at_most(p, epsilon)) for p in sorted(priors, reverse=True)
        ),
        n_levels=k,
        guess_before=None if k is None else 1 / k,
        guess_at_most=None if k is None else belief_at_most(1 / k, epsilon),
        guess_channel=channel,
        persons=tuple(
            Person(n, n * epsilon, odds_factor(n * epsilon), belief_at_most(0.5, n * epsilon)) for n in counts
        ),
        unit=unit,
        units={"value": UnitPrice(epsilon, delta), "rating": None, "user": None},
    )
