"""Do private lists ever fall below noisy popularity? Both on the same splits, at every epsilon.

    python -m benchmarks.likes_floor ../shared/data [--seeds 3] [--epsilon 0.1,0.3,1,3,10,30] [--only ml-latest-small]
                                                    [--ease]

Recall@20 of held-out people at delta = 1e-5, unit `user`, declared catalogue; the difference with its standard error
over splits (each with noise of its own); with --ease, how much of EASE without privacy that is. Not private: held-out
interactions are raw.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.likes_ablation import tables
from dpsr import Interactions
from dpsr.data import realistic
from dpsr.evaluate.likes.baselines import ease
from dpsr.evaluate.likes.contract import ListMethod, ListsWithoutPrivacy
from dpsr.evaluate.likes.peers.noisy_popularity import NoisyPopularity
from dpsr.evaluate.likes.pipeline import LikesPipeline
from dpsr.evaluate.likes.protocol import HeldOutPeople, LikesSplit, score_lists

DELTA = 1e-5


def sets(data: Path) -> dict[str, Callable[[int], Interactions]]:
    """Those of the ablation, and one with more people; four fifths of the people are learned from."""

    def many(seed: int) -> Interactions:
        size = {"n_users": 25_000, "n_items": 5_000, "n_ratings": 750_000}
        return Interactions.of_mask(realistic(seed, rank=8, **size).mask, "made up")

    return {**tables(data), "25,000 made-up people, 5,000 items": many}


def recalls(make: Callable[[float, float, int], ListMethod], splits: list[LikesSplit], epsilon: float) -> list[float]:
    """Of one method, split by split."""
    fitted = ((make(epsilon, DELTA, seed).fit(split.train), split) for seed, split in enumerate(splits))
    return [score_lists(model, split).means["recall_at_20"] for model, split in fitted]


def main() -> None:
    """One table a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likes_floor")
    parser.add_argument("data", type=Path)
    parser.add_argument("--epsilon", default="0.1,0.3,1,3,10,30")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--ease", action="store_true")
    options = parser.parse_args()
    budgets = [float(one) for one in options.epsilon.split(",")]
    for name, draw in sets(options.data).items():
        if options.only not in name:
            continue
        splits = [HeldOutPeople().split(draw(seed), seed) for seed in range(options.seeds)]
        ours, floor = ([recalls(m, splits, e) for e in budgets] for m in (LikesPipeline, NoisyPopularity))
        apart = np.array(ours) - np.array(floor)
        error = apart.std(axis=1, ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else np.zeros(len(budgets))
        print(f"\n| {name}, {options.seeds} splits, ε | " + " | ".join(f"{epsilon:g}" for epsilon in budgets) + " |")
        print("| --- |" + " --- |" * len(budgets))
        for words, rows in (("dpsr-likes", ours), ("noisy popularity", floor)):
            print(f"| {words} | " + " | ".join(f"{np.mean(row):.4f}" for row in rows) + " |")
        margins = zip(apart.mean(axis=1), error, strict=True)
        print("| difference | " + " | ".join(f"{m:+.4f} ± {e:.4f}" for m, e in margins) + " |", flush=True)
        if options.ease:
            best = float(np.mean(recalls(lambda *_: ListsWithoutPrivacy(ease), splits, budgets[0])))
            shares = " | ".join(f"{np.mean(row) / best:.1%}" for row in ours)
            print(f"| dpsr-likes, of EASE without privacy ({best:.4f}) | {shares} |", flush=True)


if __name__ == "__main__":
    main()
