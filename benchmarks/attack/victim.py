"""The real command, run so that something happens to it at a chosen step.

    python -m benchmarks.attack.victim EVENT SIGNAL KEY ARGUMENTS...

sends itself SIGNAL (a number; 0: nothing, but the steps are counted on stderr) at step EVENT. Steps are what Python
itself reports of renaming, making and removing files and folders, and the stages that the command announces. If KEY is
not empty, it is what the operating system's generator answers to requests of 32 bytes, so that a search can look for
it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

STEPS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "os.link"}


def main() -> None:
    """Hook in, then be `dpsr`."""
    event, number, key, *arguments = sys.argv[1:]
    count, at, sign = 0, int(event), int(number)

    def step() -> None:
        nonlocal count
        count += 1
        if count == at and sign:
            os.kill(os.getpid(), sign)

    from dpsr.cli import main as run
    from dpsr.pipeline.estimator import announce

    if key:
        genuine, chosen = os.urandom, bytes.fromhex(key)
        os.urandom = lambda n: chosen if n == len(chosen) else genuine(n)
    names: dict[str, Any] = {}
    exec("def announce(stage):\n    sys.audit('dpsr.stage')\n", {}, names)
    announce.__code__ = names["announce"].__code__  # whoever imported it by name hears it too
    sys.addaudithook(lambda name, _: step() if name in STEPS or name == "dpsr.stage" else None)
    sys.argv = ["dpsr", *arguments]
    try:
        run()
    finally:
        if not sign:
            print(f"\nsteps: {count}", file=sys.stderr)


if __name__ == "__main__":
    main()
