"""`Ordered`: the rows of each group in an order, with what follows from their places in it."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.aggregation import AGGREGATIONS, Aggregation
from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    facts_of_keeping,
    require_columns,
    require_kind,
)
from millstream.calculus.terms import Column
from millstream.calculus.types import INTEGER, TEXT, Field, Kind, QueueType, Schema, Type

#: What a row's place says: its number, that of the first of its equals, and of their kind.
PLACES = ("row_number", "rank", "dense_rank")
#: A column of the row so many places before or after.
NEIGHBOURS = ("lag", "lead")
#: A column of the first or the last row of a frame, and texts one after the other.
ENDS = ("first", "last")
JOINED = "join"
#: Aggregates of the rows of a frame.
SUMS = ("sum", "count", "avg", "min", "max")
PLACED = (*PLACES, *NEIGHBOURS, *ENDS, JOINED, *SUMS)


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows around a row, by how many rows or, of `range`, by how much they differ from it.

    Both ends are included; before it they are negative, and None is no end. The frame of a
    `range` has all rows that are equal in the order to its ends; only where rows are ordered by
    one number, integer, time or duration can its ends be other than None and 0.
    """

    unit: str = "range"
    start: int | None = None
    end: int | None = None

    def fault(self, order: tuple[Type, ...]) -> str | None:
        if self.unit not in ("rows", "range"):
            return f"a frame is of rows or of a range, not of {self.unit}"
        if self.start is not None and self.end is not None and self.start > self.end:
            return "the start of a frame must not be after its end"
        is_measured = self.unit == "range" and any(e not in (None, 0) for e in self.ends)
        if is_measured and (len(order) != 1 or order[0].kind in (Kind.TEXT, Kind.BOOLEAN)):
            return "such a range needs an order by one number or time"
        return None

    @property
    def ends(self) -> tuple[int | None, int | None]:
        return self.start, self.end


WHOLE = Frame()


@dataclass(frozen=True, slots=True)
class Placed:
    """An output column: a function of the place of a row, or of the rows in a frame around it.

    `offset` is how far a neighbour is; `between` stands between texts that are joined. Sums and
    joined texts pass over nulls.
    """

    name: str
    function: str
    column: str | None = None
    offset: int = 1
    between: str = ""
    frame: Frame = WHOLE

    def result_type(self, schema: Schema) -> Type:
        if self.function not in PLACED:
            raise FunctionFault(f'Ordered: unknown function "{self.function}"')
        if self.function in PLACES:
            return INTEGER
        if self.column is None:
            if self.function != "count":
                raise FunctionFault(f"Ordered: {self.function} needs a column")
            return INTEGER
        type_ = schema[self.column]
        if self.function == JOINED and type_ != TEXT:
            raise FunctionFault(f"Ordered: only texts can be joined, not a {type_}")
        if self.function in NEIGHBOURS and self.offset < 0:
            raise FunctionFault(f"Ordered: {self.function} cannot be less than 0 rows away")
        if self.function in AGGREGATIONS:
            return Aggregation(self.name, self.function, Column(self.column, type_)).result_type()
        return type_


def looks_back(placed: Placed) -> bool:
    """Does it follow from a row and those before it?"""
    if placed.function in PLACES or placed.function == "lag":
        return True
    end = placed.frame.end
    return (
        placed.function != "lead" and placed.frame.unit == "rows" and end is not None and end <= 0
    )


@dataclass(frozen=True, slots=True)
class Ordered(Function):
    """Every row, with columns that follow from its place among the rows of its group.

    Rows are ordered as those of `Top`: by the columns `on`, those also in `descending` downwards,
    nulls least, and where they are alike in these by all columns upwards. With a `count` only
    the first so many of each group are there.
    """

    by: tuple[str, ...]
    on: tuple[str, ...]
    descending: tuple[str, ...]
    columns: tuple[Placed, ...]
    count: int | None = None

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Ordered", is_relation=True)
        schema = inputs[0].schema
        read = (c.column for c in self.columns if c.column is not None)
        require_columns((*self.by, *self.on, *read), schema, "Ordered")
        strange = [name for name in self.descending if name not in self.on]
        if strange:
            raise FunctionFault(f'"{strange[0]}" is descending but not among the columns of `on`')
        if self.count is not None and self.count < 1:
            raise FunctionFault("Ordered keeps at least one row")
        order = tuple(schema[n] for n in self.on)
        for column in self.columns:
            if column.name in schema:
                raise FunctionFault(f'Ordered: there is a column "{column.name}" already')
            if fault := column.frame.fault(order):
                raise FunctionFault(f"Ordered: {fault}")
        fields = tuple(Field(c.name, c.result_type(schema)) for c in self.columns)
        return (QueueType(Schema((*schema.fields, *fields)), is_relation=True),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = frozenset(inputs[0].schema.names)
        return facts_of_keeping(
            inputs, index, reads=names, writes=frozenset(c.name for c in self.columns),
            is_stateless=False, key=self.by, is_commutative=True,
        )  # fmt: skip
