"""Passes over blocks against dense linear algebra, however the table is cut."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpsr.engine import BlockResult, MemoryTable
from dpsr.engine import table as block
from dpsr.engine.incidence import Incidence, add_by_item, at_ratings, by_user
from dpsr.engine.table import block_edges
from dpsr.linalg.lanczos import leading_right
from dpsr.types import Mask


def table_of(m=70, n=40, density=0.2, seed=0):
    """A mask with an idle user and an item nobody rated, and the dense matrix of a column of values."""
    rng = np.random.default_rng(seed)
    dense = rng.random((m, n)) < density
    dense[5], dense[:, 7] = False, False
    cells = np.flatnonzero(dense.ravel())
    mask = Mask.of_cells(cells, *(pa.array(np.arange(size, dtype=np.int64)) for size in (m, n)))
    values = rng.normal(size=len(cells))
    full = np.zeros((m, n))
    full[mask.users, mask.items] = values
    return MemoryTable(mask, {"value": values}), full, dense.astype(float)


@pytest.fixture(params=[1, 7, 60, 1 << 19])
def cut(request, monkeypatch):
    """Blocks of one user, of a few, of many, or all in one."""
    size = request.param
    monkeypatch.setattr("dpsr.engine.table.block_edges", lambda counts, *_: block_edges(counts, size))
    return size


def test_blocks_are_whole_users_in_order_and_never_empty():
    for counts in ([3, 0, 4, 100, 1, 1, 0], [0, 0, 5], [7]):
        edges = block_edges(np.array(counts), 5)
        assert edges[0] == 0
        assert edges[-1] == len(counts)
        assert (np.diff(edges) > 0).all()
        for a, b in pairwise(edges):
            assert sum(counts[a:b]) <= 5 or b == a + 1, "only a user alone exceeds the size"


def test_products_are_those_of_the_dense_matrix(cut):
    table, full, dense = table_of()
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(70, 2))

    def work(block, sums, weighted):
        add_by_item(block, Y[block.users], sums)
        add_by_item(block, Y[block.users], weighted, block.columns["value"])
        return BlockResult(rows=(by_user(block, X), by_user(block, X, block.columns["value"])))

    answer = table.run(work, [np.ones((40, 2)), np.zeros((40, 2))], reads=["value"])
    np.testing.assert_allclose(answer.sums[0], 1 + dense.T @ Y, atol=1e-12)
    np.testing.assert_allclose(answer.sums[1], full.T @ Y, atol=1e-12)
    np.testing.assert_allclose(answer.rows[0], dense @ X, atol=1e-12)
    np.testing.assert_allclose(answer.rows[1], full @ X, atol=1e-12)


def test_the_incidence_multiplies_both_ways_in_one_pass(cut):
    table, _, dense = table_of()
    rng = np.random.default_rng(2)
    users, items = rng.normal(size=70), rng.normal(size=(40, 3))
    to_items, to_users = Incidence(table).both(users, items)
    np.testing.assert_allclose(to_items, dense.T @ users, atol=1e-12)
    np.testing.assert_allclose(to_users, dense @ items, atol=1e-12)
    left, right = rng.random(70), rng.random(40)
    N = left[:, None] * dense * right
    np.testing.assert_allclose(Incidence(table).gram(left, right, items), N.T @ N @ items, atol=1e-12)


def test_factors_at_ratings(cut):
    table, _, dense = table_of()
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(70, 4)), rng.normal(size=(40, 4))
    plain = (left @ right.T)[dense.astype(bool)]

    def write(block):
        return BlockResult({"eta": at_ratings(block, left[block.users], right)})

    table.run(write, writes=["eta"])
    np.testing.assert_allclose(table["eta"], plain, atol=1e-12)


def test_columns_are_kept_hidden_and_dropped():
    table, _, _ = table_of()
    public = table.hiding("value")
    public.run(lambda block: BlockResult({"mark": np.arange(len(block.items)) + block.start}), writes=["mark"])
    np.testing.assert_array_equal(table["mark"], np.arange(table.census.n_ratings))
    with pytest.raises(KeyError, match="hidden"):
        public.run(lambda block: None, reads=["value"])
    table.drop("mark")
    with pytest.raises(KeyError):
        public["mark"]


def test_the_order_by_item_is_the_transposed_order():
    table, _, _ = table_of()
    for one in table._blocks:
        by = one.by_item
        rows = one.rows
        np.testing.assert_array_equal(one.items[by.places], np.repeat(by.items, np.diff(by.ptr)))
        np.testing.assert_array_equal(rows[by.places], by.rows)
        assert all((np.diff(by.rows[a:b]) > 0).all() for a, b in zip(by.ptr[:-1], by.ptr[1:], strict=True))


@pytest.mark.parametrize(("m", "n", "rank"), [(200, 150, 6), (90, 300, 3), (40, 12, 5), (60, 60, 1)])
@pytest.mark.parametrize("decay", [0.97, 0.7])
def test_leading_right_vectors_are_those_of_the_dense_svd(m, n, rank, decay):
    rng = np.random.default_rng(4)
    U, V = (np.linalg.qr(rng.normal(size=(size, min(m, n))))[0] for size in (m, n))
    A = (U * decay ** np.arange(min(m, n))) @ V.T
    s, found = leading_right(lambda X: A.T @ (A @ X), n, rank, tol=1e-9)
    np.testing.assert_allclose(s, decay ** np.arange(rank), rtol=1e-8)
    np.testing.assert_allclose(found.T @ found, np.eye(rank), atol=1e-10)
    cut = A @ found @ found.T
    np.testing.assert_allclose(cut, (U[:, :rank] * decay ** np.arange(rank)) @ V[:, :rank].T, atol=1e-6)


def test_a_matrix_of_zeros_or_of_lower_rank_is_an_ordinary_case():
    s, V = leading_right(lambda X: 0 * X, 100, 3, tol=1e-6)
    np.testing.assert_allclose(s, 0)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
    v = np.linspace(1, 2, 100)[:, None]
    s, V = leading_right(lambda X: v @ (v.T @ X), 100, 3, tol=1e-6)
    assert s[0] == pytest.approx(np.linalg.norm(v))
    np.testing.assert_allclose(s[1:], 0, atol=1e-6)


def test_a_block_knows_where_it_stands():
    one = block.Block(3, 100, np.array([0, 2, 5]), np.array([1, 4, 0, 1, 2], dtype=np.int32), 6)
    assert one.users == slice(3, 5)
    assert one.ratings == slice(100, 105)
    np.testing.assert_array_equal(one.rows, [0, 0, 1, 1, 1])
