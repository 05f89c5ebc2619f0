"""Arrow columns of any width, unit or encoding to vectors.

What a column cannot hold is an error of the whole file (`can_hold`); what single values
cannot be (too large, not UTF-8) is told row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import INT64_MAX, INTEGER, NUMBER, Kind, Type
from millstream.connectors.csv_rows import check_utf8
from millstream.connectors.layout import scaled
from millstream.connectors.time_style import PLAIN, TimeStyle
from millstream.connectors.values import TIME_UNITS, Unfit, from_text
from millstream.plan.batch import ARROW_TYPES, Array, Vector, vector_from_arrow, vector_of

_SCALES = {**TIME_UNITS, "d": (86_400_000_000, 1)}
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())

#: A column, and which of its rows are unfit (None if all are fine).
Taken = tuple[Vector, Array | None]


def can_hold(kind: Kind, arrow: Any, unit: str | None = None) -> bool:
    """Whether a column of this Arrow type can be read as this kind.

    Numbers with fractions can be times only if somebody says what they count.
    """
    types = pa.types
    if types.is_null(arrow):
        return True
    if types.is_dictionary(arrow):
        return can_hold(kind, arrow.value_type, unit)
    match kind:
        case Kind.NUMBER:
            return bool(
                types.is_floating(arrow) or types.is_integer(arrow) or types.is_decimal(arrow)
            )
        case Kind.INTEGER:  # with nulls, pandas makes floats of them
            return bool(
                types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow)
            )
        case Kind.BOOLEAN:
            return bool(types.is_boolean(arrow))
        case Kind.TEXT:
            return arrow in _TEXTS
        case Kind.TIME:
            fits = types.is_timestamp(arrow) or types.is_date(arrow)
            fits = fits or (unit is not None and types.is_floating(arrow))
            return bool(fits or types.is_integer(arrow) or arrow in _TEXTS)
        case Kind.DURATION:
            fits = types.is_duration(arrow) or types.is_integer(arrow)
            return bool(fits or arrow in _TEXTS)
        case _:
            return False  # a machine's numbers are held inside of procedures only


def take_column(type_: Type, array: Any, style: TimeStyle = PLAIN) -> Taken:
    """The vector of a column that can hold the type. Unfit rows hold anything."""
    if type_.kind is Kind.TEXT:
        return _text(type_, array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return vector_from_arrow(type_, array.cast(ARROW_TYPES[type_.kind])), None
    if array.type in _TEXTS:
        return _written(type_, array, style)
    if type_.kind is Kind.TIME and style.unit and not pa.types.is_temporal(array.type):
        return _counted(type_, array, style.unit)
    if style.zone and pa.types.is_timestamp(array.type) and array.type.tz is None:
        return _local(type_, array, style.zone)
    return _TAKERS[type_.kind](type_, array)


def _number(type_: Type, array: Any) -> Taken:
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())  # the way by text is rounded correctly
    return vector_from_arrow(type_, pc.cast(array, pa.float64(), safe=False)), None


def _boolean(type_: Type, array: Any) -> Taken:
    return vector_from_arrow(type_, array), None


def _integer(type_: Type, array: Any) -> Taken:
    """Integers of any width, and other numbers as far as they are whole."""
    if not pa.types.is_integer(array.type):
        return _whole(type_, array)
    unfit = None
    if array.type == pa.uint64():
        unfit = _true(pc.greater(array, pa.scalar(INT64_MAX, pa.uint64())))
    plain = vector_from_arrow(INTEGER, pc.cast(array, pa.int64(), safe=False))
    return Vector(type_, plain.values, plain.valid), unfit


def _whole(type_: Type, array: Any) -> Taken:
    if pa.types.is_decimal(array.type):
        exact = array.to_pylist()
        fits = [d is None or (d == d // 1 and -INT64_MAX - 1 <= d <= INT64_MAX) for d in exact]
        whole = [int(d) if d is not None and fit else None
                 for d, fit in zip(exact, fits, strict=True)]  # fmt: skip
        unfit = ~np.array(fits, np.bool_)
        return vector_of(type_, whole), unfit if unfit.any() else None
    numbers = vector_from_arrow(NUMBER, pc.cast(array, pa.float64(), safe=False))
    fits = (numbers.values == np.floor(numbers.values)) & (
        (numbers.values >= -(2.0**63)) & (numbers.values < 2.0**63)
    )
    unfit = ~fits & numbers.mask()
    values = np.where(fits, numbers.values, 0.0).astype(np.int64)
    return Vector(type_, values, numbers.valid), unfit if unfit.any() else None


def _moment(type_: Type, array: Any) -> Taken:
    """Times and durations of any unit, in microseconds; finer ones are rounded down."""
    arrow = array.type
    if pa.types.is_integer(arrow):
        return _integer(type_, array)
    is_days = pa.types.is_date32(arrow)
    raw = array.view(pa.int32()).cast(pa.int64()) if is_days else array.view(pa.int64())
    plain = vector_from_arrow(INTEGER, raw)
    unit = "ms" if pa.types.is_date64(arrow) else "d" if is_days else arrow.unit
    return _in_micros(type_, plain, unit)


def _in_micros(type_: Type, plain: Vector, unit: str) -> Taken:
    micros, too_large = scaled(plain.values, *_SCALES[unit])
    unfit = None if too_large is None else too_large & plain.mask()
    return Vector(type_, micros, plain.valid), unfit


def _local(type_: Type, array: Any, zone: str) -> Taken:
    """Time stamps of a zone; those that its clock has never shown do not fit."""
    ways = {"ambiguous": "earliest", "nonexistent": "earliest"}
    placed = pc.assume_timezone(array, zone, **ways)
    unfit = _true(pc.not_equal(pc.local_timestamp(placed), array))
    return _moment(type_, placed)[0], unfit


def _counted(type_: Type, array: Any, unit: str) -> Taken:
    """Times that are numbers of some unit since 1970."""
    if pa.types.is_integer(array.type):
        plain, unfit = _integer(type_, array)
        vector, too_large = _in_micros(type_, plain, unit)
        return vector, too_large if unfit is None else unfit
    numbers = vector_from_arrow(NUMBER, pc.cast(array, pa.float64(), safe=False))
    micros, parts = TIME_UNITS[unit]
    exact = np.rint(numbers.values * (micros / parts))
    fits = np.abs(exact) < float(INT64_MAX)
    unfit = ~fits & numbers.mask()
    values = np.where(fits, exact, 0.0).astype(np.int64)
    return Vector(type_, values, numbers.valid), unfit if unfit.any() else None


_TAKERS: dict[Kind, Callable[[Type, Any], Taken]] = {
    Kind.NUMBER: _number,
    Kind.INTEGER: _integer,
    Kind.BOOLEAN: _boolean,
    Kind.TIME: _moment,
    Kind.DURATION: _moment,
}


def _text(type_: Type, array: Any) -> Taken:
    """Text, dictionary-encoded if it came so; a dictionary is checked instead of its rows."""
    if pa.types.is_null(array.type):
        return Vector(type_, array.cast(pa.string())), None
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string())
        return Vector(type_, array), _not_utf8(array)
    if array.type.value_type != pa.string():
        texts = array.dictionary.cast(pa.string())
        array = pa.DictionaryArray.from_arrays(array.indices, texts)
    unfit = _not_utf8(array.dictionary)
    if unfit is not None:
        unfit = _true(pa.array(unfit).take(array.indices))
    return Vector(type_, array), unfit


def _not_utf8(array: Any) -> Array | None:
    """Arrow does not look at bytes when it reads them."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raw = array.cast(pa.binary()).to_pylist()
        return np.array([cell is not None and not _is_utf8(cell) for cell in raw], np.bool_)
    return None


