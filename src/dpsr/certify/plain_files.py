"""Files in a folder by a stranger: opened once, as plain files of a bounded size, or not at all.

A name may be a link that leads elsewhere, a pipe or a device that never ends, or a file larger than memory. So a file
is opened without following links and without waiting, looked at through the handle that will be read, and read to the
size it then has. What is hashed and what is parsed are the same bytes in memory.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_MOST_ENTRIES = 1_000
"""A release has ten files; whoever puts in a million wants the list of them to take long."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


_AT_ONCE = 1 << 30
"""Bytes a system call is asked for."""


class UnreadableError(ValueError):
    """Something that is not a plain file, is missing or is too large; the message goes on from the file's name."""


def names_in(folder: Path) -> set[str]:
    """What a folder holds, hidden entries too; a few more than allowed if it holds too many to list."""
    names = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            names.add(entry.name)
            if len(names) > _MOST_ENTRIES:
                break
    return names


def read_plain(file: Path, limit: int, *, stated: int | None = None) -> bytes:
    """All bytes of a plain file of at most `limit` bytes, read once; of exactly `stated` bytes, if that is given."""
    try:
        handle = os.open(file, _FLAGS)
    except FileNotFoundError:
        raise UnreadableError("is missing") from None
    except (OSError, ValueError) as error:
        elsewhere = isinstance(error, OSError) and error.errno == errno.ELOOP
        reason = error.strerror if isinstance(error, OSError) else "it has no name"
        raise UnreadableError("is not a plain file" if elsewhere else f"cannot be read: {reason}") from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise UnreadableError("is not a plain file")
        if stated is not None and facts.st_size != stated:
            raise UnreadableError(f"has {facts.st_size:,} bytes, and {stated:,} are stated")
        if facts.st_size > limit:
            raise UnreadableError(f"has {facts.st_size:,} bytes, and at most {limit:,} are read")
        return _exactly(handle, facts.st_size)
    finally:
        os.close(handle)


def _exactly(handle: int, size: int) -> bytes:
    """`size` bytes, and no more: a file that grows or shrinks meanwhile is not the one that was looked at."""
    pieces, left = [], size
    try:
        while left and (piece := os.read(handle, min(left, _AT_ONCE))):
            pieces.append(piece)
            left -= len(piece)
        if left or os.read(handle, 1):
            raise UnreadableError("changed while it was read")
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
