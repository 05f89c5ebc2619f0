"""Windows flow only into aggregations: functions that make one value of many."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Computed,
    CountWindow,
    Previous,
    Rule,
    Selected,
    SheetCell,
    TimeWindow,
    Windows,
    address_text,
    tick_atoms,
)
from millstream.errors import Fault
from millstream.values.excel.elementwise import aggregates, takes_formulas
from millstream.values.excel.syntax import Call, Group, Node, Range, WindowOf, children

Found = Iterator[tuple[Address, Fault]]

_ONLY = "windows flow only into aggregations"
_HINT = "a window can only be given to functions such as SUM, COUNT, AVERAGE or INDEX"


def check_windows(
    cells: Sequence[SheetCell], shown: Callable[[Address], str], named: Callable[[Address], str]
) -> Found:
    """A fault for each window that flows elsewhere.

    `shown` says where a cell stands, `named` what to call a window.
    """
    checker = _Checker(cells, named)
    for cell in cells:
        for message, hint in checker.misuses(cell):
            yield cell.address, Fault(message, hint=hint, place=shown(cell.address))


def check_triggers(
    cells: Sequence[SheetCell], shown: Callable[[Address], str], unsure: Container[Address]
) -> Iterator[Fault]:
    """A fault for each cell that nothing ever makes tick, and each window that stays empty.

    Of cells that are `unsure`, because there are faults in them, nothing is said.
    """
    atoms = tick_atoms(cells)
    for cell in cells:
        for role, name, address in _needed(cell.rule):
            if not atoms.get(address) and address not in unsure:
                yield Fault(
                    f"the {role} of {name}, {_named(address)}, never changes: {name} has never "
                    f"{'anything in it' if role == 'source' else 'a value'}",
                    hint="it must depend on a cell that a stream fills",
                    place=shown(cell.address),
                )


def _named(address: Address) -> str:
    return "a constant" if address[0] == HIDDEN_SHEET else address_text(address)


def _needed(rule: Rule) -> Iterator[tuple[str, str, Address]]:
    """What must tick: what it is, for which function, and the cell."""
    match rule:
        case TimeWindow(source, _, trigger) | CountWindow(source, _, trigger):
            name = "WINDOW" if isinstance(rule, TimeWindow) else "WINDOWROWS"
            yield "source", name, source
            if trigger != source:
                yield "trigger", name, trigger
        case Previous(_, trigger, _):
            yield "trigger", "PRE", trigger
        case Selected(_, condition):
            yield "condition", "SELECT", condition
        case _:
            return


class _Checker:
    """What is known of the windows among the cells."""

    def __init__(self, cells: Sequence[SheetCell], named: Callable[[Address], str]) -> None:
        self.windows = {c.address: c.rule for c in cells if isinstance(c.rule, Windows)}
        self.atoms = tick_atoms(cells)
        self.named = named

    def misuses(self, cell: SheetCell) -> Iterator[tuple[str, str]]:
        match cell.rule:
            case Computed(formula, _, _):
                yield from self._in_formula(formula)
                for window in _in_ranges(formula, self.windows):
                    yield f"a range holds the window {self.named(window)}: {_ONLY}", _HINT
            case TimeWindow(source, _, _) | CountWindow(source, _, _) if source in self.windows:
                yield f"a window of the window {self.named(source)}: {_ONLY}", _HINT
            case Previous(source, _, _) | Selected(source, _) if source in self.windows:
                name = self.named(source)
                yield f"the window {name} cannot be kept or selected: {_ONLY}", _HINT
            case _:
                return

    def _in_formula(
        self, node: Node, owner: Call | None = None, *, is_bare: bool = True, inside: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Misuses in a part of a formula.

        `owner` is the call that makes one value of the many of the part; the part is bare where
        it is an argument of that itself.
        """
        if isinstance(node, WindowOf):
            name = self.named((node.cell.sheet, node.cell.row, node.cell.column))
            if owner is None:
                yield f"{inside}the window {name}: {_ONLY}", _HINT
            elif not is_bare and not takes_formulas(owner):
                yield (f"{owner.function} takes the window {name} as it is, not a formula of it",
                       "give the formula a cell of its own, and that a WINDOW")  # fmt: skip
            return
        if isinstance(node, Call) and node.function == "SUMPRODUCT":
            yield from self._of_different_ticks(node)
        is_still_bare = is_bare and isinstance(node, Group)
        if isinstance(node, Call):
            inside = f"{node.function} of "
        for number, child in enumerate(children(node)):
            if isinstance(node, Call) and aggregates(node, number):
                yield from self._in_formula(child, node)
            else:
                # Many values go on as many, and something around must make one of them.
                yield from self._in_formula(child, owner, is_bare=is_still_bare, inside=inside)

    def _of_different_ticks(self, call: Call) -> Iterator[tuple[str, str]]:
        triggers: dict[frozenset[object], Address] = {}
        for argument in call.arguments:
            if isinstance(argument, WindowOf):
                window = (argument.cell.sheet, argument.cell.row, argument.cell.column)
                trigger = self.windows[window].trigger
                triggers.setdefault(self.atoms.get(trigger, frozenset()), window)
        if len(triggers) > 1:
            names = " and ".join(self.named(w) for w in triggers.values())
            yield (f"SUMPRODUCT needs windows that change at the same ticks; {names} do not",
                   "give both windows the same trigger, as their third argument")  # fmt: skip


def _in_ranges(node: Node, windows: Iterable[Address]) -> Iterator[Address]:
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
