"""The release folder: written beside its place, forced to disk, then renamed into it. Whole or not at all.

    certificate.json   what is protected and what it cost
    manifest.json      SHA-256 and size of every other file
    model.json         scale, method and public settings
    ratings.parquet    user, item, rating[, timestamp]: the private table
    users.parquet      user, n_ratings, mean, factors[, affinity]
    items.parquet      item, n_ratings, mean, factors[, affinity]
    NOT_PRIVATE.txt    only if the certificate says so

No pickles: Parquet and JSON only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dpsr.errors import ReleaseError
from dpsr.release.release import Release
from dpsr.types import Affinity, Certificate, Mask, Model, Scale
from dpsr.types.ids import codes_of

Floats = npt.NDArray[np.float64]

MODEL_FORMAT = "dpsr-model-1"
MANIFEST = "manifest.json"


def write_release(
    release: Release, path: Path, *, overwrite: bool = False, pages: Mapping[str, str] | None = None
) -> Path:
    """Write `release` as the folder `path`, with further text `pages`; an existing one stays unless `overwrite`."""
    check_target(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        draft.chmod(0o755)
        _write_files(release, draft)
        for name, text in (pages or {}).items():
            (draft / name).write_text(text, "utf-8")
        _write_manifest(draft)
        for entry in [*draft.iterdir(), draft]:
            _sync(entry)
        _swap_in(draft, path)
    except OSError as error:
        raise ReleaseError(
            f"the release could not be written to {path.name}: {error.strerror or error}. "
            "Nothing was left behind. Choose a folder with enough room (--out) and run again."
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return path


def check_target(path: Path, *, overwrite: bool = False) -> None:
    """Refuse early, before anything is computed or spent."""
    if path.exists() and not path.is_dir():
        raise ReleaseError(f"{path.name} is a file; a release is a folder. Choose another name with --out.")
    if path.exists() and any(path.iterdir()):
        if not overwrite:
            raise ReleaseError(f"the folder {path.name} exists already. Choose another name, or allow it with --force.")
        if not (path / MANIFEST).exists():
            raise ReleaseError(f"the folder {path.name} is not a release, so it is not replaced. Choose another name.")


def load_release(path: str | Path) -> Release:
    """Read a release folder back; it predicts and recommends exactly as the fitted model did."""
    folder = Path(path)
    try:
        facts = json.loads((folder / "model.json").read_text("utf-8"))
        if facts["format"] != MODEL_FORMAT:
            raise ReleaseError(
                f"{folder.name} has the format {facts['format']!r}, this version reads {MODEL_FORMAT!r}."
            )
        certificate = Certificate.from_json((folder / "certificate.json").read_text("utf-8"))
        tables = {name: pq.read_table(folder / f"{name}.parquet") for name in ("ratings", "users", "items")}
        return _assemble(facts, certificate, tables)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        if isinstance(error, ReleaseError):
            raise
        raise ReleaseError(
            f"{folder.name} is not a readable release folder ({type(error).__name__}). "
            "Pass the folder that `dpsr release --out` or `model.save` wrote, with all its files."
        ) from error


def _write_files(release: Release, folder: Path) -> None:
    model, mask = release.model, release.mask
    _write_json(folder / "model.json", _model_facts(release))
    (folder / "certificate.json").write_text(release.certificate.to_json(), "utf-8")
    columns = {
        "user": mask.user_ids.take(pa.array(mask.users)),
        "item": mask.item_ids.take(pa.array(mask.items)),
        "rating": release.ratings,
    }
    if mask.timestamps is not None:
        columns["timestamp"] = mask.timestamps
    if model.observed is not None:
        columns["predicted"] = model.observed
    pq.write_table(pa.table(columns), folder / "ratings.parquet")
    _write_side(
        folder / "users.parquet",
        {"user": mask.user_ids, "n_ratings": mask.user_counts, "mean": model.user_means},
        {"factors": model.user_factors, "affinity": None if model.affinity is None else model.affinity.users},
    )
    _write_side(
        folder / "items.parquet",
        {"item": mask.item_ids, "n_ratings": mask.item_counts, "mean": model.item_means},
        {"factors": model.item_factors, "affinity": None if model.affinity is None else model.affinity.items},
    )
    if not release.certificate.private:
        reasons = "\n".join(f"* {reason}" for reason in release.certificate.reasons)
        (folder / "NOT_PRIVATE.txt").write_text(f"NOT PRIVATE. Do not share this folder.\n{reasons}\n", "utf-8")


def _model_facts(release: Release) -> dict[str, Any]:
    scale = release.scale
    return {
        "format": MODEL_FORMAT,
        "method": release.method,
        "settings": release.settings,
        "scale": {"low": scale.low, "high": scale.high, "step": scale.step, "snap": scale.snap},
        "rank": release.model.rank,
        "overall": release.model.overall,
        "residual_variance": release.model.residual_variance,
        "user_mean": release.model.user_mean.tolist(),
        "user_covariance": release.model.user_covariance.tolist(),
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


def _write_manifest(folder: Path) -> None:
    files = {
        file.name: {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size}
        for file in sorted(folder.iterdir())
    }
    _write_json(folder / MANIFEST, {"format": "dpsr-manifest-1", "files": files})


def _sync(entry: Path) -> None:
    handle = os.open(entry, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _swap_in(draft: Path, path: Path) -> None:
    """Rename the finished draft into place; an old release steps aside first and is deleted last."""
    old = None
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
        os.rename(path, old / path.name)
    os.rename(draft, path)
    _sync(path.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


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
