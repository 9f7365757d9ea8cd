"""Attack the whole product: one line an attack, exit code 1 if any succeeds.

python -m benchmarks.attack             everything, on memory, disk, Spark, SQLite and PostgreSQL
python -m benchmarks.attack --quick     without Spark and PostgreSQL, fewer tries
python -m benchmarks.attack folders     only some of: distinguish, folders, ledgers, losses, at_rest, made_up
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

from postgres_server import started

from benchmarks.attack import at_rest, distinguish, folders, ledgers, losses, made_up
from benchmarks.attack.attempt import Attack, World

ATTACKS: dict[str, Attack] = {
    "distinguish": distinguish.attacks,
    "folders": folders.attacks,
    "ledgers": ledgers.attacks,
    "losses": losses.attacks,
    "at_rest": at_rest.attacks,
    "made_up": made_up.attacks,
}


def main() -> int:
    """Run, print, count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description="Attack the whole product.")
    parser.add_argument("only", nargs="*", choices=[[], *ATTACKS], help="some attacks; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer tries, without Spark and PostgreSQL")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder, begun, successes, attempts = Path(tempfile.mkdtemp(prefix="dpsr-attack-")), time.monotonic(), 0, 0
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server = None if options.quick or "ledgers" not in (options.only or ATTACKS) else _server(stack)
        world = World(folder, options.quick, server)
        for name in options.only or ATTACKS:
            for attempt in ATTACKS[name](world):
                print(attempt.line(), flush=True)
                successes += bool(attempt.succeeded)
                attempts += 1
    minutes = (time.monotonic() - begun) / 60
    print(f"{attempts} attacks, {successes} succeeded, {minutes:.1f} minutes")
    return 1 if successes else 0


def _server(stack: ExitStack) -> object | None:
    """A real PostgreSQL server, if one can be started here."""
    try:
        return stack.enter_context(started())
    except BaseException as error:  # the helper skips or fails the test it thinks it is in
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


if __name__ == "__main__":
    sys.exit(main())
