"""Which cells of a sheet hold dates: found from what they are made of, for those who show them."""

from __future__ import annotations

from millstream.calculus.sheets import (
    Address,
    Computed,
    CountWindow,
    Fed,
    Previous,
    Selected,
    Sheet,
    TimeWindow,
)
from millstream.calculus.types import Kind, QueueType
from millstream.values.excel.syntax import Binary, Call, Cell, Group, Node, Range, WindowOf

#: Functions that give dates whatever they are given.
_GIVE_DATES = frozenset({"DATE", "DATEVALUE", "EDATE", "EOMONTH", "WORKDAY", "WORKDAY.INTL"})
#: Functions that give one of the values of their first argument, or of any of them.
_OF_THE_FIRST = frozenset({"IFERROR", "IFNA", "INDEX", "INT", "LARGE", "ROUND", "SMALL", "MEDIAN"})
_OF_ANY = frozenset({"MAX", "MIN", "MAXIFS", "MINIFS"})


def dates_in(sheet: Sheet, inputs: tuple[QueueType, ...]) -> frozenset[Address]:
    """The cells that hold dates, as far as formulas tell; PRE may close circles."""
    dates: set[Address] = set()
    while True:
        before = len(dates)
        for cell in sheet.cells:
            match cell.rule:
                case Fed(number, column):
                    is_date = inputs[number].schema[column].kind is Kind.TIME
                case Computed(formula, _, _):
                    is_date = _is_date(formula, dates)
                case (
                    TimeWindow(source, _, _)
                    | CountWindow(source, _, _)
                    | Previous(source, _, _)
                    | Selected(source, _)
                ):
                    is_date = source in dates
            if is_date:
                dates.add(cell.address)
        if len(dates) == before:
            return frozenset(dates)


def _is_date(node: Node, dates: set[Address]) -> bool:
    match node:
        case Group(inner):
            return _is_date(inner, dates)
        case Cell(sheet, row, column) | WindowOf(Cell(sheet, row, column)):
            return (sheet, row, column) in dates
        case Range(first, last):
            corners = ((c.sheet, c.row, c.column) for c in (first, last))
            return all(corner in dates for corner in corners)
        case Binary("+", left, right):
            return _is_date(left, dates) != _is_date(right, dates)
        case Binary("-", left, right):
            return _is_date(left, dates) and not _is_date(right, dates)
        case Call("IF", (_, *branches)) | Call("CHOOSE", (_, *branches)):
            return any(_is_date(b, dates) for b in branches)
        case Call(function, arguments):
            if function in _GIVE_DATES:
                return True
            if function in _OF_THE_FIRST:
                return _is_date(arguments[0], dates)
            return function in _OF_ANY and any(_is_date(a, dates) for a in arguments)
        case _:
            return False
