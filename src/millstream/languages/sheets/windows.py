"""Windows flow only into aggregations: functions that make one value of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from millstream.calculus.sheets import (
    Address,
    Computed,
    CountWindow,
    Previous,
    Selected,
    SheetCell,
    TimeWindow,
    address_text,
)
from millstream.errors import Fault
from millstream.formulas.syntax import Call, Group, Node, Range, WindowOf, children
from millstream.formulas.table import FUNCTIONS

#: Functions of arrays that give arrays.
_GIVE_ARRAYS = frozenset({
    "FILTER", "FREQUENCY", "HSTACK", "MINVERSE", "MMULT", "MODE.MULT", "SORT", "TAKE",
    "TEXTSPLIT", "TOCOL", "TOROW", "TRANSPOSE", "UNIQUE", "VSTACK",
})  # fmt: skip

Found = Iterator[tuple[Address, Fault]]


def check_windows(
    cells: Sequence[SheetCell], windows: set[Address], shown: Callable[[Address], str]
) -> Found:
    """A fault for each window that flows elsewhere."""
    by_address = {c.address: c for c in cells}
    for cell in cells:
        match cell.rule:
            case Computed(formula, _, _):
                for message in _misuses(formula, by_address):
                    yield cell.address, _fault(message, shown(cell.address))
                for window in _in_ranges(formula, windows):
                    message = f"a range holds the window {address_text(window)}"
                    yield cell.address, _fault(message, shown(cell.address))
            case TimeWindow(source, _, _) | CountWindow(source, _, _) if source in windows:
                yield cell.address, _fault("a window of a window", shown(cell.address))
            case Previous(source, _, _) | Selected(source, _) if source in windows:
                message = f"the window {address_text(source)} cannot be kept or selected"
                yield cell.address, _fault(message, shown(cell.address))
            case _:
                continue


def _fault(message: str, place: str) -> Fault:
    hint = "a window can only be given to functions such as SUM, COUNT, AVERAGE or INDEX"
    return Fault(f"{message}: windows flow only into aggregations", hint=hint, place=place)


def _misuses(
    node: Node, cells: dict[Address, SheetCell], call: Call | None = None, index: int = 0
) -> Iterator[str]:
    if isinstance(node, WindowOf):
        name = address_text((node.cell.sheet, node.cell.row, node.cell.column))
        if call is None or not _aggregates(call, index):
            where = f"{call.function} of the window {name}" if call else f"the window {name}"
            yield where
        return
    if isinstance(node, Call):
        if node.function == "SUMPRODUCT":
            yield from _different_triggers(node, cells)
        for number, argument in enumerate(node.arguments):
            yield from _misuses(argument, cells, node, number)
        return
    inside = call if isinstance(node, Group) else None
    for child in children(node):
        yield from _misuses(child, cells, inside, index)


def _aggregates(call: Call, index: int) -> bool:
    found = FUNCTIONS.get(call.function)
    if found is None:
        return call.function == "ROWS"
    if call.function in _GIVE_ARRAYS:
        return False
    kinds = list(found.kinds_for(len(call.arguments)))
    return kinds[index] in ("r", "a")


def _different_triggers(call: Call, cells: dict[Address, SheetCell]) -> Iterator[str]:
    triggers = set()
    for argument in call.arguments:
        if isinstance(argument, WindowOf):
            cell = argument.cell
            rule = cells[cell.sheet, cell.row, cell.column].rule
            assert isinstance(rule, (TimeWindow, CountWindow))
            triggers.add(rule.trigger)
    if len(triggers) > 1:
        yield "SUMPRODUCT of windows with different triggers"


def _in_ranges(node: Node, windows: set[Address]) -> Iterator[Address]:
    if isinstance(node, Range):
        for sheet, row, column in windows:
            if (
                sheet == node.sheet
                and node.first.row <= row <= node.last.row
                and node.first.column <= column <= node.last.column
            ):
                yield sheet, row, column
    for child in children(node):
        yield from _in_ranges(child, windows)
