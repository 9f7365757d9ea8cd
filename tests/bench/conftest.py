"""Lets the tests of this folder import the benchmarks, which are not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
