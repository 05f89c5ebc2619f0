"""The types of values, rows and queues.

A value is a number (float64), an integer (int64), a text, a boolean, a time (int64
microseconds since 1970, UTC) or a duration (int64 microseconds); each may be null. A
number may carry a physical dimension, which only the checker looks at.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

#: When what was always there came; far enough from the ends to be calculated with.
START_OF_TIME = -(2**62)

#: A value as Python holds it. NaN is canonical (see `terms.NAN`), so rows can be keys.
Value = float | int | str | bool | None
Row = tuple[Value, ...]

#: The pseudo-column by which any term can read its item's event time.
TIME_COLUMN = "_time"
WEIGHT_COLUMN = "_weight"


class Kind(enum.Enum):
    NUMBER = "number"
    INTEGER = "integer"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "time"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A product of base dimensions, such as length^1 time^-1; no zero exponents."""

    powers: tuple[tuple[str, int], ...] = ()

    def times(self, other: Dimension, sign: int = 1) -> Dimension:
        total = dict(self.powers)
        for base, power in other.powers:
            total[base] = total.get(base, 0) + sign * power
        return Dimension(tuple(sorted((b, p) for b, p in total.items() if p)))

    def __str__(self) -> str:
        return " ".join(b if p == 1 else f"{b}^{p}" for b, p in self.powers)


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value; every type has null."""

    kind: Kind
    dimension: Dimension = Dimension()

    def __str__(self) -> str:
        return f"{self.kind.value}<{self.dimension}>" if self.dimension.powers else self.kind.value

    @property
    def is_numeric(self) -> bool:
        return self.kind in (Kind.NUMBER, Kind.INTEGER)


NUMBER = Type(Kind.NUMBER)
INTEGER = Type(Kind.INTEGER)
TEXT = Type(Kind.TEXT)
BOOLEAN = Type(Kind.BOOLEAN)
TIME = Type(Kind.TIME)
DURATION = Type(Kind.DURATION)

TYPES_BY_NAME = {t.kind.value: t for t in (NUMBER, INTEGER, TEXT, BOOLEAN, TIME, DURATION)}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The named, typed columns of a row, in order."""

    fields: tuple[Field, ...] = ()

    @staticmethod
    def of(**types: Type) -> Schema:
        """`Schema.of(symbol=TEXT, price=NUMBER)`."""
        return Schema(tuple(Field(name, type_) for name, type_ in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def index(self, name: str) -> int:
        return self.names.index(name)

    def get(self, name: str) -> Type | None:
        return next((f.type for f in self.fields if f.name == name), None)

    def __getitem__(self, name: str) -> Type:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return any(f.name == name for f in self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class QueueType:
    """A stream carries (time, row); a relation carries changes (time, row, weight)."""

    schema: Schema
    is_relation: bool = False

    def __str__(self) -> str:
        return f"{'relation ' if self.is_relation else ''}{self.schema}"
