"""Made-up ratings in which who rates what depends on taste, of any number of people.

    P[u rates j]  ~  popularity_j exp(p_u . q_j),
    score = kind_u + quality_j + taste p_u . q_j + own (r_u . q_j + p_u . s_j) + noise,

p, q, r, s normal with variance 1 / sqrt(rank): who rates what shows p and q, and not what is `own`. Scores are cut into
five stars at stated quantiles; activity is log-normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr import Ratings

_SHARES = (0.06, 0.11, 0.27, 0.34, 0.22)
_BLOCK = 1_000


@dataclass(frozen=True)
class TasteSet:
    """Sizes of a made-up set; `kind`, `quality`, `taste`, `noise` and `own` are standard deviations."""

    name: str
    items: int
    mean: float
    rank: int = 4
    kind: float = 0.45
    quality: float = 0.5
    taste: float = 0.5
    noise: float = 0.8
    own: float = 0.0

    def draw(self, people: int, seed: int = 0) -> Ratings:
        """So many people."""
        rng = np.random.default_rng(seed)
        q = rng.standard_normal((self.items, self.rank)) / self.rank**0.25
        quality = self.quality * rng.standard_normal(self.items)
        appeal = 0.5 * quality - 0.95 * np.log(5 + rng.permutation(self.items))
        others = np.random.default_rng([seed, 1])  # so that a set with slopes of its own has the same mask and noise
        r, s = (others.standard_normal((n, self.rank)) / self.rank**0.25 for n in (people, self.items))
        rows = [
            self._block(r[start : start + _BLOCK], start, q, s, quality, appeal, rng)
            for start in range(0, people, _BLOCK)
        ]
        users, items, score = (np.concatenate(column) for column in zip(*rows, strict=True))
        stars = 1 + np.searchsorted(np.quantile(score, np.cumsum(_SHARES)[:-1]), score)
        return Ratings.from_arrays(users, items, stars, scale="1:5:1")

    def _block(self, r, first, q, s, quality, appeal, rng):  # type: ignore[no-untyped-def]
        m = len(r)
        p, kind = rng.standard_normal((m, self.rank)) / self.rank**0.25, self.kind * rng.standard_normal(m)
        many = np.clip(np.round(self.mean * np.exp(rng.normal(-0.6, 1.1, m))), 1, self.items // 2).astype(int)
        clock = rng.standard_exponential((m, self.items), dtype=np.float32)
        clock *= np.exp(-(p @ q.T + appeal)).astype(np.float32)
        order = np.argsort(clock, axis=1)
        users = np.repeat(np.arange(m), many)
        items = np.concatenate([order[u, : many[u]] for u in range(m)])
        score = kind[users] + quality[items] + self.noise * rng.standard_normal(len(users))
        score += self.taste * (p[users] * q[items]).sum(axis=1)
        score += self.own * ((r[users] * q[items]) + (p[users] * s[items])).sum(axis=1)
        return users + first, items, score


SETS = (
    TasteSet("300 items, 30 ratings each", 300, 30),
    TasteSet("1,000 items, 60 ratings each", 1_000, 60),
    TasteSet("3,000 items, 100 ratings each", 3_000, 100),
)
