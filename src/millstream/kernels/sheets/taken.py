"""Aggregates of what SORT, TAKE and DROP leave of a window: `SUM(TAKE(SORT(w,,-1),3))`.

The numbers are gathered and sorted, and what is left of them is handed to functions of samples.
Where something is no number, or nothing is left, the loop calls out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.kernels.sheets.aggregates import Aggregates
from millstream.kernels.sheets.operands import (
    FIRST_ERROR,
    OK,
    Operand,
    pair,
    refuse_if,
    written_number,
)
from millstream.kernels.sheets.scanned import SAMPLES, Scans, names_values
from millstream.values.excel.elementwise import is_elementwise
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Call, Group, Literal, Node, WindowOf

#: What is made of numbers that were gathered, in `windows.samples`.
OF_NUMBERS = {
    "AVERAGE": "mean_of", "COUNT": "count_of", "INDEX": "element_of", "MAX": "greatest_of",
    "MIN": "least_of", "SUM": "sum_of",
}  # fmt: skip
#: What sorts them, and takes some of them.
MOVERS = ("sorted_numbers", "moved_down")
_REASON = "only a window with something empty or an error, or of which nothing is left"


@dataclass(frozen=True)
class Left:
    """What is left of the values of windows."""

    values: Node
    #: 1 is rising, -1 falling, 0 as they came.
    order: int = 0
    #: How many are taken from the beginning or, if negative, from the end; or left out there.
    cuts: tuple[tuple[str, int], ...] = ()


def left_of(function: str, arguments: tuple[Node, ...]) -> Left | None:
    """What an aggregate is made of, if that is what SORT, TAKE or DROP leave of windows."""
    if function not in OF_NUMBERS and function not in SAMPLES:
        return None
    if not arguments or (function in OF_NUMBERS and len(arguments) != 1 + (function == "INDEX")):
        return None
    left = _left(arguments[0])
    return left if left is not None and (left.order or left.cuts) else None


def _left(node: Node) -> Left | None:
    match node:
        case Group(inner):
            return _left(inner)
        case WindowOf():
            return Left(node)
        case Call("TAKE" | "DROP" as function, (values, count)):
            left, number = _left(values), written_number(count)
            if left is None or number is None or not 1.0 <= abs(number) < 1e9:
                return None
            return replace(left, cuts=(*left.cuts, (function, int(number))))
        case Call("SORT", (values, *how)):
            left, order = _left(values), _order(how)
            is_plain = left is not None and not left.order and not left.cuts
            return replace(left, order=order) if left is not None and is_plain and order else None
    return Left(node) if is_elementwise(node) and names_values(node) else None


def _order(how: list[Node]) -> int:
    """Rising or falling, as it is written; 0 if it is not, or if not the only column is meant."""
    if len(how) > 2:
        return 0
    written: list[Node] = [*how, Literal(None), Literal(None)]
    place, order = written[:2]
    is_first = written_number(place) == 1.0 or place == Literal(None)
    number = 1.0 if order == Literal(None) else written_number(order)
    return int(number or 0.0) if is_first and number in (1.0, -1.0) else 0


def aggregate_left(aggregates: Aggregates, scans: Scans, left: Left, whole: Call) -> Operand:
    """Statements for an aggregate of what is left."""
    lines, function = aggregates.lines, whole.function
    others = [aggregates.operand(node) for node in whole.arguments[1:]]
    refuse_if(any(o.kind is not Kind.NUMBER for o in others), "a text where a number is wanted")
    elements = scans.elements([left.values])
    size, odd = lines.fresh()[0], lines.fresh()[0]
    lines.add(f"{size}, {odd} = 0, 0")
    with scans.over(elements) as formulas:
        value = formulas.value(left.values)
        is_number = value.kind is Kind.NUMBER and not value.shows_zero
        refuse_if(not is_number, "an order of what is no number")
        lines.add(f"if {value.status} == {OK}:")
        lines.add(f"    scratch[{size}] = {value.value}")
        lines.add(f"    {size} += 1")
        lines.add("else:")
        lines.add(f"    {odd} = 1")
    first, last = lines.fresh()[0], lines.fresh()[0]
    lines.add(f"{first}, {last} = 0, {size}")
    for cut, count in left.cuts:
        if cut == "TAKE":
            bound = (
                f"min({first} + {count}, {last})"
                if count > 0
                else f"max({last} - {-count}, {first})"
            )
            lines.add(f"{last if count > 0 else first} = {bound}")
        elif count > 0:
            lines.add(f"{first} += {count}")
        else:
            lines.add(f"{last} -= {-count}")
    test = f"{odd} == 0 and {first} < {last}"
    if function == "INDEX":
        (which,) = others
        test += f" and ({which.status} >= {FIRST_ERROR} or abs({which.value}) >= 1.0)"
        name = OF_NUMBERS[function]
    elif function in OF_NUMBERS:
        name = OF_NUMBERS[function]
    else:
        name, count, defaults = SAMPLES[function]
        refuse_if(len(others) != count or defaults, f"{function} of so many values")
    lines.used.update((name, *MOVERS))
    numbers = "scratch"
    if left.order:
        numbers = f"sorted_numbers(scratch, {size}, {left.order})"
    moved = f"moved_down({numbers}, {first}, {last})"
    parts = ", ".join([moved, f"{last} - {first}", "0", *(p for o in others for p in pair(o))])
    return aggregates.made_or_called(test, f"{name}({parts})", whole, _REASON)
