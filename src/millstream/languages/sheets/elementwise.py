"""Formulas over all values of windows: `SUMPRODUCT((WINDOW(A2,60)="EU")*WINDOW(B2,60))`.

Where all windows of such a formula take in and drop values at the same ticks, the formula of
the windows is the window of the formula: it is computed once, when a tuple comes, and the
aggregate of it is kept up to date like any other. Otherwise it is computed anew for all
values of the windows whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from millstream.calculus.sheets import (
    Address,
    Computed,
    CountWindow,
    Rule,
    SheetCell,
    TimeWindow,
    Windows,
    tick_atoms,
)
from millstream.languages.sheets.filtered import (
    filter_in,
    unfiltered,
    unmapped,
    with_each,
    with_wildcards,
)
from millstream.values.excel.elementwise import aggregates, is_elementwise, takes_formulas
from millstream.values.excel.syntax import (
    Call,
    Cell,
    Group,
    Literal,
    Node,
    WindowOf,
    children,
    rebuilt,
)


def windows_of_formulas(
    cells: Sequence[SheetCell], hidden: Callable[[Address], Address]
) -> list[SheetCell]:
    """The cells, in an order of computation, with formulas over windows made windows.

    `hidden` gives the address of a new cell, made for another one.
    """
    lifting = _Lifting(list(cells), hidden)
    return lifting.lifted()


@dataclass
class _Lifting:
    """Mutable: the new cells, and which window stands for which formula."""

    cells: list[SheetCell]
    hidden: Callable[[Address], Address]
    new: list[SheetCell] = field(default_factory=list)
    made: dict[object, Address] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rules: dict[Address, Rule] = {c.address: c.rule for c in self.cells}
        self.atoms = tick_atoms(self.cells)

    def lifted(self) -> list[SheetCell]:
        if not any(isinstance(c.rule, Windows) for c in self.cells):
            return self.cells
        kept = [self._cell(cell) for cell in self.cells]
        return kept + self.new

    def _cell(self, cell: SheetCell) -> SheetCell:
        rule = cell.rule
        if not isinstance(rule, Computed):
            return cell
        formula = self._replaced(rule.formula, cell.address)
        if formula == rule.formula:
            return cell
        before, after = _windows_in(rule.formula), _windows_in(formula)
        refers = [a for a in cell.refers_to if a not in before or a in after]
        refers += [a for a in after if a not in refers]
        return replace(cell, rule=replace(rule, formula=formula), refers_to=tuple(sorted(refers)))

    def _replaced(self, node: Node, home: Address) -> Node:
        if isinstance(node, Call):
            node = unfiltered(node) if self._is_of_filtered(node) else with_each(node)
        if isinstance(node, Call):
            aggregate = self._of_matching(node, home)
            if aggregate is not None:
                return aggregate
        if isinstance(node, Call) and takes_formulas(node):
            arguments = tuple(
                self._argument(a, home) if aggregates(node, n) else self._replaced(a, home)
                for n, a in enumerate(node.arguments)
            )
            return Call(node.function, arguments)
        return rebuilt(node, lambda n: self._replaced(n, home))

    def _of_matching(self, call: Call, home: Address) -> Node | None:
        """An aggregate of what meets criteria with wildcards, as one of a window of formulas."""
        aggregate = with_wildcards(call)
        if aggregate is None:
            return None
        (formula,) = aggregate.arguments
        windows = _windows_in(formula)
        if not self._tick_together(windows):
            return None
        return Call(aggregate.function, (WindowOf(_as_cell(self._window(formula, windows, home))),))

    def _is_of_filtered(self, call: Call) -> bool:
        """Is it an aggregate of what a FILTER of windows leaves?"""
        parts = filter_in(call)
        return (
            parts is not None
            and all(_windows_in(part) and self._is_fixed_over_windows(part) for part in parts)
            and self._tick_together([w for part in parts for w in _windows_in(part)])
        )

    def _argument(self, node: Node, home: Address) -> Node:
        inner = node
        while isinstance(inner, Group):
            inner = inner.inner
        if isinstance(inner, Call) and inner.function == "MAP":
            applied = unmapped(inner)
            if self._is_fixed_over_windows(applied) and self._tick_together(_windows_in(applied)):
                inner = applied
        windows = _windows_in(inner)
        if isinstance(inner, WindowOf) or not windows:
            return inner if windows else self._replaced(node, home)
        if not self._is_fixed_over_windows(inner) or not self._tick_together(windows):
            return self._replaced(node, home)
        return WindowOf(_as_cell(self._window(inner, windows, home)))

    def _is_fixed_over_windows(self, node: Node) -> bool:
        """Only windows of it change, and it is applied to each of their values."""
        match node:
            case WindowOf() | Literal():
                return True
            case Cell(sheet, row, column):
                return (sheet, row, column) not in self.rules
            case _:
                return is_elementwise(node) and all(
                    self._is_fixed_over_windows(child) for child in children(node)
                )

    def _tick_together(self, windows: list[Address]) -> bool:
        return len({self._ticks(w) for w in windows}) == 1

    def _ticks(self, window: Address) -> object:
        rule = self.rules[window]
        assert isinstance(rule, (TimeWindow, CountWindow))
        length = rule.length if isinstance(rule, TimeWindow) else rule.count
        none: frozenset[object] = frozenset()
        return (type(rule), length, self.atoms.get(rule.trigger, none),
                self.atoms.get(rule.source, none))  # fmt: skip

    def _window(self, node: Node, windows: list[Address], home: Address) -> Address:
        rule = self.rules[windows[0]]
        assert isinstance(rule, (TimeWindow, CountWindow))
        # The parentheses keep Excel from taking a small difference for zero: it is not the
        # last operation of the formula it stands in.
        formula = Group(self._of_sources(node))
        key = (formula, self._ticks(windows[0]))
        if key not in self.made:
            source, window = self.hidden(home), self.hidden(home)
            sources = sorted({self._source(w) for w in windows})
            changing = tuple(a for a in sources if a in self.rules)
            self.new.append(SheetCell(source, Computed(formula), changing))
            self.new.append(SheetCell(window, replace(rule, source=source)))
            self.made[key] = window
        return self.made[key]

    def _source(self, window: Address) -> Address:
        rule = self.rules[window]
        assert isinstance(rule, (TimeWindow, CountWindow))
        return rule.source

    def _of_sources(self, node: Node) -> Node:
        if isinstance(node, WindowOf):
            cell = node.cell
            return _as_cell(self._source((cell.sheet, cell.row, cell.column)))
        return rebuilt(node, self._of_sources)


def _as_cell(address: Address) -> Cell:
    return Cell(*address)


def _windows_in(node: Node) -> list[Address]:
    if isinstance(node, WindowOf):
        return [(node.cell.sheet, node.cell.row, node.cell.column)]
    return list(dict.fromkeys(a for child in children(node) for a in _windows_in(child)))
