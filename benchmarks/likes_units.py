"""Lists at both units of interactions, with and without a declared catalogue, beside noisy popularity.

    python -m benchmarks.likes_units ../shared/data [--seeds 3] [--epsilon 0.5,1,3,10,30] [--only ml-latest-small]
                                                    [--draws 1] [--rows "user, no catalogue"]

Recall@20 of held-out people, `--draws` of the noise on every split. Not private: held-out interactions are raw.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.likes_ablation import tables
from dpsr.evaluate.likes.contract import ListMethod
from dpsr.evaluate.likes.peers.noisy_popularity import NoisyPopularity
from dpsr.evaluate.likes.pipeline import LikesPipeline
from dpsr.evaluate.likes.protocol import HeldOutPeople, score_lists

DELTA = 1e-5

_APART = 1000
"""Seeds of two draws of the noise on one split: more than there are splits."""

METHODS: dict[str, Callable[[float, int], ListMethod]] = {
    "user": lambda epsilon, seed: LikesPipeline(epsilon, DELTA, seed),
    "user, no catalogue": lambda epsilon, seed: LikesPipeline(epsilon, DELTA, seed, declared=False),
    "rating": lambda epsilon, seed: LikesPipeline(epsilon, DELTA, seed, unit="rating"),
    "rating, no catalogue": lambda epsilon, seed: LikesPipeline(epsilon, DELTA, seed, unit="rating", declared=False),
    "noisy popularity (user)": lambda epsilon, seed: NoisyPopularity(epsilon, DELTA, seed),
}


def main() -> None:
    """One table a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likes_units")
    parser.add_argument("data", type=Path)
    parser.add_argument("--epsilon", default="0.5,1,3,10,30")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--rows", default="")
    options = parser.parse_args()
    budgets = [float(one) for one in options.epsilon.split(",")]
    for name, table in tables(options.data).items():
        if options.only not in name:
            continue
        splits = [HeldOutPeople().split(table(seed), seed) for seed in range(options.seeds)]
        print(f"\n| {name}, epsilon | " + " | ".join(f"{epsilon:g}" for epsilon in budgets) + " |")
        print("| --- |" + " --- |" * len(budgets))
        for words, method in METHODS.items():
            if options.rows not in words:
                continue
            found = [
                [
                    score_lists(method(epsilon, seed + _APART * draw).fit(split.train), split).means["recall_at_20"]
                    for seed, split in enumerate(splits)
                    for draw in range(options.draws)
                ]
                for epsilon in budgets
            ]
            print(f"| {words} | " + " | ".join(f"{np.mean(row):.4f}" for row in found) + " |", flush=True)


if __name__ == "__main__":
    main()
