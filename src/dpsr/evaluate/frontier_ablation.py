"""What each idea of the default pipeline contributes: leave one out, measure the RMSE. NOT PRIVATE.

A variant replaces some of the names that `dpsr.pipeline.default` composes its fit from, for the length of one fit, and
so spends the same epsilon through the same vault. All variants of one (set, epsilon, seed) get the same noise seed.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from sys import modules
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.complete.slopes import Slopes, Tables
from dpsr.complete.symbols import CHOICE, SYMBOL
from dpsr.data import Ratings
from dpsr.denoise.effects import NoisySums
from dpsr.denoise.usage import Usage
from dpsr.engine import Made
from dpsr.errors import ParameterError
from dpsr.evaluate.experiment import Progress
from dpsr.evaluate.frontier_methods import noise_seed
from dpsr.evaluate.frontier_sets import TEST_SHARE, RatingFile, find_sets
from dpsr.evaluate.frontier_store import Store, file_digest
from dpsr.evaluate.metrics import rmse
from dpsr.evaluate.tables import Cell, Table
from dpsr.pipeline import DPSR, default
from dpsr.privacy import Vault, optimal_channel
from dpsr.privacy.budget import Split, split
from dpsr.types import Census, Scale
from dpsr.types.levels import LevelFamily

Floats = npt.NDArray[np.float64]

EPSILONS = (0.5, 1.0, 3.0, 10.0)


def whole_sums(vault: Vault, design: Any, usage: Usage, y: Floats, shares: Split) -> NoisySums:
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


def one_channel(vault: Vault, prior: LevelFamily, state: Slopes) -> dict[int, Floats]:
    """Question 3 through one channel, tuned to the average of the ratings' distributions."""
    points = np.bincount(prior.nearest(state.sample), minlength=len(prior.means))
    channel = optimal_channel(vault.scale, vault.left, points @ prior.table / points.sum())
    vault.table.run(lambda block: Made({CHOICE: np.zeros(len(block.items), dtype=np.uint8)}), writes=[CHOICE])
    vault.symbols({0: channel}, choice=CHOICE, symbol=SYMBOL)
    return {0: channel.probabilities}


def plain_scales(counts: npt.NDArray[np.int64]) -> Floats:
    """1 / sqrt(count), without the average count."""
    return 1 / np.sqrt(np.maximum(counts, 1.0))


class SlopesAlone(Slopes):
    """Stage 3 with no factor to start."""

    def find_factors(self, tables: Tables, family: LevelFamily, *, trial: bool = False) -> None:
        """There are none."""


class SlopesFromSums(Slopes):
    """Stage 3 that believes of effects what the sums said."""

    def find_effects(self, tables: Tables, family: LevelFamily) -> None:
        """They are not looked for."""


def _counts_only() -> SimpleNamespace:
    real = vars(default)["Design"]
    return SimpleNamespace(of=lambda mask: real.of(mask, rank=0))


def _all_for_sums(mask: Census, scale: Scale, epsilon: float) -> Split:
    shares = split(mask, scale, epsilon)
    return replace(shares, sums=shares.sums + shares.ratings, ratings=0.0)


def _all_for_ratings(mask: Census, scale: Scale, epsilon: float) -> Split:
    shares = split(mask, scale, epsilon)
    return replace(shares, sums=0.0, ratings=shares.sums + shares.ratings)


PIPELINE, EMBEDDINGS, LEARNING = "dpsr.pipeline.default", "dpsr.design.embeddings", "dpsr.complete.learning"

VARIANTS: Mapping[str, Callable[[], dict[tuple[str, str], Any]]] = {
    "full": dict,
    "without window": lambda: {(PIPELINE, "ask_sums"): whole_sums},
    "without mask embeddings": lambda: {(PIPELINE, "Design"): _counts_only()},
    "without degree regularisation": lambda: {(EMBEDDINGS, "degree_scales"): plain_scales},
    "without factors": lambda: {(PIPELINE, "N_FACTORS"): 0, (PIPELINE, "Slopes"): SlopesAlone},
    "without pairs": lambda: {(PIPELINE, "Slopes"): SlopesFromSums},
    "cautious start only": lambda: {(LEARNING, "TRIAL_RATINGS"): 0},
    "one channel for all ratings": lambda: {(PIPELINE, "ask_ratings"): one_channel},
    "sums only": lambda: {(PIPELINE, "split"): _all_for_sums},
    "ratings only": lambda: {(PIPELINE, "split"): _all_for_ratings},
}
"""Names to replace, by module, in each variant."""


@contextmanager
def variant(name: str) -> Iterator[None]:
    """`DPSR.fit` as the named variant inside. Not for threads: it changes modules."""
    changes = VARIANTS[name]()
    before = {place: vars(modules[place[0]])[place[1]] for place in changes}
    try:
        for (module, attribute), value in changes.items():
            setattr(modules[module], attribute, value)
        yield
    finally:
        for (module, attribute), value in before.items():
            setattr(modules[module], attribute, value)


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
    with variant(name):
        fitted = DPSR(epsilon, random_state=noise_seed(data, "ablation", epsilon, seed)).fit(train)
    predicted = fitted.model_.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
    return {"rmse": rmse(test.values, predicted), "exact_epsilon": fitted.certificate.epsilon}


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
