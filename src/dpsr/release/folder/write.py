"""The release folder: written beside its place, forced to disk, then renamed into it. Whole or not at all.

    certificate.json   what is protected and what it cost
    manifest.json      SHA-256 and size of every other file, and a seal over itself
    model.json         scale, method and public settings
    ratings.parquet    user, item, rating[, timestamp][, noisy, weight]: the private table
    users.parquet      user, n_ratings, mean, factors[, affinity]
    items.parquet      item, n_ratings, mean, factors[, affinity][, covariance][, title]
    card.html          the page for people, and budget.json what the ledger said, if there was one
    NOT_PRIVATE.txt    only if the certificate says so
    signature.json     who vouches for the manifest; the one file that it does not name

No pickles: Parquet and JSON only. What would not be read back (`model_form`, `parquet`) is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from dpsr.certify.check import CERTIFICATE
from dpsr.certify.manifest import SIGNATURES, write_manifest
from dpsr.certify.signature import signatures_to_bytes
from dpsr.engine.table import TIMESTAMP
from dpsr.release.folder.atomic import atomic_folder, sync_tree
from dpsr.release.folder.item_tables import write_item_side
from dpsr.release.folder.layout import ITEMS, MODEL, NOT_PRIVATE, RATINGS, USERS, warning_text
from dpsr.release.folder.likes_tables import write_likes
from dpsr.release.folder.model_form import NOISY_COLUMNS, model_json, personal_record, scale_record
from dpsr.release.folder.parquet import title_column, vectors, write_table, writer
from dpsr.release.keys import SigningKey
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.release import Contents
from dpsr.types import Census, Mask

AnyContents: TypeAlias = Contents | ItemRelease | LikesRelease
"""What a folder may hold."""

_FIXED_BYTES, _BYTES_PER_RATING, _BYTES_PER_ROW = 3_000_000, 48, 1_500
"""Certificate and pages; six columns of eight bytes; some two hundred numbers for each user and item."""


def write_release(
    contents: AnyContents,
    path: Path,
    *,
    overwrite: bool = False,
    pages: Mapping[str, str] | None = None,
    signer: SigningKey | None = None,
) -> Path:
    """Write the folder `path`, with further text `pages`, signed if a key is given.

    An existing folder stays unless `overwrite`.
    """
    with atomic_folder(path, overwrite=overwrite) as draft:
        draft.mkdir()
        if isinstance(contents, ItemRelease):
            write_item_side(contents, draft)
        elif isinstance(contents, LikesRelease):
            write_likes(contents, draft)
        else:
            _write_values(contents, draft)
        (draft / CERTIFICATE).write_text(contents.certificate.to_json(), "utf-8")
        if not contents.certificate.private:
            (draft / NOT_PRIVATE).write_text(warning_text(contents.certificate), "utf-8")
        for name, text in (pages or {}).items():
            (draft / name).write_text(text, "utf-8")
        seal(draft, signer)
        sync_tree(draft)
    return path


def seal(folder: Path, signer: SigningKey | None = None) -> str:
    """Write the manifest of a folder whose other files are complete, and sign it; the manifest's SHA-256."""
    digest = write_manifest(folder, signer=None if signer is None else signer.public.fingerprint)
    if signer is not None:
        (folder / SIGNATURES).write_bytes(signatures_to_bytes([signer.sign(digest)]))
    return digest


def expected_bytes(mask: Mask | Census) -> int:
    """About what a release of these ratings takes on disk, on the generous side; read off the public mask."""
    ids = mask.user_ids.nbytes + mask.item_ids.nbytes
    rows = mask.n_users + mask.n_items
    return _FIXED_BYTES + 2 * ids + _BYTES_PER_RATING * mask.n_ratings + _BYTES_PER_ROW * rows


def _write_values(contents: Contents, folder: Path) -> None:
    model, census = contents.model, contents.table.census
    (folder / MODEL).write_text(_model_json(contents), "utf-8")
    _write_ratings(contents, folder / RATINGS)
    users = {"user": census.user_ids, "n_ratings": census.user_counts, "mean": model.user_means}
    items = {"item": census.item_ids, "n_ratings": census.item_counts, "mean": model.item_means}
    users["factors"], items["factors"] = vectors(model.user_factors), vectors(model.item_factors)
    if model.affinity is not None:
        users["affinity"], items["affinity"] = vectors(model.affinity.users), vectors(model.affinity.items)
    if model.personal is not None:
        items["covariance"] = vectors(model.personal.item_covariance)
    write_table(folder / USERS, pa.table(users))
    write_table(folder / ITEMS, pa.table({**items, **title_column(contents.titles)}))


def _write_ratings(contents: Contents, path: Path) -> None:
    """The table block by block: it may be larger than memory."""
    table, census = contents.table, contents.table.census
    observed = {"predicted": contents.observed} if contents.observed else {}
    noisy = dict(zip(NOISY_COLUMNS, contents.noisy, strict=True)) if contents.noisy else {}
    names = {"rating": contents.ratings, **({TIMESTAMP: TIMESTAMP} if census.timed else {}), **observed, **noisy}
    kinds = {name: pa.float64() for name in names} | {name: pa.float32() for name in noisy}
    if census.timed:
        kinds[TIMESTAMP] = pa.int64()
    schema = pa.schema({"user": census.user_ids.type, "item": census.item_ids.type, **kinds})
    with writer(path, schema) as rows:
        for block in table.scan(list(names.values())):
            columns = {
                "user": census.user_ids.take(pa.array(block.rows + block.first)),
                "item": census.item_ids.take(pa.array(block.items)),
                **{name: pa.array(block.columns[column], kinds[name]) for name, column in names.items()},
            }
            rows.write_table(pa.table(columns, schema=schema))


def _model_json(contents: Contents) -> str:
    model = contents.model
    facts = {
        "scale": scale_record(model.scale),
        "rank": model.rank,
        "overall": model.overall,
        "residual_variance": model.residual_variance,
        "user_mean": model.user_mean.tolist(),
        "user_covariance": model.user_covariance.tolist(),
    }
    if model.personal is not None:
        facts["personal"] = personal_record(model.personal)
    unit = contents.certificate.unit
    return model_json(unit, unit, contents.method, contents.settings, **facts)
