"""What Spark may write down or say: no noise key in the clear, and no rating in an error.

A pass that draws noise travels as a function that holds the key. Spark writes such functions down where nobody sees it:
broadcasts go through a file if they are large and are spilled to disk when memory is short, and between machines
everything crosses the network. Whoever finds the key can subtract the noise. So

    spark.io.encryption.enabled=true                                      whatever is written to disk, on any master
    spark.authenticate=true and spark.network.crypto.enabled=true         whatever crosses the network, on a cluster;
      or spark.ssl.rpc.enabled=true                                       the key of the first setting crosses it too

What counts is the context that runs: a session may claim settings that came too late for it. Errors of tasks become one
sentence of our own that quotes no rating.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dpsr.errors import DataError, PrivacyError

_DISK = "spark.io.encryption.enabled"
_CRYPTO = ("spark.authenticate", "spark.network.crypto.enabled")
_TLS = "spark.ssl.rpc.enabled"

ENCRYPTED = {_DISK: "true"}
"""What a session of our own is started with: it is local, and nothing crosses a network."""


def check_encrypts(context: Any) -> None:
    """Refuse a context that would write or send a noise key in the clear."""
    missing = missing_settings(context)
    if missing:
        raise PrivacyError(
            "this Spark session would write or send the noise key in the clear, and whoever finds it can subtract the "
            f"noise. Nothing was drawn. Start the session with {' and '.join(f'{name}=true' for name in missing)}, or "
            "let dpsr start one."
        )


def missing_settings(context: Any) -> list[str]:
    """The settings that are to be made true before a key may travel."""
    conf = context.getConf()

    def on(name: str) -> bool:
        return str(conf.get(name, "false")).strip().lower() == "true"

    missing = [] if on(_DISK) else [_DISK]
    if not _is_local(context.master) and not on(_TLS):
        missing += [name for name in _CRYPTO if not on(name)]
    return missing


def _is_local(master: str) -> bool:
    """Driver and tasks in one process: `local`, `local[4]`; a `local-cluster` has several."""
    return master == "local" or master.startswith("local[")


@contextmanager
def quiet_spark() -> Iterator[None]:
    """Without Spark's remarks on the version of pandas, which dpsr does not let it use, and on an interrupt.

    Py4J logs an interrupt with its traceback before it raises it again; whoever stops a run gets a sentence.
    """
    root = logging.getLogger()
    outermost = _is_no_interrupt not in root.filters
    root.addFilter(_is_no_interrupt)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning, module="pyspark")
            yield
    finally:
        if outermost:
            root.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], KeyboardInterrupt)


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
