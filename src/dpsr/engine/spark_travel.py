"""How functions travel to Spark's executors: by themselves, or, if they are large, by way of a file on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

_ENVELOPE = 1 << 12
"""What Spark wraps around a function, amply."""


@contextmanager
def sent(context: Any, function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function as it is, or, if it is large, in a broadcast that ends with the pass; Spark's own would stay."""
    if not goes_through_a_file(context, function):
        yield function
        return
    box = context.broadcast(_packed(function))
    try:
        yield _Opened(box)
    finally:
        box.destroy()


def goes_through_a_file(context: Any, function: Callable[..., Any]) -> bool:
    """Whether Spark would write it to the driver's disk on its way."""
    most = int(context._jvm.PythonUtils.getBroadcastThreshold(context._jsc))
    return len(_packed(function)) + _ENVELOPE > most


def _packed(function: Callable[..., Any]) -> bytes:
    from pyspark.serializers import CloudPickleSerializer

    packed: bytes = CloudPickleSerializer().dumps(function)  # type: ignore[no-untyped-call]
    return packed


class _Opened:
    """A function that travels in a broadcast."""

    def __init__(self, box: Any) -> None:
        self.box = box

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.serializers import CloudPickleSerializer

        return CloudPickleSerializer().loads(self.box.value)(batches)  # type: ignore[no-untyped-call]
