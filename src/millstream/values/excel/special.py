"""Functions that choose which of their arguments are evaluated, or look at references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.values.excel.arrays import Area, Array, Operand, Union, column_of
from millstream.values.excel.evaluate import Context, Special, evaluate
from millstream.values.excel.gather import Tables
from millstream.values.excel.lifting import as_table, intersected, lifted, one_value
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.syntax import Cell, Group, Name, Node, Range
from millstream.values.excel.values import (
    ERRORS,
    NA,
    REF,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    compare,
    fail,
    fail_if,
    to_boolean,
    to_number,
)


def _or_error(node: Node, context: Context) -> Operand:
    """An operand, an error being one too."""
    try:
        return evaluate(node, context)
    except Raised as raised:
        return raised.error


def _plain(operand: Operand, context: Context) -> Scalar | Array:
    """A scalar, or an array if the formula is to be applied to each of its elements."""
    if isinstance(operand, Area) and context.is_array and not operand.is_cell:
        return operand.to_array()
    if isinstance(operand, Array):
        return operand
    return one_value(operand, context)


# --- choosing ---------------------------------------------------------------------------


def _if(context: Context, nodes: tuple[Node, ...]) -> Operand:
    condition = evaluate(nodes[0], context)
    if isinstance(condition, (Area, Union, Array)):
        condition = _plain(condition, context)
    if isinstance(condition, Array):
        branches = [_or_error(n, context) for n in nodes[1:]]
        chosen: list[Operand] = [*branches, *([True, False][len(branches) :])]
        return lifted(lambda c, a, b: a if to_boolean(c) else b, (condition, *chosen), context)
    if to_boolean(condition):
        return evaluate(nodes[1], context) if len(nodes) > 1 else True
    return evaluate(nodes[2], context) if len(nodes) > 2 else False


def _if_bad(is_bad: Callable[[Scalar], bool]) -> Special:
    def choose(context: Context, nodes: tuple[Node, ...]) -> Operand:
        operand = _or_error(nodes[0], context)
        try:
            value = _plain(operand, context)
        except Raised as raised:
            value = raised.error
        if isinstance(value, Array):
            instead = _or_error(nodes[1], context)
            return lifted(lambda a, b: b if is_bad(a) else a, (value, instead), context)
        return evaluate(nodes[1], context) if is_bad(value) else value

    return choose


def _is_error(value: Scalar) -> bool:
    return type(value) is ErrorValue


def _choose(context: Context, nodes: tuple[Node, ...]) -> Operand:
    which = _plain(evaluate(nodes[0], context), context)
    if isinstance(which, Array):
        choices = [_or_error(n, context) for n in nodes[1:]]

        def pick(number: Scalar, *values: Scalar) -> Scalar:
            n = int(to_number(number))
            return values[n - 1] if 1 <= n <= len(values) else fail(VALUE)

        return _picked_columns(which, choices) or lifted(pick, (which, *choices), context)
    number = int(to_number(which))
    fail_if(not 1 <= number < len(nodes), VALUE)
    return evaluate(nodes[number], context)


def _picked_columns(which: Array, choices: list[Operand]) -> Array | None:
    """`CHOOSE({1,2},B1:B3,A1:A3)`: columns side by side, as for a lookup to the left."""
    if which.height != 1 or not all(isinstance(c, Area) and c.width == 1 for c in choices):
        return None
    columns = []
    for number in which.values():
        n = int(to_number(number))
        fail_if(not 1 <= n <= len(choices), VALUE)
        columns.append(tuple(as_table(choices[n - 1]).to_array().values()))
    if len({len(c) for c in columns}) > 1:
        return None
    return Array(tuple(zip(*columns, strict=True)))


def _ifs(context: Context, nodes: tuple[Node, ...]) -> Operand:
    for place in range(0, len(nodes), 2):
        condition = _plain(evaluate(nodes[place], context), context)
        if isinstance(condition, Array):
            return _lifted_choice(_first_true, condition, nodes[place + 1 :], context)
        if to_boolean(condition):
            return evaluate(nodes[place + 1], context)
    fail(NA)


def _switch(context: Context, nodes: tuple[Node, ...]) -> Operand:
    value = _plain(evaluate(nodes[0], context), context)
    if isinstance(value, Array):
        return _lifted_choice(_first_equal, value, nodes[1:], context)
    rest = nodes[1:]
    for case, result in zip(rest[::2], rest[1::2], strict=False):
        if compare(value, one_value(evaluate(case, context), context)) == 0:
            return evaluate(result, context)
    return evaluate(rest[-1], context) if len(rest) % 2 else fail(NA)


def _lifted_choice(
    choose: Callable[..., Scalar], first: Array, nodes: tuple[Node, ...], context: Context
) -> Operand:
    """A choice for each element of an array: all arguments are evaluated."""
    return lifted(choose, (first, *(_or_error(n, context) for n in nodes)), context)


def _first_true(*values: Scalar) -> Scalar:
    for condition, value in zip(values[::2], values[1::2], strict=True):
        if to_boolean(condition):
            return value
    fail(NA)


def _first_equal(value: Scalar, *rest: Scalar) -> Scalar:
    for case, result in zip(rest[::2], rest[1::2], strict=False):
        if compare(value, case) == 0:
            return result
    return rest[-1] if len(rest) % 2 else fail(NA)


def _let(context: Context, nodes: tuple[Node, ...]) -> Operand:
    for name, value in zip(nodes[:-1:2], nodes[1::2], strict=True):
        assert isinstance(name, Name)
        bound = (_local(name.name), _or_error(value, context))
        context = replace(context, locals=(bound, *context.locals))
    return evaluate(nodes[-1], context)


def _local(name: str) -> str:
    return name.casefold()


# --- truth ------------------------------------------------------------------------------


def _truths(name: str, operands: tuple[Operand, ...]) -> list[bool]:
    """Texts and empty cells of references are passed over; there must be something left."""
    truths: list[bool] = []
    for operand in operands:
        if isinstance(operand, Tables):
            for value in operand.given():
                if type(value) is ErrorValue:
                    raise Raised(value)
                if type(value) is not str:
                    truths.append(bool(value))
        else:
            truths.append(to_boolean(operand))
    return truths or fail(VALUE)


LOGIC: Family = {
    "AND": spec("r+", lambda *o: all(_truths("AND", o))),
    "FALSE": spec("", lambda: False),
    "NOT": spec("b", lambda b: not b),
    "OR": spec("r+", lambda *o: any(_truths("OR", o))),
    "TRUE": spec("", lambda: True),
    "XOR": spec("r+", lambda *o: sum(_truths("XOR", o)) % 2 == 1),
}


# --- references -------------------------------------------------------------------------


def _reference(nodes: tuple[Node, ...], context: Context) -> Area:
    operand = evaluate(nodes[0], context)
    if isinstance(operand, Union):
        return operand.areas[0]
    return operand if isinstance(operand, Area) else fail(VALUE)


def _row(context: Context, nodes: tuple[Node, ...]) -> Operand:
    if not nodes:
        return float(context.row)
    area = _reference(nodes, context)
    if area.height == 1:
        return float(area.top)
    if not context.is_array:
        return float(area.top)
    return column_of(tuple(float(r) for r in range(area.top, area.clipped().bottom + 1)))


def _column(context: Context, nodes: tuple[Node, ...]) -> Operand:
    if not nodes:
        return float(context.column)
    area = _reference(nodes, context)
    if area.width == 1 or not context.is_array:
        return float(area.left)
    return Array((tuple(float(c) for c in range(area.left, area.right + 1)),))


def _rows(context: Context, nodes: tuple[Node, ...]) -> Operand:
    return float(as_table(evaluate(nodes[0], context)).height)


def _columns(context: Context, nodes: tuple[Node, ...]) -> Operand:
    return float(as_table(evaluate(nodes[0], context)).width)


def _areas(context: Context, nodes: tuple[Node, ...]) -> Operand:
    operand = evaluate(nodes[0], context)
    return float(len(operand.areas)) if isinstance(operand, Union) else 1.0


def _is_reference(context: Context, nodes: tuple[Node, ...]) -> Operand:
    return isinstance(_or_error(nodes[0], context), (Area, Union))


def _single(context: Context, nodes: tuple[Node, ...]) -> Operand:
    value = evaluate(nodes[0], context)
    return intersected(value, context) if isinstance(value, Area) else one_value(value, context)


def _is_formula(context: Context, nodes: tuple[Node, ...]) -> Operand:
    area = _reference(nodes, context)
    return context.cells.formula(area.sheet, area.top, area.left) is not None


def _sheet(context: Context, nodes: tuple[Node, ...]) -> Operand:
    names = context.cells.sheet_names()
    if not nodes:
        return float(names.index(context.sheet) + 1)
    node = nodes[0]
    while isinstance(node, Group):
        node = node.inner
    if isinstance(node, (Cell, Range)):
        return float(names.index(node.sheet) + 1)
    wanted = one_value(evaluate(node, context), context)
    folded = [n.casefold() for n in names]
    return (
        float(folded.index(str(wanted).casefold()) + 1)
        if str(wanted).casefold() in folded
        else fail(NA)
    )


def _hyperlink(context: Context, nodes: tuple[Node, ...]) -> Operand:
    return one_value(evaluate(nodes[-1], context), context)


CHOOSING: dict[str, Special] = {
    "AREAS": _areas,
    "CHOOSE": _choose,
    "COLUMN": _column,
    "COLUMNS": _columns,
    "HYPERLINK": _hyperlink,
    "IF": _if,
    "IFERROR": _if_bad(_is_error),
    "IFNA": _if_bad(lambda v: _is_error(v) and v == NA),
    "IFS": _ifs,
    "ISFORMULA": _is_formula,
    "ISREF": _is_reference,
    "LET": _let,
    "ROW": _row,
    "ROWS": _rows,
    "SHEET": _sheet,
    "SHEETS": lambda context, _nodes: float(len(context.cells.sheet_names())),
    "SINGLE": _single,
    "SWITCH": _switch,
}


# --- information ------------------------------------------------------------------------


def _error_type(value: Scalar) -> float:
    return float(ERRORS.index(value) + 1) if type(value) is ErrorValue else fail(NA)


def _type(operand: Operand) -> float:
    if isinstance(operand, Array):
        return 64.0
    if isinstance(operand, Area):
        operand = operand.at(0, 0) if operand.is_cell else fail(VALUE)
    codes = {float: 1.0, type(None): 1.0, str: 2.0, bool: 4.0, ErrorValue: 16.0}
    return codes.get(type(operand)) or fail(REF)


def _is_even(value: Scalar) -> bool:
    if type(value) is bool:
        fail(VALUE)
    return int(to_number(value)) % 2 == 0


INFORMATION: Family = {
    "ERROR.TYPE": spec("e", _error_type),
    "ISBLANK": spec("e", lambda v: v is None),
    "ISERR": spec("e", lambda v: type(v) is ErrorValue and v != NA),
    "ISERROR": spec("e", _is_error),
    "ISEVEN": spec("v", _is_even),
    "ISLOGICAL": spec("e", lambda value: type(value) is bool),
    "ISNA": spec("e", lambda v: type(v) is ErrorValue and v == NA),
    "ISNONTEXT": spec("e", lambda v: type(v) is not str),
    "ISNUMBER": spec("e", lambda v: type(v) is float),
    "ISODD": spec("v", lambda v: not _is_even(v)),
    "ISTEXT": spec("e", lambda v: type(v) is str),
    "NA": spec("", lambda: fail(NA)),
    "TYPE": spec("r", _type),
}
