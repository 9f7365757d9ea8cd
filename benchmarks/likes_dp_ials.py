"""DP-iALS with settings that suit the set, on 100,000 made-up people and 20,000 items, beside ours on the same split.

    python -m benchmarks.likes_dp_ials [--epsilon 1,5] [--people 100000] [--items 20000] [--interactions 3000000]

The settings of the comparison follow from epsilon alone and not from how many people there are; with many of them
DP-iALS is hardly more than noisy popularity. Is that the method or its settings? Smaller ridges, a larger rank, more
sweeps and more items are tried, and the best are told *by the test people*, which is kind to it and unfair to us.
Recall@20 of held-out people at delta = 1e-5, unit `user`, declared catalogue. Not private: held-out rows are raw.
"""

from __future__ import annotations

import argparse
from itertools import product
from unittest.mock import patch

from dpsr import Interactions
from dpsr.data import realistic
from dpsr.evaluate.likes.contract import ListMethod
from dpsr.evaluate.likes.peers import dp_ials
from dpsr.evaluate.likes.peers.noisy_popularity import NoisyPopularity
from dpsr.evaluate.likes.pipeline import LikesPipeline
from dpsr.evaluate.likes.protocol import HeldOutPeople, LikesSplit, score_lists

DELTA, SEED = 1e-5, 0
RIDGES, RANKS, SWEEPS, ITEMS = (1.0, 10.0, 100.0), (4, 16), (1, 3), (300, 2_000)


def recall(method: ListMethod, split: LikesSplit) -> float:
    """Recall@20 of one fit."""
    return score_lists(method.fit(split.train), split).means["recall_at_20"]


def with_settings(split: LikesSplit, epsilon: float, ridge: float, rank: int, sweeps: int, items: int) -> float:
    """DP-iALS with these instead of its own."""
    settings = {
        "RANK": rank,
        "own_ridge": lambda _: ridge,
        "sweeps_at": lambda _: sweeps,
        "modelled_items": lambda _: items,
    }
    with patch.multiple(dp_ials, **settings):
        return recall(dp_ials.DPiALS(epsilon, DELTA, SEED, SEED), split)


def main() -> None:
    """One line a method and epsilon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likes_dp_ials")
    parser.add_argument("--epsilon", default="1,5")
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--interactions", type=int, default=3_000_000)
    options = parser.parse_args()
    size = {"n_users": options.people, "n_items": options.items, "n_ratings": options.interactions}
    split = HeldOutPeople().split(Interactions.of_mask(realistic(SEED, **size).mask, "made up"), SEED)
    print(f"{options.people:,} people, {options.items:,} items, {options.interactions:,} interactions", flush=True)
    for epsilon in (float(one) for one in options.epsilon.split(",")):
        print(f"epsilon {epsilon:g}: dpsr-likes {recall(LikesPipeline(epsilon, DELTA, SEED), split):.4f}", flush=True)
        for name, method in (("noisy popularity", NoisyPopularity), ("DP-iALS, own settings", dp_ials.DPiALS)):
            print(f"epsilon {epsilon:g}: {name} {recall(method(epsilon, DELTA, SEED, SEED), split):.4f}", flush=True)
        found = []
        for ridge, rank, sweeps, items in product(RIDGES, RANKS, SWEEPS, ITEMS):
            figure = with_settings(split, epsilon, ridge, rank, sweeps, items)
            found.append((figure, f"ridge {ridge:g}, rank {rank}, {sweeps} sweeps, {items:,} items"))
        for figure, words in sorted(found, reverse=True)[:3]:
            print(f"epsilon {epsilon:g}: DP-iALS {figure:.4f} ({words})", flush=True)


if __name__ == "__main__":
    main()
