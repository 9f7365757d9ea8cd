"""What is written: text, tidy tables in three formats, and documents whose marked sections are refilled.

A document keeps its own prose and has, for each section it wants, the two lines

    <!-- generated: NAME -->
    <!-- end: NAME -->

Whatever stands between them is replaced by what a run found; tables too long for a page lie in pages beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpsr.errors import ParameterError

NOTICE = (
    "NOT PRIVATE: noise is seeded and scores read raw test ratings. For the curator and for development; do not "
    "publish them beside a release of the same ratings."
)


def write_text(path: Path, text: str) -> Path:
    """The text as a file."""
    path.write_text(text, encoding="utf-8")
    return path


def write_rows(table: pa.Table, folder: Path, name: str) -> list[Path]:
    """The same table as CSV, Parquet and JSON."""
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "parquet", "json")]
    pa.csv.write_csv(table, paths[0])
    pa.parquet.write_table(table, paths[1])
    write_text(paths[2], json.dumps({"notice": NOTICE, "rows": table.to_pylist()}, indent=1))
    return paths


def refill(document: Path, sections: Mapping[str, str]) -> None:
    """Put sections between their marks, in the document and in the pages of the folder beside it that has its name.

    A document without any mark is refused, sections without marks are not.
    """
    for page in sorted(document.with_suffix("").glob("*.md")):
        _refill_page(page, sections)
    _refill_page(document, sections)


def _refill_page(document: Path, sections: Mapping[str, str]) -> None:
    text = document.read_text("utf-8")
    if "<!-- generated: " not in text:
        raise ParameterError(
            f"{document} must have a section to fill, found none. Mark one with the lines <!-- generated: rmse --> and "
            "<!-- end: rmse -->."
        )
    for name, content in sections.items():
        mark = re.compile(f"(<!-- generated: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        replacement = content.replace("\\", "\\\\")  # backslashes mean something in a replacement
        text = mark.sub(rf"\g<1>\n{replacement}\n\g<2>", text)
    write_text(document, text)
