"""Personal lists and predictions as files: Parquet only, whose metadata say for whom each row is and what is promised.

The same words stand on screen and in the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dpsr.certify import Certificate
from dpsr.certify.amounts import epsilon_text
from dpsr.errors import ReleaseError
from dpsr.release.atomic import atomic_table
from dpsr.release.atomic import check_file as check_table_file

if TYPE_CHECKING:
    from dpsr.release.personalise.personal_answers import PersonalAnswers

FOR_WHOM = "Each list may be shown to its own person, and to nobody else."

BASES = ("own ratings", "own mean", "model", "item mean", "user mean", "overall mean")
"""What a prediction rests on: the person's own ratings with a known item, or an unknown one; or, of people who brought
no ratings, the release's four."""


def statement(certificate: Certificate) -> str:
    """The promise in words, with the release's own figures; NOT PRIVATE stays NOT PRIVATE."""
    if not certificate.private:
        return f"NOT PRIVATE: {'; '.join(certificate.reasons)}. {FOR_WHOM}"
    delta = f", delta = {epsilon_text(certificate.delta)}" if certificate.delta else ""
    rows = "interactions" if certificate.likes else "ratings"
    return (
        f"{FOR_WHOM} It was computed from that person's own {rows} and the release; nobody else's {rows} entered but "
        "through the release. Everything together is joint differential privacy at epsilon = "
        f"{epsilon_text(certificate.epsilon, 6)}{delta}, unit: {certificate.unit}."
    )


def file_metadata(certificate: Certificate) -> dict[str, str]:
    """What a file of personal lists says of itself."""
    return {
        "dpsr.for": FOR_WHOM,
        "dpsr.statement": statement(certificate),
        "dpsr.promise": "joint differential privacy" if certificate.private else "NOT PRIVATE",
        "dpsr.epsilon": repr(certificate.epsilon),
        "dpsr.delta": repr(certificate.delta),
        "dpsr.unit": certificate.unit,
        "dpsr.certificate": certificate.id,
    }


def check_file(path: Path, *, overwrite: bool = False) -> None:
    """Refuse early, before anything is computed."""
    if path.suffix.lower() != ".parquet":
        raise ReleaseError(
            f"{path.name}: personal lists are written as .parquet, whose metadata say that each is for its own person "
            "alone; other formats cannot say so."
        )
    check_table_file(path, overwrite=overwrite)


def write_personal_predictions(
    personal: PersonalAnswers[Any], batches: Iterable[pa.RecordBatch], path: Path, *, overwrite: bool = False
) -> int:
    """user, item, prediction and basis for batches of pairs, whole or not at all; how many pairs that were."""
    check_file(path, overwrite=overwrite)
    names = ("user", "item", "prediction", "basis")
    kinds = (pa.string(), pa.string(), pa.float64(), pa.string())
    schema = pa.schema(list(zip(names, kinds, strict=True)), metadata=file_metadata(personal.release.certificate))
    total = 0
    with atomic_table(path, schema, overwrite=overwrite) as rows:
        for batch in batches:
            rows.write_table(_predictions(personal, batch, schema))
            total += batch.num_rows
    return total


def _predictions(personal: PersonalAnswers[Any], pairs: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    users, items = (_plain(pairs[name]) for name in ("user", "item"))
    predicted = pa.array(personal.predict(users, items))
    basis = pa.array(np.array(BASES)[personal.basis(users, items)])
    columns = [users.cast(pa.string()), items.cast(pa.string()), predicted, basis]
    return pa.table(columns, schema=schema)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
