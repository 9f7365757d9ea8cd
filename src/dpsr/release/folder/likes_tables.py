"""A release of likes, from the bytes of its files: nothing is handed on before all of it was checked.

    cells.parquet     popularity                             one row a cell
    taste.parquet     cell, centre, offset, entry, exit      one row a frequent cell, ascending; perhaps none
    items.parquet     item[, title]                          the items that may be named, ascending
    model.json        how scores are made, ridge and gram of every axis, how many people did how much
    synthetic.parquet user, item                             people who do not exist, if any (`synthetic_table`)

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
from dpsr.release.folder.asked import check_likes_asked, check_likes_numbers
from dpsr.release.folder.consistency import check_settings
from dpsr.release.folder.item_tables import check_sizes
from dpsr.release.folder.layout import CELLS, ITEMS, MODEL, SYNTHETIC, TASTE
from dpsr.release.folder.model_form import LIKES, read_model
from dpsr.release.folder.parquet import Column, checked_table, titles_of, vocabulary
from dpsr.release.folder.synthetic_table import check_synthetic, synthesis_of
from dpsr.release.likes import LikesRelease
from dpsr.types.item_side import Crowd, ItemIndex
from dpsr.types.likes_side import LikesSide


def read_likes(files: Mapping[str, bytes], certificate: Certificate) -> tuple[list[Check], LikesRelease | None]:
    """What holds of the tables, and the release if all of it does."""
    checks: list[Check] = []
    try:
        record = read_model(files[MODEL], LIKES)
        if record["unit"] != certificate.unit:
            raise MalformedError(f"{MODEL} protects another unit than the certificate")
        n_cells, declared = check_sizes(record, certificate)
        cells = checked_table(files[CELLS], CELLS, (Column("popularity", "real"),), n_cells)
        taste = checked_table(files[TASTE], TASTE, _taste_columns(len(record["ridge"])), record["frequent"])
        columns = (Column("item", "id"), Column("title", "id", optional=True))
        items = checked_table(files[ITEMS], ITEMS, columns, record["named"])
        named = vocabulary(items["item"], ITEMS, "item") if record["named"] else pa.array([], type=pa.string())
        checks.append(Check(True, "the tables have exactly the columns and rows that a release of likes has"))
        titles = titles_of(items)
        side = _side(record, cells["popularity"], taste)
        checks.append(Check(True, "every number of the model is finite, and every popularity is above zero"))
    except MalformedError as error:
        return [*checks, Check(False, str(error))], None
    index = ItemIndex(named if declared else None, named)
    checks.append(check_likes_asked(certificate, side, index))
    checks.append(check_likes_numbers(certificate, side))
    asked = synthesis_of(record)
    release = LikesRelease(side, index, certificate, record["method"], record["settings"], titles, asked)
    checks.append(check_settings(record["settings"], certificate))
    checks += check_synthetic(release, files.get(SYNTHETIC), record["synthetic"])
    return checks, release if all(check.holds for check in checks) else None


def _side(record: Mapping[str, Any], popularity: Floats, taste: Mapping[str, Any]) -> LikesSide:
    ridge, gram = (np.array(record[name], dtype=np.float64) for name in ("ridge", "gram"))
    if len(ridge) != len(gram) or not (ridge + gram > 0).all():
        raise MalformedError(f"{MODEL}: every axis has a ridge and a gram, and not both are zero")
    frequent = taste["cell"]
    if not (popularity > 0).all() or not (taste["centre"] > 0).all():
        raise MalformedError(f"{CELLS} and {TASTE}: a popularity is not above zero")
    if len(frequent) and not (frequent[0] >= 0 and frequent[-1] < len(popularity) and (np.diff(frequent) > 0).all()):
        raise MalformedError(f"{TASTE}: frequent cells are cells, and they ascend")
    activity, weights = (np.array(record[name], dtype=np.float64) for name in ("activity", "weights"))
    if not activity.sum() > 0 or not activity @ weights > 0:
        raise MalformedError(f"{MODEL}: nobody did anything, and there is a release")
    return LikesSide(
        popularity, frequent, taste["centre"], taste["entry"], taste["exit"], taste["offset"], ridge, gram,
        record["scores"], Crowd(float(record["people"]), activity, popularity, weights),
    )  # fmt: skip


def _taste_columns(width: int) -> tuple[Column, ...]:
    reals = (Column("cell", "whole"), Column("centre", "real"), Column("offset", "real"))
    return (*reals, Column("entry", "vector", width=width), Column("exit", "vector", width=width))
