"""How a kernel is compiled: once, for the machine's threads, kept on disk for the next process.

A kernel is a plain loop over arrays. Its result must not depend on the number of threads: every sum is taken by one
thread, in the order of the data. Compiling everything costs some ten seconds the first time on a machine, and a
fraction of a second from the cache afterwards. A kernel travels to another process by its name; numba would send its
source, and every process of a Spark cluster would compile it without the cache.

**The cache is never older than the source.** numba looks at the file a kernel is written in, not at the files of the
kernels it calls and of the constants it reads: after a change of a bound that is enforced in one file, sums made in
another would go on with the old one. Here all of them count. And what an earlier version left behind may speak of types
that are gone; it is compiled again. Where no folder may be written, nothing is kept and every process compiles.

**Ctrl-C kills no kernel.** Python runs the handler of a signal between any two of its instructions, and a handler may
raise: that of Ctrl-C does. LLVM asks for the machine code of a kernel by calling Python. What is raised in such a
callback is lost; LLVM takes it for "there is none", and numba writes to the address of code that is not there, which
ends the process with a segmentation fault. It is no rare chance: a signal that comes while LLVM is busy is handled at
the very next instruction of Python, which is in that callback. So while a kernel is compiled or loaded, signals are
held, and handled when that is done (`held_signals`). And no kernel that Python calls returns a named tuple: numba makes
one by calling Python, does not look whether that raised, and a process that was interrupted while the kernel ran would
die of it. So it does for the type of an array; there `dpsr.cli` waits.
"""

from __future__ import annotations

import copyreg
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from numba import get_num_threads, njit, set_num_threads
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import CPUDispatcher
from threadpoolctl import ThreadpoolController

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

WORTH_THREADS = 1_000_000
"""Multiply-adds in a kernel call from which a second thread pays."""


def _by_name(compiled: Any) -> Any:
    """How a kernel is pickled: as `module.name` where that is what it is, otherwise as numba does it."""
    name: str = compiled.__name__
    return name if getattr(sys.modules.get(compiled.__module__), name, None) is compiled else compiled.__reduce__()


copyreg.pickle(CPUDispatcher, _by_name)


class _KernelCache(IndexDataCacheFile):
    """Machine code on disk that is fresh while a kernel, the kernels it calls and the constants it reads are."""

    def __init__(self, of: IndexDataCacheFile, function: Any) -> None:
        self.__dict__.update(vars(of))
        used = (function.__globals__.get(name) for name in function.__code__.co_names)
        self._source_stamp = (of._source_stamp, *(stamp for one in used if (stamp := _stamp(one)) is not None))

    def _load_index(self) -> dict[Any, str]:
        try:
            return cast(dict[Any, str], super()._load_index())  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):  # an argument's type has moved since
            return {}


def _stamp(used: Any) -> object:
    """What changes when this part of a kernel does; None for what is no part of its machine code."""
    if _is_kernel(used):
        return used._cache._cache_file._source_stamp if is_kept(used) else object()  # never the same again
    return used if isinstance(used, int | float | tuple) else None


def _is_kernel(used: Any) -> bool:
    return isinstance(used, CPUDispatcher)


def is_kept(compiled: Any) -> bool:
    """Whether the machine code of a kernel is kept on disk."""
    return isinstance(compiled._cache, FunctionCache)


def in_cache(module: ModuleType) -> bool:
    """Whether the cache holds a kernel of this module."""
    name = module.__name__.rpartition(".")[2]
    places = {Path(one._cache.cache_path) for one in kernels_of(module) if is_kept(one)}
    return any(any(place.glob(f"{name}.*.nbi")) for place in places)


def kernels_of(module: ModuleType) -> list[Any]:
    """The kernels that a module has, or imports by name."""
    return [one for one in vars(module).values() if hasattr(one, "_cache")]


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


def _compiled(function: Kernel, **options: Any) -> Kernel:
    compiled: Any = njit(nogil=True, **options)(function)
    if _is_kernel(compiled):  # else numba was told not to compile
        compiled.compile = held_signals()(compiled.compile)
        with suppress(RuntimeError):  # neither its own folder nor one of the user's may be written
            compiled.enable_caching()
            compiled._cache._cache_file = _KernelCache(compiled._cache._cache_file, function)
    return cast(Kernel, compiled)


def kernel(function: Kernel) -> Kernel:
    """A serial kernel, or a piece of a parallel one."""
    return _compiled(function)


def parallel_kernel(function: Kernel) -> Kernel:
    """A kernel whose `prange` loops run on all threads."""
    return _compiled(function, parallel=True)


def fast_parallel_kernel(function: Kernel) -> Kernel:
    """A parallel kernel that may reorder sums within a loop: for inference, where the last bits do not matter.

    The order is fixed when it is compiled, so that one machine gives the same bits every time. Not for loops that add
    up single numbers picked by index: the compiler then picks eight at a time, which some processors do slowly.
    """
    return _compiled(function, parallel=True, fastmath=True)


def fast_kernel(function: Kernel) -> Kernel:
    """A piece of a fast parallel kernel."""
    return _compiled(function, fastmath=True)


def n_threads() -> int:
    """How many threads the next parallel kernel will use."""
    return int(get_num_threads())


def worth_threads(work: int) -> bool:
    """Whether a kernel call of so many multiply-adds should use more than one thread."""
    return work >= WORTH_THREADS


@contextmanager
def threads_for(work: int) -> Iterator[int]:
    """All threads for the kernels inside if they have `work` enough (multiply-adds of a call), else one.

    Waking a thread costs microseconds when the cores are idle and a whole time slice when they are busy.
    """
    before = get_num_threads()
    if before == 1 or worth_threads(work):  # setting them takes as long as a small kernel
        yield before
        return
    set_num_threads(1)
    try:
        yield 1
    finally:
        set_num_threads(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS with one thread: its bits vary with more, and two pools of threads would fight over the same cores."""
    with _pools().limit(limits=1, user_api="blas"):
        yield


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
