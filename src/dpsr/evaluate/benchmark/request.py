"""A request from the words of a command line, and what the small and the full benchmark are.

The small one is meant to end within ten minutes on two cores: budgets 1 and 5 and two seeds. The full one is everything
there is: six budgets and five seeds, learners and attacks at budgets 1 and 5 on the first seed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsr.errors import ParameterError
from dpsr.evaluate.attacks.run import BEST_GUESS, MEAN_LEAK
from dpsr.evaluate.benchmark.run import Request
from dpsr.evaluate.benchmark.sets import find_sources, parse_scales
from dpsr.evaluate.downstream.inputs import INPUTS
from dpsr.evaluate.frontier import parse_epsilons
from dpsr.evaluate.peers.registry import peer_names

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
SMALL_EPSILONS = (1.0, 5.0)
SEEDS, SMALL_SEEDS, FIRST_SEED = 5, 2, 1
"""Split 0 is left out: our own defaults were chosen while looking at it (`design/priors.py`)."""

NONE = "none"
"""The word for no methods at all: learners or attacks alone."""

SMALL_ATTACKED = ("dpsr", "dpsr-paper", "dpsr-as-published", "als")


def request_of(
    data: Sequence[str],
    *,
    scales: Sequence[str] = (),
    methods: str | None = None,
    epsilons: str | None = None,
    seeds: int | None = None,
    downstream: bool = False,
    attacks: bool = False,
    full: bool = False,
    timeout: float = 900.0,
    workers: int = 0,
    retry: bool = False,
) -> Request:
    """Everything that was not said is filled in, small or full."""
    budgets = EPSILONS if full else SMALL_EPSILONS
    return Request(
        sources=find_sources(data, parse_scales(scales)),
        methods=_names(methods) if methods else peer_names(),
        epsilons=sorted(set(parse_epsilons(epsilons))) if epsilons else budgets,
        seeds=range(FIRST_SEED, FIRST_SEED + (seeds or (SEEDS if full else SMALL_SEEDS))),
        inputs=INPUTS if downstream or full else (),
        attacks=_attacked(full) if attacks or full else (),
        beside=SMALL_EPSILONS if full and not epsilons else (),
        effort=4 if full else 1,
        timeout=timeout,
        workers=workers,
        retry=retry,
    )


def _attacked(full: bool) -> list[str]:
    """The attacks on mechanisms, then methods: all, or the few whose outputs are most talked about."""
    few = [name for name in SMALL_ATTACKED if name in peer_names()]
    return [MEAN_LEAK, BEST_GUESS, *(peer_names() if full else few)]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == [NONE]:
        return []
    if not names:
        raise ParameterError("methods are names separated by commas, found none. Write --methods dpsr,als.")
    return names
