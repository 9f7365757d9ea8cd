"""What each part of the price bought, from the certificate alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

from dpsr.report.odds import price
from dpsr.types import Certificate, Part

_BOUGHT = {
    "level histogram": ("Histogram", "how the scale is used: a noisy count of every level"),
    "window sums": ("Window sums", "noisy sums of each item's and each user's ratings, cut to a window"),
    "ratings": ("Ratings", "every rating once through a randomising table"),
}
_ABSENT = "nothing: at this epsilon the sums alone tell more"


@dataclass(frozen=True)
class Cost:
    """One row of the table: `share` of the whole price between 0 and 1, `start` where its piece of the bar begins."""

    name: str
    bought: str
    noise: str
    epsilon: str
    share: float
    start: float


def costs(certificate: Certificate, method: str) -> list[Cost]:
    """One row per part, in the order asked; the default pipeline names the question it did not ask, too."""
    rows, start = [], 0.0
    for part in certificate.parts:
        share = _share(part.epsilon, certificate)
        name, bought = _BOUGHT.get(part.name, (part.name, part.mechanism))
        rows.append(Cost(name, bought, _noise(part), price(part.epsilon), share, start))
        start += share
    if method == "default" and all(part.name != "ratings" for part in certificate.parts):
        rows.append(Cost(_BOUGHT["ratings"][0], _ABSENT, "", "0", 0.0, start))
    return rows


def _share(epsilon: float, certificate: Certificate) -> float:
    if isinf(epsilon) or len(certificate.parts) == 1:
        return 1.0
    return 0.0 if isinf(certificate.epsilon) else epsilon / certificate.epsilon


def _noise(part: Part) -> str:
    """The noise in words: what it takes to recompute the price is in the certificate."""
    if part.tables:
        n, rows, columns = len(part.tables), len(part.tables[0]), max(len(table[0]) for table in part.tables)
        tables = "one table" if n == 1 else f"{n} tables"
        return f"{part.mechanism}: {tables} of {rows} × {columns} integers"
    if part.sensitivity is not None:
        return f"{part.mechanism}, sensitivity {part.sensitivity:,}, scale {part.noise_scale}"
    return part.mechanism
