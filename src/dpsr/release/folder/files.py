"""The release folder: written beside its place, forced to disk, then renamed into it. Whole or not at all.

    certificate.json   what is protected and what it cost
    manifest.json      SHA-256 and size of every other file, and a seal over itself
    model.json         scale, method and public settings
    ratings.parquet    user, item, rating[, timestamp]: the private table
    users.parquet      user, n_ratings, mean, factors[, affinity]
    items.parquet      item, n_ratings, mean, factors[, affinity]
    NOT_PRIVATE.txt    only if the certificate says so

No pickles: Parquet and JSON only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.certify.check import read_certificate
from dpsr.certify.manifest import write_manifest
from dpsr.engine.table import TIMESTAMP
from dpsr.errors import ReleaseError
from dpsr.release.folder.atomic import atomic_folder, sync_tree
from dpsr.release.release import Contents, Release
from dpsr.types import Affinity, Census, Mask, Model, Scale
from dpsr.types.mask import codes_of

MODEL_FORMAT = "dpsr-model-1"

_FIXED_BYTES, _BYTES_PER_RATING, _BYTES_PER_ROW = 3_000_000, 40, 1_000
"""Certificate and pages; five columns of eight bytes; some hundred numbers for each user and item."""


def write_release(
    contents: Contents, path: Path, *, overwrite: bool = False, pages: Mapping[str, str] | None = None
) -> Path:
    """Write the folder `path`, with further text `pages`; an existing one stays unless `overwrite`."""
    with atomic_folder(path, overwrite=overwrite) as draft:
        draft.mkdir()
        _write_files(contents, draft)
        for name, text in (pages or {}).items():
            (draft / name).write_text(text, "utf-8")
        write_manifest(draft)
        sync_tree(draft)
    return path


def expected_bytes(mask: Mask | Census) -> int:
    """About what a release of these ratings takes on disk, on the generous side; read off the public mask."""
    ids = mask.user_ids.nbytes + mask.item_ids.nbytes
    rows = mask.n_users + mask.n_items
    return _FIXED_BYTES + 2 * ids + _BYTES_PER_RATING * mask.n_ratings + _BYTES_PER_ROW * rows


def load_release(path: str | Path) -> Release:
    """Read a release folder back; it predicts and recommends exactly as the fitted model did."""
    folder = Path(path)
    try:
        facts = json.loads((folder / "model.json").read_text("utf-8"))
        if facts["format"] != MODEL_FORMAT:
            raise ReleaseError(
                f"{folder.name} has the format {facts['format']!r}, this version reads {MODEL_FORMAT!r}."
            )
        certificate = read_certificate((folder / "certificate.json").read_bytes())
        tables = {name: pq.read_table(folder / f"{name}.parquet") for name in ("ratings", "users", "items")}
        return _assemble(facts, certificate, tables)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        if isinstance(error, ReleaseError):
            raise
        raise ReleaseError(
            f"{folder.name} is not a readable release folder ({type(error).__name__}). "
            "Pass the folder that `dpsr release --out` or `model.save` wrote, with all its files."
        ) from error


def _write_files(contents: Contents, folder: Path) -> None:
    model, census = contents.model, contents.table.census
    _write_json(folder / "model.json", _model_facts(contents))
    (folder / "certificate.json").write_text(contents.certificate.to_json(), "utf-8")
    _write_ratings(contents, folder / "ratings.parquet")
    _write_side(
        folder / "users.parquet",
        {"user": census.user_ids, "n_ratings": census.user_counts, "mean": model.user_means},
        {"factors": model.user_factors, "affinity": None if model.affinity is None else model.affinity.users},
    )
    _write_side(
        folder / "items.parquet",
        {"item": census.item_ids, "n_ratings": census.item_counts, "mean": model.item_means},
        {"factors": model.item_factors, "affinity": None if model.affinity is None else model.affinity.items},
    )
    if not contents.certificate.private:
        reasons = "\n".join(f"* {reason}" for reason in contents.certificate.reasons)
        (folder / "NOT_PRIVATE.txt").write_text(f"NOT PRIVATE. Do not share this folder.\n{reasons}\n", "utf-8")


def _write_ratings(contents: Contents, path: Path) -> None:
    """The table block by block: it may be larger than memory."""
    table, census = contents.table, contents.table.census
    times = {TIMESTAMP: TIMESTAMP} if census.timed else {}
    names = {"rating": contents.ratings, **times, **({"predicted": contents.observed} if contents.observed else {})}
    writer = None
    for block in table.scan(list(names.values())):
        rows = pa.table({
            "user": census.user_ids.take(pa.array(block.rows + block.first)),
            "item": census.item_ids.take(pa.array(block.items)),
            **{name: block.columns[column] for name, column in names.items()},
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    if writer is not None:
        writer.close()


def _model_facts(contents: Contents) -> dict[str, Any]:
    model, scale = contents.model, contents.model.scale
    return {
        "format": MODEL_FORMAT,
        "method": contents.method,
        "settings": contents.settings,
        "scale": {"low": scale.low, "high": scale.high, "step": scale.step, "snap": scale.snap},
        "rank": model.rank,
        "overall": model.overall,
        "residual_variance": model.residual_variance,
        "user_mean": model.user_mean.tolist(),
        "user_covariance": model.user_covariance.tolist(),
    }


def _write_side(path: Path, columns: dict[str, Any], vectors: dict[str, Floats | None]) -> None:
    """One row per user or item; vectors as lists of fixed length."""
    for name, rows in vectors.items():
        if rows is not None:
            columns[name] = pa.FixedSizeListArray.from_arrays(
                pa.array(np.ascontiguousarray(rows).ravel()), rows.shape[1]
            )
    pq.write_table(pa.table(columns), path)


def _write_json(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def _assemble(facts: dict[str, Any], certificate: Certificate, tables: dict[str, pa.Table]) -> Release:
    ratings, users, items = tables["ratings"], tables["users"], tables["items"]
    item_ids = items["item"].combine_chunks()
    mask = Mask(
        user_ids=users["user"].combine_chunks(),
        item_ids=item_ids,
        indptr=np.concatenate([[0], np.cumsum(users["n_ratings"].to_numpy())]).astype(np.int64),
        items=codes_of(ratings["item"].combine_chunks(), item_ids).astype(np.int32),
        timestamps=ratings["timestamp"].to_numpy().copy() if "timestamp" in ratings.column_names else None,
    )
    model = Model(
        mask=mask,
        scale=Scale(**facts["scale"]),
        user_factors=_vectors(users, "factors"),
        item_factors=_vectors(items, "factors"),
        user_means=users["mean"].to_numpy(),
        item_means=items["mean"].to_numpy(),
        overall=facts["overall"],
        residual_variance=facts["residual_variance"],
        user_mean=np.array(facts["user_mean"]),
        user_covariance=np.array(facts["user_covariance"]),
        observed=ratings["predicted"].to_numpy() if "predicted" in ratings.column_names else None,
        affinity=_affinity(users, items),
    )
    return Release(model, ratings["rating"].to_numpy().copy(), certificate, facts["method"], facts["settings"])


def _vectors(table: pa.Table, name: str) -> Floats:
    column = table[name].combine_chunks()
    return np.asarray(column.flatten().to_numpy(), dtype=np.float64).reshape(len(table), column.type.list_size)


def _affinity(users: pa.Table, items: pa.Table) -> Affinity | None:
    if "affinity" not in users.column_names:
        return None
    return Affinity(_vectors(users, "affinity"), _vectors(items, "affinity"))
