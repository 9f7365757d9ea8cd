"""A release of an item side, to and from the bytes of its files: nothing is handed on before all of it was checked.

    cells.parquet     effect, uncertainty, features, count, pull   one row a cell
    items.parquet     item[, title]                          the items that may be named, ascending
    model.json        scale, levels, spread, residual, mean and covariance of people's coefficients, activity
    synthetic.parquet user, item, rating                     people who do not exist, if any

There is no user, no row of anybody, no count of one person and no exact total in any of them.

Made-up people follow from the item side, a number of people and a public seed, which `model.json` states. So they are
drawn again and compared: a table that holds anything else, such as rows of real people, is not the one that follows.
Another version of dpsr may draw other people; then its folder is refused here, with the advice to verify with that one:
what a folder says about its own version proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.certify.certificate import software
from dpsr.certify.check import CERTIFICATE, Check
from dpsr.certify.json_schema import MalformedError
from dpsr.certify.people import NAMES
from dpsr.errors import ReleaseError
from dpsr.release.folder.consistency import check_settings
from dpsr.release.folder.layout import CELLS, ITEMS, MODEL, NOT_PRIVATE, SYNTHETIC, warning_text
from dpsr.release.folder.model_form import MODEL_FORMAT, check_model, covariance_of, read_model, scale_of
from dpsr.release.folder.parquet import MOST_ROWS, Column, read_table, titles_of, vocabulary, writer
from dpsr.release.likes.likes_release import LikesRelease
from dpsr.release.people.item_release import ItemRelease
from dpsr.synthesis.people import Synthesis, planned_ratings
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
        check_sizes(record, certificate)
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
    checks.append(check_settings(record["settings"], certificate))
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


def check_sizes(record: Mapping[str, Any], certificate: Certificate) -> None:
    """Refuse cells that are neither a declared list's nor those of a hash, and names that nothing gave."""
    n_cells, declared, named = certificate.public["cells"], certificate.public["declared_items"], record["named"]
    if not 1 <= n_cells <= MOST_ROWS or (declared is None and n_cells != HASHED_CELLS):
        raise MalformedError(f"the certificate states {n_cells:,} cells, and a release has {HASHED_CELLS:,} or a list")
    if declared is not None and not declared == named == n_cells:
        raise MalformedError(
            f"a declared list has as many items as cells and names, found {declared:,}, {n_cells:,} and {named:,}"
        )
    if declared is None and named and not any(part.name == NAMES for part in certificate.parts):
        raise MalformedError(f"{ITEMS} names items, and neither was a list declared nor were names asked for")


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


MakesUpPeople: TypeAlias = ItemRelease | LikesRelease

_LIKES = (Column("user", "whole"), Column("item", "id"))
_RATINGS = (*_LIKES, Column("rating", "real"))

FOLLOWS = f"{SYNTHETIC} is what the item side gives at its public seed: people who do not exist"
DOES_NOT = f"{SYNTHETIC} is not what the item side gives at its public seed: who is in it, nobody knows"


def synthetic_record(release: MakesUpPeople) -> dict[str, int] | None:
    """What `model.json` says of the table."""
    people, asked = release.made_up, release.synthetic
    if people is None or asked is None:
        return None
    return {"people": asked.people, "ratings": len(people.cells), "seed": asked.seed}


def write_synthetic(release: MakesUpPeople, path: Path) -> None:
    """The table, if the release has one."""
    rows = release.synthetic_rows
    if rows is not None:
        with writer(path, rows.schema) as file:
            file.write_table(rows)


def check_synthetic(release: MakesUpPeople, data: bytes | None, stated: Mapping[str, Any] | None) -> Iterator[Check]:
    """Whether the table is there if it is stated, has its form, and follows from the item side."""
    if (data is None) != (stated is None):
        found = "is missing" if data is None else "is there"
        yield Check(False, f"{SYNTHETIC} {found}, and the model states {'none' if stated is None else 'one'}")
        return
    if data is None or stated is None:
        return
    try:
        table = read_table(data, _RATINGS if isinstance(release, ItemRelease) else _LIKES, stated["ratings"])
    except MalformedError as error:
        yield Check(False, f"{SYNTHETIC}: {error}")
        return
    if not _plausible(release, stated):
        yield Check(False, f"{SYNTHETIC}: so many people would not have so many ratings")
        return
    on_scale = "rating" not in table or bool(release.scale.locate(table["rating"])[1].all())
    inside = bool(((table["user"] >= 1) & (table["user"] <= stated["people"])).all())
    if not on_scale or not inside:
        yield Check(False, f"{SYNTHETIC}: a rating is not on the scale, or a person has no number that is stated")
    elif _equal(release, table):
        yield Check(True, FOLLOWS)
    else:
        other = release.certificate.software != software()
        yield Check(False, f"{DOES_NOT}; another version says it made it: verify with that one" if other else DOES_NOT)


def _plausible(release: MakesUpPeople, stated: Mapping[str, Any]) -> bool:
    """Whether drawing them again takes about as much room as the file that was read, which is bounded."""
    asked, rows = release.synthetic, stated["ratings"]
    return asked is not None and asked.people <= rows and planned_ratings(release.crowd, asked) <= 2 * rows + 1000


def _equal(release: MakesUpPeople, table: Mapping[str, Any]) -> bool:
    rows = release.synthetic_rows
    if rows is None or len(rows) != len(table["user"]):
        return False
    items = table["item"].cast(rows["item"].type) if isinstance(table["item"], pa.DictionaryArray) else table["item"]
    numbers = all(np.array_equal(rows[name].to_numpy(), table[name]) for name in rows.column_names if name != "item")
    return numbers and bool(rows["item"].combine_chunks().equals(items))
