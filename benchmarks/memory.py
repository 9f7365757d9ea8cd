"""Peak memory of another process, and of some work in this one.

Not by `getrusage`: a process that was started by a large one inherits its parent's peak there.
"""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import sleep


def watched(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; the most memory it was seen to hold, in bytes, by the system's own high-water mark."""
    highest = 0
    while process.poll() is None:
        highest = max(highest, high_water(process.pid))
        sleep(0.05)
    return highest


def added(work: Callable[[], object]) -> int:
    """The most memory that some work holds beyond what this process held before, in bytes."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the mark starts again from what is held now
    before = high_water(os.getpid())
    work()
    return high_water(os.getpid()) - before


def high_water(pid: int) -> int:
    """VmHWM of a process; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
