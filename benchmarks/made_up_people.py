"""Any learner on people who do not exist: trained on made-up people, tested by fold-in of real held-out ones.

    python -m benchmarks.made_up_people ../shared/data [--epsilon 5] [--seeds 3] [--people N] [--learners a,b]

Not private: noise is seeded, and held-out ratings are raw.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpsr.evaluate.downstream.fold_in import FOLDED
from dpsr.evaluate.downstream.strangers import NDCG, RAW_ROWS, RMSE, score_tables, split_people
from dpsr.evaluate.sets import sets_in_folder


def main() -> None:
    """One table a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.made_up_people", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--epsilon", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--people", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--learners", default=",".join(FOLDED))
    options = parser.parse_args()
    learners = {name: FOLDED[name] for name in options.learners.split(",")}
    for one in sets_in_folder(options.data):
        if options.only not in one.name:
            continue
        found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for seed in range(options.seeds):
            split = split_people(one.read(seed), seed)
            for score in score_tables(split, options.epsilon, seed, people=options.people, learners=learners):
                found[score.table, score.learner, score.measure].append(score.value)
                print(f"{one.name}, {seed}: {score}", file=sys.stderr, flush=True)
        show(one.name, options.epsilon, found)


def show(name: str, epsilon: float, found: Mapping[tuple[str, str, str], Sequence[float]]) -> None:
    """One row for every table and learner; learners that only make lists in a table of their own."""
    means = {key: float(np.mean(scores)) for key, scores in found.items()}
    reached = means["release, unit user", "personalise", RMSE]
    print(f"\n**{name}, epsilon = {epsilon:g}: RMSE on held-out people, folded in**\n")
    print("| trained on | learner | RMSE | against personalise |\n| --- | --- | --- | --- |")
    for (table, learner, measure), scores in found.items():
        mean = means[table, learner, measure]
        if measure == RMSE:
            print(f"| {table} | {learner} | {mean:.4f} ± {np.std(scores):.4f} | {100 * (mean / reached - 1):+.1f} % |")
    print(f"\n**{name}, epsilon = {epsilon:g}: NDCG@10 of held-out people's lists, folded in**\n")
    print("| trained on | learner | NDCG@10 | against raw rows |\n| --- | --- | --- | --- |")
    for (table, learner, measure), scores in found.items():
        if measure == NDCG:
            mean, raw = means[table, learner, measure], means[RAW_ROWS, learner, measure]
            print(f"| {table} | {learner} | {mean:.4f} ± {np.std(scores):.4f} | {100 * (mean / raw - 1):+.1f} % |")


if __name__ == "__main__":
    main()
