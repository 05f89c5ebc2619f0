"""How many different values a window holds: `ROWS(UNIQUE(w))`, `SUMPRODUCT(1/COUNTIF(w,w))`.

The values are gathered, texts as numbers that are equal without regard to case, and sorted. Where
something is empty or an error, or a text says more as a criterion than itself, the loop calls out.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.kernels.sheets.aggregates import Aggregates
from millstream.kernels.sheets.operands import Operand, refuse_if
from millstream.kernels.windows.ring import NO_NUMBERS
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Binary, Call, Group, Literal, Node, WindowOf

#: The functions that count, in `windows.samples`.
COUNTS_OF_DIFFERENT = ("count_of_different", "shares_of_different")
_REASON = "only a window with something empty, an error or a criterion such as >5"


@dataclass(frozen=True)
class Different:
    """The window, and whether `COUNTIF` tells what is the same."""

    window: WindowOf
    by_criteria: bool


def different(function: str, arguments: tuple[Node, ...]) -> Different | None:
    """What is counted, if a call counts different values."""
    match function, tuple(map(_inner, arguments)):
        case "ROWS" | "COUNTA", (Call("UNIQUE", (WindowOf() as window,)),):
            return Different(window, by_criteria=False)
        case "SUMPRODUCT" | "SUM", (Binary("/", Literal(1.0), right),):
            match _inner(right):
                case Call("COUNTIF", (WindowOf() as window, other)) if other == window:
                    return Different(window, by_criteria=True)
    return None


def _inner(node: Node) -> Node:
    return _inner(node.inner) if isinstance(node, Group) else node


def count_different(aggregates: Aggregates, wanted: Different, whole: Call) -> Operand:
    """Statements that count them."""
    seen, lines = aggregates.seen(wanted.window), aggregates.lines
    is_text = seen.source.kind is Kind.TEXT
    is_odd = not is_text and seen.source.kind is not Kind.NUMBER
    refuse_if(is_odd or seen.source.shows_zero, "different values of several kinds")
    is_plain, filled = lines.fresh()[0], lines.fresh()[0]
    group = f"G{seen.group.number}"
    first, last = f"row[{group} + FIRST]", f"row[{group} + SEEN]"
    lines.add(f"{is_plain} = row[{seen.counts} + {NO_NUMBERS}] == 0 and {first} < {last}")
    lines.add(f"{filled} = 0")
    lines.add(f"for position in range({first}, {last} if {is_plain} else {first}):")
    lines.depth += 1
    value = f"numbers[place_of(row, {seen.place}, position) + VALUES + {seen.column}]"
    if is_text:
        code, _ = lines.fresh()
        lines.add(f"{code} = np.int64({value})")
        value = f"float(folded[{code}])"
        if wanted.by_criteria:
            lines.add(f"{is_plain} = {is_plain} and plain[{code}] != 0")
    lines.add(f"scratch[{filled}] = {value}")
    lines.add(f"{filled} += 1")
    lines.depth -= 1
    name = COUNTS_OF_DIFFERENT[wanted.by_criteria]
    lines.used.add(name)
    near = f", {not is_text}" if wanted.by_criteria else ""
    return aggregates.made_or_called(is_plain, f"{name}(scratch, {filled}{near})", whole, _REASON)
