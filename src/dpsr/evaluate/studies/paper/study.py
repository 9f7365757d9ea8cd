"""The paper's experiment, repeated: every method, budget and seed on the paper's generator, under several readings.

One seed fixes the matrix, the split, the noise and the start of the factorisation. The noise is seeded so that the
tables can be reproduced: **the results are seeded and not private**, and the accuracy figures read raw values anyway.
The ratings are made up, so nobody's privacy is at stake.

The paper leaves two things open that decide its conclusions: how ratings were "normalised to [1, 5]", and how the
factorisation was trained (learning rate, batch, start). Every combination of `NORMALISATIONS` and `TRAINING_CHOICES` is
run. The paper feeds every mechanism's ratings to the same factorisation, so each method is a table that learners are
trained on; what Stage 3 returns is also used as the prediction itself. Plain Laplace is also given to the tuned ALS,
which is post-processing too.

Two more measures: what each stage adds (how far its output is from the true training ratings, and the held-out error of
the factorisation trained on it), and how much each parameter matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.evaluate.baselines.factorisation import TRAINING_CHOICES
from dpsr.evaluate.downstream.training_tables import RAW
from dpsr.evaluate.measure import LEARNERS
from dpsr.evaluate.measure.learners import THE_MODEL_ITSELF
from dpsr.evaluate.protocol import ALL_RANKED, ERRORS_ONLY, HeldOutRatings
from dpsr.evaluate.report.charts import write_chart
from dpsr.evaluate.report.files import write_rows, write_text
from dpsr.evaluate.report.tables import Table, markdown
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.runner.results import Results
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.paper.figures import figure_1, figure_2
from dpsr.evaluate.studies.paper.printed import recheck_printed_tests
from dpsr.evaluate.studies.paper.tables import (
    NO_FACTORISATION,
    Summaries,
    claims_table,
    printed_tests_table,
    sensitivity_table,
    stage_table,
    summarise,
    table_1,
    table_2,
)
from dpsr.evaluate.studies.study import Study, StudyReport
from dpsr.pipeline import PaperDPSR

EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0)

NORMALISATIONS = {"minmax": RatingSet("paper"), "standardise": RatingSet("paper-standardised")}

METHODS = {
    RAW: "No Privacy",
    "laplace": "Laplace",
    "gaussian-classical": "Gaussian",
    "paper": "DPSR",
    "published": "DPSR as published",
}
"""The paper's names of what its factorisation is trained on."""

STAGES = {"paper-stage-1": "Stage 1", "paper-stage-2": "Stages 1 + 2", "paper": "Stages 1 + 2 + 3"}

NOISE = {"laplace": 0, "gaussian-classical": 1, "paper": 2, "published": 3, "paper-stage-1": 2, "paper-stage-2": 2}
"""Mechanisms do not share their noise, and the stages of one pipeline do."""

YARDSTICKS = {"constant": "Constant", "bias": "Bias", "als": "ALS"}

SENSITIVITY: dict[str, tuple[float, ...]] = {
    "alpha": (0.0, 0.3, 0.6, 1.0),
    "beta": (0.0, 0.35, 0.65, 0.85, 1.0),
    "n_neighbors": (1, 5, 15, 30, 100),
    "rank": (1, 2, 4, 8, 16),
    "lam": (0.0, 0.7, 0.9, 1.0),
    "n_iter": (0, 10, 50, 100),
    "period": (2, 10, 25, 50),
}
"""One parameter at a time, the others at the paper's values; every list holds the paper's own."""

SENSITIVITY_EPSILON = 1.0

NOTICE = (
    "NOT PRIVATE: the noise is seeded and the scores read raw test ratings. The ratings are synthetic, so nobody is "
    "harmed; do not publish scores of real ratings computed this way beside a release."
)


def paper_study(*, seeds: int = 5, epsilons: Sequence[float] = EPSILONS) -> Study:
    """The paper's experiment for seeds 0, ..., seeds - 1."""
    if seeds < 1 or not epsilons:
        raise ParameterError(f"an experiment needs a seed and a budget, found seeds={seeds}, epsilons={epsilons}.")
    budgets = tuple(sorted(epsilons))
    return Study(list(_jobs(seeds, budgets)), partial(_write, seeds=seeds, epsilons=budgets))


def _jobs(seeds: int, epsilons: Sequence[float]) -> Iterator[Job]:
    for ratings in NORMALISATIONS.values():
        for seed in range(seeds):
            yield _factorised(ratings, RAW, None, seed)
            yield _tuned(ratings, RAW, None, seed, tuple(YARDSTICKS))
            for epsilon in epsilons:
                for table in dict.fromkeys((*METHODS, *STAGES)):
                    if table != RAW:
                        yield _factorised(ratings, table, epsilon, seed)
                yield _tuned(ratings, "laplace", epsilon, seed, ("als",))
    for seed in range(seeds):
        for parameter, values in SENSITIVITY.items():
            for value in values:
                yield _sensitivity_job(parameter, value, seed)


