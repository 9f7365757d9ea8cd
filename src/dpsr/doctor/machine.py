"""Threads, BLAS, disk, and whether the kernels are compiled already."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from threadpoolctl import threadpool_info

from dpsr.doctor.check import Check, Status
from dpsr.linalg.compiled import is_kept, n_threads

_LITTLE_ROOM = 1 << 30
"""Releases of tens of millions of ratings are written beside their place before they are renamed into it."""

_PACKAGE = Path(__file__).parents[1]

_NOT_KEPT = "cannot be kept; set NUMBA_CACHE_DIR to a folder"


def check_machine() -> Iterator[Check]:
    """What the speed of a release depends on."""
    yield check_threads()
    yield check_blas()
    yield check_disk_space("here", Path.cwd())
    yield check_disk_space("temporary files", Path(tempfile.gettempdir()))
    yield check_cache()


def check_threads() -> Check:
    """How many threads kernels use, and how many processors this process may run on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = n_threads()
    status = Status.warning if threads > usable else Status.ok
    return Check("machine", "threads", status, f"{threads} for kernels (NUMBA_NUM_THREADS), {usable} processors usable")


def check_blas() -> Check:
    """Which libraries multiply matrices."""
    import numpy.linalg
    import scipy.linalg  # noqa: F401 (loads its own BLAS, if it brings one)

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    if not pools:
        return Check("machine", "BLAS", Status.warning, f"{numpy.linalg.__name__} has none that can be controlled")
    names = sorted({f"{p['internal_api']} {p['version']}, {p['num_threads']} threads" for p in pools})
    return Check("machine", "BLAS", Status.ok, "; ".join(names))


def check_disk_space(name: str, folder: Path) -> Check:
    """Free space, and whether a file can be written at all."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("machine", f"disk, {name}", Status.warning, f"cannot be written to ({error.strerror})")
    status = Status.ok if free >= _LITTLE_ROOM else Status.warning
    return Check("machine", f"disk, {name}", status, f"{free / 2**30:.1f} GiB free")


def check_cache() -> Check:
    """Compiled kernels are kept on disk; where that is not possible, every process compiles them again."""
    from dpsr.release.lists.kernels import see_tile

    if not is_kept(see_tile):
        return Check("machine", "compiled kernels", Status.warning, _NOT_KEPT)
    place = Path(see_tile.stats.cache_path)  # type: ignore[attr-defined]
    root = _PACKAGE if _PACKAGE in place.parents else place.parent
    known = sum(1 for _ in root.rglob("*.nbi"))
    writable = os.access(place if place.exists() else next(up for up in place.parents if up.exists()), os.W_OK)
    if not writable:
        return Check("machine", "compiled kernels", Status.warning, _NOT_KEPT)
    if not known:
        return Check("machine", "compiled kernels", Status.ok, "none yet; the first run on this machine compiles them")
    return Check("machine", "compiled kernels", Status.ok, f"{known} kept for the next process")
