"""What Spark says, in our words: errors of tasks as one sentence that quotes no rating, and no remarks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsr.errors import DataError


@contextmanager
def quiet_spark() -> Iterator[None]:
    """Without Spark's remarks on the version of pandas, which dpsr does not let it use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning, module="pyspark")
        yield


def spark_failed(reason: str) -> DataError:
    """The error for a pass that Spark could not finish."""
    return DataError(f"Spark gave up: {reason}. Nothing was released. Look at the executors' logs, and run again.")


@contextmanager
def spark_errors(refuse: Callable[[str], DataError] = spark_failed) -> Iterator[None]:
    """What a task refused, as the driver's own error: Spark wraps it into the worker's and its own traceback."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = re.search(r"dpsr\.errors\.\w+: (.+)", str(error))
        if said is None:
            raise refuse(_reason(str(error))) from error
        raise DataError(said[1].strip()) from None


def _reason(message: str) -> str:
    """What Spark says about itself, or the kind of error a task met; a task's own words might quote a rating."""
    found = re.findall(r"([\w.]*(?:Error|Exception))(?:: (.*))?", message)
    own = [words for kind, words in found if kind.startswith("org.apache.spark") and words]
    others = [kind for kind, _ in found if not kind.startswith(("org.apache.spark", "py4j", "java"))]
    return (others or own or ["no reason was given"])[-1][:200].rstrip(".")
