"""`dpsr studio`, whose commands are forked as the studio itself is: see `forked`."""

import subprocess
import sys

from forked import Forked

from dpsr.cli import main

subprocess.Popen = Forked  # type: ignore[misc]
sys.argv[0:1] = ["dpsr", "studio"]
main()
