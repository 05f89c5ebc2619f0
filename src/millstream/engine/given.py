"""Rows that a Python program gives, as items of an input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from millstream.calculus.graph import Input
from millstream.calculus.terms import fitted
from millstream.calculus.types import (
    INTEGER,
    START_OF_TIME,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Field,
    Row,
    Type,
    Value,
)
from millstream.connectors.layout import refuse_weights
from millstream.connectors.time_style import TimeStyle
from millstream.connectors.values import time_of
from millstream.errors import UsageError, suggest


def items_given(one: Input, rows: Iterable[Mapping[str, Value]]) -> Iterator[tuple[int, Row, int]]:
    """Dictionaries as items; integers become numbers where a number is wanted."""
    known = {TIME_COLUMN, WEIGHT_COLUMN, one.time, *one.type.schema.names}
    for number, row in enumerate(rows, 1):
        strange = next((key for key in row if key not in known), None)
        if strange is not None and any(name not in row for name in one.type.schema.names):
            raise UsageError(
                f'row {number} of "{one.name}": unknown column "{strange}"',
                hint=suggest(strange, one.type.schema.names),
            )
        if one.is_log:
            refuse_weights(one, tuple(row), f"row {number}")
        time = START_OF_TIME if one.is_read_once else row.get(one.time or TIME_COLUMN)
        time = number if one.is_numbered else time
        weight = row.get(WEIGHT_COLUMN, 1)
        if not _is_of(time, TIME) or not _is_of(weight, INTEGER):
            raise UsageError(
                f'row {number} of "{one.name}" has no time in microseconds',
                hint=f'give it as an integer: {{"{one.time or TIME_COLUMN}": 1735689600000000}}',
            )
        assert isinstance(time, int) and isinstance(weight, int)
        if one.unit is not None and not one.is_read_once:
            time = time_of(str(time), TimeStyle(one.unit))
        yield time, tuple(_value(one, f, row.get(f.name), number) for f in one.type.schema), weight


def _value(one: Input, field_: Field, value: Value, number: int) -> Value:
    try:
        return fitted(value, field_.type)
    except TypeError as error:
        raise UsageError(
            f'row {number} of "{one.name}": expected {field_.name} to be a {field_.type}, '
            f"got {value!r}"
        ) from error


def _is_of(value: object, type_: Type) -> bool:
    try:
        return fitted(value, type_) is not None
    except TypeError:
        return False
