"""A sheet computed incrementally, one tick at a time, by walking its formulas.

The state of one key is a `SheetState`: values of cells that have ticked, buffers of windows,
and what PRE remembers. It follows figure 4 without its histories: theorem 3 of the paper says
that ticks and values depend only on the new inputs and on this state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from millstream.calculus.sheets import (
    Address,
    Computed,
    CountWindow,
    Fed,
    Previous,
    Selected,
    Sheet,
    SheetCell,
    TimeWindow,
)
from millstream.kernels.sheets.summary import WindowSummary, is_kept
from millstream.values.excel.arrays import Area, Array, Cells, window_of
from millstream.values.excel.constant_cells import ConstantCells
from millstream.values.excel.evaluate import Context, Names, array_of, value_of
from millstream.values.excel.indexes import AreaIndex
from millstream.values.excel.syntax import Node
from millstream.values.excel.values import NA, Scalar

#: What PRE remembers of a cell that had no value yet.
ABSENT = object()


@dataclass
class WindowBuffer:
    """Mutable: the values of a window and those that wait for its trigger, oldest first.

    The window is `values[first:last]`; what comes after waits. The times are kept where
    the window is one of time.
    """

    values: list[Scalar] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    first: int = 0
    last: int = 0
    summary: WindowSummary | None = None

    def summarised(self) -> WindowSummary:
        if self.summary is None:
            self.summary = WindowSummary(self.values[self.first : self.last], 0)
        return self.summary

    def append(self, time: int, value: Scalar) -> None:
        self.values.append(value)
        self.times.append(time)

    def advance_to_time(self, oldest: int) -> None:
        """The trigger has ticked: keep what is later than `oldest`."""
        self._enter()
        while self.first < self.last and self.times[self.first] <= oldest:
            self._leave()
        self._forget()

    def advance_to_count(self, count: int) -> None:
        self._enter()
        while self.last - self.first > count:
            self._leave()
        self._forget()

    def _enter(self) -> None:
        if self.summary is not None:
            for value in self.values[self.last :]:
                self.summary.enter(value)
        self.last = len(self.values)

    def _leave(self) -> None:
        if self.summary is not None:
            self.summary.leave()
        self.first += 1

    def _forget(self) -> None:
        """Drop what has left, once it is more than what is there."""
        if self.first > 64 and self.first * 2 > self.last:
            del self.values[: self.first], self.times[: self.first]
            self.last -= self.first
            self.first = 0

    def contents(self) -> Array:
        return window_of(tuple(self.values[self.first : self.last]))


@dataclass
class SheetState:
    """Mutable: the sheet of one key."""

    values: dict[Address, Scalar] = field(default_factory=dict)
    windows: dict[Address, WindowBuffer] = field(default_factory=dict)
    remembered: dict[Address, Any] = field(default_factory=dict)


class LiveCells:
    """The cells of a sheet as formulas see them: what changes, over what does not."""

    def __init__(self, static: Cells, changing: frozenset[Address]) -> None:
        self.static = static
        self.changing = changing
        #: Which areas hold nothing that changes, as far as was asked.
        self.fixed: dict[tuple[str, int, int, int, int], bool] = {}
        self.state = SheetState()

    def value(self, sheet: str, row: int, column: int) -> Scalar:
        address = (sheet, row, column)
        if address in self.changing:
            return self.state.values.get(address)
        return self.static.value(sheet, row, column)

    def window(self, sheet: str, row: int, column: int) -> Array:
        buffer = self.state.windows.get((sheet, row, column))
        return window_of(()) if buffer is None else buffer.contents()

    def is_present(self, address: Address) -> bool:
        """Has a cell a value? One that nothing changes has, unless it is empty."""
        if address in self.changing:
            return address in self.state.values
        return self.static.value(*address) is not None

    def filled(self, area: Area) -> Iterator[tuple[int, int]]:
        return self.static.filled(area)

    def extent(self, sheet: str) -> tuple[int, int]:
        return self.static.extent(sheet)

    def kept_aggregate(
        self, function: str, count: int, sheet: str, row: int, column: int
    ) -> Callable[..., tuple[Scalar] | None] | None:
        buffer = self.state.windows.get((sheet, row, column))
        if buffer is None or not is_kept(function, count):
            return None
        return buffer.summarised().aggregate(function, count)

    def index(self, area: Area, *, is_to_last: bool = True) -> AreaIndex | None:
        """Tables of constants are searched quickly; where values change nothing is kept."""
        if area.height * area.width == 1:
            return None
        key = (area.sheet, area.top, area.left, area.bottom, area.right)
        is_fixed = self.fixed.get(key)
        if is_fixed is None:
            is_fixed = self.fixed[key] = not any(
                sheet == area.sheet
                and area.top <= row <= area.bottom
                and area.left <= column <= area.right
                for sheet, row, column in self.changing
            )
        if not is_fixed:
            return None
        # As often as a table is searched: `replace` would take longer than that.
        fixed = Area(self.static, area.sheet, area.top, area.left, area.bottom, area.right)
        return self.static.index(fixed, is_to_last=is_to_last)

    def formula(self, sheet: str, row: int, column: int) -> Node | None:
        return self.static.formula(sheet, row, column)

    def sheet_names(self) -> list[str]:
        return self.static.sheet_names()

    def is_hidden(self, sheet: str, row: int, *, by_filter: bool) -> bool:
        return self.static.is_hidden(sheet, row, by_filter=by_filter)

    def is_subtotal(self, sheet: str, row: int, column: int) -> bool:
        return self.static.is_subtotal(sheet, row, column)


@lru_cache(maxsize=16)
def constants_of(sheet: Sheet) -> ConstantCells:
    """The cells of a sheet that never change, with what is known of where they stand.

    All that compute parts of the sheet share them: tables are indexed once.
    """
    return ConstantCells(dict(sheet.constants), [c.address for c in sheet.cells])


class SheetMachine:
    """Computes the sheets of all keys; which one is said with each call."""

    def __init__(
        self, cells: Sequence[SheetCell], static: Cells, names: Names, *, uses_1904: bool
    ) -> None:
        self.cells = [c for c in cells if not isinstance(c.rule, Fed)]
        self.previous = [c for c in self.cells if isinstance(c.rule, Previous)]
        self.live = LiveCells(static, frozenset(c.address for c in cells))
        self.names = names
        self.uses_1904 = uses_1904
        self.contexts: dict[Address, Context] = {}
        self.plans: dict[frozenset[Address], list[SheetCell]] = {}
        self.steps: dict[type, Callable[[SheetCell, int, set[Address]], bool]] = {
            Computed: self._computed,
            TimeWindow: self._time_window,
            CountWindow: self._count_window,
            Selected: self._selected,
            Previous: self._previous,
        }

    def compute(
        self, state: SheetState, time: int, given: Mapping[Address, Scalar]
    ) -> set[Address]:
        """Take in new values of cells at a time; returns the cells that have ticked."""
        self.live.state = state
        state.values.update(given)
        ticked = set(given)
        for cell in self._plan(frozenset(given)):
            if self.steps[type(cell.rule)](cell, time, ticked):
                ticked.add(cell.address)
        for cell in self.previous:
            rule = cell.rule
            assert isinstance(rule, Previous)
            if rule.trigger in ticked:
                is_there = self.live.is_present(rule.source)
                kept = self.live.value(*rule.source) if is_there else ABSENT
                state.remembered[cell.address] = kept
        return ticked

    def _plan(self, given: frozenset[Address]) -> list[SheetCell]:
        """The cells that new values in these cells can concern, in order."""
        plan = self.plans.get(given)
        if plan is None:
            reached = set(given)
            plan = []
            for cell in self.cells:
                rule = cell.rule
                is_window = isinstance(rule, (TimeWindow, CountWindow))
                if any(a in reached for a in cell.causes):
                    reached.add(cell.address)
                    plan.append(cell)
                elif is_window and rule.source in reached:  # type: ignore[union-attr]
                    plan.append(cell)
            self.plans[given] = plan
        return plan

    def context(self, address: Address) -> Context:
        context = self.contexts.get(address)
        if context is None:
            context = Context(self.live, self.names, *address, uses_1904=self.uses_1904)
            self.contexts[address] = context
        return context

    # --- one cell: has it ticked? ---

    def _computed(self, cell: SheetCell, time: int, ticked: set[Address]) -> bool:
        rule = cell.rule
        assert isinstance(rule, Computed)
        if not any(a in ticked for a in cell.refers_to):
            return False
        self.live.state.values[cell.address] = self.evaluated(cell.address, rule)
        return True

    def evaluated(self, address: Address, rule: Computed) -> Scalar:
        context = self.context(address)
        if not rule.is_array:
            return value_of(rule.formula, context)
        array = array_of(rule.formula, context)
        i, j = rule.element
        i = 0 if array.height == 1 else i
        j = 0 if array.width == 1 else j
        return array.at(i, j) if i < array.height and j < array.width else NA

    def _buffer(self, cell: SheetCell, source: Address, time: int, ticked: set[Address]) -> Any:
        windows = self.live.state.windows
        buffer = windows.get(cell.address)
        if buffer is None:
            buffer = windows[cell.address] = WindowBuffer()
        if source in ticked:
            buffer.append(time, self.live.value(*source))
        return buffer

    def _time_window(self, cell: SheetCell, time: int, ticked: set[Address]) -> bool:
        rule = cell.rule
        assert isinstance(rule, TimeWindow)
        buffer = self._buffer(cell, rule.source, time, ticked)
        if rule.trigger not in ticked:
            return False
        buffer.advance_to_time(time - rule.length)
        return True

    def _count_window(self, cell: SheetCell, time: int, ticked: set[Address]) -> bool:
        rule = cell.rule
        assert isinstance(rule, CountWindow)
        buffer = self._buffer(cell, rule.source, time, ticked)
        if rule.trigger not in ticked:
            return False
        buffer.advance_to_count(rule.count)
        return True

    def _selected(self, cell: SheetCell, time: int, ticked: set[Address]) -> bool:
        rule = cell.rule
        assert isinstance(rule, Selected)
        if rule.condition not in ticked or self.live.value(*rule.condition) is not True:
            return False
        if not self.live.is_present(rule.source):
            return False
        self.live.state.values[cell.address] = self.live.value(*rule.source)
        return True

    def _previous(self, cell: SheetCell, time: int, ticked: set[Address]) -> bool:
        rule = cell.rule
        assert isinstance(rule, Previous)
        if rule.trigger not in ticked:
            return False
        kept = self.live.state.remembered.get(cell.address, ABSENT)
        self.live.state.values[cell.address] = rule.initial if kept is ABSENT else kept
        return True
