"""Ratings in memory, each once through one mechanism: the paper's Stage 1. Noise and its receipt are one value.

The paper's later stages take what this module returns. A `Channel` is a public table, so each rating costs its exact
epsilon and no more: every rating passes once, and two ratings never share noise (parallel composition over ratings).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from dpsr.certify import Certificate
from dpsr.certify.certificate import ChargeReference, software
from dpsr.certify.parts import Part
from dpsr.certify.unproved import DeclaredPart, PublishedPart
from dpsr.engine.raw import RawRatings
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import Channel
from dpsr.privacy.channels.published import AsPublished
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.vault import SEEDED, channel_part, public_facts
from dpsr.types import PrivateRatings

_MEAN_LEAK = (
    "the published Stage 1 centres its noise on the exact mean and scales it by the secret rating: its true worst-case "
    "epsilon is {true:.3g}, not {nominal:g}"
)


def privatise(
    ratings: RawRatings,
    mechanism: Channel | AsPublished,
    *,
    noise: NoiseSource,
    charge: ChargeReference | None = None,
) -> PrivateRatings:
    """Pass every rating once through `mechanism`; the result carries its certificate.

    A mechanism with a failure probability says in its settings which one was asked for (`nominal_delta`); `charge` is
    the entry of a ledger that paid.
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
        nominal, asked_delta = mechanism.settings["nominal"], mechanism.settings.get("nominal_delta", 0.0)
        channel, part, reasons = mechanism, *_channel_receipt(mechanism, asked_delta)
    reasons = reasons if noise.private else (*reasons, SEEDED)
    values = channel.outputs[channel.sample(ratings.levels, noise)]
    drawn = _Drawn(noise.kind, noise.identity, charge)
    certificate = _certificate(nominal, asked_delta, part, reasons, ratings, drawn)
    return PrivateRatings(ratings.mask, values, ratings.scale, certificate)


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
        software=software(),
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
