"""Attacks on the whole product, as an adversary would try them; `make attack`. The threat model is in docs/."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))  # real servers, forged folders, rows by hand
