"""Ctrl-C, SIGTERM and SIGHUP (the terminal is gone): all raise KeyboardInterrupt, wherever the command is, until it is
too late to stop. SIGHUP stays ignored where it was ignored before the command began, as `nohup` wants it.

An exception raised inside a finaliser or a callback of a C library is swallowed by Python, with a traceback on stderr.
Of an interrupt nothing is said there: `check` is called between stages and raises it again. DuckDB, which asks Python
whether a signal came, raises an error of its own in its place: whatever is raised after a signal is the interrupt.

Machine code that numba made calls Python to hand over an array and does not look whether that raised: it would return
nonsense or end in a segmentation fault. There an interrupt waits until the kernel has returned.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from dpsr.errors import DpsrError

_HANGUP = getattr(signal, "SIGHUP", None)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if _HANGUP is None else [_HANGUP]))
_COMPILERS = {"numba", "llvmlite"}
_SOON = 0.002
"""Seconds until it is tried again."""

_pending: list[int] = []
_waiting: list[int] = []
"""Signals that came, and those of them that no interrupt was raised for yet. No lock: one may come at any moment."""


class InterruptedByHandError(DpsrError):
    """Stopped by hand; the message says what that has cost. Exit code 130."""


@contextmanager
def interruptible() -> Iterator[None]:
    """While this is open, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _forget()
    heard = [one for one in _SIGNALS if one != _HANGUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    aloud, sys.unraisablehook = sys.unraisablehook, partial(_quietly, sys.unraisablehook)
    try:
        yield
    except Exception:
        check()
        raise
    finally:
        _forget()
        sys.unraisablehook = aloud
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupted(error: BaseException) -> bool:
    """Whether this is an interrupt, or what a library has made of one."""
    return isinstance(error, KeyboardInterrupt) or bool(_pending)


def check() -> None:
    """Raise an interrupt that was swallowed."""
    if _pending:
        _waiting.clear()
        raise KeyboardInterrupt


def too_late() -> None:
    """From here on the command runs to its end, whatever is pressed."""
    once_is_enough()
    check()


def once_is_enough() -> None:
    """No further signal is listened to: an interrupted command is about to say what that has cost."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _quietly(aloud: Callable[[sys.UnraisableHookArgs], Any], swallowed: sys.UnraisableHookArgs) -> None:
    """What is said of an exception that nobody can catch: of an interrupt nothing, for `check` raises it again."""
    if not (_pending and issubclass(swallowed.exc_type, KeyboardInterrupt)):
        aloud(swallowed)


def _forget() -> None:
    _pending.clear()
    _waiting.clear()


def _interrupt(number: int, frame: FrameType | None) -> None:
    _pending.append(number)
    if not _in_kernel(frame):
        check()
    _waiting.append(number)
    _thread.start_new_thread(_again, (number,))


def _again(number: int) -> None:
    """Have the handler called once more, when the kernel may have returned; one interrupt is enough, though."""
    time.sleep(_SOON)
    if _waiting:
        _thread.interrupt_main(signal.Signals(number))


def _in_kernel(frame: FrameType | None) -> bool:
    """Whether Python was called by numba, or by LLVM for it."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _COMPILERS:
            return True
        frame = frame.f_back
    return False
