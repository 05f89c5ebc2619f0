"""The types of programs that read records.

How Python holds a value: `int` an int that wraps at 64 bits, `uint` and `fingerprint` an int from 0
to 2^64-1, `float` a float, `string` a str, `bytes` a bytes, `bool` a bool, `time` an int of
microseconds, an array or a tuple a tuple, a map a dict. Values are never changed in place.

Types are compared by their structure; names of fields do not count, as values are held by place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Basic:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: RecordType

    def __str__(self) -> str:
        return f"array of {self.element}"


@dataclass(frozen=True, slots=True)
class MapOf:
    key: RecordType
    value: RecordType

    def __str__(self) -> str:
        return f"map[{self.key}] of {self.value}"


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a tuple; one with a `tag` has a number, and perhaps a default, on the wire.

    `wire` names an encoding other than the usual one of its type, such as `fixed32`.
    """

    name: str | None = field(compare=False)
    type: RecordType
    tag: int | None = None
    default: Any = field(default=None, compare=False)
    wire: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        named = f"{self.name}: {self.type}" if self.name else str(self.type)
        return named if self.tag is None else f"{named} @ {self.tag}"


@dataclass(frozen=True, slots=True)
class TupleOf:
    fields: tuple[Field, ...]
    is_proto: bool = False

    def __str__(self) -> str:
        parts = ", ".join(map(str, self.fields))
        return f"{'proto ' if self.is_proto else ''}{{{f' {parts} ' if parts else ''}}}"


@dataclass(frozen=True, slots=True)
class FunctionOf:
    params: tuple[RecordType, ...]
    result: RecordType | None

    def __str__(self) -> str:
        params = ", ".join(map(str, self.params))
        return f"function({params})" + (f": {self.result}" if self.result else "")


@dataclass(frozen=True, slots=True)
class Named:
    """A type by its name, looked up when it is needed: how a type can contain itself."""

    name: str
    scope: Mapping[str, RecordType] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


RecordType = Basic | ArrayOf | MapOf | TupleOf | FunctionOf | Named

INT = Basic("int")
UINT = Basic("uint")
FLOAT = Basic("float")
STRING = Basic("string")
BYTES = Basic("bytes")
BOOL = Basic("bool")
TIME = Basic("time")
FINGERPRINT = Basic("fingerprint")
BASICS = {t.name: t for t in (INT, UINT, FLOAT, STRING, BYTES, BOOL, TIME, FINGERPRINT)}


def resolved(type_: RecordType) -> RecordType:
    """The type itself, where it is only named."""
    while isinstance(type_, Named):
        type_ = type_.scope[type_.name]
    return type_


_MASK = 2**64 - 1


def wrapped(value: int) -> int:
    """The lowest 64 bits, as a machine reads an `int`."""
    return (value + 2**63 & _MASK) - 2**63


def unsigned(value: int) -> int:
    """The lowest 64 bits, as a machine reads a `uint`."""
    return value & _MASK
