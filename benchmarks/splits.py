"""Fixed divisions of the budget beside the rule: `python -m benchmarks.splits [DATA] [--set NAME] [--epsilons E,..]`.

For every set and epsilon the default fit's RMSE on a fifth of the ratings held out, beside the same pipeline with a
fixed share of all ratings asked one by one, whatever their counts (they leave a tenth of their budget, at most 0.2, to
the sums, as the rule's do; at a share of zero everything is spent on sums). The last column says how much better than
the rule the best of them is. Real sets are those in the folder DATA; made-up ones have tastes that show in who rates
what (`taste_sets.py`), tastes that do not (`movielens_like.py`), or hardly any ratings a person. Seeded and scored on
raw ratings: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.movielens_like import write_ratings
from benchmarks.robustness_sets import JOKES, Kind
from benchmarks.robustness_sets import SETS as ROBUSTNESS
from benchmarks.taste_sets import TasteSet
from dpsr import DPSR, Ratings
from dpsr.engine.raw import RawTable
from dpsr.evaluate.pipelines import fixed_share
from dpsr.evaluate.sets import sets_in_folder
from dpsr.pipeline.value import Recipe
from dpsr.release import Contents
from dpsr.value.allocation import light_of

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)


def sparse(people: int, ratings: int, items: int, seed: int = 0) -> Ratings:
    """Long tails on both sides: most people have one to four ratings, a few have hundreds."""
    rng = np.random.default_rng(seed)
    many = np.minimum(np.ceil(rng.pareto(1.1, people)), items // 20)
    users = rng.permutation(np.repeat(np.arange(people), np.maximum(many, 1).astype(int)))[: 2 * ratings]
    popularity = np.cumsum(1 / (np.arange(items) + 10.0) ** 1.1)
    rated = np.searchsorted(popularity / popularity[-1], rng.random(len(users)))
    cells = np.unique(users * np.int64(items) + rated)
    cells = np.sort(rng.permutation(cells)[:ratings])
    users, rated = cells // items, cells % items
    p, q = rng.normal(size=(people, 3)), rng.normal(size=(items, 3))
    score = 0.45 * rng.normal(size=people)[users] + 0.5 * rng.normal(size=items)[rated]
    score += 0.25 * (p[users] * q[rated]).sum(axis=1) + 0.8 * rng.normal(size=len(users))
    stars = 1 + np.searchsorted(np.quantile(score, (0.06, 0.17, 0.44, 0.78)), score)
    return Ratings.from_arrays(users, rated, stars, scale="1:5:1")


def movielens_like(n_ratings: int, taste: float = 0.35) -> Ratings:
    """Tastes that do not show in who rates what."""
    with TemporaryDirectory() as folder:
        path = write_ratings(n_ratings, Path(folder) / "ratings.parquet", taste=taste)
        return Ratings.read(path, scale="0.5:5:0.5")


MADE: dict[str, Callable[[], Ratings]] = {
    "10,000, tastes hidden": partial(movielens_like, 10_000),
    "100,000, tastes hidden": partial(movielens_like, 100_000),
    "1,000,000, tastes hidden": partial(movielens_like, 1_000_000),
    "1,000,000, larger tastes hidden": partial(movielens_like, 1_000_000, 0.5),
    "10,000, tastes in the mask": lambda: TasteSet("", 300, 40).draw(250),
    "100,000, tastes in the mask": lambda: TasteSet("", 1_000, 60).draw(1_700),
    "100,000, tastes in the mask and own": lambda: TasteSet("", 1_000, 60, own=0.32).draw(1_700),
    "1,000,000, tastes in the mask": lambda: TasteSet("", 3_000, 170).draw(6_000),
    "1,000,000, tastes in the mask and own": lambda: TasteSet("", 3_000, 170, own=0.32).draw(6_000),
    "72,000 of 17,600 people": lambda: sparse(17_600, 72_000, 11_000),
    "434,000 of 78,000 people": lambda: sparse(78_000, 434_000, 25_000),
    "jokes, 72 % full": lambda: ROBUSTNESS["jokes, 72 % full"](0),
}

LARGE: dict[str, Callable[[], Ratings]] = {
    "10,000,000, tastes in the mask": lambda: TasteSet("", 8_000, 170).draw(60_000),
    "100 jokes, 30,000 people": lambda: Kind(30_000, 100, 2_160_000, JOKES, rank=6).draw(0),
    "100 jokes, weaker tastes": lambda: Kind(25_000, 100, 1_800_000, JOKES, bias=0.39, taste=0.33, noise=0.77).draw(0),
}
"""Sets that are drawn only if they are asked for by name: a line takes minutes."""


def rmse(ratings: Ratings, epsilon: float, seeds: Sequence[int], recipe: Recipe | None) -> float:
    """Mean over splits; noise is seeded."""
    found = []
    for seed in seeds:
        train, test = ratings.split(0.2, seed=seed)
        fitted = DPSR(epsilon, random_state=seed + 1).fit_table(RawTable.of(train), recipe=recipe)
        assert isinstance(fitted, Contents)
        guess = fitted.model.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
        found.append(np.sqrt(np.mean((guess - test.values) ** 2)))
    return float(np.mean(found))


def fixed(share: float, epsilon: float, ratings: Ratings) -> Recipe:
    """The same pipeline with this share of ratings asked one by one."""
    return Recipe(
        allocate=partial(fixed_share, share, light_of(ratings.mask, ratings.scale, epsilon) if share else 0.0)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for every set and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="folder with real sets (Parquet)")
    parser.add_argument("--set", action="append", help="only this set (may be repeated)")
    parser.add_argument("--epsilons", default=",".join(f"{e:g}" for e in EPSILONS), help="separated by commas")
    parser.add_argument("--seeds", type=int, default=2, help="how many splits")
    options = parser.parse_args(arguments)
    sets: dict[str, Callable[[], Ratings]] = (
        {} if options.data is None else {one.name: one.read for one in sets_in_folder(options.data)}
    )
    sets |= MADE
    if options.set:
        sets = {name: read for name, read in {**sets, **LARGE}.items() if name in options.set}
    print(f"| set | ε | rule | {' | '.join(f'{share:g} asked' for share in SHARES)} | best fixed, % |")
    print("|---" * (len(SHARES) + 4) + "|")
    for name, read in sets.items():
        ratings, seeds = read(), range(20, 20 + options.seeds)
        for epsilon in map(float, options.epsilons.split(",")):
            ours = rmse(ratings, epsilon, seeds, None)
            others = [rmse(ratings, epsilon, seeds, fixed(share, epsilon, ratings)) for share in SHARES]
            cells = " | ".join(f"{error:.4f}" for error in (ours, *others))
            print(f"| {name} | {epsilon:g} | {cells} | {100 * (min(others) / ours - 1):+.1f} |", flush=True)


if __name__ == "__main__":
    main()
