"""Sums over all ratings with public signs: classes, and the map from a model to them, against loops over ratings."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dpsr.engine import MemoryTable
from dpsr.engine.contrasts import Contrasts, contrast_map
from dpsr.engine.incidence import Division
from dpsr.types import Mask

USERS, ITEMS = 14, 11


@pytest.fixture
def world():
    """Features with the constant first, a division with light ratings, and classes by the largest feature."""
    rng = np.random.default_rng(0)
    cells = np.flatnonzero(rng.random(USERS * ITEMS) < 0.5)
    mask = Mask.of_cells(cells, *(pa.array(np.arange(n, dtype=np.int64)) for n in (USERS, ITEMS)))
    x, z = (np.column_stack([np.ones(n), rng.normal(size=(n, 3))]) for n in (USERS, ITEMS))
    x[3, 1:] = 0.0
    division = replace(Division.uniform((USERS, ITEMS), 128, asked=100, light=40), pooled=64)
    return mask, division, Contrasts.of(x[:, 1:], z[:, 1:]), x, z


def by_hand(world):
    """Every rating's weight, sum and sign."""
    mask, division, _, x, z = world
    codes = division.codes(next(iter(MemoryTable(mask).scan())))
    for u, j, code in zip(mask.users, mask.items, codes, strict=True):
        k, line = np.abs(x[u, 1:]).argmax(), np.abs(z[j, 1:]).argmax()
        weight = (40 * 64 // 256 if division.asks_code(code) else 64) / 256
        yield int(u), int(j), weight, int(k), int(line), np.sign(x[u, 1 + k]), np.sign(z[j, 1 + line])


def test_a_row_belongs_to_its_largest_feature_with_that_features_sign():
    features = np.array([[0.2, -3.0, 1.0], [2.0, 0.0, 1.9], [0.0, 0.0, 0.0]])
    assert Contrasts.of(features, features).users.tolist() == [-2, 1, 0]


def test_the_map_is_the_sum_over_ratings_of_what_a_model_says(world):
    mask, division, contrasts, x, z = world
    found = contrast_map(MemoryTable(mask), division, contrasts, x, z)
    weights, by_user, by_item = np.zeros((9, 16)), np.zeros((USERS, 3)), np.zeros((ITEMS, 3))
    squares, user_reach, item_reach = np.zeros(9), np.zeros((USERS, 3)), np.zeros((ITEMS, 3))
    for u, j, w, k, line, of_user, of_item in by_hand(world):
        place = 3 * k + line
        weights[place] += w * of_user * of_item * np.kron(z[j], x[u])
        squares[place] += w**2 * (of_user != 0)
        if of_user:
            by_user[u, line] += w * of_item
            by_item[j, k] += w * of_user
            user_reach[u, line] += w * abs(z[j, 1 + line])
            item_reach[j, k] += w * abs(x[u, 1 + k])
    np.testing.assert_allclose(found.weights, weights, atol=1e-12)
    np.testing.assert_allclose(found.by_user, by_user, atol=1e-12)
    np.testing.assert_allclose(found.by_item, by_item, atol=1e-12)
    np.testing.assert_allclose(found.signed_sizes, weights[:, 0], atol=1e-12)
    np.testing.assert_allclose(found.squares, squares, atol=1e-12)
    of_users, of_items = (np.abs(contrasts.signs(side)) for side in (contrasts.users, contrasts.items))
    np.testing.assert_allclose(found.user_slopes, (of_users.T @ user_reach**2).ravel(), atol=1e-12)
    np.testing.assert_allclose(found.item_slopes, ((item_reach**2).T @ of_items).ravel(), atol=1e-12)


def test_the_map_is_the_same_however_the_table_is_cut(world):
    mask, *rest = world
    whole, cut = (contrast_map(MemoryTable(mask, block_ratings=size), *rest) for size in (1 << 20, 9))
    for one, other in zip(vars(whole).values(), vars(cut).values(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
