"""The kernel of the public mask: features, strength, and a mask dealt anew."""

import numpy as np
import pyarrow as pa
import pytest

from dpsr.release.personalise import mask_kernel as module
from dpsr.release.personalise.mask_kernel import mask_kernel
from dpsr.types import Mask


def mask_of(share):
    """`share[u, j]` is how likely u has rated j."""
    m, n = share.shape
    cells = np.flatnonzero(np.random.default_rng(0).random((m, n)) < share)
    return Mask.of_cells(cells, pa.array(np.arange(m)), pa.array(np.arange(n)))


def two_camps(m=200, n=80, within=0.3, across=0.02):
    same = (np.arange(m) % 2)[:, None] == (np.arange(n) % 2)[None]
    return np.where(same, within, across)


def test_a_mask_of_two_camps_has_structure_and_one_without_has_hardly_any():
    assert mask_kernel(mask_of(two_camps())).strength > 0.5
    assert mask_kernel(mask_of(np.full((200, 80), 0.15))).strength < 0.1


def test_items_of_one_camp_are_alike_and_unlike_the_others():
    features = mask_kernel(mask_of(two_camps())).features
    alike, camp = features @ features.T, np.arange(80) % 2
    same, own = camp[:, None] == camp[None], np.eye(80, dtype=bool)
    assert alike[same & ~own].mean() > 0 > alike[~same].mean()


def test_features_have_mean_zero_and_total_mean_square_one_over_ratings():
    mask = mask_of(two_camps())
    features, weight = mask_kernel(mask).features, mask.item_counts / mask.n_ratings
    np.testing.assert_allclose(weight @ features, 0, atol=1e-12)
    assert weight @ (features**2).sum(axis=1) == pytest.approx(1)


def test_a_mask_dealt_anew_has_the_same_counts_and_hardly_a_pair_twice():
    mask = mask_of(two_camps())
    dealt = module._rewired(mask)
    np.testing.assert_array_equal(dealt.user_counts, mask.user_counts)
    np.testing.assert_array_equal(dealt.item_counts, mask.item_counts)
    pairs = mask.users.astype(np.int64) * mask.n_items + dealt.items
    assert len(np.unique(pairs)) > 0.999 * len(pairs)


@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (9, 2)])
def test_a_mask_too_small_for_embeddings_has_no_features(shape):
    features, strength = mask_kernel(mask_of(np.ones(shape)))
    assert features.shape == (shape[1], 0)
    assert strength == 0


def test_the_same_mask_gives_the_same_bits():
    one, other = (mask_kernel(mask_of(two_camps())) for _ in range(2))
    np.testing.assert_array_equal(one.features, other.features)
    assert one.strength == other.strength
