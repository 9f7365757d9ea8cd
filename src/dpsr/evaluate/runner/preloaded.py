"""What a fork server does once for all of its workers: importing this looks up all that numba knows how to compile.

numba does so before it loads its first kernel, which takes every process a third of a second. So does Arrow, which
imports pandas, where it is installed, with its first array. No kernel is run: threads of the fork server would be
missing in its forks. What is there by then is left alone by every worker's collector of garbage, and stays shared.
"""

import gc
from contextlib import suppress
from importlib import import_module

from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
with suppress(ImportError):
    import_module("pandas")
gc.collect()
gc.freeze()
