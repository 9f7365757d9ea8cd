"""The columns a file of ratings has, by name, and which of them is taken for what: no rating is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dpsr.data.files.json_lines import keys_of_json_lines
from dpsr.data.files.layouts import CONVENTIONAL, plain, recognise
from dpsr.data.files.read import existing, first_lines, is_json_lines, is_parquet, parquet_schema, read_head, suffix_of
from dpsr.errors import DataError
from dpsr.quoting import file_name


@dataclass(frozen=True)
class Columns:
    """Names in their order, whether they stand in the file, and the one for each part: None if none or several fit."""

    names: tuple[str, ...]
    header: bool
    taken: dict[str, str | None]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def columns_in(path: str | PathLike[str], *, delimiter: str | None = None) -> Columns:
    """The columns of a file in any layout that is known."""
    names, header = _names(existing(Path(path)), delimiter)
    if header and any(_is_number(name) for name in names):  # perhaps the first rating of a file without a header
        raise DataError(
            f"{file_name(Path(path))}: columns must have names, and these are numbers. If the file has no header, add "
            "one: user,item,rating."
        )
    return Columns(tuple(names), header, {role: _only(role, names) for role in CONVENTIONAL})


def _names(file: Path, delimiter: str | None) -> tuple[list[str], bool]:
    if is_json_lines(file):
        return keys_of_json_lines(file), True
    head = read_head(file)
    if is_parquet(file, head):
        return list(parquet_schema(file).names), True
    layout = recognise(first_lines(file, head), suffix_of(file), source=file_name(file), delimiter=delimiter)
    return list(layout.names), layout.header


def _only(role: str, names: list[str]) -> str | None:
    fit = [name for name in names if plain(name) in CONVENTIONAL[role].split()]
    return fit[0] if len(fit) == 1 else None


def _is_number(name: str) -> bool:
    try:
        float(name.replace(",", "."))
    except ValueError:
        return False
    return True
