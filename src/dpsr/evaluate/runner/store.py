"""Results on disk, so that an interrupted run goes on where it stopped. Computed from raw ratings: NOT PRIVATE.

Rows are JSON lines, one per job, found again only under the job's whole key. Predictions are one `.npz` file per job,
written beside and renamed, so that it is whole or absent; plain arrays, never pickles.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.evaluate.runner.jobs import Job, Row

ROWS, PREDICTIONS = "results.jsonl", "predictions"


class Store:
    """The rows in a folder. Lines of other code or data are kept and not read; a torn last line is skipped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ROWS
        folder.mkdir(parents=True, exist_ok=True)
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        self._torn = bool(text) and not text.endswith("\n")
        self._known = dict(entry for line in text.splitlines() if (entry := _parse(line)) is not None)

    def get(self, job: Job) -> list[Row] | None:
        """What is stored for the job, or None."""
        return self._known.get(_text(job.key))

    def put(self, job: Job, rows: list[Row]) -> list[Row]:
        """Append rows and hand them back."""
        text = _text(job.key)
        self._known[text] = rows
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps({"key": json.loads(text), "rows": rows}) + "\n")
        self._torn = False
        return rows


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    with beside.open("wb") as file:
        np.savez_compressed(file, **arrays)
    os.replace(beside, path)


def load_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file by name."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _text(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _parse(line: str) -> tuple[str, list[Row]] | None:
    try:
        entry = json.loads(line)
        return _text(entry["key"]), entry["rows"]
    except (ValueError, KeyError, TypeError):
        return None