def _factorised(ratings: RatingSet, table: str, epsilon: float | None, seed: int, **settings: float) -> Job:
    """The paper's factorisation on a table, under every reading; the seed of the split is that of its start."""
    learners = tuple(f"mf-{choice}" for choice in TRAINING_CHOICES)
    return _job(ratings, table, epsilon, seed, seed, learners, settings)


def _tuned(ratings: RatingSet, table: str, epsilon: float | None, seed: int, learners: tuple[str, ...]) -> Job:
    """Models that choose their own settings on held-back ratings, the same ones for every seed."""
    return _job(ratings, table, epsilon, seed, 0, learners, {})


def _job(
    ratings: RatingSet,
    table: str,
    epsilon: float | None,
    seed: int,
    learner_seed: int,
    learners: tuple[str, ...],
    settings: dict[str, float],
) -> Job:
    options = (("learners", learners), ("settings", tuple(settings.items())))
    noise = 1000 * seed + NOISE.get(table, 0)
    protocol = ALL_RANKED if table in METHODS and not settings else ERRORS_ONLY
    return Job(LEARNERS, ratings, table, epsilon, seed, noise, learner_seed, protocol, options=options)


def _sensitivity_job(parameter: str, value: float, seed: int) -> Job:
    """The whole pipeline with one parameter changed; at the paper's own value, the pipeline itself."""
    changed = {} if value == getattr(PaperDPSR(), parameter) else {parameter: value}
    return _factorised(NORMALISATIONS["minmax"], "paper", SENSITIVITY_EPSILON, seed, **changed)


def _write(results: Results, folder: Path, *, seeds: int, epsilons: Sequence[float]) -> StudyReport:
    scores = scores_of(results, epsilons)
    summaries = summarise(scores)
    tables = [*_score_tables(summaries), *_stage_tables(results, seeds, epsilons)]
    written = [
        write_text(folder / "report.md", _markdown(tables)),
        *(write_text(folder / f"{table.name}.csv", table.csv()) for table in tables),
        *write_rows(scores, folder, "results"),
    ]
    for normalisation in NORMALISATIONS:
        for figure in (figure_1, figure_2):
            written += write_chart(figure(summaries, normalisation), folder)
    return StudyReport({"results": scores}, tuple(tables), tuple(written))


def scores_of(results: Results, epsilons: Sequence[float]) -> pa.Table:
    """Every score of the paper's methods and of the yardsticks: one row per normalisation, reading, method and seed."""
    names = {ratings.name: normalisation for normalisation, ratings in NORMALISATIONS.items()}
    rows = [
        {
            "normalisation": names[job.set.name], **_method_of(job.what, row["learner"]), "epsilon": job.epsilon,
            "seed": job.seed, **row,
        }
        for job, found in results.runs
        if job.what in METHODS and job.epsilon in (None, *epsilons) and not job.option("settings")
        for row in found
    ]  # fmt: skip
    text, number = pa.string(), pa.float64()
    schema = pa.schema(
        [
            ("normalisation", text), ("reading", text), ("method", text), ("epsilon", number), ("seed", pa.int64()),
            *((metric, number) for metric in HeldOutRatings.metrics),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def _method_of(table: str, learner: str) -> dict[str, str]:
    """Under which name and reading the paper, or this study, knows a learner on a table."""
    if learner.startswith("mf-"):
        return {"method": METHODS[table], "reading": learner.removeprefix("mf-")}
    if learner == THE_MODEL_ITSELF:
        return {"method": f"{METHODS[table]} matrix", "reading": NO_FACTORISATION}
    name = YARDSTICKS[learner] if table == RAW else f"{METHODS[table]}, {YARDSTICKS[learner]}"
    return {"method": name, "reading": NO_FACTORISATION}


def _score_tables(summaries: Summaries) -> list[Table]:
    panels = [(normalisation, reading) for normalisation in NORMALISATIONS for reading in TRAINING_CHOICES]
    tables = [claims_table(summaries, panels), printed_tests_table(recheck_printed_tests())]
    for panel in panels:
        tables += [table_1(summaries, *panel), table_2(summaries, *panel)]
    return tables


def _stage_tables(results: Results, seeds: int, epsilons: Sequence[float]) -> list[Table]:
    found = dict(results.runs)
    tables = []
    for normalisation, ratings in NORMALISATIONS.items():
        stages = {
            (f"{epsilon:g}", title): [found[_factorised(ratings, stage, epsilon, seed)] for seed in range(seeds)]
            for epsilon in epsilons
            for stage, title in STAGES.items()
        }
        tables.append(stage_table(normalisation, stages))
    settings = {
        (parameter, f"{value:g}"): [found[_sensitivity_job(parameter, value, seed)] for seed in range(seeds)]
        for parameter, values in SENSITIVITY.items()
        for value in values
    }
    return [*tables, sensitivity_table(SENSITIVITY_EPSILON, settings)]


def _markdown(tables: Sequence[Table]) -> str:
    readings = "\n".join(f"* **{name}**: {choice.description}" for name, choice in TRAINING_CHOICES.items())
    head = f"# The paper's experiment\n\n{NOTICE}\n\nReadings of the factorisation:\n\n{readings}\n\n"
    return head + markdown(tables)
