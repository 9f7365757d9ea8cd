"""The command line: parse, build, call, print. No arithmetic and no defaults of its own.

Exit codes: 0 done; 1 the answer is no (a check failed); 2 bad input or a refusal, one sentence on stderr;
130 interrupted.
"""

from __future__ import annotations

import sys

from dpsr.cli.interrupts import InterruptedByHandError, interruptible
from dpsr.errors import DpsrError


def main() -> None:
    """The `dpsr` command."""
    try:
        with interruptible():
            _run()
    except KeyboardInterrupt:
        from dpsr.cli.terminal import complain

        complain("interrupted.")
        sys.exit(130)


def _run() -> None:
    from dpsr.cli.app import app
    from dpsr.cli.terminal import complain

    try:
        app()
    except InterruptedByHandError as error:
        complain(str(error))
        sys.exit(130)
    except DpsrError as error:
        complain(str(error))
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:  # how the command framework reports Ctrl-C
            complain("interrupted.")
        raise
