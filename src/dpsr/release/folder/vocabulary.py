"""Ids and titles in tables by strangers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsr.certify.schema import MalformedError
from dpsr.release.folder.layout import ITEMS


def vocabulary(ids: pa.Array, name: str, who: str) -> pa.Array:
    """Ids of one side, ascending and none twice, so that each is written out once."""
    if pa.types.is_dictionary(ids.type):
        codes, texts = ids.indices, ids.dictionary
        if ids.null_count or texts.null_count or pc.count_distinct(codes).as_py() < len(ids):
            raise MalformedError(f"{name}: every {who} has an id, and no two the same")
        ids = texts.take(codes)
    if ids.null_count or not pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py():  # one alone ascends
        raise MalformedError(f"{name}: every {who} has an id, and they ascend")
    return ids


def titles_of(items: Mapping[str, Any]) -> list[str | None] | None:
    """What items are called, if the release says; an empty text stands for no title."""
    if "title" not in items:
        return None
    texts = items["title"]
    if not pa.types.is_dictionary(texts.type) or texts.null_count or texts.dictionary.null_count:
        raise MalformedError(f"{ITEMS}: titles are text, an empty one for an item without")
    words = [text or None for text in texts.dictionary.to_pylist()]  # each once, however often it is repeated
    return [words[code] for code in texts.indices.to_pylist()]
