"""Tables and chart of lists: accuracy, breadth, cost, exact budgets, and who is ahead of whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import AnyArray
from dpsr.evaluate.likes.registry import EASE, NOISY_POPULARITY, OUR_LISTS, OUR_UNLISTED
from dpsr.evaluate.measure import LIKES
from dpsr.evaluate.metrics.significance import ErrorComparison, compare_errors
from dpsr.evaluate.report.charts import BLUE, GREEN, ORANGE, VERMILION, Chart
from dpsr.evaluate.report.comparisons import Compared, comparison_header, comparison_rows
from dpsr.evaluate.report.tables import Cells, Table, failures_table, methods_by_epsilon
from dpsr.evaluate.report.tidy import Averages, distinct, units_of
from dpsr.evaluate.runner.results import Results
from dpsr.evaluate.runner.store import load_arrays
from dpsr.evaluate.studies.frontier.picture import Look, frontier_chart
from dpsr.evaluate.studies.frontier.tables import goal_rows, header_of, method_rows, value_at
from dpsr.evaluate.studies.frontier.targets import Targets

RECALL = "recall_at_20"

_ACCURACY = ((RECALL, 4), ("ndcg_at_20", 4), ("ndcg_at_100", 4))
_BREADTH = (("coverage_at_20", 4), ("popularity_bias_at_20", 2))
_COST = (("cpu_seconds", 1), ("peak_mb", 0), ("exact_epsilon", 3))

TITLES: Mapping[str, str] = {
    OUR_LISTS: "dpsr (joint DP)",
    OUR_UNLISTED: "dpsr, no list of items declared (joint DP)",
    NOISY_POPULARITY: "noisy popularity",
    "dp-ials": "DP-iALS (joint DP)",
    "dp-two-tower": "DP-SGD on two towers (joint DP)",
    "randomised-baskets": "randomised baskets (local)",
    "popularity": "popularity, not private",
    "item-knn": "item-kNN, not private",
    EASE: "EASE, not private",
    "ials": "iALS, not private",
}
"""In the order in which methods are shown."""

LIST_TARGETS: Mapping[str, Targets] = {
    "ml-latest-small": Targets(
        reach={1.0: 0.156, 2.0: 0.191, 5.0: 0.244, 10.0: 0.271}, aim={1.0: 0.175, 2.0: 0.21, 5.0: 0.26, 10.0: 0.29}
    )
}
"""What Recall@20 should reach, held-out people, at the unit user and delta = 1e-5."""

LOOK = Look(
    TITLES,
    {
        OUR_LISTS: (VERMILION, "o", 2.6),
        OUR_UNLISTED: (ORANGE, "P", 1.6),
        NOISY_POPULARITY: (BLUE, "^", 1.6),
        "dp-ials": (GREEN, "D", 1.6),
    },
    {"popularity": "--", EASE: ":"},
    LIST_TARGETS,
    "ε for one person, with everything they did, at δ = 1e-5 (smaller is more private)",
    RECALL,
    "Recall@20 for held-out people",
    "aim above",
)


def list_tables(rows: pa.Table) -> list[Table]:
    """For each set and protocol: accuracy, breadth, cost; then what failed."""
    units, tables = units_of(rows), []
    for name in distinct(rows, "set"):
        for protocol in distinct(rows, "protocol"):
            mine = rows.filter(pc.equal(rows["protocol"], protocol))
            for number, digits in (*_ACCURACY, *_BREADTH, *_COST):
                table = methods_by_epsilon(mine, name, number, units, digits=digits)
                title = f"{name}, {protocol}: {_title(number)}"
                tables.append(Table(f"{table.name}_{protocol}", title, table.header, table.rows))
    return [*tables, *([lost] if (lost := failures_table([rows])).rows else [])]


def _title(number: str) -> str:
    return {
        RECALL: "Recall@20",
        "ndcg_at_20": "NDCG@20",
        "ndcg_at_100": "NDCG@100",
        "coverage_at_20": "share of the catalogue among anybody's first 20",
        "popularity_bias_at_20": "popularity of the first 20, as a multiple of what people choose",
        "cpu_seconds": "processor seconds per fit",
        "peak_mb": "peak memory, MB",
        "exact_epsilon": "exact ε by receipts",
    }[number]


def recall_tables(rows: pa.Table, epsilons: Sequence[float]) -> list[Table]:
    """Recall@20 of every set with goals and promises, then NDCG@100 and time."""
    averages, tables = Averages(rows), []
    for name in distinct(rows, "set"):
        shown = goal_rows(averages, name, OUR_LISTS, epsilons, LIST_TARGETS.get(name, Targets()), RECALL)
        shown += method_rows(averages, name, epsilons, RECALL, digits=4, titles=TITLES)
        shown += _promises(averages, name, epsilons)
        tables.append(Table(f"recall_{name}", f"{name}: Recall@20, held-out people", header_of(epsilons), tuple(shown)))
        for number in ("ndcg_at_100", "coverage_at_20", "cpu_seconds"):
            found = tuple(method_rows(averages, name, epsilons, number, digits=4, titles=TITLES))
            tables.append(Table(f"{number}_{name}", f"{name}: {_title(number)}", header_of(epsilons), found))
    return tables


def _promises(averages: Averages, name: str, epsilons: Sequence[float]) -> list[Cells]:
    """Ours over noisy popularity, over DP-iALS, and as a share of what EASE has without privacy."""
    rows: list[Cells] = []
    for title, other in (("over noisy popularity", NOISY_POPULARITY), ("over DP-iALS", "dp-ials"), ("of EASE", EASE)):
        pairs = [[value_at(averages, name, method, e, RECALL) for method in (OUR_LISTS, other)] for e in epsilons]
        if any(ours is not None and theirs for ours, theirs in pairs):
            shares = [None if ours is None or not theirs else ours / theirs for ours, theirs in pairs]
            told = "{:.0%}".format if other == EASE else lambda share: f"{share - 1:+.1%}"
            rows.append((f"dpsr {title}", *("" if share is None else told(share) for share in shares)))
    return rows


def recall_chart(rows: pa.Table, name: str, epsilons: Sequence[float]) -> Chart:
    """Recall@20 against epsilon."""
    return frontier_chart(rows, name, epsilons, LOOK, called=f"frontier_likes_{name}")


def list_significance(results: Results, rows: pa.Table) -> Table:
    """Ours against every other method, person by person, in Recall@20; one row per set, protocol, method, epsilon."""
    done = results.succeeded(LIKES)
    load = cache(lambda job: load_arrays(results.folder / f"{job.name}.npz"))
    mine = [job for job in done if job.what == OUR_LISTS]
    cases = dict.fromkeys((job.set, job.protocol, job.epsilon) for job in mine)
    compared = []
    for ratings, protocol, epsilon in cases:
        here = [job for job in done if (job.set, job.protocol) == (ratings, protocol)]
        for method in dict.fromkeys(job.what for job in here if job.what != OUR_LISTS):
            ours = {job.seed: load(job) for job in here if job.what == OUR_LISTS and job.epsilon == epsilon}
            theirs = {job.seed: load(job) for job in here if job.what == method and job.epsilon in (epsilon, None)}
            if ours.keys() & theirs.keys() and epsilon is not None:
                found = compare_people(ours, theirs)
                compared.append(Compared(f"{ratings.name}, {protocol}", method, epsilon, found))
    title = f"{OUR_LISTS} against every other method (positive difference: {OUR_LISTS} has the larger Recall@20)"
    header = comparison_header("Recall@20")
    return Table("likes_significance", title, header, comparison_rows(compared, units_of(rows)))


def compare_people(
    ours: Mapping[int, Mapping[str, AnyArray]], theirs: Mapping[int, Mapping[str, AnyArray]]
) -> ErrorComparison:
    """Paired by person over the seeds both have; what one person gets under several seeds goes together."""
    seeds = sorted(ours.keys() & theirs.keys())
    parts = [ours[seed][RECALL] - theirs[seed][RECALL] for seed in seeds]
    _, people = np.unique(np.concatenate([ours[seed]["people"] for seed in seeds]), return_inverse=True)
    at = np.repeat(np.asarray(seeds, dtype=np.int64), [len(part) for part in parts])
    difference = np.concatenate(parts)
    known = np.isfinite(difference)
    return compare_errors(difference[known], people[known], people[known], at[known])
