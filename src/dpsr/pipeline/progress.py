"""Which stage a fit is in, for whoever wants to show it. The words are fixed: no message depends on a rating."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("dpsr_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While this is open, `listener` hears the name of every stage as it begins."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(stage: str) -> None:
    """A stage begins."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)
