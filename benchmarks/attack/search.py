"""A search of folders for raw values and keys, in bytes and inside Parquet files."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.attack.commands import Secret

_MOST = 1 << 28


def found_in(folders: Iterable[Path], secret: Secret, *, skip: Iterable[Path] = ()) -> list[str]:
    """Every file under the folders that holds a trace, and which; the input itself is skipped."""
    left_out = {secret.csv.resolve(), *(path.resolve() for path in skip)}
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            inside = {path.resolve(), *path.resolve().parents}
            if path.is_file() and not path.is_symlink() and not inside & left_out:
                found += [f"{path.name}: {trace}" for trace in traces_of(path, secret)]
    return found


def traces_of(path: Path, secret: Secret) -> Iterator[str]:
    """Which traces a file holds, as it is and unpacked."""
    try:
        content = path.read_bytes()[:_MOST]
    except OSError:  # it is gone again
        return
    for name, trace in secret.traces.items():
        if trace in content:
            yield name
    if content[:4] == b"PAR1":
        yield from _in_parquet(content, secret)


def _in_parquet(content: bytes, secret: Secret) -> Iterator[str]:
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError):
        return
    for name in table.column_names:
        kind = table[name].type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            values = table[name].to_numpy().tobytes()
            for trace, pattern in secret.traces.items():
                if pattern in values:
                    yield f"{trace} in the column {name}"


@contextmanager
def watched(folders: list[Path], secret: Secret) -> Iterator[set[str]]:
    """What turns up in the folders while something runs: they are searched again and again."""
    found: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.2):
            found.update(found_in(folders, secret))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()
        found.update(found_in(folders, secret))
