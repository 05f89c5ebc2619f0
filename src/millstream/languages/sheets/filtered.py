"""Aggregates of what FILTER and MAP make of a window, as aggregates of the window itself.

    SUM(FILTER(w, w>3, 0))
    ->  IF(SUM(IF(w>3, 1, 0))=0, SUM(0), SUM(IF(w>3, IF(ISBLANK(w), FALSE, w), FALSE)))

To such functions a FALSE in an array is nothing, as an empty cell is. What is applied to each value
of a window is made a window by `elementwise`, and its aggregates are kept up to date.
"""

from __future__ import annotations

from millstream.values.excel.gather import has_wildcards
from millstream.values.excel.syntax import (
    Binary,
    Call,
    Constants,
    Group,
    Literal,
    Name,
    Node,
    Unary,
    WindowOf,
    rebuilt,
)
from millstream.values.excel.values import CALC

#: They pass over truths, texts and empty cells in their first argument.
_OF_NUMBERS = frozenset({
    "AVERAGE", "COUNT", "LARGE", "MAX", "MEDIAN", "MIN", "PERCENTILE", "PERCENTILE.INC", "PRODUCT",
    "QUARTILE", "QUARTILE.INC", "SMALL", "STDEV", "STDEV.P", "STDEV.S", "STDEVP", "SUM", "VAR",
    "VAR.P", "VAR.S", "VARP",
})  # fmt: skip
#: What is made of what meets criteria.
_AGGREGATES = {
    "AVERAGEIF": "AVERAGE", "AVERAGEIFS": "AVERAGE", "COUNTIF": "SUM", "COUNTIFS": "SUM",
    "MAXIFS": "MAX", "MINIFS": "MIN", "SUMIF": "SUM", "SUMIFS": "SUM",
}  # fmt: skip
#: Aggregates to which the values of an array are what the same values one by one are.
_OF_EACH = {"AVERAGE": "AVERAGE", "MAX": "MAX", "MIN": "MIN", "SUM": "SUM", "SUMPRODUCT": "SUM"}
_TRUTHS = frozenset({
    "EXACT", "ISBLANK", "ISERR", "ISERROR", "ISEVEN", "ISLOGICAL", "ISNA", "ISNONTEXT", "ISNUMBER",
    "ISODD", "ISTEXT", "NOT",
})  # fmt: skip
_NO, _ZERO, _ONE = Literal(False), Literal(0.0), Literal(1.0)


def filter_in(call: Call) -> tuple[Node, Node] | None:
    """What is filtered, and by which condition, if `unfiltered` knows what to do."""
    match call:
        case Call(function, (Call("FILTER", (values, condition, *empty)), *_)) if (
            (function in _OF_NUMBERS or (function == "ROWS" and len(call.arguments) == 1))
            and _is_truth(condition)
            and (not empty or _is_written(empty[0]))
        ):
            return values, condition
    return None


def with_wildcards(call: Call) -> Call | None:
    """An aggregate of what meets criteria with wildcards, as one of a formula over windows.

        COUNTIF(w, "a*")     ->  SUM(COUNTIF(w, "a*")), of each value of the window
        SUMIF(w, "a*", u)    ->  SUM(IF(COUNTIFS(w, "a*")=1, u, FALSE)), empty ones made FALSE

    Which values match is found when they come. None if it is no such call.
    """
    function, arguments = call.function, call.arguments
    summed, rest = arguments[0], arguments[1:]
    if function in ("COUNTIF", "COUNTIFS"):
        rest = arguments
    elif function in ("SUMIF", "AVERAGEIF"):
        summed, rest = (arguments[2] if len(arguments) > 2 else summed), arguments[:2]
    windows, criteria = (summed, *rest[::2]), rest[1::2]
    name = _AGGREGATES.get(function)
    if name is None or len(rest) % 2 or not all(isinstance(w, WindowOf) for w in windows):
        return None
    if not all(isinstance(c, Literal) for c in criteria) or not any(map(_is_wild, criteria)):
        return None
    met = Call("COUNTIFS", rest)
    if function in ("COUNTIF", "COUNTIFS"):
        return Call(name, (met,))
    there = Call("IF", (Call("ISBLANK", (summed,)), _NO, summed))
    return Call(name, (Call("IF", (Binary("=", met, _ONE), there, _NO)),))


def with_each(call: Call) -> Call:
    """An aggregate of several of the largest of a window, as one of each of them.

        SUM(LARGE(w, {1,2,3}))  ->  SUM(LARGE(w, 1), LARGE(w, 2), LARGE(w, 3))

    Any other call as it is.
    """
    match call:
        case Call(function, (Call("LARGE" | "SMALL" as ranked, (values, Constants(rows))),)):
            places = [place for row in rows for place in row]
            if function in _OF_EACH and all(type(place) is float for place in places):
                each = tuple(Call(ranked, (values, Literal(place))) for place in places)
                return Call(_OF_EACH[function], each)
    return call


def _is_wild(criterion: Node) -> bool:
    value = criterion.value if isinstance(criterion, Literal) else None
    return type(value) is str and has_wildcards(value)


def unmapped(call: Call) -> Node:
    """`MAP(w, LAMBDA(x, x*2))` as the formula that it applies to each value, `w*2`.

    Where the function is not written there, the call itself.
    """
    *windows, function = call.arguments
    match function:
        case Call("LAMBDA", (*parameters, body)) if len(parameters) == len(windows) and all(
            isinstance(w, WindowOf) for w in windows
        ):
            names = [p.name.casefold() for p in parameters if isinstance(p, Name)]
            given = dict(zip(names, windows, strict=True))

            def applied(node: Node) -> Node:
                if isinstance(node, Name):
                    return given.get(node.name.casefold(), node)
                return rebuilt(node, applied)

            return applied(body)
    return call


def _is_written(node: Node) -> bool:
    """Is it a number, a text or a truth that stands in the formula?"""
    while isinstance(node, Unary):
        node = node.operand
    return isinstance(node, Literal) and node.value is not None


def unfiltered(call: Call) -> Node:
    """The same without FILTER, where all values and conditions are those of windows alike."""
    filtered = call.arguments[0]
    assert isinstance(filtered, Call)
    values, condition, *given = filtered.arguments
    empty: Node = given[0] if given else Literal(CALC)
    count = Call("SUM", (Call("IF", (condition, _ONE, _ZERO)),))
    if call.function == "ROWS":
        of_some: Node = count
    else:
        there = values
        if isinstance(values, WindowOf):
            there = Call("IF", (Call("ISBLANK", (values,)), _NO, values))
        kept = Call("IF", (condition, there, _NO))
        of_some = Call(call.function, (kept, *call.arguments[1:]))
    of_none: Node = Call(call.function, (empty, *call.arguments[1:]))
    if not given:
        of_none = _ZERO if call.function == "COUNT" else empty
    elif call.function == "ROWS":
        of_none = _ONE
    chosen = Call("IF", (Binary("=", count, _ZERO), of_none, of_some))
    # What is an error counts as no number.
    return Call("IFERROR", (chosen, _ZERO)) if call.function == "COUNT" else chosen


def _is_truth(node: Node) -> bool:
    """Is it a truth, a number or an error whatever it is made of, and never a text?"""
    match node:
        case Group(inner):
            return _is_truth(inner)
        case Binary("=" | "<>" | "<" | ">" | "<=" | ">=", _, _):
            return True
        case Binary("*" | "+" | "-", left, right):
            return _is_truth(left) and _is_truth(right)
        case Call(function, _):
            return function in _TRUTHS
    return False
