"""Stage 1: the one arrow from raw ratings to private ones. Noise and its receipt are one value.

Everything else in the library takes what this module returns. A `Channel` is a public table, so each rating costs its
exact epsilon and no more: every rating passes once, and two ratings never share noise (parallel composition over
ratings).
"""

from __future__ import annotations

from importlib.metadata import version
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.certify import Certificate, Part
from dpsr.certify.certificate import Table
from dpsr.certify.prices import PUBLISHED
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.channel import BITS, Channel
from dpsr.privacy.channels.published import AsPublished
from dpsr.privacy.noise.source import NoiseSource
from dpsr.types import Census, Mask, PrivateRatings, Scale
from dpsr.types.raw import RawRatings

_MEAN_LEAK = (
    "the published Stage 1 centres its noise on the exact mean and scales it by the secret rating: its true worst-case "
    "epsilon is {true:.3g}, not {nominal:g}"
)
SEEDED = "the noise came from a seed, and whoever has the seed can subtract it"


def privatise(
    ratings: RawRatings, mechanism: Channel | AsPublished, *, noise: NoiseSource, delta: float | None = None
) -> PrivateRatings:
    """Pass every rating once through `mechanism`; the result carries its certificate.

    `delta` is the failure probability asked for, if the mechanism needs one (Gaussian).
    """
    if ratings.scale.values.tolist() != mechanism.scale.values.tolist():
        raise PrivacyError(
            f"the mechanism was built for the scale {mechanism.scale}, the ratings are on {ratings.scale}. "
            "Build it with the ratings' own scale."
        )
    if isinstance(mechanism, AsPublished):
        channel, parts, reasons = mechanism.channel(float(ratings.values.mean())), *_published_receipt(mechanism)
    else:
        channel, parts, reasons = mechanism, *_channel_receipt(mechanism, delta)
    values = channel.outputs[channel.sample(ratings.levels, noise)]
    return PrivateRatings(
        ratings.mask, values, ratings.scale, _certificate(mechanism, parts, reasons, ratings.mask, noise)
    )


def public_facts(census: Census, scale: Scale) -> dict[str, Any]:
    """What the promise does not protect, with the numbers a reader needs to judge it."""
    counts = census.user_counts
    return {
        "facts": "user ids, item ids, who rated what, how many ratings each has, timestamps, the scale",
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


def channel_part(channel: Channel, epsilon: float, delta: float = 0.0) -> Part:
    """The receipt for ratings that passed once through one channel: its table, and all that was public about it."""
    return Part(
        name="ratings",
        mechanism=channel.mechanism,
        epsilon=epsilon,
        delta=delta,
        bits=BITS,
        tables=(as_table(channel.weights),),
        details={**channel.settings, "outputs": channel.outputs.tolist()},
    )


def _channel_receipt(channel: Channel, delta: float | None) -> tuple[Part, tuple[str, ...]]:
    nominal = channel.settings["nominal"]
    asked_delta = channel.settings.get("nominal_delta", delta or 0.0)
    epsilon, true_delta = channel.epsilon, 0.0
    if asked_delta:
        epsilon, true_delta = nominal, channel.delta(nominal)
    part, reasons = channel_part(channel, epsilon, true_delta), []
    if epsilon > nominal:
        reasons.append(f"the exact epsilon {epsilon:.6g} exceeds the {nominal:g} asked for")
    if true_delta > asked_delta:
        reasons.append(f"the exact delta {true_delta:.3g} exceeds the {asked_delta:g} asked for")
    return part, tuple(reasons)


def _published_receipt(mechanism: AsPublished) -> tuple[Part, tuple[str, ...]]:
    part = Part(
        name="ratings",
        mechanism=PUBLISHED,
        epsilon=mechanism.epsilon,
        details={
            "nominal": mechanism.nominal,
            "alpha": mechanism.alpha,
            "base": mechanism.base,
            "tables": "withheld: it depends on the exact mean of the ratings",
            "worst_case": "supremum over all data sets: max(log(1+alpha) + base, nominal) + 2 alpha max(1, base)",
        },
    )
    return part, (_MEAN_LEAK.format(true=mechanism.epsilon, nominal=mechanism.nominal),)


def _certificate(
    mechanism: Channel | AsPublished, part: Part, reasons: tuple[str, ...], mask: Mask, noise: NoiseSource
) -> Certificate:
    nominal = mechanism.nominal if isinstance(mechanism, AsPublished) else mechanism.settings["nominal"]
    reasons = reasons if noise.private else (*reasons, SEEDED)
    return Certificate(
        nominal=nominal,
        parts=(part,),
        public=public_facts(mask.census, mechanism.scale),
        randomness=noise.kind,
        private=not reasons,
        reasons=reasons,
        software=f"dpsr {version('dpsr')}",
    )


def declared_private(ratings: RawRatings) -> PrivateRatings:
    """Ratings whose owner says they are private already. No noise is drawn and nothing is certified."""
    part = Part(name="ratings", mechanism="declared private by the caller", epsilon=inf)
    certificate = Certificate(
        nominal=None,
        parts=(part,),
        public=public_facts(ratings.mask.census, ratings.scale),
        randomness="declared",
        private=False,
        reasons=("no noise was drawn here: whoever passed these ratings declared them private already",),
        software=f"dpsr {version('dpsr')}",
    )
    return PrivateRatings(ratings.mask, ratings.values, ratings.scale, certificate)
