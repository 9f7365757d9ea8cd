"""The tidy table: one row per run, every column named once here; CSV, Parquet and JSON say the same.

A run that failed has its `error` filled in and its numbers empty. Nothing is rounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpsr.evaluate.benchmark.jobs import Job

NOTICE = (
    "NOT PRIVATE: noise is seeded and scores read raw test ratings. For the curator and for development; do not "
    "publish them beside a release of the same ratings."
)

_TEXT, _NUMBER = pa.string(), pa.float64()
_WHERE = [("set", _TEXT), ("method", _TEXT), ("epsilon", _NUMBER), ("seed", pa.int64())]

METHODS = pa.schema(
    [
        *_WHERE[:2],
        ("unit", _TEXT),
        *_WHERE[2:3],
        ("exact_epsilon", _NUMBER),
        ("delta", _NUMBER),
        *_WHERE[3:],
        *((name, _NUMBER) for name in ("rmse", "mae", "precision_at_10", "ndcg_at_10", "share_of_constant")),
        *((name, _NUMBER) for name in ("fit_seconds", "cpu_seconds", "peak_mb")),
        ("public", _TEXT),
        ("note", _TEXT),
        ("error", _TEXT),
    ]
)
"""`epsilon` is what was asked for, empty for methods without a budget; `exact_epsilon` is what the receipt says."""

DOWNSTREAM = pa.schema(
    [
        ("set", _TEXT),
        ("input", _TEXT),
        ("epsilon", _NUMBER),
        ("learner", _TEXT),
        ("seed", pa.int64()),
        *((name, _NUMBER) for name in ("rmse", "ndcg_at_10", "fit_seconds")),
        ("error", _TEXT),
    ]
)

ATTACKS = pa.schema(
    [
        ("set", _TEXT),
        ("attack", _TEXT),
        *_WHERE[1:],
        ("unit", _TEXT),
        *((name, _NUMBER) for name in ("advantage", "advantage_low", "bound", "tpr_at_5", "tpr_at_1", "bound_at_5")),
        *((name, _NUMBER) for name in ("bound_at_1", "epsilon_low")),
        ("trials", pa.int64()),
        ("note", _TEXT),
        ("error", _TEXT),
    ]
)

WHAT = {"method": "method", "downstream": "input", "attack": "method"}
"""The column that holds what a job of each kind is about."""

SCHEMAS = {"method": METHODS, "downstream": DOWNSTREAM, "attack": ATTACKS}
FILES = {"method": "benchmark", "downstream": "downstream", "attack": "attacks"}


def tidy(kind: str, results: Iterable[tuple[Job, Sequence[dict[str, Any]]]]) -> pa.Table:
    """One row per row of every job of the kind; columns that a failed job could not fill are empty."""
    rows = [
        {"set": job.source.name, WHAT[kind]: job.what, "epsilon": job.epsilon, "seed": job.seed, **row}
        for job, found in results
        if job.kind == kind
        for row in found
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS[kind])


def write_table(table: pa.Table, folder: Path, name: str) -> list[Path]:
    """The same table three times."""
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "parquet", "json")]
    pa.csv.write_csv(table, paths[0])
    pa.parquet.write_table(table, paths[1])
    paths[2].write_text(json.dumps({"notice": NOTICE, "rows": table.to_pylist()}, indent=1), encoding="utf-8")
    return paths


def means(table: pa.Table, by: Sequence[str], number: str) -> dict[tuple[Any, ...], tuple[float, float, int]]:
    """Mean, sample standard deviation and count of a number over the rows that have it, by the given columns."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in table.select([*by, number]).to_pylist():
        if row[number] is not None:
            groups.setdefault(tuple(row[name] for name in by), []).append(row[number])
    return {
        key: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else float("nan"), len(v))
        for key, v in groups.items()
    }
