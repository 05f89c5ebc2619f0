"""Between the values of streams and those of cells."""

from __future__ import annotations

import math
from collections import Counter

from millstream.calculus.sheets import OutputColumn, address_text
from millstream.calculus.terms import canonical
from millstream.calculus.types import Kind, Type, Value
from millstream.values.excel.dates import OFFSET_1904
from millstream.values.excel.values import NUM, ErrorValue, Scalar, to_text

_MICROS_PER_DAY = 86_400_000_000
#: Days from 30 December 1899 to 1 January 1970.
_DAYS_TO_1970 = 25_569


def to_cell(value: Value, type_: Type, *, uses_1904: bool) -> Scalar:
    """A value of a column as a cell holds it: times are dates, null is empty."""
    if value is None:
        return None
    match type_.kind:
        case Kind.TEXT:
            return str(value)
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.TIME:
            days = int(value) / _MICROS_PER_DAY + _DAYS_TO_1970
            return days - OFFSET_1904 if uses_1904 else days
        case Kind.DURATION:
            return int(value) / _MICROS_PER_DAY
        case _:
            number = float(value)
            return number if math.isfinite(number) else NUM


def from_cell(
    value: Scalar, column: OutputColumn, faults: Counter[str], *, uses_1904: bool
) -> Value:
    """What a cell holds as a value of a column; what does not fit is null and counted."""
    if value is None:
        return None
    if type(value) is ErrorValue:
        faults[f"{value} in {address_text(column.address)}"] += 1
        return None
    match column.type.kind:
        case Kind.NUMBER:
            if type(value) is float:
                return canonical(value)
        case Kind.BOOLEAN:
            if type(value) is bool:
                return value
        case Kind.TEXT:
            return to_text(value)
        case kind if type(value) is float:
            whole = _whole(value, kind, uses_1904=uses_1904)
            if whole is not None and -(2**63) < whole < 2**63:
                return whole
    faults[f"no {column.type} in {address_text(column.address)}"] += 1
    return None


def _whole(value: float, kind: Kind, *, uses_1904: bool) -> int | None:
    """A number as an integer, or as microseconds: of a date since 1970, or of as many days."""
    if kind is Kind.INTEGER:
        return int(value) if value.is_integer() else None
    days = math.floor(value)
    micros = days * _MICROS_PER_DAY + round((value - days) * _MICROS_PER_DAY)
    if kind is Kind.TIME:
        micros -= (_DAYS_TO_1970 - (OFFSET_1904 if uses_1904 else 0)) * _MICROS_PER_DAY
    return micros
