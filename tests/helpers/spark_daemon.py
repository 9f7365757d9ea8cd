"""Spark's own daemon, which has imported before it forks what every task needs.

Spark collects garbage after each task and starts a new process for each one that failed: with the imports done once,
and out of the collector's sight, a test's tasks take the time of their work.
"""

# ruff: noqa: E402
import gc

gc.disable()  # nothing that is imported is garbage, and Spark collects in any case

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import dpsr.pipeline.dpsr  # noqa: F401

if __name__ == "__main__":
    gc.freeze()
    manager()
