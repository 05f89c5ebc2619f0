"""Formulas as trees. Every reference names its worksheet; rows and columns count from 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.formulas.values import Scalar, exact

MAX_ROW = 1_048_576
MAX_COLUMN = 16_384


@exact
@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, a boolean, an error; None is an argument left out: `IF(a,,b)`."""

    value: Scalar


@exact
@dataclass(frozen=True, slots=True)
class Constants:
    """An array constant, `{1,2;3,4}`."""

    rows: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A reference to one cell; a fixed row or column was written with `$`."""

    sheet: str
    row: int
    column: int
    row_fixed: bool = False
    column_fixed: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A rectangle of cells; a whole column reaches from row 1 to `MAX_ROW`."""

    first: Cell
    last: Cell

    @property
    def sheet(self) -> str:
        return self.first.sheet


@dataclass(frozen=True, slots=True)
class Name:
    """A defined name, or a word that means nothing."""

    name: str
    sheet: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, in capitals and without `_xlfn.`, and its arguments."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `+x` or `x%`."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, comparison, `&`, and on references `:`, the space and the comma."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Group:
    """Parentheses: they end what Excel calls the last operation."""

    inner: Node


@dataclass(frozen=True, slots=True)
class WindowOf:
    """All values of a window, where a formula refers to the cell that holds it."""

    cell: Cell


Node = WindowOf | Literal | Constants | Cell | Range | Name | Call | Unary | Binary | Group


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Call(_, arguments):
            return arguments
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Group(inner):
            return (inner,)
        case _:
            return ()


def column_name(column: int) -> str:
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def shifted(node: Node, rows: int, columns: int) -> Node:
    """The formula as it reads when copied so many rows down and columns to the right."""
    match node:
        case Cell(sheet, row, column, row_fixed, column_fixed):
            to_row = row if row_fixed else (row + rows - 1) % MAX_ROW + 1
            to_column = column if column_fixed else (column + columns - 1) % MAX_COLUMN + 1
            return Cell(sheet, to_row, to_column, row_fixed, column_fixed)
        case Range(first, last):
            start, end = shifted(first, rows, columns), shifted(last, rows, columns)
            assert isinstance(start, Cell) and isinstance(end, Cell)
            return Range(start, end)
        case Call(function, arguments):
            return Call(function, tuple(shifted(a, rows, columns) for a in arguments))
        case Unary(operator, operand):
            return Unary(operator, shifted(operand, rows, columns))
        case Binary(operator, left, right):
            return Binary(operator, shifted(left, rows, columns), shifted(right, rows, columns))
        case Group(inner):
            return Group(shifted(inner, rows, columns))
        case _:
            return node


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """A formula with its parts changed; what has none stays as it is."""
    match node:
        case Call(function, arguments):
            return Call(function, tuple(change(a) for a in arguments))
        case Unary(operator, operand):
            return Unary(operator, change(operand))
        case Binary(operator, left, right):
            return Binary(operator, change(left), change(right))
        case Group(inner):
            return Group(change(inner))
        case _:
            return node
