"""What is written into a release folder, file by file; `release.atomic` puts it into its place, whole or not at all.

    certificate.json   what is protected and what it cost
    manifest.json      SHA-256 and size of every other file, and a seal over itself
    model.json         method and public settings, and the numbers that have no table
    card.html          the page for people, and budget.json what the ledger said, if there was one
    NOT_PRIVATE.txt    only if the certificate says so
    signature.json     who vouches for the manifest; the one file that it does not name

and the tables, of values

    ratings.parquet    user, item, rating[, timestamp][, predicted][, noisy, weight]: the private table
    users.parquet      user, n_ratings, mean, factors[, affinity]
    items.parquet      item, n_ratings, mean, factors[, affinity][, covariance][, title]

or, where people or ratings are protected, of an item side or of likes: no row of anybody (`item_tables`,
`likes_tables`). No pickles: Parquet and JSON only. A model that would not be read back (`model_form`) is not written.
Whoever reads a folder trusts nothing of this: each module beside this one reads one thing by strangers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsr.arrays import AnyArray
from dpsr.certify.check import CERTIFICATE
from dpsr.certify.folder import SIGNATURES, first_violation, write_manifest
from dpsr.certify.signature import signatures_to_bytes
from dpsr.engine.table import TIMESTAMP
from dpsr.errors import ReleaseError
from dpsr.release.atomic import atomic_folder, sync_tree
from dpsr.release.folder.layout import (
    CELLS,
    ITEMS,
    MODEL,
    NOT_PRIVATE,
    RATINGS,
    SYNTHETIC,
    TASTE,
    USERS,
    warning_text,
)
from dpsr.release.folder.model_form import FORMS, LIKES, MODEL_FORMAT, NOISY_COLUMNS
from dpsr.release.folder.synthetic_table import MakesUpPeople
from dpsr.release.keys import SigningKey
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.release import Contents
from dpsr.types import Census, Mask, PersonalPrior, Scale

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
            _write_item_side(contents, draft)
        elif isinstance(contents, LikesRelease):
            _write_likes(contents, draft)
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
    (folder / MODEL).write_text(_value_model(contents), "utf-8")
    _write_ratings(contents, folder / RATINGS)
    users = {"user": census.user_ids, "n_ratings": census.user_counts, "mean": model.user_means}
    items = {"item": census.item_ids, "n_ratings": census.item_counts, "mean": model.item_means}
    users["factors"], items["factors"] = vectors(model.user_factors), vectors(model.item_factors)
    if model.affinity is not None:
        users["affinity"], items["affinity"] = vectors(model.affinity.users), vectors(model.affinity.items)
    if model.personal is not None:
        items["covariance"] = vectors(model.personal.item_covariance)
    write_table(folder / USERS, pa.table(users))
    write_table(folder / ITEMS, pa.table({**items, **_title_column(contents.titles)}))


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


def _value_model(contents: Contents) -> str:
    model = contents.model
    facts = {
        "scale": _scale_record(model.scale),
        "rank": model.rank,
        "overall": model.overall,
        "residual_variance": model.residual_variance,
        "user_mean": model.user_mean.tolist(),
        "user_covariance": model.user_covariance.tolist(),
    }
    if model.personal is not None:
        facts["personal"] = _personal_record(model.personal)
    unit = contents.certificate.unit
    return _model_json(unit, unit, contents.method, contents.settings, **facts)


def _write_item_side(release: ItemRelease, folder: Path) -> None:
    """The model and the tables of an item side."""
    (folder / MODEL).write_text(_item_model(release), "utf-8")
    side = release.side
    cells = {
        "effect": side.effects,
        "uncertainty": side.uncertainty,
        "features": vectors(side.features),
        "count": release.crowd.counts,
        "pull": np.zeros(side.n_cells) if side.pull is None else side.pull,
    }
    write_table(folder / CELLS, pa.table(cells))
    _write_named(release, folder)


def _item_model(release: ItemRelease) -> str:
    side, crowd, unit = release.side, release.crowd, release.certificate.unit
    return _model_json(
        unit,
        unit,
        release.method,
        release.settings,
        scale=_scale_record(release.scale),
        named=len(release.index.named),
        residual=side.residual,
        spread=side.spread,
        levels=side.own_levels.tolist(),
        mean=side.mean.tolist(),
        covariance=side.covariance.tolist(),
        people=crowd.people,
        activity=crowd.activity.tolist(),
        weights=crowd.weights.tolist(),
        synthetic=_synthetic_record(release),
    )


def _write_likes(release: LikesRelease, folder: Path) -> None:
    """The model and the tables of a release of likes."""
    (folder / MODEL).write_text(_likes_model(release), "utf-8")
    side = release.side
    order = np.argsort(side.frequent, kind="stable")
    taste = {
        "cell": side.frequent[order],
        "centre": side.centre[order],
        "offset": side.offset[order],
        "entry": vectors(side.entry[order]),
        "exit": vectors(side.exit[order]),
    }
    write_table(folder / CELLS, pa.table({"popularity": side.popularity}))
    write_table(folder / TASTE, pa.table(taste))
    _write_named(release, folder)


def _likes_model(release: LikesRelease) -> str:
    side, crowd = release.side, release.crowd
    return _model_json(
        LIKES,
        release.certificate.unit,
        release.method,
        release.settings,
        scores=side.method,
        named=len(release.index.named),
        frequent=len(side.frequent),
        ridge=side.ridge.tolist(),
        gram=side.gram.tolist(),
        people=crowd.people,
        activity=crowd.activity.tolist(),
        weights=crowd.weights.tolist(),
        synthetic=_synthetic_record(release),
    )


def _write_named(release: MakesUpPeople, folder: Path) -> None:
    """The items that may be named, and the people who do not exist, if the release has any."""
    write_table(folder / ITEMS, pa.table({"item": release.index.named, **_title_column(release.titles)}))
    if release.synthetic_rows is not None:
        write_table(folder / SYNTHETIC, release.synthetic_rows)


def _synthetic_record(release: MakesUpPeople) -> dict[str, int] | None:
    """What `model.json` says of the people who do not exist."""
    people, asked = release.made_up, release.synthetic
    if people is None or asked is None:
        return None
    return {"people": asked.people, "ratings": len(people.cells), "seed": asked.seed}


def _model_json(form: str, unit: str, method: str, settings: Mapping[str, Any], **facts: Any) -> str:
    """The text of `model.json`, which is refused if it would not be read back in its `form`: a unit, or `LIKES`."""
    record = {"format": MODEL_FORMAT, "unit": unit, "method": method, "settings": settings, **facts}
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain)
        wrong = first_violation(json.loads(text), FORMS[form], MODEL)
    except (ValueError, TypeError) as error:
        wrong = str(error)
    if wrong:
        raise ReleaseError(f"this model cannot be written, because it could not be read back: {wrong}.")
    return text + "\n"


def _plain(number: Any) -> Any:
    """A number of numpy's as one of Python's."""
    if isinstance(number, np.generic):
        return number.item()
    raise TypeError(f"{type(number).__name__} is no number")


def _scale_record(scale: Scale) -> dict[str, Any]:
    """A rating scale, as `model_form.scale_of` reads it."""
    return {"low": scale.low, "high": scale.high, "step": scale.step, "snap": scale.snap}


def _personal_record(prior: PersonalPrior) -> dict[str, Any]:
    """What people's own ratings meet, as `model_form.personal_of` reads it."""
    record: dict[str, Any] = {
        "widths": list(prior.widths),
        "weights": prior.weights.tolist(),
        "covariance": prior.covariance.tolist(),
        "variance": prior.variance,
        "means": prior.means.tolist(),
        "spread": prior.spread.tolist(),
    }
    if prior.effect_chances is not None:
        record["effect_chances"] = [part.tolist() for part in prior.effect_chances]
    return record


_WRITTEN_AS: dict[str, Any] = {
    "compression": "snappy",
    "data_page_version": "1.0",
    "version": "2.6",
    "write_page_index": False,
    "write_page_checksum": False,
}


def writer(path: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of files that `parquet.read_table` reads, whatever a version of pyarrow does by default."""
    return pq.ParquetWriter(path, schema, **_WRITTEN_AS)


def write_table(path: Path, table: pa.Table) -> None:
    """A whole table as such a file."""
    with writer(path, table.schema) as file:
        file.write_table(table)


def vectors(rows: AnyArray) -> pa.Array:
    """A column of vectors of one length."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows).ravel()), rows.shape[1])


def _title_column(titles: Sequence[str | None] | None) -> dict[str, pa.Array]:
    """The column that `parquet.titles_of` reads, if there are titles."""
    return {} if titles is None else {"title": pa.array([one or "" for one in titles], pa.string())}
