"""The default fit on Spark against the same fit in memory: same numbers, how much slower, what workers bring."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.movielens_like import write_ratings
from benchmarks.registry import Ratio, section
from benchmarks.timing import Seconds, in_turns, timed
from dpsr import DPSR, Ratings, Scale
from dpsr.data.spark.files import spark_table_of_file
from dpsr.data.spark.session import spark_session
from dpsr.engine.raw import RawTable
from dpsr.types import Model

EPSILON = 3.0
SCALE = Scale(0.5, 5, step=0.5)
AT_MOST = 1e-6
_USERS = 500


@section("spark", f"The default fit on Spark against memory, epsilon {EPSILON:g}, one seed")
def spark(quick: bool) -> Iterator[Ratio]:
    """Each size on two workers against memory, then on one worker against two, and what a model makes of it."""
    for size in tables.sizes(quick):
        yield from against_memory(size, quick)
    measured = {size: workers(size) for size in tables.sizes(quick)}
    for size, seconds in measured.items():
        detail = f"one {seconds['1']:.3g} s, two {seconds['2']:.3g} s"
        yield Ratio(f"spark {size}, two workers against one", seconds["1"] / seconds["2"], detail)
    if not quick:
        yield modelled(measured["1M"], measured["10M"])


def against_memory(size: str, quick: bool) -> Iterator[Ratio]:
    """How far predictions differ, how long a fit takes, and how long reading does."""
    with file_of(size) as path, spark_session("2") as session:
        read = reading(session, path)
        inside, there = RawTable.of(Ratings.read(path, scale=SCALE)), RawTable(gathered(session, path), SCALE)
        if size == "1M":
            yield Ratio(f"spark {size}, predictions", None, difference(fit(inside), fit(there)))
        seconds = in_turns({"memory": lambda: fit(inside), "spark": lambda: fit(there)}, 1 if quick else 2)
    yield compared(f"spark {size}, fit, two workers", seconds, target=1 / 3 if size == "10M" else None)
    yield compared(f"spark {size}, reading, two workers", read)


def reading(session: Any, path: Path) -> dict[str, Seconds]:
    """The second reading of both; the first starts Spark's workers and compiles its code."""
    sides = {"memory": lambda: Ratings.read(path, scale=SCALE), "spark": lambda: gathered(session, path).close()}
    for side in sides.values():
        side()
    return {name: timed(side) for name, side in sides.items()}


def workers(size: str) -> dict[str, float]:
    """Seconds of a fit on one worker, and on two."""
    seconds = {}
    with file_of(size) as path:
        for cores in ("1", "2"):
            with spark_session(cores) as session:
                warm = partial(fit, RawTable(gathered(session, path), SCALE))
                warm()
                seconds[cores] = timed(warm).wall
    return seconds


def modelled(million: dict[str, float], ten: dict[str, float]) -> Ratio:
    """T = a + N (b / w + c), N in millions, w workers: three measurements give a, b and c, the fourth checks them."""
    b = 2 * (million["1"] - million["2"])
    c = (ten["2"] - million["2"]) / 9 - b / 2
    a = million["2"] - b / 2 - c
    expected = a + 10 * (b + c)
    detail = f"a {a:.2g} s, b {b:.2g} s, c {c:.2g} s; 10M on one worker {expected:.3g} s, measured {ten['1']:.3g} s"
    return Ratio("spark, model against measured", expected / ten["1"], detail)


@contextmanager
def file_of(size: str) -> Iterator[Path]:
    """The synthetic table as a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        yield write_ratings(tables.SIZES[size], Path(folder) / "ratings.parquet")


def gathered(session: Any, path: Path) -> Any:
    """The table of a file, its blocks with the executors."""
    return spark_table_of_file(session, path, scale=SCALE).table


def fit(raw: RawTable) -> Model:
    """All stages; not private."""
    return DPSR(EPSILON, random_state=0).fit_table(raw).model


def difference(one: Model, other: Model) -> str:
    """The largest difference between predictions of any user for any item, before they are clipped to the scale."""
    n = len(one.user_factors)
    largest = max(
        float(np.abs(predicted(one, slice(a, a + _USERS)) - predicted(other, slice(a, a + _USERS))).max())
        for a in range(0, n, _USERS)
    )
    return f"differ by at most {largest:.1e} (target {AT_MOST:g}): {'met' if largest <= AT_MOST else 'MISSED'}"


def predicted(model: Model, users: slice) -> Any:
    """Some users' predictions for all items."""
    return model.user_factors[users] @ model.item_factors.T


def compared(name: str, seconds: dict[str, Seconds], target: float | None = None) -> Ratio:
    """Memory's time over Spark's; the processor time of Spark's workers is not in it."""
    detail = f"memory {seconds['memory'].wall:.3g} s, Spark {seconds['spark'].wall:.3g} s"
    return Ratio(name, seconds["memory"].wall / seconds["spark"].wall, detail, target=target)
