r"""A taste over items that the public mask makes smooth: features of a kernel on mask embeddings.

With N = (D_u + n)^-1/2 M (D_j + c)^-1/2 the degree-normalised mask and (s, V) its singular values and item vectors
after the first, e_j = s V_j / sqrt(c_j + c) have a Gaussian kernel (`linalg.kernel_features`): people who like an item
are expected to like what the same people meet.

**Strength.** A mask without structure gives embeddings, too. So the largest singular value is compared with that of a
mask with the same counts whose items were dealt anew: strength = (s / s0)^2 - 1, between 0 and 1. Everything here reads
the public mask alone, and the dealing has a fixed seed, so that the same release gives the same features.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from dpsr.arrays import Bools, Floats, Ints
from dpsr.engine import MemoryTable
from dpsr.engine.incidence import Incidence
from dpsr.linalg.kernel_features import Kernel, kernel_features
from dpsr.linalg.lanczos import leading_right, restricted, scattered
from dpsr.types import Mask

RANK, KERNEL = 48, Kernel(landmarks=2000, features=128, length=0.5)
"""Embeddings the kernel is built on, and its size."""

_TOLERANCE, _PRODUCTS = 1e-2, 12
"""A kernel needs directions, not digits."""

_DEALS = 20
"""Rounds in which pairs that were dealt twice are dealt again, with as many others."""


_SEED = 0


class MaskKernel(NamedTuple):
    """Features of items, of total mean square one over ratings, and the strength of the mask's structure, 0 to 1."""

    features: Floats
    strength: float


def mask_kernel(mask: Mask) -> MaskKernel:
    """The kernel of a release's mask; no features where the mask is too small to have any."""
    counts = mask.item_counts.astype(np.float64)
    rated = counts > 0
    rank = min(RANK, mask.n_users - 2, int(rated.sum()) - 2)
    if rank < 1:
        return MaskKernel(np.zeros((mask.n_items, 0)), 0.0)
    s, V = _leading(mask, rated, rank + 1)
    s0, _ = _leading(_rewired(mask), rated, 2)
    strength = float(np.clip((s[1] / s0[1]) ** 2 - 1, 0, 1))
    embeddings = V[:, 1:] * s[1:] / np.sqrt(counts + counts.sum() / rated.sum())[:, None]
    return MaskKernel(kernel_features(embeddings, counts, KERNEL), strength)


def _leading(mask: Mask, rated: Bools, rank: int) -> tuple[Floats, Floats]:
    """Singular values and item vectors of N; items nobody rated have zeros."""
    left, right = _degree_scales(mask.user_counts), _degree_scales(mask.item_counts)
    gram = partial(Incidence(MemoryTable(mask)).gram, left, right)
    s, V = leading_right(restricted(gram, rated), int(rated.sum()), rank, tol=_TOLERANCE, products=_PRODUCTS)
    return s, scattered(V, rated)


def _degree_scales(counts: Ints) -> Floats:
    """1 / sqrt(count + average count)."""
    return np.asarray(1 / np.sqrt(counts + max(counts.sum(), 1) / max(np.count_nonzero(counts), 1)))


def _rewired(mask: Mask) -> Mask:
    """A mask with the same counts and no structure: items dealt anew, pairs that occur twice once more."""
    rng, users = np.random.default_rng(_SEED), mask.users.astype(np.int64)
    dealt = rng.permutation(mask.items).astype(np.int64)
    for _ in range(_DEALS):
        cells = users * mask.n_items + dealt
        order = np.argsort(cells, kind="stable")
        twice = order[1:][cells[order[1:]] == cells[order[:-1]]]
        if not len(twice):
            break
        some = np.union1d(twice, rng.integers(0, len(dealt), len(twice)))
        dealt[some] = dealt[rng.permutation(some)]
    return Mask(mask.user_ids, mask.item_ids, mask.indptr, dealt.astype(np.int32))
