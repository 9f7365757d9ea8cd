"""Ids of one side of a table by strangers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dpsr.certify.schema import MalformedError


def vocabulary(ids: pa.Array, name: str, who: str) -> pa.Array:
    """Ids of one side, ascending and none twice, so that each is written out once."""
    if pa.types.is_dictionary(ids.type):
        codes, texts = ids.indices, ids.dictionary
        if ids.null_count or texts.null_count or pc.count_distinct(codes).as_py() < len(ids):
            raise MalformedError(f"{name}: every {who} has an id, and no two the same")
        ids = texts.take(codes)
    if ids.null_count or not pc.all(pc.less(ids[:-1], ids[1:])).as_py():
        raise MalformedError(f"{name}: every {who} has an id, and they ascend")
    return ids
