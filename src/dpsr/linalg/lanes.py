"""One cache line at a time: sixteen floats or eight doubles in one instruction.

The compiler's loop vectoriser passes over loops as short as these, so they are spelled out in its own vectors. A line
is LINE bytes, as many numbers as fit; `table` holds one line per row, and for entries begin <= e < end of a list

    spread     table[index_e] += x_e line            a sparse column times a line, added to many lines
    gather     line += sum_e x_e table[index_e]      the transpose: many lines into one
    dots       x_e  += line . table[index_e]         one line against many

    exceeds    bit l is set where |table[row]_l| >= min(floor_l, least)

Sums run in the order of the list, so the bits depend on nothing else. Indices are trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Number = TypeVar("Number", bound=np.floating[Any])

LINE = 64
"""Bytes in a cache line, and in the widest vector register."""

_I64 = ir.IntType(64)
_CONTRACT = ("contract",)
"""A product and the sum it goes into may be rounded once."""


def zero_lines(tables: int, rows: int, dtype: type[Number]) -> npt.NDArray[Number]:
    """That many tables of zeros, one line per row, aligned to lines: a line across two costs twice."""
    width = LINE // np.dtype(dtype).itemsize
    room = np.zeros((tables * rows + 1) * width, dtype)
    skipped = -room.ctypes.data % LINE // room.itemsize
    return room[skipped : skipped + tables * rows * width].reshape(tables, rows, width)


def as_lines(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The columns of X, eight to a table, the last table filled up with zeros."""
    width = LINE // 8
    tables = zero_lines(-(-X.shape[1] // width), len(X), np.float64)
    for t, table in enumerate(tables):
        columns = X[:, t * width : (t + 1) * width]
        table[:, : columns.shape[1]] = columns
    return tables


class _Lines:
    """A line vector type for the elements of an array, and the places of lines in it."""

    def __init__(self, context: Any, builder: ir.IRBuilder, array: Any) -> None:
        self._builder = builder
        self.element = context.get_value_type(array.dtype)
        self.itemsize = array.dtype.bitwidth // 8
        self.width = LINE // self.itemsize
        self.vector = ir.VectorType(self.element, self.width)

    def pointer(self, data: ir.Value, row: ir.Value) -> ir.Value:
        """Where line `row` of an array begins."""
        first = self._builder.mul(row, ir.Constant(_I64, self.width))
        return self._builder.bitcast(self._builder.gep(data, [first]), self.vector.as_pointer())

    def load(self, data: ir.Value, row: ir.Value) -> ir.Value:
        return self._builder.load(self.pointer(data, row), align=self.itemsize)

    def store(self, line: ir.Value, data: ir.Value, row: ir.Value) -> None:
        self._builder.store(line, self.pointer(data, row), align=self.itemsize)

    def repeat(self, x: ir.Value) -> ir.Value:
        """x in every lane."""
        some = ir.Constant(self.vector, ir.Undefined)
        one = self._builder.insert_element(some, x, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self._builder.shuffle_vector(one, some, zeros)

    def total(self, line: ir.Value) -> ir.Value:
        """The sum of the lanes: halves onto each other until one is left."""
        width = self.width
        while width > 1:
            width //= 2
            low, high = (
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(first, first + width)))
                for first in (0, width)
            )
            line = self._builder.fadd(
                self._builder.shuffle_vector(line, line, low), self._builder.shuffle_vector(line, line, high)
            )
        return self._builder.extract_element(line, ir.Constant(ir.IntType(32), 0))

    def add_product(self, line: ir.Value, x: ir.Value, other: ir.Value) -> ir.Value:
        product = self._builder.fmul(self.repeat(x), other, flags=_CONTRACT)
        return self._builder.fadd(line, product, flags=_CONTRACT)


def _data(context: Any, builder: ir.IRBuilder, kinds: tuple[Any, ...], values: tuple[Any, ...]) -> list[ir.Value]:
    """The first element of each array argument."""
    return [
        context.make_array(kind)(context, builder, value).data
        for kind, value in zip(kinds, values, strict=True)
        if isinstance(kind, types.Array)
    ]


def _operation(compose: Callable[..., Any]) -> Callable[..., Any]:
    """What compiled code calls with the arguments after the first; `compose` gives its signature and its code."""
    return cast(Callable[..., Any], intrinsic(compose))


def _index(builder: ir.IRBuilder, index: ir.Value, e: ir.Value) -> ir.Value:
    return builder.zext(builder.load(builder.gep(index, [e])), _I64)


@_operation
def spread(_: Any, index: Any, x: Any, begin: Any, end: Any, line: Any, table: Any) -> tuple[Any, Callable[..., Any]]:
    """spread(index, x, begin, end, line, table): table[index[e]] += x[e] * line for begin <= e < end."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[Any, ...]) -> ir.Value:
        indices, xs, line_data, table_data = _data(context, builder, signature.args, values)
        lines = _Lines(context, builder, signature.args[1])
        held = lines.load(line_data, ir.Constant(_I64, 0))
        with cgutils.for_range_slice(builder, values[2], values[3], ir.Constant(_I64, 1)) as (e, _):
            row = _index(builder, indices, e)
            factor = builder.load(builder.gep(xs, [e]))
            lines.store(lines.add_product(lines.load(table_data, row), factor, held), table_data, row)
        return context.get_dummy_value()

    return types.void(index, x, types.int64, types.int64, line, table), code


@_operation
def gather(_: Any, index: Any, x: Any, begin: Any, end: Any, table: Any, line: Any) -> tuple[Any, Callable[..., Any]]:
    """gather(index, x, begin, end, table, line): line += sum of x[e] * table[index[e]] over begin <= e < end."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[Any, ...]) -> ir.Value:
        indices, xs, table_data, line_data = _data(context, builder, signature.args, values)
        lines = _Lines(context, builder, signature.args[1])
        zero = ir.Constant(_I64, 0)
        total = cgutils.alloca_once_value(builder, lines.load(line_data, zero))  # type: ignore[no-untyped-call]
        with cgutils.for_range_slice(builder, values[2], values[3], ir.Constant(_I64, 1)) as (e, _):
            other = lines.load(table_data, _index(builder, indices, e))
            factor = builder.load(builder.gep(xs, [e]))
            builder.store(lines.add_product(builder.load(total), factor, other), total)
        lines.store(builder.load(total), line_data, zero)
        return context.get_dummy_value()

    return types.void(index, x, types.int64, types.int64, table, line), code


@_operation
def dots(_: Any, index: Any, line: Any, table: Any, begin: Any, end: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """dots(index, line, table, begin, end, x): x[e] += line . table[index[e]] for begin <= e < end."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[Any, ...]) -> ir.Value:
        indices, line_data, table_data, xs = _data(context, builder, signature.args, values)
        lines = _Lines(context, builder, signature.args[1])
        held = lines.load(line_data, ir.Constant(_I64, 0))
        with cgutils.for_range_slice(builder, values[3], values[4], ir.Constant(_I64, 1)) as (e, _):
            product = builder.fmul(held, lines.load(table_data, _index(builder, indices, e)))
            place = builder.gep(xs, [e])
            builder.store(builder.fadd(builder.load(place), lines.total(product)), place)
        return context.get_dummy_value()

    return types.void(index, line, table, types.int64, types.int64, x), code


@_operation
def exceeds(_: Any, table: Any, row: Any, floor: Any, least: Any) -> tuple[Any, Callable[..., Any]]:
    """exceeds(table, row, floor, least): a bit per lane of the line, set where |value| >= min(floor[lane], least)."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[Any, ...]) -> ir.Value:
        table_data, floor_data = _data(context, builder, signature.args, values)
        lines = _Lines(context, builder, signature.args[0])
        line, floors = lines.load(table_data, values[1]), lines.load(floor_data, ir.Constant(_I64, 0))
        negative = builder.fcmp_ordered("<", line, ir.Constant(lines.vector, [0.0] * lines.width))
        size = builder.select(negative, builder.fneg(line), line)
        high = builder.fcmp_ordered(">=", size, floors)
        both = builder.or_(high, builder.fcmp_ordered(">=", size, lines.repeat(values[3])))
        return builder.zext(builder.bitcast(both, ir.IntType(lines.width)), _I64)

    return types.uint64(table, types.int64, floor, table.dtype), code
