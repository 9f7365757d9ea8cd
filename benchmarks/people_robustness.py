"""The promise to people on sets of many kinds: `python -m benchmarks.people_robustness [--unit rating] [--set NAME]`.

For every set and epsilon, RMSE of `personalise` on a fifth of the ratings held out, as a ratio to everybody's own mean,
shrunk towards the exact mean of people's means by as much as held-back ratings ask for (free of charge, not private),
and to the same with the mean bought for all of epsilon and the usual shrinkage (joint DP, as ours). A line is flagged
where it is more than 0.5 % above the first, or above the next smaller epsilon by more than 0.3 % and more than chance.
Noise is seeded and scored on raw ratings: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.robustness import WORSE, Floats, rises, rmse
from benchmarks.robustness_sets import HALVES, SETS, STARS, TEN, Kind
from dpsr import DPSR, Ratings
from dpsr.data.raw_statistics import root_mean_square_error
from dpsr.evaluate.baselines.bias import OwnMean
from dpsr.evaluate.peers.noisy_bias import NoisyBias

EPSILONS, DELTA = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0), 1e-5

LARGER: dict[str, Callable[[int], Ratings]] = {
    "2,000 people, nothing to learn": Kind(2_000, 500, 40_000, STARS, bias=0.0, taste=0.0, noise=0.9).draw,
    "900 people, half stars": Kind(900, 800, 40_000, HALVES, taste=0.4, noise=0.8, pull=1.0).draw,
    "6,000 people, few ratings": Kind(6_000, 1_000, 24_000, TEN, taste=0.3, noise=0.8, lean=0.9, pull=1.0).draw,
    "3,000 people, dense": Kind(3_000, 100, 150_000, STARS, rank=6).draw,
}
"""As many people as sets have that are worth protecting so."""


def ours(train: Ratings, test: Ratings, epsilon: float, unit: str, seed: int) -> float:
    """RMSE of what people are shown."""
    model = DPSR(epsilon, unit=unit, delta=DELTA, random_state=seed + 1).fit(train)
    return root_mean_square_error(test, model.personalise(train).predict)


def own_level(train: Ratings, test: Ratings, epsilon: float, seed: int) -> float:
    """RMSE of own means with a noisy mean of all."""
    return rmse(NoisyBias(epsilon, DELTA, seed + 1, seed, items=False).fit(train), test)


def show(name: str, draw: Callable[[int], Ratings], unit: str, seeds: Sequence[int]) -> int:
    """Print one set's lines; how many break the promise."""
    halves = [draw(seed).split(0.2, seed=seed) for seed in seeds]
    own = np.array([rmse(OwnMean().fit(a.mask, a.values, a.scale), b) for a, b in halves])
    print(f"\n{name}\n{'epsilon':>8}{'RMSE':>10}{'own mean':>11}{'private':>10}")
    broken, before = 0, None
    for epsilon in EPSILONS:
        found: Floats = np.array([ours(*half, epsilon, unit, seed) for seed, half in zip(seeds, halves, strict=True)])
        bought = np.array([own_level(*half, epsilon, seed) for seed, half in zip(seeds, halves, strict=True)])
        ratio, private = (float(np.sqrt(np.mean(found**2) / np.mean(one**2))) for one in (own, bought))
        flags = ["WORSE THAN THE OWN MEAN"] * (ratio > WORSE)
        flags += ["RISING"] * (before is not None and rises(before, found))
        broken, before = broken + bool(flags), found
        print(f"{epsilon:8g}{found.mean():10.4f}{ratio:11.4f}{private:10.4f}   {', '.join(flags)}".rstrip(), flush=True)
    return broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every table; the exit status says whether a promise was broken."""
    sets = {**SETS, **LARGER}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people_robustness", description=__doc__.splitlines()[0])
    parser.add_argument("--unit", choices=("user", "rating"), default="user")
    parser.add_argument("--seeds", type=int, default=3, help="how many splits and draws of noise a line is the mean of")
    parser.add_argument("--set", action="append", choices=list(sets), help="only this set (may be repeated)")
    options = parser.parse_args(arguments)
    broken = sum(show(name, sets[name], options.unit, range(options.seeds)) for name in options.set or sets)
    print(f"\n{broken} lines break a promise.")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
