"""The promise on sets of many kinds: `python -m benchmarks.robustness [--quick] [--set NAME] [--seeds N]`.

For every set, epsilon and seed the default fit's RMSE, clipped to the scale, on a fifth of the ratings held out, as a
ratio to

    constant      the training mean, free of charge
    priced        the same with the mean bought by one Laplace sum for all of epsilon, in expectation:
                  sqrt(1 + 2 (width / (N epsilon))^2 / MSE of the constant)
    paper         DPSR.paper at the same epsilon
    bias, ALS     without any noise

A line is flagged where it breaks the promise: more than 0.5 % above `priced` (two standard errors of the price itself
are granted, since a few draws of Laplace noise are no expectation), above `paper`, or above the next smaller epsilon by
more than 0.3 % and more than chance. Seeded and scored on raw ratings: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from benchmarks.robustness_sets import QUICK, SETS
from dpsr import DPSR, Ratings
from dpsr.evaluate.baselines import ALS, Baseline, Bias, Constant
from dpsr.evaluate.metrics.ranking import Predictor

Floats = npt.NDArray[np.float64]

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
WORSE, RISING = 1.005, 1.003


@dataclass(frozen=True)
class Line:
    """One (set, epsilon): RMSE of every seed, ours and the others', and what the mean costs as a share of the MSE."""

    epsilon: float
    ours: Floats
    constant: Floats
    price: float
    paper: Floats
    bias: Floats
    als: Floats

    def ratio(self, other: Floats) -> float:
        """Root mean squares over seeds."""
        return float(np.sqrt(np.mean(self.ours**2) / np.mean(other**2)))

    @property
    def priced(self) -> Floats:
        """The constant with a bought mean, in expectation."""
        return self.constant * np.sqrt(1 + self.price)

    def broken(self, before: Line | None) -> list[str]:
        """Which promises this line breaks; `before` is the next smaller epsilon."""
        # the square of Laplace noise has a standard deviation of sqrt(5) times its mean
        granted = 1 + self.price * (1 + 2 * np.sqrt(5 / len(self.ours)))
        found = []
        if self.ratio(self.constant) > WORSE * np.sqrt(granted):
            found.append("worse than the constant")
        if self.ratio(self.paper) > 1:
            found.append("worse than the paper")
        if before is not None and rises(before.ours, self.ours):
            found.append("rising")
        return found


def rises(before: Floats, after: Floats) -> bool:
    """Whether the mean rose by more than chance: Student's t, because three seeds know little of their own error."""
    step = after - before
    n = len(step)
    noise = t.ppf(0.975, n - 1) * step.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
    return bool(step.mean() > max((RISING - 1) * before.mean(), noise))


def rmse(model: Predictor, test: Ratings) -> float:
    """On the ratings held out; predictions are inside the scale already."""
    guess = model.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
    return float(np.sqrt(np.mean((guess - test.values) ** 2)))


def yardsticks(train: Ratings, test: Ratings) -> list[float]:
    """RMSE of the constant, the bias model and ALS on raw ratings."""
    models: list[Baseline] = [Constant(), Bias(), ALS()]
    return [rmse(model.fit(train.mask, train.values, train.scale), test) for model in models]


def lines(name: str, epsilons: Sequence[float], seeds: Sequence[int]) -> list[Line]:
    """Everything about one set."""
    halves = [SETS[name](seed).split(0.2, seed=seed) for seed in seeds]
    constant, bias, als = np.array([yardsticks(*half) for half in halves]).T
    found = []
    for epsilon in epsilons:
        ours, paper = np.array([
            [rmse(model.fit(train).model_, test) for model in (DPSR(epsilon, random_state=seed + 1),
                                                               DPSR.paper(epsilon, random_state=seed + 1))]
            for seed, (train, test) in zip(seeds, halves, strict=True)
        ]).T  # fmt: skip
        noise = [2 * (train.scale.width / (len(train) * epsilon)) ** 2 for train, _ in halves]
        line = Line(epsilon, ours, constant, 0.0, paper, bias, als)
        found.append(replace(line, price=float(np.mean(noise) / np.mean(constant**2))))
    return found


def show(name: str, found: Sequence[Line]) -> int:
    """Print one set's table; how many lines break a promise."""
    print(
        f"\n{name}\n{'epsilon':>8}{'RMSE':>10}"
        + "".join(f"{title:>10}" for title in ("constant", "priced", "paper", "bias", "ALS"))
    )
    broken = 0
    for before, line in zip([None, *found[:-1]], found, strict=True):
        ratios = [line.ratio(other) for other in (line.constant, line.priced, line.paper, line.bias, line.als)]
        flags = line.broken(before)
        broken += bool(flags)
        numbers = f"{line.epsilon:8g}{line.ours.mean():10.4f}" + "".join(f"{ratio:10.4f}" for ratio in ratios)
        print(numbers + ("   " + ", ".join(flags).upper() if flags else ""), flush=True)
    return broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every table; the exit status says whether a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four small sets, four budgets, two seeds")
    parser.add_argument("--seeds", type=int, default=3, help="how many splits and draws of noise a line is the mean of")
    parser.add_argument("--set", action="append", choices=list(SETS), help="only this set (may be repeated)")
    options = parser.parse_args(arguments)
    names = options.set or (QUICK if options.quick else tuple(SETS))
    epsilons, seeds = ((0.01, 0.5, 2.0, 10.0), range(2)) if options.quick else (EPSILONS, range(options.seeds))
    broken = sum(show(name, lines(name, epsilons, seeds)) for name in names)
    print(f"\n{broken} lines break a promise.")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
