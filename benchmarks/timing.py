"""Seconds of several sides in one process, taken in turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter, process_time

from dpsr.value.allocation import remembered_steps

SLOW, PATIENCE = 4.0, 20.0
"""A side that took so many times longer than the fastest, and so many seconds, is not asked again."""


@dataclass(frozen=True)
class Seconds:
    """The shortest of several runs: by the clock, and of processor time over all threads."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.3g} s ({self.cpu:.3g} s of processor)"


def in_turns(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Seconds]:
    """Every side once to warm up and compile, then so many rounds of all of them."""
    best = {name: timed(side) for name, side in sides.items()}
    for turn in range(rounds):
        fastest = min(seconds.wall for seconds in best.values())
        for name, side in sides.items():
            if best[name].wall <= max(SLOW * fastest, PATIENCE):
                again = timed(side)
                best[name] = again if turn == 0 else shorter(best[name], again)
    return best


def timed(side: Callable[[], object]) -> Seconds:
    """One run, as if it were the first of its process: nothing is remembered of the fit before."""
    remembered_steps.cache_clear()
    wall, cpu = perf_counter(), process_time()
    side()
    return Seconds(perf_counter() - wall, process_time() - cpu)


def shorter(one: Seconds, other: Seconds) -> Seconds:
    """The best of both."""
    return Seconds(min(one.wall, other.wall), min(one.cpu, other.cpu))
