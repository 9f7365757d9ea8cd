"""A PostgreSQL server for the tests: its own folder, its own socket and port, stopped at the end.

The binaries are those on the path or those that the `pgserver` package carries. The server refuses to run as root, so
root starts it as `nobody`.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
import pytest

PASSWORD = "correct-horse/battery@staple"
_NUMBERS = count()


@dataclass(frozen=True)
class Server:
    folder: Path
    port: int

    def address(self, database="postgres", *, user="postgres"):
        """Through the socket, trusted."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}"

    def with_password(self, password, database="postgres"):
        """Through the network, with a password."""
        return f"postgresql://ada:{password}@127.0.0.1:{self.port}/{database}"

    def run(self, statement, database="postgres"):
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_database(self):
        return self.copy_of("template1")

    def copy_of(self, database):
        """A new database that holds what another does, to which nobody may be connected."""
        name = f"db{next(_NUMBERS)}"
        self.run(f"create database {name} template {database} {self.strategy}")
        return self.address(name)

    @cached_property
    def strategy(self):
        """Files are copied as they are, as all versions before 15 did: half the work."""
        return "strategy file_copy" if int(self.run("show server_version_num")[0][0]) >= 150_000 else ""


def unavailable(reason):
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"PostgreSQL cannot be started: {reason}")


@contextmanager
def started():
    binaries = _binaries()
    if binaries is None:
        unavailable("no pg_ctl on the path and no pgserver package")
    folder = Path(tempfile.mkdtemp(prefix="dpsr-pg-"))
    as_whom = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    try:
        if as_whom:
            shutil.chown(folder, **as_whom)
        binaries = _reachable(binaries, folder, as_whom)
        server = _start(binaries, folder, as_whom)
        try:
            server.run("create role ada login password '" + PASSWORD + "'")
            yield server
        finally:
            _ask(binaries, folder, as_whom, "pg_ctl", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries():
    package = find_spec("pgserver")
    if package is not None and package.origin:
        return Path(package.origin).parent / "pginstall" / "bin"
    found = shutil.which("pg_ctl")
    return None if found is None else Path(found).resolve().parent


def _reachable(binaries, folder, as_whom):
    """Where the server's user may run them; copied if they lie in somebody's home."""
    try:
        subprocess.run([binaries / "postgres", "--version"], check=True, capture_output=True, cwd="/", **as_whom)
    except PermissionError:
        shutil.copytree(binaries.parent, folder / "install")
        return folder / "install" / "bin"
    return binaries


def _start(binaries, folder, as_whom):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rules = ("--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=utf8", "-U", "postgres", "--no-sync")
    _ask(binaries, folder, as_whom, "initdb", *rules)
    options = f"-F -p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=40"
    options += " -c shared_buffers=4MB"  # a new database looks through all of them
    options += " -c dynamic_shared_memory_type=mmap"  # in its folder: nothing is left when it is stopped at once
    _ask(binaries, folder, as_whom, "pg_ctl", "-o", options, "-l", folder / "log", "-w", "start")
    return Server(folder, port)


def _ask(binaries, folder, as_whom, program, *arguments):
    command = [binaries / program, "-D", folder / "data", *arguments]
    with tempfile.TemporaryFile() as said:  # a pipe would be kept open by the server
        run = subprocess.run(command, stdout=said, stderr=said, cwd="/", timeout=60, check=False, **as_whom)
        if run.returncode:
            said.seek(0)
            unavailable(said.read().decode(errors="replace")[-300:])
