"""Stage 1: the one arrow from raw ratings to private ones. Noise and its receipt are one value.

Everything else in the library takes what this module returns. A `Channel` is a public table, so each rating costs its
exact epsilon and no more: every rating passes once, and two ratings never share noise (parallel composition over
ratings).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.certify import Certificate
from dpsr.certify.certificate import PUBLIC_FACTS, ChargeReference
from dpsr.certify.parts import ChannelPart, DeclaredPart, Part, Price, PublishedPart, Table
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import BITS, Channel
from dpsr.privacy.channels.published import AsPublished
from dpsr.privacy.noise.source import NoiseSource
from dpsr.types import Census, PrivateRatings, Scale
from dpsr.types.raw import RawRatings

_MEAN_LEAK = (
    "the published Stage 1 centres its noise on the exact mean and scales it by the secret rating: its true worst-case "
    "epsilon is {true:.3g}, not {nominal:g}"
)
SEEDED = "the noise came from a seed, and whoever has the seed can subtract it"


def privatise(
    ratings: RawRatings,
    mechanism: Channel | AsPublished,
    *,
    noise: NoiseSource,
    delta: float | None = None,
    charge: ChargeReference | None = None,
) -> PrivateRatings:
    """Pass every rating once through `mechanism`; the result carries its certificate.

    `delta` is the failure probability asked for, if the mechanism needs one (Gaussian); `charge` the entry of a ledger
    that paid.
    """
    if ratings.scale.values.tolist() != mechanism.scale.values.tolist():
        raise PrivacyError(
            f"the mechanism was built for the scale {mechanism.scale}, the ratings are on {ratings.scale}. "
            "Build it with the ratings' own scale."
        )
    if isinstance(mechanism, AsPublished):
        nominal, asked_delta = mechanism.nominal, 0.0
        channel, part, reasons = mechanism.channel(float(ratings.values.mean())), *_published_receipt(mechanism)
    else:
        nominal, asked_delta = mechanism.settings["nominal"], mechanism.settings.get("nominal_delta", delta or 0.0)
        channel, part, reasons = mechanism, *_channel_receipt(mechanism, asked_delta)
    reasons = reasons if noise.private else (*reasons, SEEDED)
    values = channel.outputs[channel.sample(ratings.levels, noise)]
    drawn = _Drawn(noise.kind, noise.identity, charge)
    certificate = _certificate(nominal, asked_delta, part, reasons, ratings, drawn)
    return PrivateRatings(ratings.mask, values, ratings.scale, certificate)


def public_facts(census: Census, scale: Scale) -> dict[str, Any]:
    """What the promise does not protect, with the numbers a reader needs to judge it."""
    counts = census.user_counts
    return {
        "facts": PUBLIC_FACTS["value"],
        "scale": str(scale),
        "levels": scale.n_levels,
        "n_users": census.n_users,
        "n_items": census.n_items,
        "n_ratings": census.n_ratings,
        "median_ratings_per_user": float(np.median(counts)),
        "max_ratings_per_user": int(counts.max()),
        "has_timestamps": census.timed,
    }


def as_table(weights: npt.NDArray[np.uint64]) -> Table:
    """A table as the certificate holds it: plain integers."""
    return tuple(tuple(int(w) for w in row) for row in weights)


def channel_part(channel: Channel, at_epsilon: float | None = None) -> ChannelPart:
    """The receipt for ratings that passed once through one channel: its table, and all that was public about it."""
    part = ChannelPart(
        name="ratings",
        mechanism=channel.mechanism,
        bits=BITS,
        tables=(as_table(channel.weights),),
        at_epsilon=at_epsilon,
        settings=dict(channel.settings),
        outputs=tuple(channel.outputs.tolist()),
    )
    if at_epsilon is not None:  # the channel knows which pairs of its rows to compare: the part would compare them all
        part.__dict__["price"] = Price(at_epsilon, channel.delta(at_epsilon))
    return part


def _channel_receipt(channel: Channel, asked_delta: float) -> tuple[Part, tuple[str, ...]]:
    nominal = channel.settings["nominal"]
    part, reasons = channel_part(channel, nominal if asked_delta else None), []
    if part.epsilon > nominal:
        reasons.append(f"the exact epsilon {part.epsilon:.6g} exceeds the {nominal:g} asked for")
    if part.delta > asked_delta:
        reasons.append(f"the exact delta {part.delta:.3g} exceeds the {asked_delta:g} asked for")
    return part, tuple(reasons)


def _published_receipt(mechanism: AsPublished) -> tuple[Part, tuple[str, ...]]:
    part = PublishedPart("ratings", mechanism.nominal, mechanism.alpha)
    return part, (_MEAN_LEAK.format(true=mechanism.epsilon, nominal=mechanism.nominal),)


def _certificate(
    nominal: float | None, asked_delta: float, part: Part, reasons: tuple[str, ...], ratings: RawRatings, drawn: _Drawn
) -> Certificate:
    return Certificate(
        nominal=nominal,
        nominal_delta=asked_delta,
        parts=(part,),
        public=public_facts(ratings.mask.census, ratings.scale),
        randomness=drawn.kind,
        private=not reasons,
        id=drawn.identity,
        reasons=reasons,
        charge=drawn.charge,
        software=f"dpsr {version('dpsr')}",
    )


@dataclass(frozen=True)
class _Drawn:
    """Where the noise came from, its name, and the entry of a ledger that paid for it."""

    kind: str
    identity: str
    charge: ChargeReference | None = None


def declared_private(ratings: RawRatings) -> PrivateRatings:
    """Ratings whose owner says they are private already. No noise is drawn and nothing is certified."""
    reasons = ("no noise was drawn here: whoever passed these ratings declared them private already",)
    drawn = _Drawn("declared", secrets.token_hex(16))
    certificate = _certificate(None, 0.0, DeclaredPart("ratings"), reasons, ratings, drawn)
    return PrivateRatings(ratings.mask, ratings.values, ratings.scale, certificate)
