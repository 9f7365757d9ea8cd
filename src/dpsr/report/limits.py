"""What a release does not do, graded by severity: the short form of docs/limits.md."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """One limit: how bad it can get, its name, and one sentence."""

    severity: str
    name: str
    words: str


LIMITS = (
    Limit(
        "high",
        "Who rated what is public",
        "That a person rated an item, when, and how often is not hidden. If that alone is a secret, do not publish.",
    ),
    Limit(
        "high",
        "Releases add up",
        "Every further release of the same ratings adds its epsilon. Keep a ledger, and release once.",
    ),
    Limit(
        "medium",
        "A person is weaker than a rating",
        "Someone with k ratings is protected at k times epsilon as a whole; for heavy users that is no protection.",
    ),
    Limit(
        "medium",
        "Taste can be inferred",
        "What other ratings say about a person can still be concluded; epsilon bounds what their own value adds.",
    ),
    Limit(
        "medium",
        "Accuracy is a forecast",
        "Expected accuracy assumes typical shares of variance and was not measured on these ratings.",
    ),
    Limit(
        "low",
        "Released ratings are estimates",
        "They lie closer together than the ratings people gave, and a single one may be far off.",
    ),
    Limit(
        "low",
        "Timing is not protected",
        "How long the release took was not hidden from somebody who watched the machine.",
    ),
)
