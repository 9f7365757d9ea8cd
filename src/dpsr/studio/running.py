"""Listen on this machine alone, print the link, answer until stopped; a release in the making is waited for."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlencode

from dpsr.studio.app import application
from dpsr.studio.runs import Runs
from dpsr.studio.session import Sessions
from dpsr.web.listening import address_of, answer_until_stopped, bound


def run_studio(source: str | None, port: int, *, browser: bool, say: Callable[[str], None]) -> None:
    """Run until stopped; `say` tells whoever looks at the terminal what happens."""
    with bound("127.0.0.1", port) as opened:
        where = address_of(opened)
        sessions, runs = Sessions(opened.getsockname()[1]), Runs()

        def link() -> str:
            query = {"token": sessions.new_link(), **({"source": source} if source else {})}
            return f"{where}/?{urlencode(query)}"

        def began() -> None:
            first = link()
            say(f"Listening on {where}, for this machine alone. Open this link; it works once:\n{first}")
            say("Enter prints another link, Ctrl-C stops.")
            if browser:
                threading.Thread(target=webbrowser.open, args=(first,), daemon=True).start()
            if sys.stdin is not None and sys.stdin.isatty():
                threading.Thread(target=_more_links, args=(link, say), daemon=True).start()

        answer_until_stopped(application(sessions, runs), opened, began)
    _wait(runs, say)


def _more_links(link: Callable[[], str], say: Callable[[str], None]) -> None:
    for _ in sys.stdin:
        say(link())


def _wait(runs: Runs, say: Callable[[str], None]) -> None:
    """A release that was begun is finished, with or without somebody who waits for it."""
    run = runs.current
    if run is not None:
        say(f"A release is being made in {run.folder}: waiting for it. Ctrl-C leaves it to itself.")
        with suppress(KeyboardInterrupt):
            run.process.wait()
    say("Stopped.")
