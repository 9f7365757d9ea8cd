"""Every method of lists side by side: which sets, methods, budgets and seeds, and the report that is written of them.

The benchmark runs both protocols; the frontier runs held-out people alone, on more budgets, with goals and a chart.
Everything is seeded and read from raw interactions: NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpsr.errors import ParameterError
from dpsr.evaluate.likes.protocol import FOLDED_IN, KNOWN_PEOPLE
from dpsr.evaluate.likes.registry import (
    EASE,
    LIST_METHODS,
    NOISY_POPULARITY,
    OUR_LISTS,
    OUR_UNLISTED,
    compared_lists,
)
from dpsr.evaluate.measure import LIKES, LIKES_ATTACK
from dpsr.evaluate.registry import entries_of
from dpsr.evaluate.report.charts import write_chart
from dpsr.evaluate.report.files import NOTICE, refill, write_rows, write_text
from dpsr.evaluate.report.tables import markdown
from dpsr.evaluate.report.tidy import distinct, tidy
from dpsr.evaluate.runner.jobs import cross
from dpsr.evaluate.runner.results import Results
from dpsr.evaluate.sets import RatingSet, find_likes, sets_in_folder
from dpsr.evaluate.studies.benchmark.tables import attacks_table
from dpsr.evaluate.studies.likes.tables import list_significance, list_tables, recall_chart, recall_tables
from dpsr.evaluate.studies.study import Study, StudyReport, facts_of, listed_facts
from dpsr.pipeline.plan import parse_epsilons

EPSILONS, FULL_EPSILONS = (1.0, 5.0), (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
FRONTIER_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
FRONTIER = (OUR_LISTS, OUR_UNLISTED, NOISY_POPULARITY, "dp-ials", "popularity", EASE)
SEEDS = 3

BUDGET = "ε, for one person with everything they did, δ = 1e-5"
"""What reports call the budget."""


def requested_likes(
    data: Sequence[str],
    *,
    methods: str | None = None,
    epsilons: str | None = None,
    seeds: int | None = None,
    full: bool = False,
    attacks: bool = False,
    document: Path | None = None,
) -> Study:
    """The benchmark of lists that the words of a command line ask for."""
    budgets = parse_epsilons(epsilons) if epsilons else FULL_EPSILONS if full else EPSILONS
    names = [name.strip() for name in methods.split(",")] if methods else compared_lists()
    return likes_study(
        find_likes(data),
        methods=names,
        epsilons=budgets,
        seeds=range(seeds or SEEDS),
        attacked=names if attacks or full else (),
        document=document,
    )


def likes_study(
    sets: Sequence[RatingSet],
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    attacked: Sequence[str] = (),
    document: Path | None = None,
) -> Study:
    """Both protocols, and attacks on the first seed. `document` is a file whose marked sections are refilled."""
    what = _checked(methods, epsilons, seeds)
    protocols = (FOLDED_IN, KNOWN_PEOPLE)
    jobs = [job for one in protocols for job in cross(LIKES, sets, what, sorted(set(epsilons)), seeds, protocol=one)]
    targets = [(one.name, one.budgeted) for one in entries_of(LIST_METHODS, attacked)] if attacked else []
    jobs += cross(LIKES_ATTACK, sets, targets, sorted(set(epsilons)), seeds[:1], protocol=FOLDED_IN)
    told = facts_of(LIKES, sets, methods, epsilons, seeds, budget=BUDGET)
    return Study(jobs, lambda results, folder: _write(results, folder, told, document), complete=False)


def likes_frontier(
    data: str | Path,
    *,
    epsilons: Sequence[float] = FRONTIER_EPSILONS,
    seeds: Sequence[int] = range(SEEDS),
    methods: Sequence[str] | None = None,
) -> Study:
    """Recall@20 against epsilon, held-out people, on the sets of a folder."""
    names = list(FRONTIER if methods is None else methods)
    what, sets = _checked(names, epsilons, seeds), sets_in_folder(Path(data))
    jobs = cross(LIKES, sets, what, sorted(set(epsilons)), seeds, protocol=FOLDED_IN)
    told = facts_of(LIKES, sets, names, epsilons, seeds, budget=BUDGET)
    return Study(jobs, lambda results, folder: _write_frontier(results, folder, told, sorted(set(epsilons))))


def _checked(methods: Sequence[str], epsilons: Sequence[float], seeds: Sequence[int]) -> list[tuple[str, bool]]:
    if not (seeds and epsilons and all(epsilon > 0 for epsilon in epsilons)):
        raise ParameterError(
            f"lists are measured at one seed and one positive epsilon at least, found seeds {list(seeds)} and epsilons "
            f"{list(epsilons)}."
        )
    return [(one.name, one.budgeted) for one in entries_of(LIST_METHODS, methods)]


def _write(results: Results, folder: Path, told: Mapping[str, str], document: Path | None) -> StudyReport:
    rows, attacks = tidy(LIKES, results.runs), tidy(LIKES_ATTACK, results.runs)
    significance = list_significance(results, rows)
    tables = [*list_tables(rows), *([significance] if significance.rows else [])]
    tables += [attacks_table(attacks, name) for name in distinct(attacks, "set")]
    written = [
        write_text(folder / "likes.md", _markdown(told, markdown(tables))),
        write_text(folder / "likes_significance.csv", significance.csv()),
        *write_rows(rows, folder, "likes"),
    ]
    if document is not None:
        refill(document, {"likes": markdown(tables)})
    if attacks.num_rows:
        written += write_rows(attacks, folder, "likes_attacks")
    return StudyReport({"likes": rows, "likes_attacks": attacks}, tuple(tables), tuple(written))


def _write_frontier(results: Results, folder: Path, told: Mapping[str, str], epsilons: Sequence[float]) -> StudyReport:
    rows = tidy(LIKES, results.runs)
    tables = recall_tables(rows, epsilons)
    written = [
        write_text(folder / "frontier_likes.md", _markdown(told, markdown(tables))),
        *write_rows(rows, folder, "frontier_likes"),
    ]
    for name in distinct(rows, "set"):
        written += write_chart(recall_chart(rows, name, epsilons), folder, dpi=130)
    return StudyReport({"frontier_likes": rows}, tuple(tables), tuple(written))


def _markdown(told: Mapping[str, str], body: str) -> str:
    return f"# Lists from interactions\n\n{NOTICE}\n\n{listed_facts(told)}\n{body}"
