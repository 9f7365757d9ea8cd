"""Many jobs at a time, in processes that can be stopped and can only hurt themselves.

A fork server imports the library once. A worker is a fresh fork of it and does the jobs of one method one after the
other: loading compiled code is paid once, and the memory of one method says nothing about another. What crosses the
border is text; a job is done by the function it names. It ends in exactly one way:

    rows                     it said so
    exception                class and sentence
    no answer in time        the worker is killed
    death of the process     signal or exit code (out of memory, a crash in native code)

and the last three are a row too, with `error` filled in. A worker whose parent is gone ends itself.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import Any

from dpsr.errors import DpsrError
from dpsr.evaluate.runner.jobs import Job, Row

_PRELOADED = "dpsr.evaluate.runner.preloaded"
"""Imported by the fork server alone: it would keep everybody else waiting."""

_LONGEST = 300
"""Characters of an exception kept in a row."""


@dataclass
class _Worker:
    """A process, the pipe to it, the folder for arrays, the seconds a job may take, and the job it is at."""

    process: BaseProcess
    pipe: Connection
    folder: Path
    timeout: float
    job: Job
    deadline: float = 0.0

    def begin(self, job: Job) -> None:
        """Hand over a job and where its arrays go; the clock starts."""
        self.job, self.deadline = job, monotonic() + self.timeout
        with suppress(OSError):  # a worker that died in between is noticed when it is waited for
            self.pipe.send(json.dumps([job.to_json(), str(self.folder / f"{job.name}.npz")]))

    def stop(self) -> None:
        """Ask, wait a moment, insist."""
        with suppress(OSError):
            self.pipe.send("")
        self.pipe.close()
        self.process.join(0.5)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def run_jobs(jobs: Sequence[Job], folder: Path, *, workers: int, timeout: float) -> Iterator[tuple[Job, list[Row]]]:
    """Every job with its rows, in the order in which they end. Stopping early stops what runs."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload([__name__, *sorted({job.measure.partition(":")[0] for job in jobs}), _PRELOADED])
    threads = max(1, (os.cpu_count() or 1) // workers)
    todo, busy = list(jobs), list[_Worker]()
    try:
        while todo or busy:
            while todo and len(busy) < workers:
                busy.append(_hire(context, _first(todo, busy), folder, threads, timeout))
            for worker in _ended(busy):
                job, rows = worker.job, _rows(worker)
                following = _next(todo, job) if worker.process.is_alive() else None
                if following is None:
                    busy.remove(worker)
                    worker.stop()
                else:
                    worker.begin(following)
                yield job, rows
    finally:
        for worker in busy:
            worker.process.kill()
            worker.stop()


def failure(error: str) -> list[Row]:
    """The row of a job that has nothing else to say."""
    return [{"error": error}]


def _first(todo: list[Job], busy: Sequence[_Worker]) -> Job:
    """A job of a method that nobody is at, taken off the list: whoever is at one goes on with it. Else the first."""
    at_work = {_method(worker.job) for worker in busy}
    places = (place for place, job in enumerate(todo) if _method(job) not in at_work)
    return todo.pop(next(places, 0))


def _next(todo: list[Job], job: Job) -> Job | None:
    """Another job of the same method, taken off the list."""
    for place, other in enumerate(todo):
        if _method(other) == _method(job):
            return todo.pop(place)
    return None


def _method(job: Job) -> tuple[str, str]:
    return job.measure, job.what


def _hire(context: Any, job: Job, folder: Path, threads: int, timeout: float) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(threads, theirs), daemon=True)
    process.start()
    theirs.close()
    worker = _Worker(process, ours, folder, timeout, job)
    worker.begin(job)
    return worker


def _ended(busy: Sequence[_Worker]) -> list[_Worker]:
    """Those that answered, died or are late; waits until there is one."""
    while True:
        left = min(worker.deadline for worker in busy) - monotonic()
        ready = wait([handle for worker in busy for handle in (worker.pipe, worker.process.sentinel)], max(left, 0.0))
        done = [worker for worker in busy if worker.pipe in ready or worker.process.sentinel in ready]
        done += [worker for worker in busy if worker not in done and monotonic() >= worker.deadline]
        if done:
            return done


def _rows(worker: _Worker) -> list[Row]:
    try:
        if worker.pipe.poll():
            return list(json.loads(worker.pipe.recv()))
    except (EOFError, OSError):
        worker.process.join(5)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
        return failure(f"Timeout: no result within {worker.timeout:g} seconds")
    return failure(_death(worker.process.exitcode))


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"Death: the process was ended by {signal.Signals(-code).name}; out of memory is the usual reason"
    return f"Death: the process ended with exit code {code} and no result"


def _work(threads: int, pipe: Connection) -> None:
    """A worker's own process: jobs in, rows out, until an empty line. The keyboard belongs to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_the_parent()
    _use_threads(threads)
    with suppress(EOFError, OSError):
        while text := pipe.recv():
            job, arrays = json.loads(text)
            pipe.send(json.dumps(_attempt(Job.from_json(job), Path(arrays))))


def _attempt(job: Job, arrays: Path) -> list[Row]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a peer's own libraries warn; what matters is the row
            module, _, function = job.measure.partition(":")
            rows: list[Row] = getattr(import_module(module), function)(job, arrays)
            return rows
    except Exception as error:  # whatever a method raises is a row
        return failure(as_sentence(error))


def as_sentence(error: BaseException) -> str:
    """An exception as one sentence: its class and its words."""
    words = " ".join(str(error).split()) or "no message"
    kind = type(error).__name__ if isinstance(error, DpsrError) else f"{type(error).__module__}.{type(error).__name__}"
    return f"{kind.removeprefix('builtins.')}: {words}"[:_LONGEST]


def _end_with_the_parent() -> None:
    parent = mp.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _use_threads(threads: int) -> None:
    """As many as every job running at the same time can have."""
    import numba
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(min(threads, numba.get_num_threads()))
    threadpool_limits(threads)
