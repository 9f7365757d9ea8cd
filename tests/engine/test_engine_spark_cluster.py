"""A real standalone cluster of two workers, one of which loses its executor, dawdles, or forgets what it kept."""

import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import spark_daemon
from spark_cases import (
    JAVA,
    QUICK,
    column,
    draw,
    needs_spark,
    on_spark,
    once,
    session_of,
    small,
    strike,
    symbols,
    symbols_in_memory,
)

from dpsr.engine import BlockResult
from dpsr.privacy.noise import NoiseSource
from dpsr.value.sweep import SYMBOL

pytestmark = needs_spark

HOSTS = ("127.0.0.1", "127.0.0.2")
"""Two hosts, because a speculative copy never runs where the original does."""

PATIENCE = 60

SECRECY = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "known-to-this-test-alone",
    "spark.network.crypto.enabled": "true",
}

CLUSTER = {
    "spark.io.encryption.enabled": "true",
    **SECRECY,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.locality.wait": "0s",  # a copy does not wait for the host that has the block
}


@contextmanager
def cluster(folder):
    """The address of a master with two workers: services of Spark in this process's Java, as good as in five others.

    Executors, which run the tasks, are processes of their own in any case.
    """
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(conf=SparkConf().setAll(QUICK.items()))
    gateway, java = SparkContext._gateway, SparkContext._jvm
    deploy, nothing = java.org.apache.spark.deploy, java.scala.Option.empty()
    told = java.org.apache.spark.SparkConf(False)
    for setting, value in SECRECY.items():
        told.set(setting, value)
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, told)._1()
    url = f"spark://{master.address().hostPort()}"
    urls = gateway.new_array(java.String, 1)
    urls[0] = url
    workers = [
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 1024, urls, str(folder / host), java.scala.Some(number), told, nothing
        )
        for number, host in enumerate(HOSTS)
    ]
    try:
        yield url
    finally:
        for service in [*workers, master]:
            service.shutdown()
            service.awaitTermination()


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as url, session_of(url, **CLUSTER) as session:
        yield session


def executors():
    """The Java processes that run tasks, of this test's cluster."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may have ended meanwhile
            if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline()):
                found.append(one)
    return found


def kill_executor():
    """The Java process above a worker dies, and with it all that it kept."""

    def do():
        os.kill(int(os.environ[spark_daemon.JAVA]), signal.SIGKILL)
        time.sleep(PATIENCE)  # until its end reaches this process too

    return do


def test_two_executors_on_two_hosts_give_the_symbols_of_memory(session):
    ratings = small()
    np.testing.assert_array_equal(symbols(on_spark(session, ratings)), symbols_in_memory(ratings))
    assert len(executors()) == 2


def test_a_speculative_copy_of_a_slow_task_draws_the_same(session, tmp_path, monkeypatch):
    folder, nap = str(tmp_path), PATIENCE

    def dawdle(block):
        from pyspark import TaskContext

        attempt = TaskContext.get().attemptNumber()
        if block.start == 0:
            Path(folder, f"attempt {attempt}").touch()
            time.sleep(nap if attempt == 0 else 0)

    strike(monkeypatch, dawdle)
    ratings = small()
    np.testing.assert_array_equal(symbols(on_spark(session, ratings)), symbols_in_memory(ratings))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attempt 0", "attempt 1"]


def test_a_large_function_with_a_key_may_go_through_a_file_where_files_are_encrypted(session):
    raw, ballast = on_spark(session, small()), np.random.default_rng(0).random(1 << 18)
    raw.table.run(lambda block: BlockResult({"mark": ballast[: len(block.items)] + 0}), writes=["mark"], secret=True)
    assert len(column(raw.table, "mark")) == raw.table.census.n_ratings


# --- executors that die: last, for those that take their place begin cold ---


def test_an_executor_that_is_lost_in_the_middle_of_a_pass_gives_the_same_symbols(session, tmp_path, monkeypatch):
    ratings, before = small(), {one.pid for one in executors()}
    strike(monkeypatch, once(str(tmp_path / "killed"), kill_executor()))
    np.testing.assert_array_equal(symbols(on_spark(session, ratings)), symbols_in_memory(ratings))
    assert (tmp_path / "killed").exists()
    assert not before <= {one.pid for one in executors()}


def test_columns_lost_with_every_executor_come_back_as_they_were_under_a_key_nobody_knows(session):
    table = draw(on_spark(session, small()), NoiseSource.system())
    before = column(table, SYMBOL)
    for one in executors():
        os.kill(one.pid, signal.SIGKILL)
    np.testing.assert_array_equal(column(table, SYMBOL), before)
