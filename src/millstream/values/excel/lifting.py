"""Many values where one is wanted: intersections, and functions applied to each of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from millstream.values.excel.arrays import MAX_ARRAY, Area, Array, Operand, Union
from millstream.values.excel.values import CALC, NA, VALUE, Raised, Scalar, fail, fail_if

if TYPE_CHECKING:
    from millstream.values.excel.evaluate import Context


def one_value(operand: Operand, context: Context) -> Scalar:
    """An operand where one value is wanted, outside array formulas."""
    if isinstance(operand, Area):
        return intersected(operand, context)
    if isinstance(operand, Array):
        return operand.at(0, 0) if operand.rows else fail(VALUE)
    if isinstance(operand, Union):
        fail(VALUE)
    if operand is not None and not isinstance(operand, (float, str, bool)):
        fail(CALC)  # a function, which no cell can hold
    return operand


def intersected(area: Area, context: Context) -> Scalar:
    if area.is_cell:
        return area.at(0, 0)
    row, column = 0, 0
    if area.height > 1:
        row = context.row - area.top
    if area.width > 1:
        column = context.column - area.left
    if (area.height > 1 and area.width > 1) or not (
        0 <= row < area.height and 0 <= column < area.width
    ):
        fail(VALUE)
    return area.at(row, column)


def as_table(operand: Operand) -> Array | Area:
    if isinstance(operand, (Array, Area)):
        return operand
    if isinstance(operand, Union):
        if len(operand.areas) == 1:
            return operand.areas[0]
        fail(VALUE)
    return Array(((operand,),))


# --- applying scalar functions to arrays ------------------------------------------------


def lifted(
    function: Callable[..., Scalar], operands: Sequence[Operand], context: Context
) -> Operand:
    """A function of scalars applied to operands, element by element where there are several."""
    plain = [_liftable(o, context) for o in operands]
    arrays = [p for p in plain if isinstance(p, Array)]
    if not arrays:
        return function(*plain)
    height = max(a.height for a in arrays)
    width = max(a.width for a in arrays)
    fail_if(height * width > MAX_ARRAY)
    getters = [_getter(p) for p in plain]
    return Array(
        tuple(
            tuple(_applied(function, [g(i, j) for g in getters]) for j in range(width))
            for i in range(height)
        )
    )


def _liftable(operand: Operand, context: Context) -> Scalar | Array:
    if isinstance(operand, Area):
        if operand.is_cell:
            return operand.at(0, 0)
        if context.is_array:
            return operand.to_array()
        try:
            return intersected(operand, context)
        except Raised as raised:
            return raised.error  # a value like others, for functions such as ISERROR
    if isinstance(operand, Union):
        fail(VALUE)
    return operand


def _applied(function: Callable[..., Scalar], values: list[Scalar]) -> Scalar:
    try:
        value: Any = function(*values)
        if isinstance(value, (Area, Array)):
            # There are no arrays of arrays: of each the first value stays.
            value = value.at(0, 0) if value.height else fail(VALUE)
    except Raised as raised:
        return raised.error
    if callable(value):
        return CALC  # no element can be a function
    # An array has no empty elements: what an IF takes from an empty cell is a zero in it.
    return 0.0 if value is None else value


def _getter(operand: Scalar | Array) -> Callable[[int, int], Scalar]:
    if not isinstance(operand, Array):
        return lambda _i, _j: operand
    rows, height, width = operand.rows, operand.height, operand.width

    def element(i: int, j: int) -> Scalar:
        i = 0 if height == 1 else i
        j = 0 if width == 1 else j
        return rows[i][j] if i < height and j < width else NA

    return element
