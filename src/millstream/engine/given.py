"""Rows that a Python program gives, as items of an input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from millstream.calculus.graph import Input
from millstream.calculus.terms import fitted
from millstream.calculus.types import (
    DURATION,
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
from millstream.values.instants import micros_in, micros_of


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
        is_moment = isinstance(time, datetime)
        time = number if one.is_numbered else _plain(time, TIME, one.zone)
        weight = row.get(WEIGHT_COLUMN, 1)
        if not _is_of(time, TIME) or not _is_of(weight, INTEGER):
            raise UsageError(
                f'row {number} of "{one.name}" has no time',
                hint=f'give "{one.time or TIME_COLUMN}" in microseconds since 1970, or a datetime',
            )
        assert isinstance(time, int) and isinstance(weight, int)
        if one.unit is not None and not (one.is_read_once or is_moment):
            time = time_of(str(time), TimeStyle(one.unit))
        yield time, tuple(_value(one, f, row.get(f.name), number) for f in one.type.schema), weight


def _value(one: Input, field_: Field, value: Value, number: int) -> Value:
    try:
        return fitted(_plain(value, field_.type, one.zone), field_.type)
    except TypeError as error:
        raise UsageError(
            f'row {number} of "{one.name}": expected {field_.name} to be a {field_.type}, '
            f"got {value!r}"
        ) from error


def _plain(value: Any, type_: Type, zone: str | None) -> Any:
    """Moments and lengths of time of Python as microseconds; a naive moment is in the zone."""
    if type_ == TIME and isinstance(value, datetime):
        if value.tzinfo is None and zone is not None:
            value = value.replace(tzinfo=ZoneInfo(zone))
        return micros_of(value)
    if type_ == DURATION and isinstance(value, timedelta):
        return micros_in(value)
    return value


def _is_of(value: object, type_: Type) -> bool:
    try:
        return fitted(value, type_) is not None
    except TypeError:
        return False
