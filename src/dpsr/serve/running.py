"""Load, listen, say where, answer until stopped; SIGHUP loads what lies in the folder now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from dpsr.serve.app import application
from dpsr.serve.loaded import SAME, Served
from dpsr.serve.metrics import Metrics
from dpsr.web.guard import allowed_hosts
from dpsr.web.listening import address_of, answer_until_stopped, bound

WATCH_SECONDS = 5.0
"""How often the folder is looked at, to say once that it is not what was loaded."""


def serve_release(folder: Path, host: str, port: int, *, say: Callable[[str], None]) -> None:
    """Serve until stopped; `say` tells whoever looks at the terminal what happens."""
    served = Served(folder)
    with bound(host, port) as opened:
        where = address_of(opened)
        hosts = allowed_hosts(host, opened.getsockname()[1])
        done = threading.Event()
        threading.Thread(target=_watch, args=(served, done, say), daemon=True).start()
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, _reloading(served, say))
        promise = str(served.release.certificate)
        try:
            answer_until_stopped(
                application(served, Metrics(), hosts),
                opened,
                lambda: say(f"Listening on {where} ({promise}). What may be asked: {where}/docs. Ctrl-C stops it."),
            )
        finally:
            done.set()
    say("Stopped.")


def _reloading(served: Served, say: Callable[[str], None]) -> Callable[[int, FrameType | None], None]:
    def reload(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=lambda: say(served.reload()), daemon=True).start()

    return reload


def _watch(served: Served, done: threading.Event, say: Callable[[str], None]) -> None:
    known = SAME
    while not done.wait(WATCH_SECONDS):
        state = served.state()
        if state != known:
            known = state
            say(
                f"The folder is {state}."
                + ("" if state == SAME else " What was loaded is still served; SIGHUP loads what is there now.")
            )
