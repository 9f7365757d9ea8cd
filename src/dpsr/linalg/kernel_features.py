r"""Features of a Gaussian kernel on embeddings of items: what functions over items that vary smoothly are made of.

Embeddings e_j, centred over ratings and of unit length (short ones stay short: they rest on little), have the kernel

    k(i, j) = exp( -|e_i - e_j|^2 / (2 length^2) ),

approximated by its leading eigenvectors on the most rated items, the landmarks (Nystroem). Features are centred and of
total mean square one over ratings, so that one prior variance of their coefficients means the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from dpsr.arrays import Codes, Floats, Singles
from dpsr.linalg.compiled import one_blas_thread

Reals = TypeVar("Reals", Floats, Singles)

_SHORTEST = 0.2
"""Embeddings shorter than this share of the typical length are not stretched to unit length."""

_JITTER, _MARGIN, _ROUNDS = 1e-6, 32, 4

_PIECE = 1024
"""Items whose kernel is computed at a time: it stays near the processor until it is used."""


class Kernel(NamedTuple):
    """Items it is built from, features kept, and its length in units of the embeddings' mean length."""

    landmarks: int
    features: int
    length: float


def kernel_features(embeddings: Floats, counts: Floats, kernel: Kernel) -> Floats:
    """One line an item; an item without ratings has zeros."""
    with one_blas_thread():  # its bits vary with more
        return _features(_unit_lengths(embeddings, counts), counts, kernel)


def _unit_lengths(e: Floats, counts: Floats) -> Floats:
    """Centred over ratings, of unit length, then of unit mean square; short ones stay short."""
    total = counts.sum()
    e = e - counts @ e / total
    typical = np.sqrt(counts @ (e**2).sum(axis=1) / total)
    e = e / np.maximum(np.linalg.norm(e, axis=1), _SHORTEST * typical + np.finfo(float).tiny)[:, None]
    return np.asarray(e / np.sqrt(max(counts @ (e**2).sum(axis=1) / total, np.finfo(float).tiny)))


def _features(e: Floats, counts: Floats, kernel: Kernel) -> Floats:
    most = min(kernel.landmarks, np.count_nonzero(counts))
    top: Codes = np.argsort(-counts, kind="stable")[:most].astype(np.int32)
    values, vectors = _leading_eigenpairs(_gaussian_kernel(e[top], e[top], kernel.length), kernel.features)
    single = e.astype(np.float32)  # exponentials take most of the time, and need no more digits
    features, along = np.empty((len(e), vectors.shape[1])), (vectors / np.sqrt(values)).astype(np.float32)
    for at in range(0, len(e), _PIECE):
        features[at : at + _PIECE] = _gaussian_kernel(single[at : at + _PIECE], single[top], kernel.length) @ along
    features -= counts @ features / counts.sum()
    features[counts == 0] = 0
    return np.asarray(features / np.sqrt(max(counts @ (features**2).sum(axis=1) / counts.sum(), 1e-300)))


def _leading_eigenpairs(K: Floats, number: int) -> tuple[Floats, Floats]:
    """About the largest eigenvalues of a kernel matrix and their vectors, by subspace iteration: it decays fast."""
    K = K + _JITTER * np.eye(len(K))
    if len(K) <= 2 * number:
        values, vectors = np.linalg.eigh(K)
        return values[-number:], vectors[:, -number:]
    Q = np.random.default_rng(0).normal(size=(len(K), number + _MARGIN))
    for _ in range(_ROUNDS):
        Q, _ = np.linalg.qr(K @ Q)
    values, small = np.linalg.eigh(Q.T @ K @ Q)
    return values[-number:], Q @ small[:, -number:]


def _gaussian_kernel(e: Reals, landmarks: Reals, length: float) -> Reals:
    near = 2 * e @ landmarks.T - (e**2).sum(axis=1)[:, None]
    near -= (landmarks**2).sum(axis=1)
    np.minimum(near, 0, out=near)
    near /= 2 * length**2
    return np.exp(near, out=near)
