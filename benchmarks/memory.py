"""Peak memory of another process.

Not by `getrusage`: a process that was started by a large one inherits its parent's peak there.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import sleep


def watched(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; the most memory it was seen to hold, in bytes, by the system's own high-water mark."""
    highest = 0
    while process.poll() is None:
        highest = max(highest, high_water(process.pid))
        sleep(0.05)
    return highest


def high_water(pid: int) -> int:
    """VmHWM of a process; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
