"""Thrift's compact protocol, as far as the footer and the page headers of a Parquet file need it.

A field is one byte (step to its number, type) and its value; integers are zigzag varints. Numbers are kept and texts
passed over. What is not known, stands twice or goes deeper than any footer is refused.

Arrow reads footers too, but hands some of their facts on in ways that end the process when a footer lies (a histogram
of another length than the levels it counts). What is read here ends in a value or in a MalformedError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsr.certify.folder import MalformedError

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
_DEEPEST = 8
_MOST = 1 << 20
"""Members of a list."""


class Fields(dict[int, Any]):
    """The fields of a structure by number, and the type of each."""

    def __init__(self) -> None:
        self.kinds: dict[int, int] = {}

    def integer(self, number: int, kind: int) -> int:
        """A number of exactly this type, not below zero."""
        value = self.get(number)
        if self.kinds.get(number) != kind or not isinstance(value, int) or value < 0:
            raise MalformedError("it lacks a number that every file has")
        return value

    def structs(self, number: int) -> list[Fields]:
        """A list of structures."""
        found = self.get(number)
        if not isinstance(found, list) or not all(isinstance(one, Fields) for one in found):
            raise MalformedError("it lacks a list that every file has")
        return found


class Compact:
    """A reader that goes forward through bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self._readers: dict[int, Callable[[int], Any]] = {
            TRUE: lambda _: True,
            FALSE: lambda _: False,
            BYTE: lambda _: self._byte(),
            **dict.fromkeys((I16, I32, I64), lambda _: self._zigzag()),
            DOUBLE: lambda _: self._pass_over(8),
            BINARY: lambda _: self._text(self._varint()),
            LIST: self._list,
            STRUCT: self.struct,
        }

    def struct(self, depth: int = 0) -> Fields:
        """Field numbers and values."""
        fields, number = Fields(), 0
        while (head := self._byte()) != STOP:
            number, kind = number + (head >> 4) if head >> 4 else self._zigzag(), head & 15
            if depth > _DEEPEST or kind not in self._readers or number in fields:
                raise MalformedError("a page or the footer has a field nobody knows")
            fields[number], fields.kinds[number] = self._readers[kind](depth + 1), kind
        return fields

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = (head >> 4 if head >> 4 != 15 else self._varint()), head & 15
        if depth > _DEEPEST or kind not in self._readers or size > min(_MOST, len(self.data) - self.at):
            raise MalformedError("a list is longer than what it stands in, or of a type nobody knows")
        if kind in (TRUE, FALSE):  # a byte each
            self._pass_over(size)
            return [None] * size
        return [self._readers[kind](depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise MalformedError("a number has no end")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _text(self, n: int) -> bytes:
        self._pass_over(n)
        return self.data[self.at - n : self.at]

    def _pass_over(self, n: int) -> None:
        self.at += n
        if self.at > len(self.data):
            raise MalformedError("a text is longer than what it stands in")
