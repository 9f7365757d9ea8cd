"""Programs in processes of their own, forked from one that has imported everything: half the price of a new Python.

`Forked` is `subprocess.Popen` for this Python with a module or lines to run (`-m`, `-c`): pipes, signals, exit codes,
folder, environment and umask are those of any process. What is not tested by it is the start of Python itself; a few
tests do that.

A server is started once for a session of tests. For every program it forks a keeper, which forks the program, says its
number, waits for its end and says how it ended and how much processor time it took.
"""

import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path

SERVER = "DPSR_TESTS_FORK_SERVER"
HOLD = "DPSR_TESTS_HOLD"
"""Names a file: while it is there, a release that was started does nothing yet, however fast the machine."""

spent = [0.0]
"""Processor seconds of programs that have ended: they are nobody's children here."""


class Forked(subprocess.Popen):
    """`Popen([sys.executable, "-m", module, ...])`, or `"-c", lines`, by a fork of the server."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags,
                       shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid,
                       umask, *others):  # fmt: skip
        args = [one for one in map(os.fspath, args) if one != "-P"]  # no path is put first anyway
        assert args[0] == sys.executable, args
        assert preexec_fn is None
        self.ended = socket.socket(socket.AF_UNIX)
        self.ended.connect(server())
        ends = [mine if mine != -1 else usual for mine, usual in ((p2cread, 0), (c2pwrite, 1), (errwrite, 2))]
        asked = {"args": args[1:], "cwd": os.fspath(cwd or os.getcwd()), "umask": umask}
        asked |= {"env": dict(os.environ if env is None else env)}
        socket.send_fds(self.ended, [json.dumps(asked).encode() + b"\n"], ends)
        self._child_created = True
        self.answers = self.ended.makefile()
        self.pid = int(self.answers.readline())
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _internal_poll(self, *_, **__):
        if self.returncode is None:
            self.ended.setblocking(False)
            try:
                if not self.ended.recv(1, socket.MSG_PEEK):
                    raise AssertionError("the keeper of a program has died")
            except BlockingIOError:
                return None
            finally:
                self.ended.setblocking(True)
            self._note()
        return self.returncode

    def _wait(self, timeout):
        if self.returncode is None:
            self.ended.settimeout(timeout)
            try:
                self.ended.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout) from None
            self.ended.settimeout(None)
            self._note()
        return self.returncode

    def _note(self):
        """How it ended, as Popen says it."""
        code, seconds = json.loads(self.answers.readline())
        self.returncode, spent[0] = code, spent[0] + seconds
        self.answers.close()
        self.ended.close()


def run(args, text=None, **how):
    """`subprocess.run` by a fork, with `text` on standard input, and what was printed."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Forked(args, **pipes, text=True, **how) as process:
        printed = process.communicate(text)
    return subprocess.CompletedProcess(args, process.returncode, *printed)


servers: dict[str, subprocess.Popen] = {}


@cache
def server():
    """The address of this process's server, which ends when this process does; or of the one named to it."""
    if SERVER in os.environ:
        return os.environ[SERVER]
    address = str(Path(tempfile.mkdtemp(prefix="dpsr-forks-")) / "s")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = subprocess.Popen(
        [sys.executable, __file__, address], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert started.stdout.readline() == b"ready\n"
    servers[address] = started  # whose standard input stays open until `stop`
    return address


def stop():
    """End this process's server, if it has one: no process, pipe or folder is left behind."""
    server.cache_clear()
    while servers:
        address, started = servers.popitem()
        with started:  # closes its pipes, and waits
            started.stdin.close()
        shutil.rmtree(Path(address).parent)


# --- the server's side

IMPORTED = (
    "duckdb", "pandas", "rich.markdown", "sqlalchemy.dialects.sqlite", "typer", "dpsr.data.ingest",
    "dpsr.pipeline.publish", "dpsr.pipeline.dpsr", "dpsr.report.card", "rich.progress", "tomllib", "dpsr.cli.app",
)  # fmt: skip
"""All that takes long."""


def serve(address):
    """Imports, then a keeper for everybody who connects, until standard input is closed."""
    for name in IMPORTED:
        importlib.import_module(name)
    prepare()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        os.write(1, b"ready\n")
        while True:
            ready = select.select([listening, sys.stdin], [], [])[0]
            if sys.stdin in ready:
                os._exit(0)
            connection = listening.accept()[0]
            if os.fork() == 0:
                listening.close()
                keep(connection)
            connection.close()


def prepare():
    """What releases do first, and all alike.

    No kernel that runs on several threads, for they do not survive a fork, and no file that Arrow reads: it would open
    a pipe for signals and open it again in every fork, under numbers that belong to others by then.
    """
    from fractions import Fraction

    import numpy as np
    import typer

    from dpsr import DPSR, Ratings, Scale
    from dpsr.cli.app import app
    from dpsr.privacy.noise import NoiseSource, discrete_laplace
    from dpsr.report.page import environment
    from dpsr.report.plots import EPSILONS

    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)  # the tree of commands, which takes longer to put together than most commands do
    for name in ("typer._adapters", "pyspark.worker"):  # of some versions of typer, and of Spark where there is one
        with suppress(ImportError):
            importlib.import_module(name)
    discrete_laplace(Fraction(1), 1, NoiseSource.seeded(0))
    for template in environment().list_templates(extensions=["jinja"]):
        environment().get_template(template)
    cells = np.arange(300)
    small = Ratings.from_arrays(cells // 15, cells % 15, 1 + cells % 5, scale=Scale(1, 5))
    DPSR.plan(small.mask, small.scale, EPSILONS)
    load_kernels()


def load_kernels():
    """The machine code that is on disk, of kernels whose module was imported; none of it is run."""
    from numba.core.registry import CPUDispatcher

    from dpsr.linalg.compiled import is_kept

    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("dpsr.")]
    for kernel in {id(one): one for module in modules for one in vars(module).values()}.values():
        if isinstance(kernel, CPUDispatcher) and is_kept(kernel):
            on_disk = kernel._cache._cache_file._load_index()  # type: ignore[attr-defined]
            for signature, *_ in on_disk:
                kernel.compile(signature)


def keep(connection):
    """Fork the program, and say its number and its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, ends, *_ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as from a terminal, also when the tests are run by `nohup`
        become(json.loads(text), ends)
    for end in ends:
        os.close(end)
    connection.sendall(f"{pid}\n".encode())
    _, status, used = os.wait4(pid, 0)
    ended = [os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime]
    with suppress(BrokenPipeError):  # whoever asked for it may have been killed before it
        connection.sendall(json.dumps(ended).encode() + b"\n")
    os._exit(0)


def become(asked, ends):
    """The program itself."""
    from numba.np.ufunc import parallel as numba_threads

    from dpsr.cli import terminal

    for place, end in enumerate(ends):
        os.dup2(end, place)
    os.closerange(3, 256)
    numba_threads._backend_init_process_lock = None  # all forks share one, and who is killed keeps it
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    if asked["umask"] != -1:
        os.umask(asked["umask"])
    for console in (terminal.out, terminal.err):  # each looked at the server's terminal and environment
        console.__init__(stderr=console.stderr, highlight=False, emoji=False)
    how, what, *sys.argv[1:] = asked["args"]
    while sys.argv[1:2] == ["release"] and os.path.exists(os.environ.get(HOLD, "")):
        time.sleep(0.01)
    code = 0
    try:
        if how == "-c":
            exec(what, {"__name__": "__main__"})
        else:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            sys.stderr.write(f"{stop.code}\n")
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
