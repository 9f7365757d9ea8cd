"""Where the peers' fixed settings come from: alternatives to each on synthetic sets, never on a benchmark set.

`python -m benchmarks.peer_settings [METHOD ...]` prints the root mean squared error, averaged over two made-up sets
and three budgets, with the setting as it stands and with the alternatives. Seeded, not private.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from dpsr import Ratings
from dpsr.data import realistic
from dpsr.evaluate import rmse
from dpsr.evaluate.baselines import svdpp
from dpsr.evaluate.peers import berlioz, dp_als, dp_sgd, least_squares, mcsherry_mironov, objective, shin
from dpsr.evaluate.registry import METHODS, build

EPSILONS = (0.5, 2.0, 8.0)
DELTA = 1e-5
SETTINGS: dict[str, dict[tuple[ModuleType, str], tuple[object, ...]]] = {
    "dp-sgd-mf": {
        (dp_sgd, "CLIP"): (0.25, 0.5, 1.0),
        (dp_sgd, "RANK"): (2, 4, 8),
        (dp_sgd, "STEPS"): (30, 60, 120),
        (dp_sgd, "SAMPLING"): (0.15, 0.3, 0.6),
        (dp_sgd, "BIAS_SIGNAL"): (0.025, 0.05, 0.1),
        (dp_sgd, "FACTOR_SIGNAL"): (0.01, 0.02, 0.04),
    },
    "objective-mf": {
        (objective, "RANK"): (1, 2, 4),
        (objective, "BIAS"): (0.05, 0.1, 0.2),
        (least_squares, "FACTOR_SIGNAL"): (0.01, 0.02, 0.04),
        (least_squares, "RESIDUAL"): (0.075, 0.15, 0.3),
    },
    "berlioz-als": {
        (berlioz, "CLAMP"): (0.25, 0.5, 1.0),
        (berlioz, "RANK"): (2, 3, 6),
        (berlioz, "SIGNAL"): (0.025, 0.05, 0.1),
        (berlioz, "SHARES"): ((0.02, 0.14, 0.14, 0.7), (0.02, 0.34, 0.34, 0.3), (0.02, 0.45, 0.45, 0.08)),
    },
    "mcsherry-mironov": {
        (mcsherry_mironov, "BOUND"): (0.25, 0.5, 1.0),
        (mcsherry_mironov, "LIMIT"): (500, 1000, 2000),
        (mcsherry_mironov, "NEIGHBOURS"): (20, 40, 80),
        (mcsherry_mironov, "DAMP"): (0.25, 0.5, 1.0),
        (mcsherry_mironov, "SIGNAL"): (5e-4, 1e-3, 2e-3),
        (mcsherry_mironov, "SHARES"): ((0.02, 0.19, 0.79), (0.02, 0.49, 0.49), (0.02, 0.79, 0.19)),
    },
    "dp-als": {
        (dp_als, "COUNT_SHARE"): (0.04, 0.08, 0.2),
        (dp_als, "SWEEPS"): (1, 4, 8),
    },
    "shin-ldp-mf": {
        (shin, "ROUNDS"): (2, 5, 10),
        (shin, "BUCKETS"): (16, 32, 64),
        (shin, "CLIP"): (1.0, 2.0, 4.0),
    },
    "svd++": {
        (svdpp, "START"): (0.01, 0.03, 0.1),
        (svdpp, "REGULARISATIONS"): ((0.02,), (0.02, 0.06, 0.15)),
    },
}


def sets() -> list[tuple[Ratings, Ratings]]:
    """A long catalogue with few users and a short one with many."""
    shapes = ((600, 4000), (3000, 1500))
    made = (realistic(7, n_users=m, n_items=n, n_ratings=60_000) for m, n in shapes)
    return [ratings.split(0.2, seed=0) for ratings in made]


@contextmanager
def setting(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """A module constant, changed for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def mean_error(method: str, splits: list[tuple[Ratings, Ratings]]) -> float:
    """Averaged over sets and budgets."""
    errors = []
    for train, test in splits:
        for epsilon in EPSILONS if METHODS[method].budgeted else (None,):
            peer = build(method, epsilon, DELTA, 0).fit(train)
            errors.append(rmse(test.values, peer.predict(test.mask.users, test.mask.items)))
    return float(np.mean(errors))


def main(methods: list[str]) -> None:
    """One line per setting."""
    splits = sets()
    for method in methods or list(SETTINGS):
        for (module, name), values in SETTINGS[method].items():
            shown = []
            for value in values:
                with setting(module, name, value):
                    shown.append(f"{value}: {mean_error(method, splits):.4f}")
            print(f"{method:18s} {name:14s} as set {getattr(module, name)}; " + ",   ".join(shown), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
