"""What a fork server does once for all of its workers: importing this looks up all that numba knows how to compile.

numba does so before it loads its first kernel, which takes every process a third of a second. No kernel is run: threads
of the fork server would be missing in its forks.
"""

from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
