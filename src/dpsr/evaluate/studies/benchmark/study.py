"""Every method side by side: which sets, methods, budgets and seeds, and the report that is written of them.

The small benchmark is meant to end within ten minutes on two cores: budgets 1 and 5 and two seeds. The full one is
everything there is: six budgets and five seeds, learners and attacks at budgets 1 and 5 on the first seed. A run that
fails is a row with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dpsr.errors import ParameterError
from dpsr.evaluate.downstream.training_tables import RAW
from dpsr.evaluate.measure import ATTACK, LEARNERS, METHOD
from dpsr.evaluate.measure.attack import BEST_GUESS, MEAN_LEAK, ON_MECHANISMS
from dpsr.evaluate.protocol import SAMPLE_RANKED
from dpsr.evaluate.registry import benchmarked_methods, chosen_methods, compared_methods, method
from dpsr.evaluate.report.breakdowns import breakdowns
from dpsr.evaluate.report.comparisons import Fits, significance_table
from dpsr.evaluate.report.files import refill, write_rows, write_text
from dpsr.evaluate.report.tidy import tidy, units_of
from dpsr.evaluate.runner.jobs import Job, Seeds, cross, noise_seed
from dpsr.evaluate.runner.results import TIMEOUT, Results
from dpsr.evaluate.sets import RatingSet, find_sets, parse_scales
from dpsr.evaluate.studies.benchmark.tables import document_of, sections
from dpsr.evaluate.studies.study import Study, StudyReport, facts_of
from dpsr.pipeline.plan import parse_epsilons

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
SMALL_EPSILONS = (1.0, 5.0)
SEEDS, SMALL_SEEDS, FIRST_SEED = 5, 2, 1
"""Split 0 is left out: our own defaults were chosen while looking at it (`value/priors.py`)."""

INPUTS = (RAW, "laplace", "paper", "dpsr")
"""Tables that learners are given."""

LEARNED_BY = ("surprise-svd", "item-knn", "als", "neural-cf", "implicit-confidence", "implicit-liked")

SMALL_ATTACKED = ("dpsr", "dpsr-paper", "dpsr-as-published", "als")
"""The methods whose outputs are most talked about."""

NONE = "none"
"""The word for no methods at all: learners or attacks alone."""

FILES = {METHOD: "benchmark", LEARNERS: "downstream", ATTACK: "attacks"}
"""Where the rows of each measure are written."""


def requested_benchmark(
    data: Sequence[str],
    *,
    scales: Sequence[str] = (),
    methods: str | None = None,
    unit: str | None = None,
    epsilons: str | None = None,
    seeds: int | None = None,
    downstream: bool = False,
    attacks: bool = False,
    full: bool = False,
    timeout: float = TIMEOUT,
    workers: int = 0,
    document: Path | None = None,
) -> Study:
    """The benchmark that the words of a command line ask for; what was not said is filled in, small or full."""
    return benchmark_study(
        find_sets(data, parse_scales(scales)),
        methods=_names(methods) if methods else benchmarked_methods(unit),
        epsilons=sorted(set(parse_epsilons(epsilons))) if epsilons else EPSILONS if full else SMALL_EPSILONS,
        seeds=range(FIRST_SEED, FIRST_SEED + (seeds or (SEEDS if full else SMALL_SEEDS))),
        inputs=INPUTS if downstream or full else (),
        attacked=_attacked(full) if attacks or full else (),
        few_epsilons=SMALL_EPSILONS if full and not epsilons else (),
        effort=4 if full else 1,
        document=document,
        facts={"processes at a time": str(workers or os.cpu_count()), "seconds allowed a run": f"{timeout:g}"},
    )


def benchmark_study(
    sets: Sequence[RatingSet],
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    inputs: Sequence[str] = (),
    attacked: Sequence[str] = (),
    few_epsilons: Sequence[float] = (),
    effort: int = 1,
    document: Path | None = None,
    facts: Mapping[str, str] | None = None,
) -> Study:
    """Fit `methods`, train learners on the tables `inputs`, attack what is named in `attacked`.

    Learners and attacks run on the first seed, at `few_epsilons` or else at all. `effort` multiplies the attackers'
    trials. `document` is a file whose marked sections are refilled; `facts` are told in the report.
    """
    if not (seeds and epsilons and all(epsilon > 0 for epsilon in epsilons)):
        raise ParameterError(
            f"a benchmark needs at least one seed and one positive epsilon, found seeds {list(seeds)} and epsilons "
            f"{list(epsilons)}."
        )
    jobs = _jobs(sets, methods, epsilons, seeds, inputs, attacked, few_epsilons or epsilons, effort)
    told = {**facts_of(METHOD, sets, methods, epsilons, seeds), **(facts or {})}
    return Study(jobs, lambda results, folder: _write(results, folder, told, document), complete=False)


def _jobs(
    sets: Sequence[RatingSet],
    methods: Sequence[str],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    inputs: Sequence[str],
    attacked: Sequence[str],
    few: Sequence[float],
    effort: int,
) -> list[Job]:
    """Everything asked for, in the order in which it is begun."""
    chosen = [] if not methods and (inputs or attacked) else chosen_methods(methods)
    fits = [(one.name, one.budgeted) for one in chosen]
    tables = [(name, name != RAW) for name in inputs]
    attacks = [(name, name in ON_MECHANISMS or method(name).budgeted) for name in attacked]
    return [
        *cross(METHOD, sets, fits, epsilons, seeds, protocol=SAMPLE_RANKED),
        *cross(
            LEARNERS, sets, tables, few, seeds[:1], protocol=SAMPLE_RANKED, seeding=_learner_seeds, learners=LEARNED_BY
        ),
        *cross(ATTACK, sets, attacks, few, seeds[:1], protocol=SAMPLE_RANKED, effort=effort),
    ]


def _learner_seeds(ratings: str, table: str, epsilon: float | None, seed: int) -> Seeds:
    """Noise of the table's own; learners start alike on every table."""
    return Seeds(noise_seed(ratings, table, epsilon, seed), seed)


def _attacked(full: bool) -> list[str]:
    """The attacks on mechanisms, then methods: all, or a few."""
    return [MEAN_LEAK, BEST_GUESS, *(compared_methods() if full else SMALL_ATTACKED)]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == [NONE]:
        return []
    if not names:
        raise ParameterError("methods are names separated by commas, found none. Write --methods dpsr,als.")
    return names


def _write(results: Results, folder: Path, facts: Mapping[str, str], document: Path | None) -> StudyReport:
    rows = {measure: tidy(measure, results.runs) for measure in FILES}
    units = units_of(rows[METHOD])
    fits = Fits.of(results, units)
    significance, shown = significance_table(fits), breakdowns(fits, rows[METHOD], _shown_at(fits.epsilons))
    parts = sections(facts, rows[METHOD], significance, rows[LEARNERS], rows[ATTACK], shown)
    written = [
        write_text(folder / "benchmark.md", document_of(parts)),
        write_text(folder / "significance.csv", significance.csv()),
    ]
    for measure, name in FILES.items():
        if rows[measure].num_rows:
            written += write_rows(rows[measure], folder, name)
    for breakdown in shown:
        written += breakdown.write(units, folder)
    if document is not None:
        refill(document, parts)
    return StudyReport({name: rows[measure] for measure, name in FILES.items()}, (significance,), tuple(written))


def _shown_at(epsilons: Sequence[float]) -> float | None:
    """The epsilon of charts that show one: the nearest to 1."""
    return min(epsilons, key=lambda e: (abs(e - 1), e)) if epsilons else None
