"""`make attack QUICK=1`: what the threat model says cannot be done is tried, in its short form."""

import os
import sys
from pathlib import Path

import forked

ROOT = Path(__file__).parents[2]


def test_no_attack_of_the_short_form_succeeds():
    """The commands it starts are forks of the server that the other tests have, as it is itself."""
    command = [sys.executable, "-m", "benchmarks.attack", "--quick"]
    run = forked.run(command, cwd=ROOT, env={**os.environ, forked.SERVER: forked.server()})
    assert "SUCCEEDED" not in run.stdout, run.stdout
    assert run.returncode == 0, run.stderr
    assert " 0 succeeded" in run.stdout
    assert run.stdout.count("\nheld ") + run.stdout.startswith("held ") >= 18
