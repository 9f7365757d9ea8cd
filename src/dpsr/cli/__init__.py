"""The command line: parse, build, call, print. No arithmetic and no defaults of its own.

Exit codes: 0 done; 1 the answer is no (a check failed); 2 bad input or a refusal, one sentence on stderr;
130 interrupted.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import logging
import sys
from typing import NoReturn

from dpsr.cli.interrupts import InterruptedByHandError, interruptible, too_late
from dpsr.errors import DpsrError

_OBJECTS = 20_000
"""So many new objects before garbage is looked for: nothing that is imported is garbage."""

_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_UNSEEN = (
    "Send it where there is room and run the command again; if it was a release, look first whether the folder is "
    "there and what `dpsr ledger show` says."
)


def main() -> None:
    """The `dpsr` command."""
    gc.set_threshold(_OBJECTS)
    if isinstance(sys.stdout, io.TextIOWrapper):  # as stderr does: \xfc for what its encoding has no character for
        sys.stdout.reconfigure(errors="backslashreplace")
    atexit.register(gc.disable)  # nor is it looked for in all modules once more when the command has ended
    atexit.register(too_late)  # nor does a signal change how it has ended, as the exit code says
    try:
        with interruptible():
            _run()
    except KeyboardInterrupt:
        _stop("interrupted.")


def _run() -> None:
    from dpsr.cli.app import app
    from dpsr.cli.help import UsageError, show_misuse
    from dpsr.cli.terminal import complain, discard

    logging.getLogger("dpsr").setLevel(logging.ERROR)  # commands say themselves what a ledger would add
    try:
        code = app(standalone_mode=False, prog_name="dpsr")
    except InterruptedByHandError as error:
        _stop(str(error))
    except DpsrError as error:
        complain(str(error))
        sys.exit(2)
    except UsageError as error:
        show_misuse(error)
        sys.exit(2)
    except OSError as error:  # what is written elsewhere answers for itself
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        discard(sys.stdout)
        complain(f"standard output cannot be written: {error.strerror}. {_UNSEEN}")
        sys.exit(2)
    if code == 130:  # how the command framework reports Ctrl-C
        _stop("interrupted.")
    sys.exit(code if isinstance(code, int) else 0)


def _stop(message: str) -> NoReturn:
    from dpsr.cli.terminal import complain

    complain(message)
    exec("")  # Python remembers an interrupt that went through `exec` and would end by a signal: this makes it forget
    sys.exit(130)
