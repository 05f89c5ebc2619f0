"""What stands in one window where another holds what is looked for.

`XLOOKUP(x,w,v)`, and `LOOKUP(2,1/(w=x),v)`, which is how the last such place is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.kernels.sheets.operands import (
    FIRST_ERROR,
    OK,
    NotCompiled,
    Operand,
    refuse_if,
    written_number,
)
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Binary, Group, Literal, Node, WindowOf

if TYPE_CHECKING:
    from millstream.kernels.sheets.aggregates import Aggregates
    from millstream.kernels.sheets.scanned import Scans

_NA = Operand(Kind.NUMBER, "0.0", str(FIRST_ERROR + 6))


def xlookup(aggregates: Aggregates, arguments: tuple[Node, ...]) -> Operand:
    """Statements that look at all of a window, from the oldest or from the newest on."""
    wanted, keys, results, *rest = arguments
    if not (isinstance(keys, WindowOf) and isinstance(results, WindowOf)):
        raise NotCompiled("XLOOKUP of a window and something else")
    missing, mode, direction = _padded(rest, 3)
    way = _written(direction, 1.0) or 0.0
    refuse_if(_written(mode, 0.0) != 0.0 or way not in (1.0, -1.0), "XLOOKUP in another way")
    lines, searched = aggregates.lines, aggregates.seen(keys)
    shown = aggregates.seen(results)
    refuse_if(searched.group is not shown.group, "XLOOKUP of windows of different ticks")
    sought, kind = aggregates.operand(wanted), searched.source.kind
    is_plain = sought.kind is kind and kind in (Kind.NUMBER, Kind.TEXT)
    is_plain = is_plain and not sought.shows_zero and not searched.source.shows_zero
    refuse_if(not is_plain, "XLOOKUP of several kinds")
    instead = _NA if _is_left_out(missing) else aggregates.operand(missing)
    is_alike = instead is _NA or instead.kind is shown.source.kind
    refuse_if(not is_alike or instead.shows_zero, "XLOOKUP of several kinds")
    place = lines.fresh()[0]
    is_text = kind is Kind.TEXT
    code = f"float(folded[np.int64({sought.value})])" if is_text else sought.value
    lines.add(
        f"{place} = window_find(row, pool, numbers, folded, {searched.place}, {searched.column}, "
        f"{code}, {sought.status}, {is_text}, {int(way)})"
    )
    value, status = lines.fresh()
    lines.add(f"if {sought.status} >= {FIRST_ERROR}:")
    lines.add(f"    {value}, {status} = 0.0, np.int64({sought.status})")
    lines.add(f"elif {place} < 0:")
    lines.add(f"    {value}, {status} = {instead.value}, np.int64({instead.status})")
    lines.add("else:")
    lines.add(
        f"    {value}, {status} = window_index(row, pool, numbers, {shown.place}, {shown.column}, "
        f"float({place} + 1), 0)"
    )
    return Operand(shown.source.kind, value, status, shows_zero=shown.source.shows_zero)


def asks_for_last(aggregates: Aggregates, function: str, arguments: tuple[Node, ...]) -> bool:
    """Is it LOOKUP in ones and errors? Whatever it is that is greater, the last one is found."""
    if function != "LOOKUP" or len(arguments) != 3 or not isinstance(arguments[2], WindowOf):
        return False
    keys = _ungrouped(arguments[1])
    if isinstance(keys, WindowOf):
        seen = aggregates.seen(keys)
        keys = _ungrouped(aggregates.around.formula(seen.group.columns[seen.column]))
    match keys:
        case Binary("/", Literal(1.0), truth):
            number = written_number(arguments[0])
            return number is not None and number >= 1.0 and _is_truth(truth)
    return False


def lookup_last(scans: Scans, arguments: tuple[Node, ...]) -> Operand:
    """Statements for it, which go through all values."""
    _, keys, results = arguments
    lines, elements = scans.lines, scans.elements([keys, results])
    value, status = lines.fresh()
    lines.add(f"{value}, {status} = 0.0, np.int64({_NA.status})")
    with scans.over(elements) as formulas:
        key, shown = formulas.value(keys), formulas.value(results)
        lines.add(f"if {key.status} == {OK}:")
        lines.add(f"    {value}, {status} = {shown.value}, {shown.status}")
    return Operand(shown.kind, value, status, shows_zero=shown.shows_zero)


def _is_truth(node: Node | None) -> bool:
    match _ungrouped(node):
        case Binary("=" | "<>" | "<" | ">" | "<=" | ">=", _, _):
            return True
        case Binary("*", left, right):
            return _is_truth(left) and _is_truth(right)
    return False


def _ungrouped(node: Node | None) -> Node | None:
    while isinstance(node, Group):
        node = node.inner
    return node


def _padded(nodes: list[Node], count: int) -> list[Node]:
    """So many arguments: those at the end may have been left out."""
    left_out: list[Node] = [Literal(None)] * (count - len(nodes))
    return nodes + left_out


def _is_left_out(node: Node) -> bool:
    return node == Literal(None)


def _written(node: Node, default: float) -> float | None:
    return default if _is_left_out(node) else written_number(node)
