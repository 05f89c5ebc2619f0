"""From callables to functions of the calculus that work row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from millstream.calculus.check import Scope, check
from millstream.calculus.expressions import parse_expression
from millstream.calculus.functions import (
    Assign,
    Branch,
    Columns,
    Filter,
    FlatMap,
    FunctionFault,
    Map,
    Opaque,
    schema_of,
)
from millstream.calculus.syntax import Constant
from millstream.calculus.terms import Call, Column, Literal, Read, Term, VariableField
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME_COLUMN,
    TYPES_BY_NAME,
    Field,
    QueueType,
    Row,
    Schema,
    Type,
    Value,
)
from millstream.errors import UsageError, listing, suggest
from millstream.source import Source
from millstream.tracing.lambdas import (
    Record,
    RowFunction,
    Traced,
    Untraceable,
    called_with,
    expression_of,
    row_of,
    trace_row,
    trace_term,
    traced_columns,
)
from millstream.values.instants import micros_in

_TERMS = (Column, VariableField, Literal, Call, Read)
Adapted = Callable[[Row, int], list[Row]]


@dataclass(frozen=True, slots=True)
class MadeMap:
    """A function from rows to rows of a schema."""

    schema: Schema
    function: Map | Opaque


@dataclass(frozen=True, slots=True)
class MadeConcat:
    schema: Schema
    function: FlatMap | Opaque


@dataclass(frozen=True, slots=True)
class When:
    """A row that is there only where a condition holds."""

    condition: object
    row: object


def when(condition: object, row: object) -> When:
    """A row of a `map_concat` that is there only where a condition holds."""
    return When(condition, row)


def map_function(
    function: RowFunction | Columns,
    schema: Schema,
    columns: Mapping[str, str],
    *,
    has_time: bool = False,
) -> MadeMap:
    """One row for each; where rows have a time of their own, it is their `_time`."""
    if isinstance(function, tuple):
        return MadeMap(schema_of(function), Map(function))
    try:
        traced = trace_row(function, schema)
        return MadeMap(schema_of(traced), Map(traced))
    except Untraceable as reason:
        made = schema_needed(columns, reason)
        return MadeMap(
            made, _opaque(function, mapping(function, schema, made, has_time=has_time), made)
        )


def filter_function(
    condition: RowFunction | Term, schema: Schema, *, has_time: bool = False
) -> Filter | Opaque:
    if isinstance(condition, _TERMS):
        return Filter(condition)
    try:
        return Filter(trace_term(condition, schema, BOOLEAN))
    except Untraceable:
        return _opaque(condition, keeping(condition, schema, schema, has_time=has_time), schema)


def concat_function(
    function: RowFunction, schema: Schema, columns: Mapping[str, str], *, has_time: bool = False
) -> MadeConcat:
    try:
        branches = _traced_branches(function, schema, has_time=has_time)
    except Untraceable as reason:
        made = schema_needed(columns, reason)
        call = flat_mapping(function, schema, made, has_time=has_time)
        return MadeConcat(made, _opaque(function, call, made))
    flat_map = FlatMap(branches)
    try:
        (type_,) = flat_map.output_types((QueueType(schema),), 1)
    except FunctionFault as fault:
        raise UsageError(f"the rows of map_concat must be alike: {fault}") from None
    return MadeConcat(type_.schema, flat_map)


def _traced_branches(
    function: RowFunction, schema: Schema, *, has_time: bool
) -> tuple[Branch, ...]:
    rows = called_with(function, traced_columns(schema, has_time=has_time))
    if not isinstance(rows, list) or not rows:
        raise Untraceable("expected a list of rows")
    scope = Scope(schema)
    branches = []
    for one in rows:
        row = row_of(one.row if isinstance(one, When) else one)
        if not isinstance(row, Mapping):
            raise Untraceable("expected a list of dictionaries")
        condition = one.condition if isinstance(one, When) else None
        if isinstance(condition, bool):
            condition = Traced(expression_of(condition))
        wanted = None if condition is None else check(expression_of(condition), scope)
        columns = tuple(Assign(str(n), check(expression_of(v), scope)) for n, v in row.items())
        branches.append(Branch(wanted, columns))
    return tuple(branches)


def _opaque(function: RowFunction, call: Adapted, schema: Schema) -> Opaque:
    return Opaque(getattr(function, "__qualname__", repr(function)), schema, call)


# --- callables that are kept ----------------------------------------------------------------


def keeping(function: RowFunction, given: Schema, _: Schema, *, has_time: bool = False) -> Adapted:
    def call(row: Row, time: int) -> list[Row]:
        return [row] if function(given_row(given, row, time if has_time else None)) else []

    return call


def mapping(
    function: RowFunction, given: Schema, made: Schema, *, has_time: bool = False
) -> Adapted:
    def call(row: Row, time: int) -> list[Row]:
        return [_made_row(function(given_row(given, row, time if has_time else None)), made)]

    return call


def flat_mapping(
    function: RowFunction, given: Schema, made: Schema, *, has_time: bool = False
) -> Adapted:
    def call(row: Row, time: int) -> list[Row]:
        results: Any = function(given_row(given, row, time if has_time else None))
        rows: list[Any] = [
            one.row if isinstance(one, When) else one
            for one in results
            if not isinstance(one, When) or one.condition
        ]
        return [_made_row(one, made) for one in rows]

    return call


def _made_row(result: Any, made: Schema) -> Row:
    """A row as a dictionary, or the value of its only column."""
    if len(made) == 1 and not isinstance(result, (Mapping, Record)):
        return (result,)
    return tuple(result[n] for n in made.names)


def given_row(schema: Schema, row: Row, time: int | None = None) -> Record:
    """A real row, with columns as attributes and items, and perhaps its time."""
    timed: dict[str, Value] = {} if time is None else {TIME_COLUMN: time}
    return Record(timed | dict(zip(schema.names, row, strict=True)))


# --- names and values -----------------------------------------------------------------------


def schema_of_names(columns: Mapping[str, str | Type]) -> Schema:
    return Schema(tuple(Field(n, type_named(t, n)) for n, t in columns.items()))


def type_named(name: str | Type, column: str) -> Type:
    """A type by name; types themselves are accepted too, for those with a dimension."""
    if isinstance(name, Type):
        return name
    if name not in TYPES_BY_NAME:
        raise UsageError(
            f'unknown type "{name}" of column "{column}"',
            hint=f"types are: {listing(TYPES_BY_NAME)}",
        )
    return TYPES_BY_NAME[name]


def schema_needed(columns: Mapping[str, str], reason: Untraceable) -> Schema:
    if not columns:
        raise UsageError(
            f"this callable cannot be traced: {reason}",
            hint='name the columns it returns, such as map(f, cost="number")',
        )
    return schema_of_names(columns)


_TYPES_OF_VALUES: dict[type, Type] = {bool: BOOLEAN, int: INTEGER, float: NUMBER, str: TEXT}


def schema_of_values(values: Mapping[str, Value], columns: Mapping[str, str | Type]) -> Schema:
    """The types that values show, or that are said where they do not."""
    strange = [n for n in columns if n not in values]
    if strange:
        raise UsageError(
            f'a type is given for "{strange[0]}", which is not there',
            hint=suggest(strange[0], values),
        )
    fields = []
    for name, value in values.items():
        shown = _TYPES_OF_VALUES.get(type(value))
        if name not in columns and shown is None:
            raise UsageError(
                f'the type of "{name}" cannot be told from {value!r}',
                hint=f'say it: {name}="number"',
            )
        fields.append(Field(name, type_named(columns[name], name) if name in columns else shown))  # type: ignore[arg-type]
    return Schema(tuple(fields))


def micros(text: str | timedelta) -> int:
    """The microseconds of a duration such as "5 min", or of one of Python."""
    if isinstance(text, timedelta):
        return micros_in(text)
    value = parse_expression(Source("duration", text))
    if not isinstance(value, Constant) or value.type != DURATION:
        raise UsageError(f'"{text}" is not a duration', hint='write "5 min"')
    assert isinstance(value.value, int)
    return value.value
