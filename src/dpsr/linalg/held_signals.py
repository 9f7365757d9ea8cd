"""Signals that wait: what must not be broken off halfway is done first, and then they are handled.

Python runs the handler of a signal between any two of its instructions, and a handler may raise: that of Ctrl-C does.
LLVM asks for the machine code of a kernel by calling Python. What is raised in such a callback is lost; LLVM takes it
for "there is none", and numba writes to the address of code that is not there, which ends the process with a
segmentation fault. It is no rare chance: a signal that comes while LLVM is busy is handled at the very next instruction
of Python, which is in that callback.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def held_signals() -> Iterator[None]:
    """While this is open, no handler written in Python is called; those of signals that came are called at its end.

    Python calls handlers in the main thread alone, so that nothing has to wait in another one.
    """
    heard: dict[int, None] = {}
    with ExitStack() as stack:
        stack.callback(_raise_all, heard)
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                if callable(handler := signal.getsignal(number)):
                    stack.callback(signal.signal, number, handler)
                    signal.signal(number, lambda number, frame: heard.setdefault(number))
        yield


def _raise_all(numbers: dict[int, None]) -> None:
    for number in numbers:
        signal.raise_signal(number)
