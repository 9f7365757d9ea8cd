"""Who is ahead of whom: our method against every other at every epsilon, on each set, with corrected p-values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.evaluate.benchmark.details import Details
from dpsr.evaluate.benchmark.jobs import Job
from dpsr.evaluate.benchmark.methods import OURS
from dpsr.evaluate.benchmark.paired import Paired, compare, holm
from dpsr.evaluate.benchmark.sets import Source
from dpsr.evaluate.tables import Table
from dpsr.types.raw import RawRatings

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Done:
    """The methods that were fitted, with access to their predictions and to the test ratings. NOT PRIVATE."""

    jobs: tuple[Job, ...]
    units: dict[str, str]
    folder: Path

    def of(self, source: Source, method: str, epsilon: float | None) -> dict[int, Job]:
        """By seed, the runs at an epsilon; of a method without a budget, its only runs."""
        mine = [job for job in self.jobs if (job.source, job.what) == (source, method)]
        return {job.seed: job for job in mine if job.epsilon in (epsilon, None)}

    def details(self, job: Job) -> Details:
        return Details.load(self.folder / f"{job.name}.npz")

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(job.what for job in self.jobs))

    @property
    def sources(self) -> list[Source]:
        return list(dict.fromkeys(job.source for job in self.jobs))

    @property
    def epsilons(self) -> list[float]:
        return sorted({job.epsilon for job in self.jobs if job.epsilon is not None})


@cache
def split_of(source: Source, seed: int) -> tuple[RawRatings, RawRatings]:
    """The split every method had; kept, since many comparisons look at it."""
    return source.split(seed)


def squared_errors(done: Done, job: Job) -> Floats:
    """(truth - predicted)^2 of every test rating."""
    _, test = split_of(job.source, job.seed)
    return np.asarray((test.values - done.details(job).predicted.astype(np.float64)) ** 2)


def claims(done: Done) -> Table:
    """One row per set, other method and epsilon. The corrections hold for all rows together."""
    errors: Callable[[Job], Floats] = cache(lambda job: squared_errors(done, job))
    found = [
        (source, peer, epsilon, paired)
        for source in done.sources
        for epsilon in done.epsilons
        for peer in done.methods
        if peer != OURS and (paired := against(done, errors, source, peer, epsilon)) is not None
    ]
    t_p, rank_p = (holm([getattr(row[3], name) for row in found]) for name in ("p", "wilcoxon_p"))
    rows = tuple(
        (
            source.name, peer, done.units.get(peer, ""), epsilon, paired.mean, paired.t, paired.p, float(p),
            float(rank), paired.seeds_p, paired.n_users, verdict(paired.mean, float(p)),
        )
        for (source, peer, epsilon, paired), p, rank in zip(found, t_p, rank_p, strict=True)
    )  # fmt: skip
    header = (
        "set", "against", "unit", "epsilon", "MSE difference", "t", "p", "p, Holm", "p, Wilcoxon, Holm",
        "p, over seeds", "users", "verdict",
    )  # fmt: skip
    title = f"{OURS} against every other method (positive difference: {OURS} has the smaller squared error)"
    return Table("significance", title, header, rows)


def verdict(difference: float, p: float) -> str:
    """In one word; NaN is undecided."""
    if not p < LEVEL:
        return "undecided"
    return "ahead" if difference > 0 else "behind"


def against(done: Done, errors: Callable[[Job], Floats], source: Source, peer: str, epsilon: float) -> Paired | None:
    """Our errors and theirs on the seeds both have; None if there are none."""
    ours, theirs = done.of(source, OURS, epsilon), done.of(source, peer, epsilon)
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return None
    parts = [errors(theirs[seed]) - errors(ours[seed]) for seed in seeds]
    known = [np.isfinite(part) for part in parts]
    if not any(part.any() for part in known):
        return None
    users, items = _cells(source, seeds)
    seed_of = np.repeat(np.asarray(seeds, dtype=np.int64), [len(part) for part in parts])
    keep = np.concatenate(known)
    return compare(np.concatenate(parts)[keep], users[keep], items[keep], seed_of[keep])


def _cells(source: Source, seeds: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Users and items of all test ratings. Made-up sets have other people under every seed, and so other codes."""
    users, items = [], []
    for place, seed in enumerate(seeds):
        mask = split_of(source, seed)[1].mask
        shift = place if source.made_up else 0
        users.append(mask.users.astype(np.int64) + shift * mask.n_users)
        items.append(mask.items.astype(np.int64) + shift * mask.n_items)
    return np.concatenate(users), np.concatenate(items)
