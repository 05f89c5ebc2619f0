"""The types of values.

A value is a number (float64), an integer (int64), a text, a boolean, a time (int64
microseconds since 1970, UTC) or a duration (int64 microseconds); each may be null. A
number may carry a physical dimension, which only the checker looks at.

Procedures also calculate as machines do, with integers of 32 bits that wrap, numbers of single
precision and bits. These are never null, and queues do not carry them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

#: A value as Python holds it. NaN is canonical (see `terms.NAN`), so rows can be keys.
Value = float | int | str | bool | None


class Kind(enum.Enum):
    NUMBER = "number"
    INTEGER = "integer"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "time"
    DURATION = "duration"
    INT32 = "int32"
    SINGLE = "single"
    BIT = "bit"


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
INT32 = Type(Kind.INT32)
SINGLE = Type(Kind.SINGLE)
BIT = Type(Kind.BIT)

TYPES_BY_NAME = {t.kind.value: t for t in (NUMBER, INTEGER, TEXT, BOOLEAN, TIME, DURATION)}
