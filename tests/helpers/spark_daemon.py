"""Spark's own daemon, forked from a process that has imported what every task needs (`forked`), kernels included.

Spark starts a daemon with every session and with every executor that takes another's place, and collects garbage after
each task: with the imports done once, and out of the collector's sight, a test's tasks take the time of their work.
"""

import os
import sys

from forked import Forked

JAVA = "DPSR_TESTS_JAVA"
"""Names the process that asked for a daemon, which is not its parent."""

if __name__ == "__main__":
    command = [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]]
    sys.exit(Forked(command, env={**os.environ, JAVA: str(os.getppid())}).wait())
