"""The command line: parse, build, call, print. No arithmetic and no defaults of its own.

Exit codes: 0 done; 1 the answer is no (a check failed); 2 bad input or a refusal, one sentence on stderr;
130 interrupted.
"""

from __future__ import annotations

import sys

from dpsr.errors import DpsrError


def main() -> None:
    """The `dpsr` command."""
    from dpsr.cli.app import app
    from dpsr.cli.terminal import complain

    try:
        app()
    except DpsrError as error:
        complain(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        complain("interrupted; nothing was written.")
        sys.exit(130)
