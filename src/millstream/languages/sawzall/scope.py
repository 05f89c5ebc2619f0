"""Names of a program and what they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.scripts import Var
from millstream.languages.sawzall.tokens import Token
from millstream.values.records.types import (
    BASICS,
    BOOL,
    FLOAT,
    TIME,
    ArrayOf,
    Basic,
    FunctionOf,
    MapOf,
    Named,
    RecordType,
    TupleOf,
    resolved,
)

#: What is said of something that was wrong already, so that nothing more follows from it.
UNKNOWN = Basic("unknown")
#: Of `{...}`, whose type is told by where it stands.
COMPOSITE = Basic("{...}")
#: Of a function that returns nothing.
VOID = Basic("void")


@dataclass(frozen=True, slots=True)
class TypeName:
    type: RecordType
    #: Types and static variables that are declared inside of a tuple.
    members: dict[str, Entry] = field(default_factory=dict, compare=False)
    #: The names of the parameters, of a type of functions.
    parameters: tuple[Token, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any
    type: RecordType


@dataclass(frozen=True, slots=True)
class TableName:
    number: int


@dataclass(frozen=True, slots=True)
class TableType:
    """A type of tables: what stands after the name of each, from `table` on."""

    tokens: tuple[Token, ...]


Entry = Var | TypeName | Constant | TableName | TableType

_TIMES = {"SECOND": 1, "SEC": 1, "MINUTE": 60, "MIN": 60, "HOUR": 3600, "HR": 3600}
PREDECLARED: dict[str, Entry] = {
    **{name: TypeName(type_) for name, type_ in BASICS.items()},
    "true": Constant(True, BOOL), "false": Constant(False, BOOL),
    "PI": Constant(math.pi, FLOAT),
    "inf": Constant(math.inf, FLOAT), "Inf": Constant(math.inf, FLOAT),
    "nan": Constant(math.nan, FLOAT), "NaN": Constant(math.nan, FLOAT),
    **{name: Constant(seconds * 1_000_000, TIME) for name, seconds in _TIMES.items()},
}  # fmt: skip


@dataclass
class Names:
    """Mutable: the names that can be seen, innermost last."""

    levels: list[dict[str, Entry]] = field(default_factory=lambda: [dict(PREDECLARED), {}])

    def find(self, name: str) -> Entry | None:
        return next((level[name] for level in reversed(self.levels) if name in level), None)

    def is_taken(self, name: str) -> bool:
        return name in self.levels[-1]

    def declare(self, name: str, entry: Entry) -> None:
        self.levels[-1][name] = entry

    def all(self) -> Iterator[str]:
        for level in self.levels:
            yield from level


def is_same(one: RecordType, other: RecordType) -> bool:
    """Whether two types have the same structure; what is not known fits everything."""
    if UNKNOWN in (one, other) or one == other:
        return True
    match resolved(one), resolved(other):
        case ArrayOf(a), ArrayOf(b):
            return is_same(a, b)
        case MapOf(a, c), MapOf(b, d):
            return is_same(a, b) and is_same(c, d)
        case TupleOf(a, p), TupleOf(b, q):
            pairs = list(zip(a, b, strict=False))
            return len(a) == len(b) and p == q and all(is_same(m.type, n.type) for m, n in pairs)
        case FunctionOf(a, c), FunctionOf(b, d):
            if len(a) != len(b) or (c is None) != (d is None):
                return False
            ends = c is None or d is None or is_same(c, d)
            return ends and all(is_same(x, y) for x, y in zip(a, b, strict=True))
        case first, second:
            return first == second


def an(type_: RecordType) -> str:
    """`an int`, `a string`."""
    named = str(type_)
    return f"{'an' if named[0] in 'aei' else 'a'} {named}"


def can_be_key(type_: RecordType) -> bool:
    """Whether values can be keys of a map: no maps and no functions are inside."""
    return not any(isinstance(inner, (MapOf, FunctionOf)) for inner in _inside(type_, set()))


def can_be_index(type_: RecordType) -> bool:
    """Whether values can be indexes of a table: no functions are inside."""
    return not any(isinstance(inner, FunctionOf) for inner in _inside(type_, set()))


def _inside(type_: RecordType, seen: set[str]) -> Iterator[RecordType]:
    """A type and all that it is made of; what contains itself is gone through once."""
    if isinstance(type_, Named):
        if type_.name in seen:
            return
        seen.add(type_.name)
    whole = resolved(type_)
    yield whole
    parts: tuple[RecordType, ...] = ()
    match whole:
        case ArrayOf(element):
            parts = (element,)
        case MapOf(key, value):
            parts = (key, value)
        case TupleOf(fields):
            parts = tuple(f.type for f in fields)
    for part in parts:
        yield from _inside(part, seen)
