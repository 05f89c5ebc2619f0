"""Formulas made into functions of the cells that change, for those who compute one many times.

What a formula gives is said by `evaluate`; here what does not depend on values is decided once:
which function is called, how arguments are coerced, what never changes. Only plain formulas have
such a form, those of scalars and of references written out; all others are evaluated as ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from millstream.values.excel.arrays import Area, Array, fixed
from millstream.values.excel.dates import OFFSET_1904
from millstream.values.excel.direct_criteria import CRITERIA, met
from millstream.values.excel.direct_lookups import LOOKUPS, OPEN
from millstream.values.excel.evaluate import COERCED, Context, FunctionShape, evaluate, shape_of
from millstream.values.excel.operators import BINARY, UNARY, add_or_zero
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
    children,
)
from millstream.values.excel.values import (
    DIV0,
    NA,
    NUM,
    ErrorValue,
    Raised,
    Scalar,
    to_boolean,
    to_number,
)

Address = tuple[str, int, int]
Values = Sequence[Scalar]
#: What a part gives for the values of the cells that change; errors are raised or given.
Part = Callable[[Values], Any]


#: The types of single values.
SCALARS = frozenset({float, str, bool, ErrorValue, type(None)})
_NOTHING = object()


class SeveralValues(Exception):
    """A part has given an array where one value is wanted: the formula must be evaluated."""


def direct(node: Node, places: Mapping[Address, int], context: Context) -> Part | None:
    """The value of a cell with this formula, of the values at the places of cells that change.

    References see all cells through the context. None if the formula is not plain.
    """
    part = _Parts(places, context).root(node)
    if part is None:
        return None
    known = part

    def value_of(values: Values) -> Scalar:
        try:
            value = known(values)
        except Raised as raised:
            return raised.error
        return 0.0 if value is None else value

    return value_of


def looks_at(node: Node, places: Mapping[Address, int]) -> bool:
    """Whether a function takes a cell that changes as a reference, not as a value."""
    match node:
        case Call(function, arguments):
            shape = shape_of(function, len(arguments))
            kinds = () if shape is None else shape.kinds
            references = [a for kind, a in zip(kinds, arguments, strict=False) if kind in "ra"]
            if any(_holds(reference, places) for reference in references):
                return True
    return any(looks_at(child, places) for child in children(node))


def _holds(node: Node, places: Mapping[Address, int]) -> bool:
    match node:
        case Cell(sheet, row, column):
            return (sheet, row, column) in places
        case Range(first, last):
            return any(
                sheet == first.sheet
                and first.row <= row <= last.row
                and first.column <= column <= last.column
                for sheet, row, column in places
            )
    return False


def of_parameters(
    body: Node, parameters: Sequence[str], known: Mapping[str, Any], context: Context
) -> Part | None:
    """The body of a function that a formula makes, of the values of its parameters.

    What is `known` has names around it. None if it is not plain, or sees cells as references.
    """
    return _Body(parameters, known, context).scalar(body)


class _Parts:
    def __init__(self, places: Mapping[Address, int], context: Context) -> None:
        self.places = places
        self.context = context

    def root(self, node: Node) -> Part | None:
        if isinstance(node, Binary) and node.operator in ("+", "-"):
            sides = self.scalar(node.left), self.scalar(node.right)
            left, right = sides
            if left is None or right is None:
                return None
            operator = node.operator
            return lambda values: add_or_zero(operator, left(values), right(values))
        if isinstance(node, Call) and node.function not in ("IF", "IFERROR", "IFNA"):
            return self._call(node, shows_first=True)
        return self.scalar(node)

    def scalar(self, node: Node) -> Part | None:
        """A part that is one value."""
        match node:
            case Literal(value) if type(value) is not ErrorValue:
                return lambda _values: value
            case Cell(sheet, row, column):
                return self._cell((sheet, row, column))
            case Group(inner) | Unary("+", inner):
                return self.scalar(inner)
            case Unary(operator, operand):
                inner_part, apply = self.scalar(operand), UNARY[operator]
                if inner_part is None:
                    return None
                return lambda values: apply(inner_part(values))
            case Binary(operator, left, right) if operator in BINARY:
                return self._binary(operator, self.scalar(left), self.scalar(right))
            case Call("IF", (test, *branches)) if len(branches) <= 2:
                return self._choice(test, branches)
            case Call("IFERROR" | "IFNA" as function, (first, other)):
                return self._caught(function, self.scalar(first), self.scalar(other))
            case Call():
                return self._call(node)
        return None

    def _choice(self, test: Node, branches: Sequence[Node]) -> Part | None:
        condition = self.scalar(test)
        without: list[Node] = [Literal(True), Literal(False)]
        then, other = map(self.scalar, (*branches, *without[len(branches) :]))
        if condition is None or then is None or other is None:
            return None
        return lambda values: (then if to_boolean(condition(values)) else other)(values)

    def _caught(self, function: str, first: Part | None, other: Part | None) -> Part | None:
        if first is None or other is None:
            return None
        value_or_error, catches_all = _with_errors(first), function == "IFERROR"

        def caught(values: Values) -> Any:
            value = value_or_error(values)
            is_bad = type(value) is ErrorValue and (catches_all or value == NA)
            return other(values) if is_bad else value

        return caught

    def _cell(self, address: Address) -> Part:
        place = self.places.get(address)
        if place is not None:
            known = place
            return lambda values: values[known]
        value = self.context.cells.value(*address)
        return lambda _values: value

    def _binary(self, operator: str, left: Part | None, right: Part | None) -> Part | None:
        if left is None or right is None:
            return None
        apply = BINARY[operator]
        return lambda values: apply(left(values), right(values))

    def _call(self, node: Call, *, shows_first: bool = False) -> Part | None:
        shape = shape_of(node.function, len(node.arguments))
        if shape is None or any(_is_left_out(shape, n, a) for n, a in enumerate(node.arguments)):
            return None
        parts = [
            self._argument(shape.kinds[n], argument) for n, argument in enumerate(node.arguments)
        ]
        known = [p for p in parts if p is not None]
        if len(known) < len(parts):
            return None
        general = _called(shape, known, self.context, shows_first=shows_first)
        if node.function not in LOOKUPS and node.function not in CRITERIA:
            return general
        given = [self._fixed(*pair) for pair in zip(node.arguments, known, strict=True)]
        if node.function in LOOKUPS:
            return LOOKUPS[node.function](given, known, general) or general
        return met(node.function, given, known, general) or general

    def _fixed(self, node: Node, part: Part) -> Any:
        """What an argument is that is written there, or an area that never changes."""
        is_area = isinstance(node, (Cell, Range)) and not _holds(node, self.places)
        return part(()) if is_area or isinstance(node, Literal) else OPEN

    def _argument(self, kind: str, node: Node) -> Part | None:
        """An argument as a function takes it: a scalar is coerced, a reference stays one."""
        if kind in "ra":
            return self._whatever(node)
        part = self.scalar(node)
        if part is None:
            return None
        if kind == "e":
            return _with_errors(part)
        if kind == "d":
            offset = OFFSET_1904 if self.context.uses_1904 else 0
            return lambda values: to_number(part(values)) + offset
        coerced = COERCED[kind]
        if isinstance(node, Literal):
            try:
                constant = coerced(node.value)
            except Raised:
                return None
            return lambda _values: constant
        return lambda values: coerced(part(values))

    def _whatever(self, node: Node) -> Part | None:
        """An argument as it is: a reference, or a value that cannot be one."""
        match node:
            case Group(inner) | Unary("+", inner):
                return self._whatever(inner)
            case Cell() | Range() | Constants():
                reference = evaluate(node, self.context)
                if isinstance(reference, Area) and not _holds(node, self.places):
                    reference = fixed(reference)
                return lambda _values: reference
            case Call(function, arguments):
                shape = shape_of(function, len(arguments))
                if shape is None or not all(shape.are_scalars):
                    return None
        part = self.scalar(node)
        return None if part is None else _with_errors(part)


class _Body(_Parts):
    def __init__(
        self, parameters: Sequence[str], known: Mapping[str, Any], context: Context
    ) -> None:
        super().__init__({}, context)
        self.parameters = list(parameters)
        self.known = known

    def scalar(self, node: Node) -> Part | None:
        if not isinstance(node, Name):
            return super().scalar(node)
        name = node.name.casefold()
        if name in self.parameters:
            return itemgetter(self.parameters.index(name))
        value = self.known.get(name, _NOTHING)
        return (lambda _values: value) if type(value) in SCALARS else None

    def _whatever(self, node: Node) -> Part | None:
        return None if isinstance(node, (Cell, Range)) else super()._whatever(node)


def _is_left_out(shape: FunctionShape, number: int, node: Node) -> bool:
    """Is it an argument for which a default stands?"""
    is_nothing = isinstance(node, Literal) and node.value is None
    return is_nothing and shape.spec.defaults is not None and number >= shape.spec.least


def _with_errors(part: Part) -> Part:
    def value_or_error(values: Values) -> Scalar:
        try:
            scalar: Scalar = part(values)
        except Raised as raised:
            return raised.error
        return scalar

    return value_or_error


def _called(
    shape: FunctionShape, parts: Sequence[Part], context: Context, *, shows_first: bool
) -> Part:
    """A cell `shows_first` what stands first in an array that it is given."""
    call = _applied(shape.spec.call, parts, context if shape.spec.wants_context else None)
    offset = OFFSET_1904 if shape.spec.gives_date and context.uses_1904 else 0

    def result_of(values: Values) -> Scalar:
        try:
            result = call(values)
        except ZeroDivisionError:
            raise Raised(DIV0) from None
        except ArithmeticError:
            raise Raised(NUM) from None
        if type(result) is float:
            if not math.isfinite(result):
                raise Raised(NUM)
            return result - offset
        if isinstance(result, Area) and result.is_cell:
            return result.at(0, 0)
        if shows_first and isinstance(result, Array) and result.rows:
            return result.at(0, 0)
        if isinstance(result, (Area, Array)):
            raise SeveralValues
        scalar: Scalar = result
        return scalar

    return result_of


def _applied(call: Callable[..., Any], parts: Sequence[Part], context: Context | None) -> Part:
    """The call itself; those of few arguments are written out, since they are most."""
    if context is not None:
        return lambda values: call(context, *[part(values) for part in parts])
    match parts:
        case (a,):
            return lambda values: call(a(values))
        case (a, b):
            return lambda values: call(a(values), b(values))
        case (a, b, c):
            return lambda values: call(a(values), b(values), c(values))
    return lambda values: call(*[part(values) for part in parts])
