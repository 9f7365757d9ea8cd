"""What each idea of the default pipeline contributes: leave one out, measure the RMSE. NOT PRIVATE.

A variant is a recipe of the default pipeline with one part replaced, so it spends the same epsilon through the same
vault. All variants of one (set, epsilon, seed) get the same noise seed.

    window                 sums of whole ratings, centred on the scale's midpoint: sensitivity the width of the scale
    embeddings             counts alone as public features
    degree regularisation  N = D_u^-1/2 M D_j^-1/2 without the average degree added
    factors                slopes on public features only
    pairs                  variances of effects start from the sums alone
    three starts           the cautious one only
    tuned channels         one channel for all ratings, tuned to their average distribution
    ratings, sums          everything that the histogram leaves for one of the two questions

Known gap: the budget is shared as for the full pipeline, not tuned to each variant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.data import Ratings
from dpsr.engine import BlockResult
from dpsr.engine.raw import RawTable
from dpsr.errors import ParameterError
from dpsr.evaluate.experiment import Progress
from dpsr.evaluate.frontier_methods import noise_seed
from dpsr.evaluate.frontier_sets import TEST_SHARE, RatingFile, find_sets
from dpsr.evaluate.frontier_store import Store, file_digest
from dpsr.evaluate.metrics import rmse
from dpsr.evaluate.tables import Cell, Table
from dpsr.pipeline import DPSR
from dpsr.pipeline.value import Recipe
from dpsr.privacy.channels import optimal_channel
from dpsr.privacy.vault import Vault
from dpsr.types import Census, Scale
from dpsr.value.allocation import Allocation, allocate
from dpsr.value.design import Design
from dpsr.value.effects import NoisySums
from dpsr.value.evidence import EvidenceState, learn_from_symbols
from dpsr.value.levels import LevelFamily, Usage
from dpsr.value.sweep import CHOICE, SYMBOL

EPSILONS = (0.5, 1.0, 3.0, 10.0)


def whole_sums(vault: Vault, design: Any, usage: Usage, y: Floats, shares: Allocation) -> NoisySums:
    """Question 2 without a window: clipping at the ends of the scale cuts nothing and costs its whole width."""
    half, w, spend = vault.scale.width / 2, shares.item_weight, min(shares.sums, vault.left)
    items, users = vault.window_sums(vault.scale.midpoint, half, item_weight=w, epsilon=spend)
    noise = items.noise_variance / half**2
    return NoisySums(
        item_values=items.values / half - w * usage.mean * design.item_counts,
        item_variance=noise + w**2 * usage.variance * design.item_counts,
        item_gain=w,
        user_values=users.values / half - (1 - w) * usage.mean * design.user_counts,
        user_variance=noise + (1 - w) ** 2 * usage.variance * design.user_counts,
        user_gain=1 - w,
    )


def one_channel(vault: Vault, prior: LevelFamily, state: EvidenceState) -> dict[int, Floats]:
    """Question 3 through one channel, tuned to the average of the ratings' distributions."""
    points = np.bincount(prior.nearest(state.sample), minlength=len(prior.means))
    channel = optimal_channel(vault.scale, vault.left, points @ prior.table / points.sum())
    vault.table.run(lambda block: BlockResult({CHOICE: np.zeros(len(block.items), dtype=np.uint8)}), writes=[CHOICE])
    vault.symbols({0: channel}, choice=CHOICE, symbol=SYMBOL)
    return {0: channel.probabilities}


def plain_scales(counts: npt.NDArray[np.int64]) -> Floats:
    """1 / sqrt(count), without the average count."""
    return 1 / np.sqrt(np.maximum(counts, 1.0))


def _all_for_sums(mask: Census, scale: Scale, epsilon: float) -> Allocation:
    shares = allocate(mask, scale, epsilon)
    return replace(shares, sums=shares.sums + shares.ratings, ratings=0.0)


def _all_for_ratings(mask: Census, scale: Scale, epsilon: float) -> Allocation:
    shares = allocate(mask, scale, epsilon)
    return replace(shares, sums=0.0, ratings=shares.sums + shares.ratings)


VARIANTS: Mapping[str, Recipe] = {
    "full": Recipe(),
    "without window": Recipe(ask_sums=whole_sums),
    "without mask embeddings": Recipe(design=partial(Design.of, rank=0)),
    "without degree regularisation": Recipe(design=partial(Design.of, scales=plain_scales)),
    "without factors": Recipe(n_factors=0),
    "without pairs": Recipe(learn=partial(learn_from_symbols, effects_from_pairs=False)),
    "cautious start only": Recipe(learn=partial(learn_from_symbols, several_starts=False)),
    "one channel for all ratings": Recipe(ask_ratings=one_channel),
    "sums only": Recipe(allocate=_all_for_sums),
    "ratings only": Recipe(allocate=_all_for_ratings),
}
"""The pipeline with one of its parts replaced."""


