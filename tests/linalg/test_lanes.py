"""Operations on cache lines against numpy, element by element."""

import numpy as np
import pytest
from numba import njit

from dpsr.linalg.lanes import LINE, as_lines, dots, exceeds, gather, spread, zero_lines

KINDS = [np.float32, np.float64]


@njit
def run_spread(index, x, begin, end, line, table):  # type: ignore[no-untyped-def]
    spread(index, x, begin, end, line, table)


@njit
def run_gather(index, x, begin, end, table, line):  # type: ignore[no-untyped-def]
    gather(index, x, begin, end, table, line)


@njit
def run_dots(index, line, table, begin, end, x):  # type: ignore[no-untyped-def]
    dots(index, line, table, begin, end, x)


@njit
def run_exceeds(table, row, floor, least):  # type: ignore[no-untyped-def]
    return exceeds(table, row, floor, least)


def made_up(kind: type, index_kind: type = np.uint32) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Indices, one number each, a line, and a table of fifty lines."""
    rng, width = np.random.default_rng(0), LINE // np.dtype(kind).itemsize
    index = rng.permutation(50)[:20].astype(index_kind)
    return index, *(rng.normal(size=size).astype(kind) for size in (20, width, (50, width)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index_kind", [np.int32, np.uint32])
@pytest.mark.parametrize(("begin", "end"), [(0, 20), (3, 17), (5, 5), (7, 2)])
def test_spread_adds_to_the_listed_lines_and_no_others(kind: type, index_kind: type, begin: int, end: int) -> None:
    index, x, line, table = made_up(kind, index_kind)
    expected = table.copy()
    expected[index[begin:end]] += x[begin:end, None] * line
    run_spread(index, x, begin, end, line, table)
    np.testing.assert_allclose(table, expected, rtol=1e-6, atol=1e-6)
    untouched = np.setdiff1d(np.arange(50), index[begin:end])
    assert table[untouched].tobytes() == made_up(kind)[3][untouched].tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("begin", "end"), [(0, 20), (3, 17), (5, 5), (7, 2)])
def test_gather_adds_the_listed_lines_up(kind: type, begin: int, end: int) -> None:
    index, x, line, table = made_up(kind)
    expected = line + x[begin:end] @ table[index[begin:end]]
    run_gather(index, x, begin, end, table, line)
    np.testing.assert_allclose(line, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("begin", "end"), [(0, 20), (3, 17), (5, 5), (7, 2)])
def test_dots_adds_products_of_one_line_with_the_listed_ones(kind: type, begin: int, end: int) -> None:
    index, x, line, table = made_up(kind)
    expected = x.copy()
    expected[begin:end] += table[index[begin:end]] @ line
    run_dots(index, line, table, begin, end, x)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_exceeds_sets_a_bit_where_the_size_reaches_either_floor(kind: type) -> None:
    _, _, line, table = made_up(kind)
    floor, table[3, 0], table[3, 1] = np.abs(line), 0.7, -0.7
    for row in range(50):
        for least in (kind(0.7), kind(3.0), kind(0.0)):
            bits = run_exceeds(table, row, floor, least)
            assert [bool(bits >> lane & 1) for lane in range(len(line))] == [
                abs(value) >= min(low, least) for value, low in zip(table[row], floor, strict=True)
            ]


def test_a_number_that_is_none_exceeds_nothing() -> None:
    table = np.full((1, 8), np.nan)
    assert run_exceeds(table, 0, np.zeros(8), 0.0) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_lines_are_aligned_zeros(kind: type) -> None:
    for rows in (1, 3, 1000):
        tables = zero_lines(2, rows, kind)
        assert tables.shape == (2, rows, LINE // np.dtype(kind).itemsize)
        assert tables.ctypes.data % LINE == 0
        assert tables.flags.c_contiguous
        assert not tables.any()


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 24])
def test_columns_go_eight_to_a_table_and_the_rest_is_zero(columns: int) -> None:
    X = np.random.default_rng(1).normal(size=(5, columns))
    tables = as_lines(X)
    assert tables.shape == (-(-columns // 8), 5, 8)
    joined = np.hstack(list(tables))
    assert (joined[:, :columns] == X).all()
    assert not joined[:, columns:].any()
