"""A release of private ratings, from the bytes of its tables: nothing is handed on before all of it was checked.

    users.parquet     user, n_ratings, mean, factors[, affinity]
    items.parquet     item, n_ratings, mean, factors[, affinity][, covariance][, title]
    ratings.parquet   user, item, rating[, timestamp][, predicted][, noisy, weight]

What kernels take for granted is proved here: ids ascend, the counts of users add up to the table and the counts of
items are those of the table, users and items of every rating are known, cells ascend strictly, vectors have the model's
rank, and every number is finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.certify import Certificate
from dpsr.certify.check import Check
from dpsr.certify.folder import MalformedError
from dpsr.release.folder.asked import check_values_asked
from dpsr.release.folder.consistency import check_consistency, check_method, check_settings
from dpsr.release.folder.layout import ITEMS, MODEL, RATINGS, USERS
from dpsr.release.folder.model_form import NOISY_COLUMNS, noisy_of, personal_of, prior_of, read_model, scale_of
from dpsr.release.folder.parquet import MOST_ROWS, Column, checked_table, titles_of, vocabulary
from dpsr.release.release import Release
from dpsr.types import Affinity, Mask, Model, Scale
from dpsr.types.coordinates import codes_of


def read_values(files: Mapping[str, bytes], certificate: Certificate) -> tuple[list[Check], Release | None]:
    """What holds of the tables, and the release if all of it does."""
    checks: list[Check] = []
    try:
        record = read_model(files[MODEL], "value")
        scale, prior = scale_of(record), prior_of(record)
        facts = certificate.public
        _refuse_sizes(facts)
        users = _side(files[USERS], "user", facts["n_users"], record["rank"])
        items = _side(files[ITEMS], "item", facts["n_items"], record["rank"])
        _check_counts(users["n_ratings"], items["n_ratings"], facts["n_ratings"])
        ratings = checked_table(files[RATINGS], RATINGS, _RATING_COLUMNS, facts["n_ratings"])
        checks.append(Check(True, "the tables have exactly the columns and rows that a release has"))
        mask = _mask(users, items, ratings)
        checks.append(Check(True, "the three tables name the same users, items and counts"))
        affinity, titles = _affinity(users, items), titles_of(items)
        personal = personal_of(record.get("personal"), items.get("covariance"), record["rank"])
        noisy = noisy_of(ratings)
        _check_ratings(ratings["rating"], scale)
        words = f"every released rating lies on the scale's range, {scale.low:g} to {scale.high:g}"
        checks += [Check(True, words), Check(True, "every number of the model is finite")]
    except MalformedError as error:
        return [*checks, Check(False, str(error))], None
    model = Model(
        mask=mask,
        scale=scale,
        user_factors=users["factors"],
        item_factors=items["factors"],
        user_means=users["mean"],
        item_means=items["mean"],
        overall=float(record["overall"]),
        residual_variance=float(record["residual_variance"]),
        user_mean=prior[0],
        user_covariance=prior[1],
        observed=ratings.get("predicted"),
        affinity=affinity,
        personal=personal,
    )
    release = Release(model, ratings["rating"], certificate, record["method"], record["settings"], noisy, titles)
    found = public_facts(mask, scale)
    wrong = [Check(False, words) for words in _contradictions(found, certificate)]
    shape = f"{mask.n_ratings:,} ratings, {mask.n_users:,} users, {mask.n_items:,} items, scale {scale}"
    checks += wrong or [Check(True, f"the tables have the shape the certificate states: {shape}")]
    checks.append(check_values_asked(certificate))
    checks.append(check_settings(record["settings"], certificate))
    checks += check_method(record["method"], record["settings"], ratings, certificate)
    checks += check_consistency(model, mask, ratings["rating"], certificate)
    return checks, release if all(check.holds for check in checks) else None


_RATING_COLUMNS = (
    Column("user", "id"),
    Column("item", "id"),
    Column("rating", "real"),
    Column("timestamp", "whole", optional=True),
    Column("predicted", "real", optional=True),
    *(Column(name, "single", optional=True) for name in NOISY_COLUMNS),
)


def public_facts(mask: Mask, scale: Scale) -> dict[str, Any]:
    """What the certificate states of the tables, read off the tables."""
    counts = mask.user_counts
    return {
        "scale": str(scale),
        "levels": scale.n_levels,
        "n_users": mask.n_users,
        "n_items": mask.n_items,
        "n_ratings": mask.n_ratings,
        "median_ratings_per_user": float(np.median(counts)),
        "max_ratings_per_user": int(counts.max()),
        "has_timestamps": mask.timestamps is not None,
    }


def _contradictions(found: dict[str, Any], certificate: Certificate) -> list[str]:
    stated = certificate.public
    return [
        f"{name} is {value} in the tables, and {stated[name]!r} in the certificate"
        for name, value in found.items()
        if stated[name] != value
    ]


def _refuse_sizes(facts: Mapping[str, Any]) -> None:
    for name in ("n_users", "n_items", "n_ratings"):
        if not 1 <= facts[name] <= MOST_ROWS:
            raise MalformedError(f"the certificate states {name} = {facts[name]:,}, and 1 to {MOST_ROWS:,} can be read")


def _side(data: bytes, who: str, rows: int, rank: int) -> Mapping[str, Any]:
    """The table of users or items."""
    name = USERS if who == "user" else ITEMS
    columns = (
        Column(who, "id"),
        Column("n_ratings", "whole"),
        Column("mean", "real"),
        Column("factors", "vector", width=rank),
        Column("affinity", "vector", optional=True),
        *((Column("covariance", "singles", optional=True),) if who == "item" else ()),
        *((Column("title", "id", optional=True),) if who == "item" else ()),
    )
    table = dict(checked_table(data, name, columns, rows))
    table[who] = vocabulary(table[who], name, who)
    return table


def _check_counts(users: Ints, items: Ints, n_ratings: int) -> None:
    """Refuse counts that cannot be those of so many ratings, before these are unpacked: a few bytes can be millions."""
    for name, counts, most in ((USERS, users, len(items)), (ITEMS, items, len(users))):
        if counts.min() < 0 or counts.max() > most or int(counts.sum()) != n_ratings:
            raise MalformedError(f"{name}: the numbers of ratings do not add up to the {n_ratings:,} rows of {RATINGS}")


def _mask(users: Mapping[str, Any], items: Mapping[str, Any], ratings: Mapping[str, Any]) -> Mask:
    """Who rated what, if the three tables agree about it."""
    n_items, counts = len(items["item"]), users["n_ratings"]
    user_codes, item_codes = (
        _codes(ratings["user"], users["user"], "user"),
        _codes(ratings["item"], items["item"], "item"),
    )
    expected = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    if not np.array_equal(user_codes, expected):
        raise MalformedError(f"{RATINGS} and {USERS} do not name the same users in the same order, as often as stated")
    if not (np.diff(user_codes * n_items + item_codes) > 0).all():
        raise MalformedError(f"{RATINGS}: the items of a user do not ascend, or one occurs twice")
    if not np.array_equal(np.bincount(item_codes, minlength=n_items), items["n_ratings"]):
        raise MalformedError(f"{ITEMS}: the numbers of ratings are not those of {RATINGS}")
    return Mask(
        user_ids=users["user"],
        item_ids=items["item"],
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        items=item_codes.astype(np.int32),
        timestamps=ratings.get("timestamp"),
    )


def _codes(ids: pa.Array, vocabulary: pa.Array, who: str) -> Ints:
    """The codes of a column of ids, every one of them known."""
    values = ids.dictionary if pa.types.is_dictionary(ids.type) else ids
    if values.type != vocabulary.type or ids.null_count or values.null_count:
        raise MalformedError(f"{RATINGS}: its column {who} is not of the ids that the other table has")
    codes = codes_of(values, vocabulary)
    if pa.types.is_dictionary(ids.type):
        codes = codes[ids.indices.to_numpy(zero_copy_only=False)]
    if codes.min() < 0:
        raise MalformedError(f"{RATINGS} names a {who} that the other tables do not")
    return codes


def _affinity(users: Mapping[str, Any], items: Mapping[str, Any]) -> Affinity | None:
    if ("affinity" in users) != ("affinity" in items):
        raise MalformedError("one of users and items has an affinity, and the other has none")
    if "affinity" not in users:
        return None
    if users["affinity"].shape[1] != items["affinity"].shape[1]:
        raise MalformedError("the affinities of users and items have different lengths")
    return Affinity(users["affinity"], items["affinity"])


def _check_ratings(ratings: Any, scale: Scale) -> None:
    if ratings.min() < scale.low or ratings.max() > scale.high:
        raise MalformedError(f"not every released rating lies on the scale's range, {scale.low:g} to {scale.high:g}")
