"""What holds of the tables of a release: they load, fit each other, and match the certificate's public facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from dpsr.errors import DpsrError
from dpsr.release.folder import load_release
from dpsr.release.manifest import Check
from dpsr.release.release import Release
from dpsr.types import Certificate
from dpsr.types.ids import codes_of

NOT_PRIVATE = "NOT_PRIVATE.txt"


def check_contents(folder: Path, certificate: Certificate) -> list[Check]:
    """Load the release as a user would and hold it against its certificate."""
    try:
        release = load_release(folder)
        return [*_facts(release, certificate), *_order(folder, release), *_values(release), *_warning(folder, release)]
    except DpsrError as error:
        return [Check(False, f"the release cannot be loaded: {error}")]
    except Exception as error:  # a folder from a stranger may break a reader in any way; every way is this one finding
        return [Check(False, f"the release cannot be loaded: {type(error).__name__} while reading its tables")]


def _facts(release: Release, certificate: Certificate) -> Iterator[Check]:
    mask, counts = release.mask, release.mask.user_counts
    found = {
        "scale": str(release.scale),
        "levels": release.scale.n_levels,
        "n_users": mask.n_users,
        "n_items": mask.n_items,
        "n_ratings": mask.n_ratings,
        "median_ratings_per_user": float(np.median(counts)) if len(counts) else None,
        "max_ratings_per_user": int(counts.max(initial=0)),
        "has_timestamps": mask.timestamps is not None,
    }
    wrong = {name: value for name, value in found.items() if certificate.public.get(name) != value}
    for name, value in wrong.items():
        yield Check(False, f"{name} is {value} in the tables, and {certificate.public.get(name)!r} in the certificate")
    if not wrong:
        shape = f"{mask.n_ratings:,} ratings, {mask.n_users:,} users, {mask.n_items:,} items, scale {release.scale}"
        yield Check(True, f"the tables have the shape the certificate states: {shape}")
    rows = {len(table) for part in certificate.parts for table in part.tables}
    if rows - {release.scale.n_levels}:
        yield Check(
            False, f"a table of the certificate has {max(rows)} rows, the scale {release.scale.n_levels} levels"
        )


def _order(folder: Path, release: Release) -> Iterator[Check]:
    """The rating table names the same users and items, in the same order and number, as the other two tables."""
    mask = release.mask
    ratings, items = (pq.read_table(folder / f"{name}.parquet") for name in ("ratings", "items"))
    users = codes_of(ratings["user"].combine_chunks(), mask.user_ids)
    same = np.array_equal(users, mask.users) and len(release.ratings) == len(mask.items) and (mask.items >= 0).all()
    counted = np.array_equal(items["n_ratings"].to_numpy(), mask.item_counts) if same else False
    cells = mask.users.astype(np.int64) * max(mask.n_items, 1) + mask.items if counted else np.zeros(2)
    yield Check(bool((np.diff(cells) > 0).all()), "the three tables name the same users, items and counts")


def _values(release: Release) -> Iterator[Check]:
    scale, model = release.scale, release.model
    inside = (release.ratings >= scale.low) & (release.ratings <= scale.high)
    yield Check(bool(inside.all()), f"every released rating lies on the scale's range, {scale.low:g} to {scale.high:g}")
    numbers = (model.user_factors, model.item_factors, model.user_means, model.item_means)
    yield Check(all(np.isfinite(n).all() for n in numbers), "every number of the model is finite")


def _warning(folder: Path, release: Release) -> Iterator[Check]:
    marked = (folder / NOT_PRIVATE).exists()
    if release.certificate.private:
        yield Check(not marked, f"the folder has no {NOT_PRIVATE}, and the certificate does not ask for one")
    else:
        yield Check(marked, f"the folder is marked by {NOT_PRIVATE}, as its certificate asks")
