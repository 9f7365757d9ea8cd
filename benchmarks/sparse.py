"""Sets with hardly any ratings a person, beside models without privacy: `python -m benchmarks.sparse [--seeds N]`.

For every set and epsilon the default fit's RMSE on a fifth of the ratings held out, and by how many per cent it lies
above the bias model's without any noise. Most people in these made-up sets (`splits.sparse`) have one to four ratings.
Seeded and scored on raw ratings: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.robustness import yardsticks
from benchmarks.splits import MADE, rmse

SETS = ("72,000 of 17,600 people", "434,000 of 78,000 people")
EPSILONS = (0.5, 1.0, 3.0, 5.0, 10.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for every set and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="how many splits")
    options = parser.parse_args(arguments)
    print("| set | ε | dpsr | bias, no privacy | above it, % | constant |\n" + "|---" * 6 + "|")
    for name in SETS:
        ratings, seeds = MADE[name](), range(20, 20 + options.seeds)
        clear = np.mean([yardsticks(*ratings.split(0.2, seed=seed)) for seed in seeds], axis=0)
        constant, bias = float(clear[0]), float(clear[1])
        for epsilon in EPSILONS:
            ours = rmse(ratings, epsilon, seeds, None)
            cells = f"{ours:.4f} | {bias:.4f} | {100 * (ours / bias - 1):+.1f} | {constant:.4f}"
            print(f"| {name} | {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
