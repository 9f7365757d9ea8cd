"""Plans of ratings by value against what is measured on made-up sets: `python -m benchmarks.value_plan`.

By how many per cent the planned error, as a share of the constant's, is above the measured one, on one split of every
set of `splits.py` and of `robustness_sets.py`, many of them unlike films. Plans spend nothing and take typical shares
of variance for granted. Seeded and scored on raw ratings: NOT PRIVATE.
"""

from __future__ import annotations

from functools import partial

from benchmarks.robustness import yardsticks
from benchmarks.robustness_sets import SETS
from benchmarks.splits import MADE, rmse
from dpsr import DPSR

EPSILONS, SEED = (0.5, 1.0, 2.0, 3.0, 5.0), 20


def main() -> None:
    """One line for every set."""
    print(f"| set | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |\n" + "|---" * (len(EPSILONS) + 1) + "|")
    for name, read in (MADE | {name: partial(draw, 0) for name, draw in SETS.items()}).items():
        ratings = read()
        train, test = ratings.split(0.2, seed=SEED)
        constant = yardsticks(train, test)[0]
        off = []
        for planned in DPSR.plan(train.mask, train.scale, EPSILONS):
            measured = rmse(ratings, planned.epsilon, [SEED], None) / constant
            off.append(f"{100 * (planned.share / measured - 1):+.1f}")
        print(f"| {name} | {' | '.join(off)} |", flush=True)


if __name__ == "__main__":
    main()
