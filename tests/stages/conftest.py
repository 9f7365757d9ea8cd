"""Lets the tests of this folder import the dense oracle and the ratings written by hand that stand beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
