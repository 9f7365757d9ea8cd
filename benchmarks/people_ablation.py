"""What each part of the pipelines of people is worth: one left out at a time.

    python -m benchmarks.people_ablation ../shared/data [--seeds 3]

RMSE of `personalise` at unit `user`, delta = 1e-5, ratings split 80 / 20. Not private: noise is seeded.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.taste_sets import SETS
from dpsr import DPSR, Ratings
from dpsr.arrays import Ints
from dpsr.data.raw_statistics import root_mean_square_error
from dpsr.evaluate.sets import sets_in_folder
from dpsr.people import budget
from dpsr.people.levels import PeopleLevels, read_levels
from dpsr.pipeline import people as pipeline
from dpsr.release.people import ItemRelease
from dpsr.types.coordinates import Ids, id_array
from dpsr.types.id_order import IdOrder
from dpsr.types.item_side import ItemSide, hashes

EPSILONS, DELTA, TASTE_PEOPLE = (1.0, 5.0), 1e-5, 12_000


@dataclass(frozen=True)
class Variant:
    """A part left out: while fitting and predicting, afterwards in the item side, or in how it is fitted."""

    name: str
    without: Callable[[], Any] = nullcontext
    changed: Callable[[ItemRelease], ItemRelease] = lambda release: release
    declared: bool = False


@contextmanager
def _one_level() -> Iterator[None]:
    def flat(*asked: Any) -> PeopleLevels:
        found = read_levels(*asked)
        return replace(found, level=np.full_like(found.level, np.average(found.level, weights=found.counts)))

    with patch.object(pipeline, "read_levels", flat):
        yield


def _known_items(release: ItemRelease) -> ItemRelease:
    return replace(release, side=replace(release.side, uncertainty=np.zeros(release.side.n_cells)))


def _own_twice(release: ItemRelease) -> ItemRelease:
    return replace(release, side=replace(release.side, pull=None))


def _no_slopes(release: ItemRelease) -> ItemRelease:
    covariance = release.side.covariance.copy()
    covariance[1:3, :] = covariance[:, 1:3] = 0
    covariance[1, 1] = covariance[2, 2] = 1e-9
    return replace(release, side=replace(release.side, covariance=covariance))


def _off(name: str) -> Callable[[], Any]:
    return lambda: patch.object(pipeline, name, lambda *_: False)


def _no_curves() -> Any:
    return patch.object(ItemSide, "with_curves", lambda _side, own, _rows, _places: own)


def dealt(order: IdOrder, ids: Ids | None = None) -> Ints:
    """Places by a hash of the id: an order that means nothing."""
    return hashes(order.ids if ids is None else id_array(ids)).astype(np.int64)


VARIANTS = (
    Variant("as it is"),
    Variant("list of items declared", declared=True),
    Variant("levels of people not by activity", _one_level),
    Variant("coefficients not asked for", _off("_worth_calibrating")),
    Variant("no second moments, no factors", _off("_ask_factors")),
    Variant("first round of scores twice as dear", lambda: patch.object(budget, "FIRST", 0.4)),
    Variant("items taken for known", changed=_known_items),
    Variant("own ratings not taken out of effects", changed=_own_twice),
    Variant("nobody agrees more or less with others", changed=_no_slopes),
    Variant("no curve along the order of ids", _no_curves),
    Variant("a curve along an order that means nothing", lambda: patch.object(IdOrder, "places", dealt)),
)


def main() -> None:
    """One table: variants down, sets and budgets across."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people_ablation", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    sets = {one.name: one.read() for one in sets_in_folder(options.data)}
    taste = f"{SETS[1].name}, {TASTE_PEOPLE:,} people"
    sets[taste] = SETS[1].draw(TASTE_PEOPLE)
    heads = [f"{name}, ε = {epsilon:g}" for name in sets for epsilon in EPSILONS]
    print(f"| left out | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    whole: list[float] = []
    for variant in VARIANTS:
        row = [
            float(
                np.mean(
                    [_rmse(variant, ratings, epsilon, seed) for seed in range(1 if name == taste else options.seeds)]
                )
            )
            for name, ratings in sets.items()
            for epsilon in EPSILONS
        ]
        whole = whole or row
        cells = (
            f"{a:.4f}" if variant is VARIANTS[0] else f"{100 * (a / b - 1):+.2f} %"
            for a, b in zip(row, whole, strict=True)
        )
        print(f"| {variant.name} | {' | '.join(cells)} |", flush=True)


def _rmse(variant: Variant, ratings: Ratings, epsilon: float, seed: int) -> float:
    train, test = ratings.split(0.2, seed=seed)
    items = ratings.mask.item_ids if variant.declared else None
    with variant.without():
        model = DPSR(epsilon, unit="user", delta=DELTA, items=items, random_state=seed).fit(train)
        return root_mean_square_error(test, variant.changed(model.release).personalise(train).predict)


if __name__ == "__main__":
    main()