@dataclass(frozen=True)
class Outcome:
    """One fit of one variant. NOT PRIVATE."""

    set: str
    variant: str
    epsilon: float
    seed: int
    rmse: float
    exact_epsilon: float


@dataclass(frozen=True)
class Ablation:
    """Everything one run found, and the files it wrote. NOT PRIVATE."""

    outcomes: tuple[Outcome, ...]
    tables: tuple[Table, ...]
    files: tuple[Path, ...]


def ablation(
    data_dir: str | Path,
    out_dir: str | Path,
    *,
    sets: Mapping[str, Scale] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = (0,),
    variants: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Ablation:
    """Fit every variant to every set and write `ablation.md` and `ablation.csv`; resumes like `frontier`."""
    names = list(VARIANTS) if variants is None else list(variants)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown or not names or not epsilons or not seeds:
        raise ParameterError(
            f"an ablation needs a variant ({', '.join(VARIANTS)}), a budget and a seed, found {names}, "
            f"epsilons={epsilons}, seeds={seeds}."
        )
    files = find_sets(Path(data_dir), sets)
    store, halves = Store(Path(out_dir) / "ablation.jsonl"), cache(_split)
    code = {file.name: {"data": file.digest(), "variants": file_digest(__file__)} for file in files}
    steps = [(f, n, float(e), s) for f in files for s in seeds for e in epsilons for n in names]
    outcomes = []
    for done, (file, name, epsilon, seed) in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), f"{file.name}, {name}, ε {epsilon:g}")
        key: dict[str, Any] = {"set": file.name, "variant": name, "epsilon": epsilon, "seed": seed}
        stored = store.get(**key, **code[file.name])
        if stored is None:
            stored = store.put(_measure(name, epsilon, seed, file.name, *halves(file, seed)), **key, **code[file.name])
        outcomes.append(Outcome(**key, **stored))
    if progress is not None:
        progress(len(steps), len(steps), "writing")
    return _write(Path(out_dir), tuple(outcomes))


def _split(file: RatingFile, seed: int) -> tuple[Ratings, Ratings]:
    return file.read().split(TEST_SHARE, seed=seed)


def _measure(name: str, epsilon: float, seed: int, data: str, train: Ratings, test: Ratings) -> dict[str, float]:
    pipeline = DPSR(epsilon, random_state=noise_seed(data, "ablation", epsilon, seed))
    contents = pipeline.fit_table(RawTable.of(train), recipe=VARIANTS[name])
    predicted = contents.model.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
    return {"rmse": rmse(test.values, predicted), "exact_epsilon": contents.certificate.epsilon}


def ablation_table(outcomes: Sequence[Outcome], name: str) -> Table:
    """Mean RMSE of every variant, and how much worse it is than the full pipeline."""
    mine = [outcome for outcome in outcomes if outcome.set == name]
    budgets = sorted({outcome.epsilon for outcome in mine})
    means = {
        (v, e): float(np.mean([o.rmse for o in mine if (o.variant, o.epsilon) == (v, e)]))
        for v in dict.fromkeys(o.variant for o in mine)
        for e in budgets
    }
    rows: list[tuple[Cell, ...]] = []
    for each in dict.fromkeys(v for v, _ in means):
        rows.append((each, *(_against(means[each, e], means.get(("full", e))) for e in budgets)))
    title = f"{name}: RMSE, and how much worse than the full pipeline in per cent"
    return Table(f"ablation_{name}", title, ("ε", *(f"{e:g}" for e in budgets)), tuple(rows))


def _against(found: float, full: float | None) -> str:
    return f"{found:.4f}" if full is None or found == full else f"{found:.4f} ({100 * (found / full - 1):+.1f})"


def _write(folder: Path, outcomes: tuple[Outcome, ...]) -> Ablation:
    tables = tuple(ablation_table(outcomes, name) for name in dict.fromkeys(o.set for o in outcomes))
    seeds = ", ".join(map(str, sorted({o.seed for o in outcomes})))
    head = f"# What each idea contributes\n\nNOT PRIVATE: seeded noise, raw test ratings. Seeds {seeds}. "
    head += "A figure without a percentage is the same fit: what is left out was not used there.\n\n"
    report, rows = folder / "ablation.md", folder / "ablation.csv"
    report.write_text(head + "\n".join(table.markdown() for table in tables), encoding="utf-8")
    long = Table("ablation", "", tuple(asdict(outcomes[0])), tuple(tuple(asdict(o).values()) for o in outcomes))
    rows.write_text(long.csv(), encoding="utf-8")
    return Ablation(outcomes, tables, (report, rows))
