"""The types of rows and queues, beside those of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.values.types import (
    BOOLEAN,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TYPES_BY_NAME,
    Dimension,
    Kind,
    Type,
    Value,
)

__all__ = [
    "BOOLEAN",
    "DURATION",
    "INT64_MAX",
    "INT64_MIN",
    "INTEGER",
    "NUMBER",
    "START_OF_TIME",
    "TEXT",
    "TIME",
    "TIME_COLUMN",
    "TYPES_BY_NAME",
    "WEIGHT_COLUMN",
    "Dimension",
    "Field",
    "Kind",
    "QueueType",
    "Row",
    "Schema",
    "Type",
    "Value",
]

#: When what was always there came; far enough from the ends to be calculated with.
START_OF_TIME = -(2**62)

Row = tuple[Value, ...]

#: The pseudo-column by which any term can read its item's event time.
TIME_COLUMN = "_time"
WEIGHT_COLUMN = "_weight"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


def folded_name(name: str) -> str:
    """A name without its case and blanks: `Unit Price` is `unit_price`."""
    return "_".join(name.split()).casefold()


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
        return tuple([f.name for f in self.fields])  # a list is faster, and this is asked often

    def index(self, name: str) -> int:
        return self.names.index(name)

    def get(self, name: str) -> Type | None:
        return next((f.type for f in self.fields if f.name == name), None)

    def like(self, name: str) -> str | None:
        """The column of that name, or else the only one that differs in case and blanks."""
        alike = [n for n in self.names if folded_name(n) == folded_name(name)]
        return name if name in self else alike[0] if len(alike) == 1 else None

    def __getitem__(self, name: str) -> Type:
        type_ = self.get(name)
        if type_ is None:
            raise KeyError(name)
        return type_

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
