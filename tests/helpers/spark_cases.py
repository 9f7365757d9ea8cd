"""Spark for tests: real sessions, small tables, and faults that happen inside tasks."""

import gc
import os
import shutil
import signal
import sys
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest

import dpsr
from dpsr.data import realistic
from dpsr.data.spark.frame import spark_table
from dpsr.engine import BlockResult
from dpsr.engine.raw import RawTable
from dpsr.engine.spark.table import SparkTable
from dpsr.engine.table import TIMESTAMP
from dpsr.privacy.channels import optimal_channel
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault
from dpsr.value.sweep import CHOICE, SYMBOL

needs_spark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        "CI" not in os.environ and (shutil.which("java") is None or find_spec("pyspark") is None),
        reason="Spark needs pyspark and Java, which are not both installed",
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SIZE = 300
"""Ratings in a block: a small table has several."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Compiled soon, not well, and Spark's own classes are taken as they are."""

QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # a few thousand rows: interpreting is quicker than compiling
    "spark.driver.extraJavaOptions": JAVA,
    "spark.log.level": "OFF",
    "spark.python.daemon.module": "spark_daemon",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, [Path(__file__).parent, Path(dpsr.__file__).parents[1]])),
}


@contextmanager
def session_of(master, **settings):
    """A session with Spark's own defaults but for what makes it quick, and for what is asked."""
    end_lasting()  # a process has one at a time
    session = _started(master, settings)
    try:
        yield session
    finally:
        _stop(session)


_lasting: list[Any] = []


def lasting_session():
    """One session for all modules that ask for nothing special, until one does: workers stay warm."""
    if not _lasting:
        _lasting.append(_started("local[2]", {"spark.io.encryption.enabled": "true"}))
    return _lasting[0]


def end_lasting():
    while _lasting:
        _stop(_lasting.pop())


def _started(master, settings):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(master).appName("tests")
        workers = {f"spark.executorEnv.{forked.SERVER}": forked.server()}
        for name, value in {**QUICK, **workers, **settings}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


def _stop(session):
    session.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # the sockets of Spark's Python side, which nobody closes


def small(seed=0, **more):
    return realistic(seed, n_users=80, n_items=50, n_ratings=2_500, **more)


def on_spark(session, ratings, *, size=SIZE, partitions=2):
    """Through the door that users take: a DataFrame with the ids as they are, in another order."""
    table = ratings.to_arrow()
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    timestamp = TIMESTAMP if TIMESTAMP in table.column_names else None
    frame = session.createDataFrame(shuffled)
    return spark_table(
        session, frame, scale=ratings.scale, timestamp=timestamp, partitions=partitions, block_ratings=size
    )


def column(table, name):
    return np.concatenate([block.columns[name] for block in table.scan([name])])


def draw(raw, noise=None):
    """Question 3 of the pipeline alone: every rating through one channel, under one key; the table that has symbols."""
    vault = Vault(raw, 3.0, noise=noise or NoiseSource.seeded(0))
    vault.table.run(lambda block: BlockResult({CHOICE: np.zeros(len(block.items), dtype=np.uint8)}), writes=[CHOICE])
    n = raw.scale.n_levels
    vault.symbols({0: optimal_channel(raw.scale, 3.0, np.full(n, 1 / n))}, choice=CHOICE, symbol=SYMBOL)
    return vault.table


def symbols(raw, noise=None):
    return column(draw(raw, noise), SYMBOL)


def symbols_in_memory(ratings):
    return symbols(RawTable.of(ratings))


def strike(monkeypatch, fault):
    """`fault(block)` happens before each block is drawn, wherever Spark runs the task."""
    calm = SparkTable.run

    def run(self, task, sums=(), *, secret=False, **how):
        def struck(block, *sums):
            fault(block)
            return task(block, *sums)

        return calm(self, struck if secret else task, sums, secret=secret, **how)

    monkeypatch.setattr(SparkTable, "run", run)


def once(marker, do):
    """Do it at the first block but one that any task comes to; the marker says that it happened."""

    def fault(block):
        if block.start > 0:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            do()

    return fault


def kill_worker():
    """The Python process that runs a task dies in the middle of it."""
    kill, me, sign = os.kill, os.getpid, signal.SIGKILL
    return lambda: kill(me(), sign)
