"""Functions that a formula makes itself, and those that apply them: LAMBDA, MAP, REDUCE.

A function is a value as long as it is inside a formula: LET can give it a name, a defined
name can stand for it. A cell cannot hold one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from millstream.values.excel.arrays import MAX_ARRAY, Array, Operand
from millstream.values.excel.direct import SCALARS, SeveralValues, of_parameters
from millstream.values.excel.evaluate import Context, Special, evaluate
from millstream.values.excel.lifting import as_table, one_value
from millstream.values.excel.syntax import Name, Node
from millstream.values.excel.values import (
    CALC,
    VALUE,
    Raised,
    Scalar,
    checked,
    fail,
    fail_if,
    to_number,
)

#: A function that is given itself may call itself without end.
_DEEPEST = 500


Function = Callable[..., Operand]


@dataclass(frozen=True, slots=True)
class Lambda:
    """A function made by LAMBDA, with what had names where it was made."""

    parameters: tuple[str, ...]
    body: Node
    locals: tuple[tuple[str, Any], ...]

    def __call__(self, context: Context, *values: Operand) -> Operand:
        fail_if(len(values) != len(self.parameters), VALUE)
        fail_if(context.depth == _DEEPEST)
        bound = tuple(zip(self.parameters, values, strict=True))
        inside = replace(
            context, is_array=True, locals=(*bound, *self.locals), depth=context.depth + 1
        )
        return evaluate(self.body, inside)

    def for_many(self, context: Context) -> Function:
        """The same for many calls: what does not depend on values is decided once."""
        part = of_parameters(self.body, self.parameters, dict(reversed(self.locals)), context)
        if part is None:
            return lambda *values: self(context, *values)
        plain, count = part, len(self.parameters)

        def called(*values: Operand) -> Operand:
            if len(values) == count and SCALARS.issuperset(map(type, values)):
                try:
                    made: Operand = plain(values)  # type: ignore[arg-type]
                except SeveralValues:
                    return self(context, *values)
                return made
            return self(context, *values)

        return called


def _lambda(context: Context, nodes: tuple[Node, ...]) -> Operand:
    names = tuple(n.name.casefold() for n in nodes[:-1] if isinstance(n, Name))
    return Lambda(names, nodes[-1], context.locals)  # type: ignore[return-value]


def _function(node: Node, context: Context) -> Lambda:
    function: Any = evaluate(node, context)
    return function if isinstance(function, Lambda) else fail(VALUE)


def _operand(node: Node, context: Context) -> Operand:
    try:
        return evaluate(node, context.as_array())
    except Raised as raised:
        return raised.error


def call_of(function: Lambda, nodes: tuple[Node, ...], context: Context) -> Operand:
    return function(context, *(_operand(n, context) for n in nodes))


def _called(context: Context, nodes: tuple[Node, ...]) -> Operand:
    """`LAMBDA(x,x+1)(2)`, with the function as the first argument."""
    return call_of(_function(nodes[0], context), nodes[1:], context)


def _element(function: Function, context: Context, *values: Operand) -> Scalar:
    """What a function gives for one element: one value, which may be an error."""
    try:
        answer: Any = function(*values)
        if isinstance(answer, Lambda) or (isinstance(answer, Array) and len(answer.rows) != 1):
            return CALC
        value = one_value(answer, context)
    except Raised as raised:
        return raised.error
    return 0.0 if value is None else value


def _shaped(shape: Callable[[Context, Function, tuple[Operand, ...]], Operand]) -> Special:
    def special(context: Context, nodes: tuple[Node, ...]) -> Operand:
        operands = tuple(_operand(n, context) for n in nodes[:-1])
        return shape(context, _function(nodes[-1], context).for_many(context), operands)

    return special


def _map(context: Context, function: Function, operands: tuple[Operand, ...]) -> Operand:
    tables = [as_table(o).to_array() for o in operands]
    height, width = tables[0].height, tables[0].width
    fail_if(any((t.height, t.width) != (height, width) for t in tables), VALUE)
    return Array(
        tuple(
            tuple(_element(function, context, *(t.at(i, j) for t in tables)) for j in range(width))
            for i in range(height)
        )
    )


def _reduce(context: Context, function: Function, operands: tuple[Operand, ...]) -> Operand:
    kept = operands[0]
    for value in as_table(operands[-1]).to_array().values():
        kept = function(kept, value)
    return kept


def _scan(context: Context, function: Function, operands: tuple[Operand, ...]) -> Operand:
    kept: Operand = operands[0]
    rows: list[tuple[Scalar, ...]] = []
    for row in as_table(operands[-1]).to_array().rows:
        made: list[Scalar] = []
        for value in row:
            kept = _element(function, context, kept, value)
            made.append(kept)
        rows.append(tuple(made))
    return Array(tuple(rows))


def _by_row(context: Context, function: Function, operands: tuple[Operand, ...]) -> Operand:
    table = as_table(operands[0])
    parts = (table.part(i, 0, 1, table.width) for i in range(table.height))
    return Array(tuple((_element(function, context, part),) for part in parts))


def _by_column(context: Context, function: Function, operands: tuple[Operand, ...]) -> Operand:
    table = as_table(operands[0])
    parts = (table.part(0, j, table.height, 1) for j in range(table.width))
    return Array((tuple(_element(function, context, part) for part in parts),))


def _make_array(context: Context, function: Function, operands: tuple[Operand, ...]) -> Operand:
    height, width = (int(to_number(checked(one_value(o, context)))) for o in operands[:2])
    fail_if(height < 1 or width < 1, VALUE)
    fail_if(height * width > MAX_ARRAY)
    return Array(
        tuple(
            tuple(_element(function, context, i + 1.0, j + 1.0) for j in range(width))
            for i in range(height)
        )
    )


LAMBDAS: dict[str, Special] = {
    "BYCOL": _shaped(_by_column),
    "BYROW": _shaped(_by_row),
    "LAMBDA": _lambda,
    "LAMBDA.CALL": _called,
    "MAKEARRAY": _shaped(_make_array),
    "MAP": _shaped(_map),
    "REDUCE": _shaped(_reduce),
    "SCAN": _shaped(_scan),
}
