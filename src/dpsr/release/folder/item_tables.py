"""A release of an item side, from the bytes of its files: nothing is handed on before all of it was checked.

    cells.parquet     effect, uncertainty, features, count, pull   one row a cell
    items.parquet     item[, title]                          the items that may be named, ascending
    model.json        scale, levels, spread, residual, mean and covariance of people's coefficients, activity
    synthetic.parquet user, item, rating                     people who do not exist, if any (`synthetic_table`)

There is no user, no row of anybody, no count of one person and no exact total in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.certify.check import Check
from dpsr.certify.folder import MalformedError
from dpsr.release.folder.asked import check_people_asked, check_people_numbers
from dpsr.release.folder.consistency import check_settings
from dpsr.release.folder.layout import CELLS, ITEMS, MODEL, SYNTHETIC
from dpsr.release.folder.model_form import covariance_of, read_model, scale_of
from dpsr.release.folder.parquet import MOST_ROWS, Column, checked_table, titles_of, vocabulary
from dpsr.release.folder.synthetic_table import check_synthetic, synthesis_of
from dpsr.release.people import ItemRelease
from dpsr.types.item_side import HASHED_CELLS, Crowd, ItemIndex, ItemSide


def read_item_side(files: Mapping[str, bytes], certificate: Certificate) -> tuple[list[Check], ItemRelease | None]:
    """What holds of the tables, and the release if all of it does."""
    checks: list[Check] = []
    try:
        record = read_model(files[MODEL], certificate.unit)
        scale, n_cells, declared = scale_of(record), *check_sizes(record, certificate)
        width = len(record["mean"]) - 1
        cells = checked_table(files[CELLS], CELLS, _cell_columns(width), n_cells)
        columns = (Column("item", "id"), Column("title", "id", optional=True))
        items = checked_table(files[ITEMS], ITEMS, columns, record["named"])
        named = vocabulary(items["item"], ITEMS, "item") if record["named"] else pa.array([], type=pa.string())
        checks.append(Check(True, "the tables have exactly the columns and rows that a release of items has"))
        titles = titles_of(items)
        covariance = covariance_of(record["covariance"], len(record["mean"]), "people's coefficients")
        _check_numbers(cells, record)
        checks.append(Check(True, "every number of the model is finite, and no variance is negative"))
    except MalformedError as error:
        return [*checks, Check(False, str(error))], None
    side = ItemSide(
        scale,
        cells["effect"],
        cells["uncertainty"],
        cells["features"],
        float(record["residual"]),
        float(record["spread"]),
        _numbers(record["levels"]),
        _numbers(record["mean"]),
        covariance,
        Crowd(float(record["people"]), _numbers(record["activity"]), cells["count"], _numbers(record["weights"])),
        cells["pull"],
    )
    stated = {"scale": str(scale), "levels": scale.n_levels}
    wrong = [name for name, value in stated.items() if certificate.public[name] != value]
    words = f"the model's scale is the certificate's, {scale}, and there are {n_cells:,} cells"
    checks.append(Check(not wrong, words if not wrong else f"{wrong[0]} is not what the certificate states"))
    index = ItemIndex(named if declared else None, named)
    checks.append(check_people_asked(certificate, side, index))
    checks.append(check_people_numbers(certificate, side))
    release = ItemRelease(side, index, certificate, record["method"], record["settings"], titles, synthesis_of(record))
    checks.append(check_settings(record["settings"], certificate))
    checks += check_synthetic(release, files.get(SYNTHETIC), record["synthetic"])
    return checks, release if all(check.holds for check in checks) else None


def _cell_columns(width: int) -> tuple[Column, ...]:
    features = Column("features", "vector", width=width)
    real = [Column(name, "real") for name in ("effect", "uncertainty", "count", "pull")]
    return real[0], real[1], features, real[2], real[3]


def _numbers(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def check_sizes(record: Mapping[str, Any], certificate: Certificate) -> tuple[int, bool]:
    """How many cells there are, and whether a list's; refuse those that are neither a declared list's nor a hash's."""
    n_cells, listed = certificate.public["cells"], certificate.public["declared_items"]
    if not 1 <= n_cells <= MOST_ROWS or n_cells != (HASHED_CELLS if listed is None else listed):
        raise MalformedError(f"the certificate states {n_cells:,} cells; a release has {HASHED_CELLS:,} or a list's")
    if listed is not None and record["named"] != n_cells:
        raise MalformedError(f"a declared list of {n_cells:,} items has as many names, found {record['named']:,}")
    return n_cells, listed is not None


def _check_numbers(cells: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    if (
        min(cells[name].min() for name in ("uncertainty", "count", "pull")) < 0
        or record["residual"] <= 0
        or record["spread"] <= 0
    ):
        raise MalformedError(f"{CELLS} and {MODEL}: a variance or a count is negative")
