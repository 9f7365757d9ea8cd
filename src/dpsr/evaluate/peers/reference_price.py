"""What the nominal epsilon of the reference implementation of DP-ALS comes to, from the facts of its code.

google-research/dp_alternating_minimization, `dpam.py` and the notebook `movielens/dpam.ipynb`, as read in 2026. In its
settings for ML-10M every user counts with a budget B = sum c^2 = 100 and k = 100 ratings enter mean and counts; s is
`count_stddev`, z = sigma / sqrt(B) the noise multiplier of the T steps, r the largest rating.

    part                              noise               a user moves it by   charged mu^2   true mu^2
    sum of k ratings, for the mean    r sqrt(k) s         k r                  1 / s^2        k / s^2
    their number, for the mean        s                   k                    1 / s^2        k^2 / s^2
    item counts                       s                   sqrt(k)              k / s^2        k / s^2
    T Gram matrices                   sigma Gamma^2       sqrt(B) Gamma^2      T / z^2        T / z^2
    T right sides                     sigma Gamma         c sqrt(B) Gamma      T / z^2        c^2 T / z^2

Gamma bounds a user's vector. Nothing bounds the entries: centred ratings reach c = 3 where the mean is 3.5 and the
lowest rating half a star. sigma follows from the nominal epsilon by Renyi accounting on a grid of orders, which alone
charges a little too much; prices here are exact (Balle and Wang 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt

from scipy.optimize import brentq

from dpsr.evaluate.peers.accounting import gaussian_epsilon

ORDERS = (*(1.1 + 0.1 * step for step in range(99)), *range(11, 64))
"""The grid of Renyi orders on which the reference looks for its noise."""


@dataclass(frozen=True)
class Setting:
    """One published setting: what the noise was chosen for, and everything the price depends on."""

    nominal: float
    steps: int
    count_deviation: float
    per_user: int = 100
    delta: float = 1e-5

    @property
    def multiplier(self) -> float:
        """z, as the reference's accounting chooses it for the nominal epsilon."""

        def excess(z: float) -> float:
            return renyi_epsilon(sum(self.charged(z).values()), self.delta) - self.nominal

        return float(brentq(excess, 1e-2, 1e4, xtol=1e-12))

    def charged(self, z: float) -> Mapping[str, float]:
        """mu^2 of each part as the reference counts it."""
        s, k = self.count_deviation, self.per_user
        return {
            "sum": s**-2,
            "number": s**-2,
            "counts": k / s**2,
            "grams": self.steps / z**2,
            "rights": self.steps / z**2,
        }

    def true(self, z: float, largest: float = 3.0) -> Mapping[str, float]:
        """mu^2 of each part by what a user really moves; `largest` is the size that centred ratings reach."""
        s, k, charged = self.count_deviation, self.per_user, self.charged(z)
        return {**charged, "sum": k / s**2, "number": k**2 / s**2, "rights": largest**2 * self.steps / z**2}

    def epsilon(self, *repaired: str, largest: float = 3.0) -> float:
        """The exact price if the named parts are charged for what they cost, and the others as the reference does."""
        z = self.multiplier
        parts = {**self.charged(z), **{name: self.true(z, largest)[name] for name in repaired}}
        return gaussian_epsilon(sqrt(sum(parts.values())), self.delta)


ML_10M = (Setting(1.0, 2, 200.0), Setting(5.0, 3, 40.0), Setting(20.0, 4, 10.0))
"""The three settings of the notebook for ML-10M; the embeddings' size and Gamma do not enter the price."""

CENTRING, ENTRIES = ("sum", "number"), ("rights",)
"""What the mean costs, and what unbounded entries cost."""


def renyi_epsilon(squared_mu: float, delta: float) -> float:
    """The least epsilon over `ORDERS` of Gaussian noise, by the conversion of Canonne, Kamath and Steinke 2020.

    At order a the Renyi price is a mu^2 / 2, and epsilon = a mu^2 / 2 + log((a - 1) / a) - log(a delta) / (a - 1).
    """
    least = min(a * squared_mu / 2 + log((a - 1) / a) - log(a * delta) / (a - 1) for a in ORDERS)
    return max(0.0, least)
