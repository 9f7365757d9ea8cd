"""The sample as files: what a stranger can try every command on, made up from a seed and the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path

import pyarrow.csv as pacsv

from dpsr.data.synthetic import demo_ratings
from dpsr.errors import DataError

_FIRST = "Night Summer Winter Silent Last Golden Paper Second Northern Hidden Long Little Broken Blue Distant Quiet"
_THEN = "River Garden Train House Letter Island Orchard Street Song Mountain Harbour Window Circus Library Bridge Road"
_LAST = ("", " Returns")


def titles() -> Iterator[str]:
    """Titles of films that do not exist."""
    for last, then, first in product(_LAST, _THEN.split(), _FIRST.split()):
        yield f"{first} {then}{last}"


def write_sample(folder: Path) -> list[Path]:
    """ratings.csv, items.csv and pairs.csv in `folder`; files that are there already stay."""
    files = [folder / name for name in ("ratings.csv", "items.csv", "pairs.csv")]
    there = [path.name for path in files if path.exists()]
    if there:
        raise DataError(f"{', '.join(there)} exists already in {folder.name or 'this folder'}. Choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    ratings = demo_ratings()
    pacsv.write_csv(ratings.to_arrow(), files[0])
    ids = ratings.mask.item_ids.to_pylist()
    lines = [f"{item},{title}" for item, title in zip(ids, islice(titles(), len(ids)), strict=True)]
    files[1].write_text("\n".join(["item,title", *lines]) + "\n", "utf-8")
    files[2].write_text("user,item\n42,7\n42,9\n43,7\n", "utf-8")
    return files
