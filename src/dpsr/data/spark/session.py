"""Which Spark session is used: the one that is there, as it is, or one of our own for as long as it is needed."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from dpsr.engine.spark.secrecy import ENCRYPTED, quiet_spark
from dpsr.errors import DataError
from dpsr.quoting import printable

_OWN = {
    **ENCRYPTED,  # what it spills, and functions that carry a key
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.driver.maxResultSize": "4g",
    "spark.sql.shuffle.partitions": "8",
}

_INSTEAD = "or use --engine memory or --engine disk."


_PLAIN = {"spark.sql.adaptive.enabled": "false"}
"""Passes are short and many, and an adaptive plan takes the longer to make the more was kept before."""


def beside(session: Any, frame: Any) -> tuple[Any, Any]:
    """A session beside somebody's, on the same context and with settings of its own, and their frame in it."""
    own, name = session.newSession(), f"dpsr_{uuid.uuid4().hex}"
    for setting, value in _PLAIN.items():
        own.conf.set(setting, value)
    frame.createGlobalTempView(name)
    try:
        return own, own.table(f"{session.conf.get('spark.sql.globalTempDatabase')}.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)


@contextmanager
def spark_session(cores: str = "*") -> Iterator[Any]:
    """The session that is already there, which is left as it was, or a local one that ends with the context."""
    found = running_session()
    session = start_session(cores) if found is None else found
    try:
        with quiet_spark():
            yield session
    finally:
        if found is None:
            session.stop()


def running_session() -> Any:
    """The session of this process, whichever thread made it; None if there is none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        active = SparkSession.builder.getOrCreate()  # of that context, and nothing is set
    return active


def start_session(cores: str = "*") -> Any:
    """A local session that keeps what it spills encrypted and says nothing by itself."""
    _need_java()
    try:
        with quiet_spark():
            from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise DataError(f"Spark is not installed. Install dpsr[spark], {_INSTEAD}") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers would run another Python, without dpsr
    builder = SparkSession.builder.master(f"local[{cores},4]").appName("dpsr")
    for name, value in _OWN.items():
        builder = builder.config(name, value)
    with quiet_spark(), _aside() as said:
        try:
            session = builder.getOrCreate()
        except Exception as error:  # whatever the launcher raises, the reason is what Java said
            raise DataError(
                f"Spark did not start: {_complaint(said)}. Spark 4 needs Java 17 or newer. {_fix()}"
            ) from error
    session.sparkContext.setLogLevel("OFF")  # what went wrong is said in our words, once
    return session


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise DataError(f"Spark needs Java, and no java command was found. {_fix()}")


def _fix() -> str:
    package = "on Debian: apt-get install openjdk-17-jre-headless"
    return f"Install a Java 17 runtime ({package}) or point JAVA_HOME at one, {_INSTEAD}"


@contextmanager
def _aside() -> Iterator[IO[bytes]]:
    """What is said on stderr meanwhile, and by the Java process that is started, for ever: greetings and advice."""
    with TemporaryFile() as said:
        sys.stderr.flush()
        terminal = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _complaint(said: IO[bytes]) -> str:
    """The first line that speaks of an error; what follows is the launcher's own trouble with it."""
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return printable((errors or lines or ["Java said nothing"])[0], 200).rstrip(".")
