"""What cells of a sheet are as terms of the columns that came: those that only hand them on.

A cell that shows another, `=A3`, shows an empty one as zero. So a text that is null leaves
as "0" behind it, and a number that is infinite leaves as null, for it is an error in a cell.
"""

from __future__ import annotations

import sys

from millstream.calculus.sheets import Address, Computed, Fed, Sheet
from millstream.calculus.terms import Call, Column, Literal, Term, is_null
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, QueueType, Type
from millstream.values.excel.syntax import Cell, Group, Node

_TYPES = (TEXT, BOOLEAN, NUMBER, INTEGER)


def carried_terms(sheet: Sheet, inputs: tuple[QueueType, ...]) -> dict[str, Term]:
    """The columns of what leaves, where there is one input, as terms of the columns that came."""
    if len(inputs) > 1 or len(sheet.outputs) > 1:
        return {}
    terms: dict[str, Term] = {}
    for column in sheet.outputs[0]:
        fed, is_shown = _fed(sheet, column.address)
        if fed is not None:
            term = handed_on(
                fed.column, inputs[0].schema[fed.column], column.type, is_shown=is_shown
            )
            if term is not None:
                terms[column.name] = term
    return terms


def carried_keys(sheet: Sheet, inputs: tuple[QueueType, ...], index: int) -> dict[str, Term]:
    """The columns of the only output that are null or the key, as terms of an input's key."""
    if not sheet.keys or len(sheet.outputs) > 1:
        return {}
    key, terms = sheet.keys[index], dict[str, Term]()
    for column in sheet.outputs[0]:
        fed, is_shown = _fed(sheet, column.address)
        if fed is not None and fed.column == sheet.keys[fed.input]:
            term = handed_on(key, inputs[index].schema[key], column.type, is_shown=is_shown)
            if term is not None:
                terms[column.name] = term
    return terms


def handed_on(name: str, type_: Type, shown: Type, *, is_shown: bool) -> Term | None:
    """A column that goes through a cell, or through others that show it, as it leaves."""
    column = Column(name, type_)
    if type_ not in _TYPES:
        return None
    if type_ == shown == TEXT:
        return Call("coalesce", (column, Literal("0", TEXT)), TEXT) if is_shown else column
    if type_ == shown == BOOLEAN:
        return column  # the zero that an empty one shows as is no boolean, and leaves as null
    if shown != NUMBER or type_ not in (NUMBER, INTEGER):
        return None
    number: Term = column
    if type_ == INTEGER:
        number = Call("number", (column,), NUMBER)
    else:
        least, greatest = (Literal(sign * sys.float_info.max, NUMBER) for sign in (-1, 1))
        parts = (Call(">=", (column, least), BOOLEAN), Call("<=", (column, greatest), BOOLEAN))
        number = Call("if", (Call("and", parts, BOOLEAN), column, Literal(None, NUMBER)), NUMBER)
    if is_shown:
        return Call("if", (is_null(column), Literal(0.0, NUMBER), number), NUMBER)
    return number


def _fed(sheet: Sheet, address: Address) -> tuple[Fed | None, bool]:
    """The column that a cell holds unchanged, and whether it comes through other cells."""
    rules = {c.address: c.rule for c in sheet.cells}
    is_shown = False
    while True:
        match rules.get(address):
            case Fed() as fed:
                return fed, is_shown
            case Computed(formula, False, _):
                cell = _ungrouped(formula)
                if not isinstance(cell, Cell):
                    return None, is_shown
                address, is_shown = (cell.sheet, cell.row, cell.column), True
            case _:
                return None, is_shown


def _ungrouped(node: Node) -> Node:
    while isinstance(node, Group):
        node = node.inner
    return node
