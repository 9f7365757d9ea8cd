"""What lies in the working folder: files that may hold ratings, and releases, by their names. None is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpsr.certify.manifest import MANIFEST

_TABLES = {
    ".csv", ".tsv", ".tab", ".dat", ".data", ".txt", ".parquet", ".pq", ".parq", ".jsonl", ".ndjson", ".gz", ".bz2",
    ".zst",
}  # fmt: skip
_DATABASES = {".sqlite", ".sqlite3", ".db"}
_MOST = 200


@dataclass(frozen=True)
class Entry:
    """A file by name, its size in words, and what it is opened as."""

    name: str
    size: str
    source: str


def rating_files() -> list[Entry]:
    """Files of the working folder that may hold ratings, databases among them."""
    found = []
    for path in sorted(Path().iterdir())[: 10 * _MOST]:
        suffix = path.suffix.lower()
        if path.name.startswith(".") or suffix not in _TABLES | _DATABASES or not path.is_file():
            continue
        source = f"sqlite:///{path.name}" if suffix in _DATABASES else path.name
        found.append(Entry(path.name, _size(path.stat().st_size), source))
    return found[:_MOST]


def release_folders() -> list[str]:
    """Folders of the working folder that hold a release, the newest first."""
    found = [path for path in Path().iterdir() if not path.name.startswith(".") and (path / MANIFEST).is_file()]
    found.sort(key=lambda path: -path.stat().st_mtime)
    return [path.name for path in found[:_MOST]]


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count = round(count / 1_000)
    return f"{count:,} TB"
