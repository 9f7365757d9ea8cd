"""A private method as its transcript: every statistic it asked for, what was answered, and at what price.

`record` runs a method for real and writes down what went through the noise. `replay` runs it on other ratings and gives
the answers of the first run whatever is asked, so that two data sets are compared **given the same answers so far**:
that is what adaptive composition asks of a mechanism, and it makes the sensitivity of every step measurable.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dpsr.evaluate.likes.peers import dp_ials, noisy_popularity
from dpsr.evaluate.peers import (
    averages,
    berlioz,
    dp_als,
    dp_sgd,
    dp_sgd_user,
    floating,
    least_squares,
    mcsherry_mironov,
    noisy_bias,
    shin,
)
from dpsr.evaluate.peers.floating import Measured
from dpsr.evaluate.registry import build

MODULES = (
    averages, berlioz, dp_als, dp_ials, dp_sgd, dp_sgd_user, least_squares, mcsherry_mironov, noisy_bias,
    noisy_popularity, shin,
)  # fmt: skip
DRAWS = ("laplace_noise", "vector_laplace_noise", "gaussian_noise", "local_reports")


@dataclass(frozen=True)
class Release:
    statistic: np.ndarray
    answer: np.ndarray
    price: floating.Price

    @property
    def noise(self):
        return self.answer - self.statistic


def _modules(name):
    """Where a method may draw its noise; PyTorch, which takes seconds, is imported for the one that needs it."""
    if name != "dp-two-tower":
        return MODULES
    from dpsr.evaluate.likes.peers import two_tower

    return (*MODULES, two_tower)


@contextmanager
def _listening(monkeypatch, name, hear):
    with monkeypatch.context() as patch:
        for module in _modules(name):
            for draw in DRAWS:
                if hasattr(module, draw):
                    patch.setattr(module, draw, hear(getattr(floating, draw)))
        yield


def record(monkeypatch, name, epsilon, ratings, *, spoil=None, seed=5, build=build):
    """The fitted peer and its releases. `spoil` changes the answers, to plant an error."""
    releases = []

    def hear(draw):
        def drawn(statistic, **settings):
            answer, price = draw(statistic, **settings)
            answer = answer if spoil is None else spoil(statistic, answer)
            releases.append(Release(np.array(statistic), np.array(answer), price))
            return Measured(answer, price)

        return drawn

    with _listening(monkeypatch, name, hear):
        peer = build(name, epsilon, 1e-5, seed).fit(ratings)
    return peer, releases


def replay(monkeypatch, name, epsilon, ratings, releases, *, seed=5, build=build):
    """The fitted peer and the statistics it asks for on other ratings, given the same answers."""
    asked, left = [], iter(releases)

    def hear(_):
        def answered(statistic, **settings):
            release = next(left)
            asked.append(np.array(statistic))
            return Measured(release.answer.copy(), release.price)

        return answered

    with _listening(monkeypatch, name, hear):
        peer = build(name, epsilon, 1e-5, seed).fit(ratings)
    assert len(asked) == len(releases)
    return peer, asked


def movement(release, statistic):
    """How far the statistic moved, in the norm of its mechanism; in how many rows."""
    change = release.statistic - statistic
    rows = int(np.any(change.reshape(len(change), -1) != 0, axis=1).sum())
    order = 1 if release.price.mechanism == "laplace" else 2
    return float(np.linalg.norm(change.ravel(), order)), rows
