"""The best few of many, as integers: larger is better, and no two are equal.

A candidate is one integer, (strength as an integer) * 2^31 + (2^31 - 1 - index), so a tie goes to the lower index. The
best K of any stream are kept in a min-heap of K such keys, empty places being 0. Under a total order they do not depend
on the order of the stream, nor on who found which.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.linalg.compiled import kernel

Keys = npt.NDArray[np.int64]

INDEX_BITS = 31
LAST = 2**31 - 1
"""The largest index, and the mask of one."""


@kernel
def sift_down(keys: Keys, key: int, size: int) -> None:
    """Put `key` at the root of the min-heap `keys[:size]` and let it sink to its place."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at] = keys[child]
        at = child
    keys[at] = key


@kernel
def keep(keys: Keys, strength: int, index: int) -> None:
    """Offer a candidate to the heap."""
    key = (strength << INDEX_BITS) + (LAST - index)
    if key > keys[0]:
        sift_down(keys, key, len(keys))


@kernel
def take_weakest(keys: Keys, size: int) -> int:
    """Remove and return the weakest of the `size` keys that are left."""
    weakest = keys[0]
    sift_down(keys, keys[size - 1], size - 1)
    return int(weakest)
