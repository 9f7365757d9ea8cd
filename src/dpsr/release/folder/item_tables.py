"""A release of an item side, to and from the bytes of its files: nothing is handed on before all of it was checked.

    cells.parquet     effect, uncertainty, features, count, pull   one row a cell
    items.parquet     item[, title]                          the items that may be named, ascending
    model.json        scale, levels, spread, residual, mean and covariance of people's coefficients, activity
    synthetic.parquet user, item, rating                     people who do not exist, if any (`synthetic_table`)

There is no user, no row of anybody, no count of one person and no exact total in any of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.certify.check import CERTIFICATE, Check
from dpsr.certify.json_schema import MalformedError
from dpsr.errors import ReleaseError
from dpsr.release.folder.layout import CELLS, ITEMS, MODEL, NOT_PRIVATE, SYNTHETIC, warning_text
from dpsr.release.folder.model_form import MODEL_FORMAT, check_model, covariance_of, read_model, scale_of
from dpsr.release.folder.parquet import MOST_ROWS, Column, read_table, titles_of, vocabulary, writer
from dpsr.release.folder.synthetic_table import check_synthetic, synthetic_record, write_synthetic
from dpsr.release.people.item_release import ItemRelease
from dpsr.synthesis.people import Synthesis
from dpsr.types.item_side import HASHED_CELLS, Crowd, ItemIndex, ItemSide


def write_item_side(release: ItemRelease, folder: Path) -> None:
    """The files of a folder but for its pages and its manifest."""
    (folder / MODEL).write_text(_model_json(release), "utf-8")
    (folder / CERTIFICATE).write_text(release.certificate.to_json(), "utf-8")
    side, crowd = release.side, release.crowd
    features = pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(side.features).ravel()), side.features.shape[1]
    )
    write_table(
        folder / CELLS,
        pa.table(
            {
                "effect": side.effects,
                "uncertainty": side.uncertainty,
                "features": features,
                "count": crowd.counts,
                "pull": np.zeros(side.n_cells) if side.pull is None else side.pull,
            }
        ),
    )
    titles = {} if release.titles is None else {"title": pa.array([one or "" for one in release.titles], pa.string())}
    write_table(folder / ITEMS, pa.table({"item": release.index.named, **titles}))
    write_synthetic(release, folder / SYNTHETIC)
    if not release.certificate.private:
        (folder / NOT_PRIVATE).write_text(warning_text(release.certificate), "utf-8")


def read_item_side(files: Mapping[str, bytes], certificate: Certificate) -> tuple[list[Check], ItemRelease | None]:
    """What holds of the tables, and the release if all of it does."""
    checks: list[Check] = []
    try:
        record = read_model(files[MODEL], certificate.unit)
        scale, n_cells = scale_of(record), certificate.public["cells"]
        declared = certificate.public["declared_items"] is not None
        check_sizes(record, n_cells, declared)
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
    release = ItemRelease(side, index, certificate, record["method"], record["settings"], titles, synthesis_of(record))
    checks += check_synthetic(release, files.get(SYNTHETIC), record["synthetic"])
    return checks, release if all(check.holds for check in checks) else None


def _cell_columns(width: int) -> tuple[Column, ...]:
    features = Column("features", "vector", width=width)
    real = [Column(name, "real") for name in ("effect", "uncertainty", "count", "pull")]
    return real[0], real[1], features, real[2], real[3]


def _numbers(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def synthesis_of(record: Mapping[str, Any]) -> Synthesis | None:
    """Which people were made up."""
    found = record["synthetic"]
    return None if found is None else Synthesis(found["people"], found["seed"])


def check_sizes(record: Mapping[str, Any], n_cells: int, declared: bool) -> None:
    """Refuse cells that are neither a declared list's nor those of a hash."""
    if not 1 <= n_cells <= MOST_ROWS or (not declared and n_cells != HASHED_CELLS):
        raise MalformedError(f"the certificate states {n_cells:,} cells, and a release has {HASHED_CELLS:,} or a list")
    if declared and record["named"] != n_cells:
        raise MalformedError(f"a declared list of {n_cells:,} items has as many names, found {record['named']:,}")


def _check_numbers(cells: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    if (
        min(cells[name].min() for name in ("uncertainty", "count", "pull")) < 0
        or record["residual"] <= 0
        or record["spread"] <= 0
    ):
        raise MalformedError(f"{CELLS} and {MODEL}: a variance or a count is negative")


def checked_table(data: bytes, name: str, columns: tuple[Column, ...], rows: int) -> Mapping[str, Any]:
    """The columns of a table, or an error that names its file."""
    try:
        return read_table(data, columns, rows)
    except MalformedError as error:
        raise MalformedError(f"{name}: {error}") from None


def write_table(path: Path, table: pa.Table) -> None:
    """A table as `checked_table` reads it."""
    with writer(path, table.schema) as file:
        file.write_table(table)


def _model_json(release: ItemRelease) -> str:
    side, scale, crowd = release.side, release.scale, release.crowd
    facts = {
        "format": MODEL_FORMAT,
        "unit": release.certificate.unit,
        "method": release.method,
        "settings": release.settings,
        "scale": {"low": scale.low, "high": scale.high, "step": scale.step, "snap": scale.snap},
        "named": len(release.index.named),
        "residual": side.residual,
        "spread": side.spread,
        "levels": side.own_levels.tolist(),
        "mean": side.mean.tolist(),
        "covariance": side.covariance.tolist(),
        "people": crowd.people,
        "activity": crowd.activity.tolist(),
        "weights": crowd.weights.tolist(),
        "synthetic": synthetic_record(release),
    }
    try:
        text = json.dumps(facts, ensure_ascii=False, allow_nan=False)
        check_model(json.loads(text), release.certificate.unit)
    except (MalformedError, ValueError, TypeError) as error:
        raise ReleaseError(f"this model cannot be written, because it could not be read back: {error}.") from error
    return text + "\n"
