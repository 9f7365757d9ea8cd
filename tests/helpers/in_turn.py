"""Several commands in one process, one after the other: what is started for the first serves the others.

    python -m in_turn '[["release", ...], ["verify", ...]]'

After each, both streams get a line with its exit code.
"""

import json
import re
import sys
from types import SimpleNamespace

ENDED = "-- ended with"


def main(commands):
    from dpsr.cli import main as dpsr

    for words in commands:
        sys.argv, code = ["dpsr", *words], 0
        try:
            dpsr()
        except SystemExit as stop:
            code = int(stop.code or 0)
        for stream in (sys.stdout, sys.stderr):
            stream.write(f"{ENDED} {code}\n")
            stream.flush()


def outcomes(complaints):
    """What each command wrote to stderr, and its exit code."""
    found = re.findall(rf"(.*?)^{ENDED} (\d+)\n", complaints, flags=re.DOTALL | re.MULTILINE)
    return [SimpleNamespace(returncode=int(code), stderr=said) for said, code in found]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
