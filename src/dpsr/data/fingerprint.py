"""Whether two tables hold the same ratings, without a word about them: a keyed fingerprint.

    HMAC-SHA-256(key, ids of users and items, who rated what, the level and time of every rating)

Without its key, a random one that lies beside the blocks themselves, a fingerprint tells nothing: nobody can try out
ratings until one fits, as with a plain hash of a file. It is a function of what was read, not of how the file spelt it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

import pyarrow as pa

from dpsr.engine.raw import LEVEL, WEIGHT, InteractionTable, RawTable
from dpsr.engine.table import TIMESTAMP
from dpsr.engine.work_folder import KEY, create_private

_KEY_BYTES = 32


def fingerprint(raw: RawTable | InteractionTable, key: bytes) -> str:
    """Of all ratings, in their one order."""
    census, digest = raw.table.census, hmac.new(key, digestmod=hashlib.sha256)
    for ids in (census.user_ids, census.item_ids):
        with pa.ipc.new_stream(sink := pa.BufferOutputStream(), pa.schema([("id", ids.type)])) as stream:
            stream.write_batch(pa.record_batch([pa.concat_arrays([ids])], names=["id"]))
        digest.update(sink.getvalue())
    digest.update(census.user_counts.tobytes())
    secret = LEVEL if isinstance(raw, RawTable) else WEIGHT
    columns = [secret, *([TIMESTAMP] if census.timed else [])]
    for block in raw.table.scan(columns):
        for column in (block.items, *(block.columns[name] for name in columns)):
            digest.update(column.tobytes())
    return digest.hexdigest()


def fingerprint_key(work: Path) -> bytes:
    """The key of a working folder, made on first use; it is deleted with the blocks."""
    path = work / KEY
    if not path.exists() or path.stat().st_size != _KEY_BYTES:
        create_private(path).write_bytes(os.urandom(_KEY_BYTES))
    return path.read_bytes()
