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

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.certify.certificate import software
from dpsr.certify.check import Check
from dpsr.certify.json_schema import MalformedError
from dpsr.release.folder.asked import check_people_asked, check_people_numbers
from dpsr.release.folder.consistency import check_settings
from dpsr.release.folder.layout import CELLS, ITEMS, MODEL, SYNTHETIC
from dpsr.release.folder.model_form import covariance_of, model_json, read_model, scale_of, scale_record
from dpsr.release.folder.parquet import (
    MOST_ROWS,
    Column,
    checked_table,
    read_table,
    title_column,
    titles_of,
    vectors,
    vocabulary,
    write_table,
)
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.synthesis import Synthesis, planned_ratings
from dpsr.types.item_side import HASHED_CELLS, Crowd, ItemIndex, ItemSide

MakesUpPeople: TypeAlias = ItemRelease | LikesRelease


def write_item_side(release: ItemRelease, folder: Path) -> None:
    """The model and the tables of a folder."""
    (folder / MODEL).write_text(_model_json(release), "utf-8")
    side = release.side
    cells = {
        "effect": side.effects,
        "uncertainty": side.uncertainty,
        "features": vectors(side.features),
        "count": release.crowd.counts,
        "pull": np.zeros(side.n_cells) if side.pull is None else side.pull,
    }
    write_table(folder / CELLS, pa.table(cells))
    write_named(release, folder)


def write_named(release: MakesUpPeople, folder: Path) -> None:
    """The items that may be named, and the people who do not exist, if the release has any."""
    write_table(folder / ITEMS, pa.table({"item": release.index.named, **title_column(release.titles)}))
    if release.synthetic_rows is not None:
        write_table(folder / SYNTHETIC, release.synthetic_rows)


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


def synthesis_of(record: Mapping[str, Any]) -> Synthesis | None:
    """Which people were made up."""
    found = record["synthetic"]
    return None if found is None else Synthesis(found["people"], found["seed"])


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


def _model_json(release: ItemRelease) -> str:
    side, crowd, unit = release.side, release.crowd, release.certificate.unit
    return model_json(
        unit,
        unit,
        release.method,
        release.settings,
        scale=scale_record(release.scale),
        named=len(release.index.named),
        residual=side.residual,
        spread=side.spread,
        levels=side.own_levels.tolist(),
        mean=side.mean.tolist(),
        covariance=side.covariance.tolist(),
        people=crowd.people,
        activity=crowd.activity.tolist(),
        weights=crowd.weights.tolist(),
        synthetic=synthetic_record(release),
    )


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
