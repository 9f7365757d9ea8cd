"""A real standalone cluster of two workers, one of which loses its executor, dawdles, or forgets what it kept."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from spark_cases import column, draw, needs_spark, on_spark, once, session_of, small, strike, symbols, symbols_in_memory

import dpsr
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
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.locality.wait": "0s",  # a copy does not wait for the host that has the block
}


@contextmanager
def service(folder, name, *arguments):
    """A master or a worker, and the file it writes its log to."""
    import pyspark

    home = Path(pyspark.__file__).parent
    paths = [str(Path(dpsr.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    told = [f"-D{setting}={value}" for setting, value in SECRECY.items()]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOSTS[0],
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(["-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", *told]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    log = folder / f"{name}-{len(list(folder.iterdir()))}.log"
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=folder)
    try:
        yield log
    finally:
        for one in [*psutil.Process(process.pid).children(recursive=True), process]:
            one.kill()
        process.wait()


def said(log, pattern):
    """The first match in a log, waited for."""
    for _ in range(10 * PATIENCE):
        found = re.search(pattern, log.read_text())
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    alone = ("--host", HOSTS[0], "--port", "0", "--webui-port", "0")
    with service(folder, "master.Master", *alone) as master:
        url = said(master, r"spark://[\d.]+:\d+")
        workers = [
            service(folder, "worker.Worker", "-h", host, "-c", "1", "-m", "1g", "-d", str(folder / host),
                    "--webui-port", "0", url)
            for host in HOSTS
        ]  # fmt: skip
        with workers[0] as one, workers[1] as other:
            for log in (one, other):
                said(log, "Successfully registered with master")
            with session_of(url, **CLUSTER) as session:
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
    import psutil

    def do():
        above = [one for one in psutil.Process().parents() if one.name() == "java"]
        above[0].kill()
        time.sleep(PATIENCE)  # until its end reaches this process too

    return do


def test_two_executors_on_two_hosts_give_the_symbols_of_memory(session):
    ratings = small()
    np.testing.assert_array_equal(symbols(on_spark(session, ratings)), symbols_in_memory(ratings))
    assert len(executors()) == 2


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
