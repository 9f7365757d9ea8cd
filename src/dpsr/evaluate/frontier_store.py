"""Results on disk, one JSON line each, so that an interrupted run goes on where it stopped.

A line is found again only under the same version, the same code and the same data: the digest covers every module that
can change a number. What is stored was computed from raw ratings: NOT PRIVATE.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

_NOT_COUNTED = (
    "cli/",
    "evaluate/attacks/",
    "evaluate/benchmark/",
    "evaluate/downstream/",
    "evaluate/tables.py",
    "evaluate/figures.py",
    "evaluate/frontier_tables.py",
    "evaluate/frontier_figure.py",
    "evaluate/frontier_ablation.py",
)
"""Modules that make no number of the frontier; the ablation and the benchmark, whose keys carry their own digest."""


@cache
def code_digest() -> str:
    """The package's version and a digest of its source, taken once a process: what was imported, not what is edited."""
    root, total = Path(__file__).parents[1], sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_NOT_COUNTED):
            total.update(name.encode() + b"\0" + path.read_bytes())
    return f"{version('dpsr')}+{total.hexdigest()[:16]}"


def file_digest(path: str) -> str:
    """A digest of one source file."""
    return sha256(Path(path).read_bytes()).hexdigest()[:16]


class Store:
    """A file of results. Lines of other code or data are kept and not read; a torn last line is skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8") if path.exists() else ""
        self._torn = bool(text) and not text.endswith("\n")
        self._known = dict(entry for line in text.splitlines() if (entry := _parse(line)) is not None)

    def get(self, **key: Any) -> dict[str, Any] | None:
        """What is stored under the key, or None."""
        return self._known.get(_text(key))

    def put(self, result: dict[str, Any], **key: Any) -> dict[str, Any]:
        """Append a result and hand it back."""
        text = _text(key)
        self._known[text] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps({"key": json.loads(text), "result": result}) + "\n")
        self._torn = False
        return result


def _text(key: dict[str, Any]) -> str:
    return json.dumps({"code": code_digest(), **key}, sort_keys=True)


def _parse(line: str) -> tuple[str, dict[str, Any]] | None:
    try:
        entry = json.loads(line)
        return json.dumps(entry["key"], sort_keys=True), entry["result"]
    except (ValueError, KeyError, TypeError):
        return None
