"""Which formulas are applied to each of many values, and which make one value of them."""

from __future__ import annotations

from millstream.values.excel.registry import SCALAR_KINDS
from millstream.values.excel.syntax import Binary, Call, Group, Node, Unary
from millstream.values.excel.table import FAMILIES, FUNCTIONS

#: Functions of arrays that give arrays: something around them must make one value of these.
GIVE_ARRAYS = frozenset({
    "BYCOL", "BYROW", "CHOOSECOLS", "CHOOSEROWS", "DROP", "EXPAND", "FILTER", "FREQUENCY",
    "GROWTH", "HSTACK", "LINEST", "LOGEST", "MAKEARRAY", "MAP", "MINVERSE", "MMULT", "MODE.MULT",
    "SCAN", "SORT", "SORTBY", "TAKE", "TEXTSPLIT", "TOCOL", "TOROW", "TRANSPOSE", "TREND",
    "UNIQUE", "VSTACK", "WRAPCOLS", "WRAPROWS",
})  # fmt: skip
#: Functions without a table of parameters that make one value of an array.
_MAKE_ONE = {"ROWS": 0, "COLUMNS": 0, "REDUCE": 1}
#: These take cells or windows as they are; Excel refuses a formula there, too.
_WANT_REFERENCES = frozenset({
    *FAMILIES["conditions"], "COUNTBLANK", "RANK", "RANK.AVG", "RANK.EQ", "SUBTOTAL", "AGGREGATE",
})  # fmt: skip
_CHOOSING = frozenset({"IF", "IFERROR", "IFNA"})


def aggregates(call: Call, index: int) -> bool:
    """Does a function make one value of the many of an argument?"""
    spec = FUNCTIONS.get(call.function)
    if spec is None:
        return _MAKE_ONE.get(call.function) == index
    if call.function in GIVE_ARRAYS or not spec.accepts(len(call.arguments)):
        return False
    return list(spec.kinds_for(len(call.arguments)))[index] in ("r", "a")


def takes_formulas(call: Call) -> bool:
    """May an argument be a formula over the values of a window, and not only the window?"""
    return call.function not in _WANT_REFERENCES


def is_elementwise(node: Node) -> bool:
    """Is a formula applied to each value on its own, its parts taken for granted?"""
    match node:
        case Group() | Unary():
            return True
        case Binary(operator, _, _):
            return operator not in (":", " ", ",")
        case Call(function, arguments):
            if function in _CHOOSING:
                return True
            spec = FUNCTIONS.get(function)
            return (
                spec is not None
                and spec.accepts(len(arguments))
                and bool(arguments)
                and all(kind in SCALAR_KINDS for kind in spec.kinds_for(len(arguments)))
            )
        case _:
            return False