def _is_utf8(raw: bytes) -> bool:
    try:
        check_utf8(raw)
    except Unfit:
        return False
    return True


def _written(type_: Type, array: Any, style: TimeStyle) -> Taken:
    """Times and durations written as text."""
    values: list[int | None] = []
    unfit = np.zeros(len(array), np.bool_)
    for row, raw in enumerate(array.cast(pa.binary()).to_pylist()):
        value = None
        if raw is not None:
            try:
                value = _value_of(type_, raw, style)
            except Unfit:
                unfit[row] = True
        values.append(value)
    return vector_of(type_, values), unfit if unfit.any() else None


def _value_of(type_: Type, raw: bytes, style: TimeStyle) -> int:
    check_utf8(raw)
    value = from_text(type_.kind, raw.decode(), style)
    assert isinstance(value, int)
    return value


def _true(array: Any) -> Array | None:
    """Which are true, null being false; None if none is."""
    truths = np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False))
    return truths if truths.any() else None


def why_unfit(type_: Type, cell: Any, style: TimeStyle = PLAIN) -> str:
    """The reason for an unfit row, given its cell as an array of one."""
    if pa.types.is_dictionary(cell.type):
        cell = cell.dictionary_decode()
    if cell.type in _TEXTS:
        raw: bytes = cell.cast(pa.binary())[0].as_py()
        try:
            check_utf8(raw)
            _value_of(type_, raw, style)
        except Unfit as unfit:
            return str(unfit)
        raise AssertionError(raw)
    if type_.kind is Kind.INTEGER and not pa.types.is_integer(cell.type):
        return f"expected an integer, got {cell[0].as_py()}"
    if pa.types.is_integer(cell.type) or pa.types.is_floating(cell.type):
        return f"{cell[0].as_py()} does not fit a 64-bit integer"
    if style.zone and pa.types.is_timestamp(cell.type) and cell.type.tz is None:
        return f"there was no {cell[0]!s} in {style.zone}"
    return "does not fit 64-bit microseconds"


def plain_value(cell: Any) -> object:
    """The one value of an array in a form that JSON can show, whatever is in it."""
    if cell.null_count or pa.types.is_null(cell.type):
        return None
    if pa.types.is_dictionary(cell.type):
        cell = cell.dictionary_decode()
    if cell.type in _TEXTS:
        return cell.cast(pa.binary())[0].as_py().decode("utf-8", "backslashreplace")
    if pa.types.is_temporal(cell.type):
        width = pa.int32() if pa.types.is_date32(cell.type) else pa.int64()
        return cell.view(width)[0].as_py()
    value = cell[0].as_py()
    return value if isinstance(value, (bool, int, float)) else str(value)
