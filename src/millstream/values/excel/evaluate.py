"""The value of a formula, given the values of cells.

In an ordinary formula a reference to several cells where one value is wanted means the
cell in the same row or column (implicit intersection); in an array formula, and inside
functions such as SUMPRODUCT, it means all of them, and operators and functions are applied
to each. Array constants always mean all their elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

from millstream.values.excel.arrays import Area, Array, Cells, Operand, Union
from millstream.values.excel.dates import OFFSET_1904
from millstream.values.excel.lifting import as_table, lifted, one_value
from millstream.values.excel.operators import BINARY, UNARY, add_or_zero
from millstream.values.excel.registry import LEFT_OUT, SCALAR_KINDS, Spec
from millstream.values.excel.syntax import (
    Binary,
    Call,
    Cell,
    Constants,
    Group,
    Literal,
    Name,
    Node,
    Range,
    Unary,
    WindowOf,
    shifted,
)
from millstream.values.excel.values import (
    DIV0,
    NAME,
    NUM,
    REF,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    checked,
    fail,
    fail_if,
    to_boolean,
    to_number,
    to_text,
)


class Unsupported(Exception):
    """A formula uses what is not there; the message says what and why."""


class Names(Protocol):
    """Whoever knows the defined names, and what is written as a reference."""

    def defined(self, name: str, sheet: str) -> Node | None: ...

    def reference(self, text: str, sheet: str, row: int) -> Node | None:
        """What a text refers to in a formula on a worksheet; None if it is no reference."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """Where a formula stands and how it is to be evaluated."""

    cells: Cells
    names: Names
    sheet: str = ""
    row: int = 1
    column: int = 1
    is_array: bool = False
    uses_1904: bool = False
    locals: tuple[tuple[str, Any], ...] = ()
    names_open: tuple[str, ...] = ()
    #: In how many calls of functions that the formula makes itself.
    depth: int = 0

    def as_array(self) -> Context:
        if self.is_array:
            return self
        # Written out, since `replace` would take longer than most functions do.
        return Context(
            self.cells, self.names, self.sheet, self.row, self.column, True, self.uses_1904,
            self.locals, self.names_open, self.depth,
        )  # fmt: skip


Special = Callable[[Context, tuple[Node, ...]], Operand]


def value_of(node: Node, context: Context) -> Scalar:
    """The value of a cell with this formula. What is empty is zero, as Excel shows it."""
    try:
        value = one_value(_root(node, context), context)
    except Raised as raised:
        return raised.error
    return 0.0 if value is None else value


def part_of(node: Node, context: Context) -> Scalar:
    """The value of a part of a formula: what is empty stays empty."""
    try:
        return one_value(evaluate(node, context), context)
    except Raised as raised:
        return raised.error


def array_of(node: Node, context: Context) -> Array:
    """The values of an array-entered formula."""
    try:
        result = evaluate(node, context.as_array())
        if isinstance(result, Union):
            fail(VALUE)
        if not isinstance(result, (Area, Array)):
            result = one_value(result, context)
        array = as_table(result).to_array()
    except Raised as raised:
        return Array(((raised.error,),))
    return Array(tuple(tuple(0.0 if v is None else v for v in row) for row in array.rows))


def _root(node: Node, context: Context) -> Operand:
    """Excel takes a sum or difference that all but vanishes for zero, if it comes last."""
    if isinstance(node, Binary) and node.operator in ("+", "-"):
        operands = (_valued(node.left, context), _valued(node.right, context))
        return _applied_to_all(lambda a, b: add_or_zero(node.operator, a, b), operands, context)
    return evaluate(node, context)


def evaluate(node: Node, context: Context) -> Operand:
    """A scalar, an array or a reference; errors inside operators are raised."""
    return _EVALUATORS[type(node)](node, context)


# --- nodes ------------------------------------------------------------------------------


def _literal(node: Literal, context: Context) -> Operand:
    if type(node.value) is ErrorValue:
        raise Raised(node.value)
    return node.value


def _constants(node: Constants, context: Context) -> Operand:
    return Array(node.rows)


def _cell(node: Cell, context: Context) -> Operand:
    return Area(context.cells, node.sheet, node.row, node.column, node.row, node.column)


def _window(node: WindowOf, context: Context) -> Operand:
    cell = node.cell
    return context.cells.window(cell.sheet, cell.row, cell.column)


def _range(node: Range, context: Context) -> Operand:
    a, b = node.first, node.last
    return Area(
        context.cells, node.sheet, min(a.row, b.row), min(a.column, b.column),
        max(a.row, b.row), max(a.column, b.column),
    )  # fmt: skip


def _name(node: Name, context: Context) -> Operand:
    folded = node.name.casefold()
    for name, value in context.locals:
        if name == folded:
            return value  # type: ignore[no-any-return]
    meaning = context.names.defined(node.name, node.sheet)
    if meaning is None:
        raise Raised(NAME)
    if folded in context.names_open:
        raise Unsupported(f'the defined name "{node.name}" is defined by itself')
    inside = replace(context, names_open=(*context.names_open, folded))
    # A relative reference in a name is written as seen from A1.
    return evaluate(shifted(meaning, context.row - 1, context.column - 1), inside)


def _valued(node: Node, context: Context) -> Operand:
    """An operand of an operator: a reference to one cell is its value, without further ado."""
    if type(node) is Cell:
        return context.cells.value(node.sheet, node.row, node.column)
    return _no_function(evaluate(node, context))


def _no_function(operand: Any) -> Operand:
    """An operand; a function made by LAMBDA is no value to operators and other functions."""
    plain: Operand = fail(VALUE) if callable(operand) else operand
    return plain


def _applied_to_all(
    function: Callable[..., Scalar], operands: tuple[Operand, ...], context: Context
) -> Operand:
    """As `lifted`, with the common case first."""
    for operand in operands:
        if isinstance(operand, (Area, Array, Union)):
            return lifted(function, operands, context)
    return function(*operands)


def _unary(node: Unary, context: Context) -> Operand:
    if node.operator != "+":
        operand = _valued(node.operand, context)
        return _applied_to_all(UNARY[node.operator], (operand,), context)
    return evaluate(node.operand, context)


def _binary(node: Binary, context: Context) -> Operand:
    if node.operator in (":", " ", ","):
        return _reference_operator(node, context)
    # A chain a+b+c is a tree as deep as it is long: walk down its left side in a loop.
    chain: list[Binary] = [node]
    while isinstance(chain[-1].left, Binary) and chain[-1].left.operator not in (":", " ", ","):
        chain.append(chain[-1].left)
    result = _valued(chain[-1].left, context)
    for step in reversed(chain):
        right = _valued(step.right, context)
        result = _applied_to_all(BINARY[step.operator], (result, right), context)
    return result


def _group(node: Group, context: Context) -> Operand:
    return evaluate(node.inner, context)


def _reference_operator(node: Binary, context: Context) -> Operand:
    left, right = evaluate(node.left, context), evaluate(node.right, context)
    areas = (*_areas(left), *_areas(right))
    if node.operator == ",":
        return Union(areas)
    fail_if(len(areas) != 2 or areas[0].sheet != areas[1].sheet, VALUE)
    a, b = areas
    if node.operator == ":":
        return Area(a.cells, a.sheet, min(a.top, b.top), min(a.left, b.left),
                    max(a.bottom, b.bottom), max(a.right, b.right))  # fmt: skip
    top, left = max(a.top, b.top), max(a.left, b.left)
    bottom, right_ = min(a.bottom, b.bottom), min(a.right, b.right)
    if top > bottom or left > right_:
        fail(ErrorValue("#NULL!"))
    return Area(a.cells, a.sheet, top, left, bottom, right_)


def _areas(operand: Operand) -> tuple[Area, ...]:
    if isinstance(operand, Area):
        return (operand,)
    if isinstance(operand, Union):
        return operand.areas
    if type(operand) is ErrorValue:
        raise Raised(operand)
    fail(REF if operand is None else VALUE)


# --- calls ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionShape:
    """A function of the table with so many arguments: their kinds, and which are scalars."""

    spec: Spec
    kinds: tuple[str, ...]
    are_scalars: tuple[bool, ...]
    places: tuple[int, ...]


def _shape(spec: Spec, count: int) -> FunctionShape:
    kinds = tuple(spec.kinds_for(count))
    are_scalars = tuple(k in SCALAR_KINDS for k in kinds)
    return FunctionShape(
        spec, kinds, are_scalars, tuple(n for n, is_one in enumerate(are_scalars) if is_one)
    )


@cache
def _known(function: str, count: int) -> Special | FunctionShape | None:
    """What a function of so many arguments is; None if more must be looked at."""
    from millstream.values.excel.table import FUNCTIONS, NAMING, SPECIAL, misuse

    nothing = (Literal(None),) * count
    if function in NAMING or misuse(Call(function, nothing)) is not None:
        return None
    if function in SPECIAL:
        return SPECIAL[function]
    spec = FUNCTIONS.get(function)
    return None if spec is None else _shape(spec, count)


def shape_of(function: str, count: int) -> FunctionShape | None:
    """A function of the table with so many arguments, if it is one."""
    known = _known(function, count)
    return known if isinstance(known, FunctionShape) else None


def _call(node: Call, context: Context) -> Operand:
    arguments = node.arguments
    known = _known(node.function, len(arguments))
    if isinstance(known, FunctionShape):
        kept = _kept_aggregate(node, context)
        return _called(known, arguments, context) if kept is None else kept[0]
    return _odd_call(node, context) if known is None else known(context, arguments)


def _odd_call(node: Call, context: Context) -> Operand:
    """A function that gives names, one that the formula makes itself, or one that is misused."""
    from millstream.values.excel.lambdas import call_of
    from millstream.values.excel.table import FUNCTIONS, SPECIAL, misuse, why_unknown

    special = SPECIAL.get(node.function)
    if special is None and node.function not in FUNCTIONS:
        own = _own_function(node.function, context)
        if own is not None:
            return call_of(own, node.arguments, context)
        raise Unsupported(why_unknown(node.function))
    wrong = misuse(node)
    if wrong is not None:
        raise Unsupported(wrong)
    assert special is not None
    return special(context, node.arguments)


def _own_function(name: str, context: Context) -> Any:
    """A function that LET or a defined name has given a name to, or None."""
    from millstream.values.excel.lambdas import Lambda

    folded = name.casefold()
    is_local = any(folded == known for known, _ in context.locals)
    if not is_local and context.names.defined(folded, context.sheet) is None:
        return None
    function: Any = _name(Name(folded, context.sheet), context)
    return function if isinstance(function, Lambda) else fail(VALUE)


def _kept_aggregate(node: Call, context: Context) -> tuple[Scalar] | None:
    """An aggregate of one window that whoever keeps the window knows without looking at it."""
    windows = [a for a in node.arguments if type(a) is WindowOf]
    if len(windows) != 1:
        return None
    cell, count = windows[0].cell, len(node.arguments) - 1
    kept = context.cells.kept_aggregate(node.function, count, cell.sheet, cell.row, cell.column)
    if kept is None:
        return None
    try:
        others = [evaluate(a, context) for a in node.arguments if a is not windows[0]]
    except Raised:
        return None  # the function itself may pass over an error
    if any(
        isinstance(o, (Array, Union)) or (isinstance(o, Area) and not o.is_cell) for o in others
    ):
        return None  # of many values
    return kept(*(one_value(o, context) for o in others))


def call(spec: Spec, nodes: tuple[Node, ...], context: Context) -> Operand:
    """Apply a function of the table to arguments that are still formulas."""
    return _called(_shape(spec, len(nodes)), nodes, context)


def _called(shape: FunctionShape, nodes: tuple[Node, ...], context: Context) -> Operand:
    spec, kinds = shape.spec, shape.kinds
    operands: list[Any] = []
    is_plain = True
    for number, node in enumerate(nodes):
        kind, is_scalar = kinds[number], shape.are_scalars[number]
        is_left_out = type(node) is Literal and node.value is None
        if is_left_out and spec.defaults is not None and number >= spec.least:
            operands.append(LEFT_OUT)
            continue
        inside = context.as_array() if kind == "a" else context
        try:
            operand = _valued(node, inside) if is_scalar else _no_function(evaluate(node, inside))
            if kind == "f" and isinstance(operand, Area):
                operand = operand.at(0, 0)
            operands.append(operand)
            if is_scalar and isinstance(operand, (Area, Array, Union)):
                is_plain = False
        except Raised as raised:
            # Functions decide for themselves whether an error matters to them.
            operands.append(raised.error)
    if is_plain:
        result: Operand = _invoked(spec, kinds, operands, context)
        return result
    places = shape.places

    def with_scalars(*values: Scalar) -> Any:
        filled = list(operands)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        return _invoked(spec, kinds, filled, context)

    return lifted(with_scalars, [operands[n] for n in places], context)


def _invoked(spec: Spec, kinds: tuple[str, ...], values: list[Any], context: Context) -> Any:
    arguments = []
    for n, value in enumerate(values):
        if value is LEFT_OUT:
            arguments.append(spec.defaults[n])  # type: ignore[index]
            continue
        coerced = COERCED.get(kinds[n])
        if coerced is not None:
            arguments.append(coerced(value))
        elif kinds[n] == "d":
            arguments.append(to_number(value) + (OFFSET_1904 if context.uses_1904 else 0))
        else:
            arguments.append(value)
    if spec.wants_context:
        arguments.insert(0, context)
    try:
        result = spec.call(*arguments)
    except ZeroDivisionError:
        raise Raised(DIV0) from None
    except ArithmeticError:
        raise Raised(NUM) from None
    if type(result) is float:
        if not math.isfinite(result):
            raise Raised(NUM)
        if spec.gives_date and context.uses_1904:
            return result - OFFSET_1904
    return _with_numbers(result) if type(result) is Array else result


def _with_numbers(array: Array) -> Array:
    """An array whose elements cells can hold: there are no infinities."""
    numbers = [v for row in array.rows for v in row if type(v) is float]
    if all(map(math.isfinite, numbers)):
        return array

    def is_held(value: Scalar) -> bool:
        return type(value) is not float or math.isfinite(value)

    return Array(tuple(tuple(v if is_held(v) else NUM for v in row) for row in array.rows))


#: What is done to an argument of a kind; a date depends on the workbook.
COERCED: dict[str, Callable[[Any], Any]] = {
    "n": to_number, "t": to_text, "b": to_boolean, "v": checked, "f": checked,
}  # fmt: skip


_EVALUATORS: dict[type, Callable[[Any, Context], Operand]] = {
    Literal: _literal,
    Constants: _constants,
    Cell: _cell,
    Range: _range,
    Name: _name,
    Unary: _unary,
    Binary: _binary,
    Group: _group,
    Call: _call,
    WindowOf: _window,
}
