"""Counts of answers by route and status, and how long they took: numbers under fixed names, and nothing that was sent.

Routes are known by name beforehand and statuses are whole numbers, so nothing a stranger writes can become a label.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from threading import Lock

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the classes of seconds, as Prometheus counts them."""


class Metrics:
    """How many answers of which kind; and seconds in classes."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._classes: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._lock = Lock()

    def observe(self, route: str, status: int, seconds: float) -> None:
        """One answer more."""
        with self._lock:
            self._answers[route, status] += 1
            self._classes[route, bisect_left(BOUNDS, seconds)] += 1
            self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def text(self, **gauges: float) -> str:
        """All of it in Prometheus' text format."""
        with self._lock:
            return "\n".join([*self._lines(), *(f"dpsr_{name} {value:g}" for name, value in gauges.items()), ""])

    def _lines(self) -> Iterator[str]:
        yield "# TYPE dpsr_requests_total counter"
        for (route, status), count in sorted(self._answers.items()):
            yield f'dpsr_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# TYPE dpsr_request_seconds histogram"
        for route, total in sorted(self._seconds.items()):
            so_far = 0
            for place, bound in enumerate(BOUNDS):
                so_far += self._classes[route, place]
                yield f'dpsr_request_seconds_bucket{{route="{route}",le="{bound:g}"}} {so_far}'
            so_far += self._classes[route, len(BOUNDS)]
            yield f'dpsr_request_seconds_bucket{{route="{route}",le="+Inf"}} {so_far}'
            yield f'dpsr_request_seconds_sum{{route="{route}"}} {total:.6f}'
            yield f'dpsr_request_seconds_count{{route="{route}"}} {so_far}'
