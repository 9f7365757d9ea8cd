"""Features of a Gaussian kernel on embeddings: against the kernel itself, and against all eigenvalues."""

import numpy as np
import pytest

from dpsr.linalg import kernel_features as module
from dpsr.linalg.kernel_features import Kernel, kernel_features

KERNEL = Kernel(landmarks=200, features=64, length=0.5)
_rng = np.random.default_rng(1)
EMBEDDINGS, COUNTS = _rng.normal(size=(40, 5)), _rng.integers(1, 9, 40).astype(np.float64)


def test_with_few_items_features_give_the_kernel_itself():
    """The oracle: squared distances of features are those in the kernel's own space, up to the common scale."""
    features = kernel_features(EMBEDDINGS, COUNTS, KERNEL)
    e = module._unit_lengths(EMBEDDINGS, COUNTS)
    theirs = 2 - 2 * np.exp(-((e[:, None] - e[None]) ** 2).sum(axis=2) / (2 * KERNEL.length**2))
    ours = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(ours / ours.max(), theirs / theirs.max(), atol=1e-4)


def test_they_have_mean_zero_and_total_mean_square_one_over_ratings_and_unrated_items_have_none():
    counts = np.r_[COUNTS[:-1], 0.0]
    features, weight = kernel_features(EMBEDDINGS, counts, KERNEL), counts / counts.sum()
    np.testing.assert_allclose(weight @ features, 0, atol=1e-12)
    assert weight @ (features**2).sum(axis=1) == pytest.approx(1)
    assert not features[-1].any()


def test_an_embedding_that_rests_on_little_stays_short():
    middle = COUNTS @ EMBEDDINGS / COUNTS.sum()
    with_short = np.vstack([EMBEDDINGS, middle + (EMBEDDINGS[0] - middle) / 100])
    lengths = np.linalg.norm(module._unit_lengths(with_short, np.r_[COUNTS, 1e-9]), axis=1)
    assert lengths[-1] < 0.2 * lengths[0]


def test_subspace_iteration_finds_the_leading_eigenvalues_of_a_kernel():
    e = np.random.default_rng(0).normal(size=(400, 2))
    K = np.exp(-((e[:, None] - e[None]) ** 2).sum(axis=2) / 2)
    values, vectors = module._leading_eigenpairs(K, 30)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[-30:], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-8)
