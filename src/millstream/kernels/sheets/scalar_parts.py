"""Which parts of a formula are one value each, wherever they stand.

Only such a part can become a cell of its own. In `SUMPRODUCT(--(A1:A9=B1))` the comparison is
nine values; and `INDEX(A1:A9, 0)` is all of them, or the one in the row of the formula.
"""

from __future__ import annotations

from millstream.values.excel.syntax import (
    Binary,
    Call,
    Cell,
    Group,
    Literal,
    Node,
    Range,
    Unary,
    WindowOf,
)
from millstream.values.excel.table import FAMILIES, FUNCTIONS

#: What they give depends on where they stand, or on which cells they are given.
OF_PLACES = frozenset({
    "ADDRESS", "AREAS", "CELL", "COLUMN", "COLUMNS", "FORMULATEXT", "INDIRECT", "ISFORMULA",
    "ISREF", "LAMBDA", "LAMBDA.CALL", "LET", "OFFSET", "ROW", "ROWS", "SHEET", "SHEETS", "SINGLE",
    "SUBTOTAL", "AGGREGATE",
})  # fmt: skip
#: Functions to which a text or boolean in a cell is the same as one that is written there.
ALIKE = frozenset({"IF", "IFERROR", "IFNA", "LEN", "NOT"})
#: They take ranges whole and give one value, if all else that they take is one value.
_FOLDS = frozenset({
    "AND", "AVERAGE", "CONCAT", "COUNT", "COUNTA", "MAX", "MEDIAN", "MIN", "OR", "PRODUCT",
    "STDEV", "STDEV.P", "STDEV.S", "STDEVP", "SUM", "TEXTJOIN", "VAR", "VAR.P", "VAR.S", "VARP",
})  # fmt: skip
#: What they look for stands first, and what they look in comes after it.
_LOOKUPS = frozenset({"HLOOKUP", "LOOKUP", "MATCH", "VLOOKUP", "XLOOKUP", "XMATCH"})
#: The second of what they take is one value.
_OF_A_RANGE = frozenset({"AVERAGEIF", "COUNTIF", "LARGE", "SMALL", "SUMIF"})
_GIVE_ARRAYS = frozenset({
    "LINEST", "LOGEST", "MINVERSE", "MMULT", "MUNIT", "TEXTSPLIT", "TREND", "GROWTH", "FREQUENCY",
    "BYCOL", "BYROW", "MAKEARRAY", "MAP", "REDUCE", "SCAN",
}) | frozenset(FAMILIES["arrays"])  # fmt: skip


def is_scalar(node: Node) -> bool:
    match node:
        case Literal() | Cell():
            return True
        case Group(inner) | Unary(_, inner):
            return is_scalar(inner)
        case Binary(operator, left, right):
            return operator not in (":", " ", ",") and is_scalar(left) and is_scalar(right)
        case Call(function, arguments):
            return _is_scalar_call(function, arguments)
    return False


def gives_one_value(node: Node) -> bool:
    """Whether a part of a formula is one value, though what it is made of may be many."""
    match node:
        case Group(inner) | Unary(_, inner):
            return gives_one_value(inner)
        case Binary(operator, left, right):
            return operator not in (":", " ", ",") and all(map(gives_one_value, (left, right)))
        case Call("ROWS" | "COLUMNS", _):
            return True
        case Call(function, arguments) if function not in _GIVE_ARRAYS and function != "INDEX":
            spec = FUNCTIONS.get(function)
            if spec is not None and spec.accepts(len(arguments)):
                kinds = spec.kinds_for(len(arguments))
                if all(k in ("r", "a") or gives_one_value(a)
                       for k, a in zip(kinds, arguments, strict=True)):  # fmt: skip
                    return function not in _LOOKUPS or is_scalar(node)
    return is_scalar(node)


def _is_scalar_call(function: str, arguments: tuple[Node, ...]) -> bool:
    plain = [a for a in arguments if not isinstance(a, (Range, WindowOf))]
    if function in _GIVE_ARRAYS or not all(map(is_scalar, plain)):
        return False
    if len(plain) == len(arguments):
        return True
    if function == "INDEX":
        return len(arguments) <= 3 and _is_line(arguments[0]) and all(map(_is_place, arguments[1:]))
    if function in _LOOKUPS:
        results = arguments[2:] if function in ("LOOKUP", "XLOOKUP") else ()
        return is_scalar(arguments[0]) and all(is_scalar(a) or _is_line(a) for a in results)
    if function in _OF_A_RANGE:
        return len(arguments) > 1 and is_scalar(arguments[1])
    return function in _FOLDS or any(isinstance(a, WindowOf) for a in arguments)


def _is_line(node: Node) -> bool:
    """Whether it is one row or one column of cells."""
    return isinstance(node, Range) and (
        node.first.row == node.last.row or node.first.column == node.last.column
    )


def _is_place(node: Node) -> bool:
    """Whether it is never zero, which would mean all places."""
    match node:
        case Literal(value):
            return type(value) is float and value >= 1
        case Call("MATCH" | "XMATCH", _):
            return is_scalar(node)
    return False
