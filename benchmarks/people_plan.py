"""Plans for people against what is measured: accuracy on real sets, and where factors first show on made-up ones.

    python -m benchmarks.people_plan ../shared/data [user] [rating]

Not private: noise is seeded, and held-out ratings are raw.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.taste_sets import SETS
from dpsr import DPSR, Ratings
from dpsr.data.raw_statistics import root_mean_square_error
from dpsr.evaluate.sets import sets_in_folder
from dpsr.people.forecast import Population, people_for_factors
from dpsr.pipeline.plan_people import plan_people

EPSILONS, DELTA, SEEDS = (0.5, 1, 2, 3, 5, 10, 20), 1e-5, (0, 1, 2)
ASKED = ",".join(f"{e:g}" for e in EPSILONS)
UNITS = ("user", "rating")
STEPS = 1.12 ** np.arange(-8, 9)
"""Multiples of the planned number of people that are tried."""


def main() -> None:
    """Both tables; the second is of the unit user."""
    units = sys.argv[2:] or UNITS
    accuracy(Path(sys.argv[1]), units)
    if "user" in units:
        first_factors()


def accuracy(folder: Path, units: Sequence[str]) -> None:
    """RMSE by plan, from the file and from totals with the spread stated, and as measured."""
    print("| unit | set | ε | measured | planned from the file | planned from totals |\n|---|---|---|---|---|---|")
    for unit, one in product(units, sets_in_folder(folder)):
        ratings = one.read()
        totals = (ratings.mask.n_users, ratings.mask.n_items, len(ratings))
        scale, spread = ratings.scale, float(ratings.values.std())
        known = plan_people(scale, ASKED, DELTA, unit=unit, totals=totals, spread=spread)
        splits = [ratings.split(0.2, seed=seed) for seed in SEEDS]
        filed = plan_people(scale, ASKED, DELTA, unit=unit, ratings=splits[0][0])
        for epsilon, from_file, from_totals in zip(EPSILONS, filed.forecasts, known.forecasts, strict=True):
            errors = [_measured(unit, epsilon, seed, *split) for seed, split in zip(SEEDS, splits, strict=True)]
            measured = float(np.mean(errors))
            said = (filed.rmse(from_file), known.rmse(from_totals))
            cells = (f"{rmse:.4f} ({100 * (rmse / measured - 1):+.1f} %)" for rmse in said)
            print(f"| {unit} | {one.name} | {epsilon:g} | {measured:.4f} | {' | '.join(cells)} |", flush=True)


def _measured(unit: str, epsilon: float, seed: int, train: Ratings, test: Ratings) -> float:
    model = DPSR(epsilon, unit=unit, delta=DELTA, random_state=seed).fit(train)
    return root_mean_square_error(test, model.personalise(train).predict)


def first_factors() -> None:
    """How many people are planned for, and with how many factors first show in both of two fits."""
    print("\n| made-up set | ε | planned | first shown | ratio |\n|---|---|---|---|---|")
    for one in SETS:
        for epsilon in (3.0, 8.0):
            habits = Population.declared(2_000, one.items, round(2_000 * one.mean))
            planned = people_for_factors(habits, epsilon, DELTA)
            assert planned is not None
            shown = next(
                (round(planned * step) for step in STEPS if _shows(one.draw(round(planned * step)), epsilon)), None
            )
            ratio = "not shown" if shown is None else f"{shown / planned:.2f}"
            print(f"| {one.name} | {epsilon:g} | {planned:,.0f} | {shown or 0:,} | {ratio} |", flush=True)


def _shows(ratings: Ratings, epsilon: float) -> bool:
    fits = (DPSR(epsilon, unit="user", delta=DELTA, random_state=seed).fit(ratings) for seed in (0, 1))
    return all(fit.release.side.n_factors > 0 for fit in fits)


if __name__ == "__main__":
    main()
