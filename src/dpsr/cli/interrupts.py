"""Ctrl-C, SIGTERM and SIGHUP (the terminal is gone): all raise KeyboardInterrupt, wherever the command is, until it is
too late to stop. SIGHUP stays ignored where it was ignored before the command began, as `nohup` wants it.

An exception raised inside a finaliser or a callback of a C library is swallowed by Python. `check` is called between
stages and raises such an interrupt again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from dpsr.errors import DpsrError

_HANGUP = getattr(signal, "SIGHUP", None)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if _HANGUP is None else [_HANGUP]))
_pending = threading.Event()


class InterruptedByHandError(DpsrError):
    """Stopped by hand; the message says what that has cost. Exit code 130."""


@contextmanager
def interruptible() -> Iterator[None]:
    """While this is open, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _pending.clear()
    heard = [one for one in _SIGNALS if one != _HANGUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check() -> None:
    """Raise an interrupt that was swallowed."""
    if _pending.is_set():
        raise KeyboardInterrupt


def too_late() -> None:
    """From here on the command runs to its end, whatever is pressed."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    check()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _pending.set()
    raise KeyboardInterrupt
