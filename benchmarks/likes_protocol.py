"""Recall@20 by both denominators on several splits: min(20, number hidden), which the tables use, and number hidden.

    python -m benchmarks.likes_protocol ../shared/data [--seeds 8] [--only ml-latest-small]

Popularity without privacy and noisy popularity alone: how hard splits are, and what a goal stated in other units means.
Not private: held-out interactions are raw.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpsr.evaluate.likes.contract import ListModel
from dpsr.evaluate.likes.protocol import HeldOutPeople, LikesSplit, top_lists_of
from dpsr.evaluate.likes.registry import LIST_METHODS, NOISY_POPULARITY
from dpsr.evaluate.metrics.lists import hits_of, recall_at
from dpsr.evaluate.registry import built
from dpsr.evaluate.sets import sets_in_folder

DELTA, K = 1e-5, 20


def both(model: ListModel, split: LikesSplit) -> tuple[float, float]:
    """Mean over people of hits / min(20, hidden), and of hits / hidden."""
    hidden = split.hidden.mask
    hits = hits_of(top_lists_of(model, split.shown.mask, K), hidden)
    share = hits.sum(axis=1) / hidden.user_counts
    return float(recall_at(hits, hidden.user_counts, K).mean()), float(share.mean())


def figures(split: LikesSplit, seed: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of every model on one split."""
    for name, epsilon in (("popularity", None), *((NOISY_POPULARITY, e) for e in (1.0, 2.0, 5.0, 10.0))):
        method = built(LIST_METHODS[name], epsilon, DELTA, seed, seed).fit(split.train)
        yield name if epsilon is None else f"{name}, epsilon {epsilon:g}", both(method, split)


def main() -> None:
    """One table a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likes_protocol")
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for one in sets_in_folder(options.data):
        if options.only not in one.name:
            continue
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(options.seeds):
            for name, figure in figures(HeldOutPeople().split(one.interactions(seed), seed), seed):
                found.setdefault(name, []).append(figure)
        print(f"\n**{one.name}: Recall@20, the first three splits and {options.seeds}**\n")
        print("| | of min(20, hidden), three | all | of hidden, three | all |\n| --- | --- | --- | --- | --- |")
        for name, rows in found.items():
            three, every = np.mean(rows[:3], axis=0), np.mean(rows, axis=0)
            print(f"| {name} | {three[0]:.4f} | {every[0]:.4f} | {three[1]:.4f} | {every[1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
