"""The meaning of a sheet: figure 4 of the paper, read literally, with whole histories.

For every key and every cell c that a later firing looks back to, the ticks T(c) and the values
E(c) at them are kept for ever.
The paper has one input value at a time; here tuples of one time are numbered, and a number
stands where the paper has a time. Only windows look at the real times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from millstream.calculus.types import Row, Value
from millstream.meaning.firing import Context, Result, State, fire, initial_state
from millstream.meaning.items import Entry, Item
from millstream.meaning.sheet_values import from_cell, to_cell
from millstream.meaning.waiting import Side, heard, known_until, marks_due
from millstream.values.excel.arrays import Area, Array, Cells, window_of
from millstream.values.excel.constant_cells import ConstantCells
from millstream.values.excel.evaluate import Context as FormulaContext
from millstream.values.excel.evaluate import array_of, value_of
from millstream.values.excel.values import NA, Scalar


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick of a cell: its number among the firings of its key, its time, its value."""

    number: int
    time: int
    value: Any


#: T and E of one cell in one partition, from the first tick to the last.
History = tuple[Tick, ...]


@initial_state.register
def _state(function: Sheet, inputs: int) -> State:
    return (Side(),) * inputs + ({},) * len(function.stateful())


@fire.register
def _fire(function: Sheet, entry: Entry, index: int, state: State, context: Context) -> Result:
    inputs = len(context.input_types)
    before: list[Side] = list(state[:inputs])
    histories: dict[Address, dict[Value, History]] = {
        cell.address: dict(stored)
        for cell, stored in zip(function.stateful(), state[inputs:], strict=True)
    }
    sides = heard(before, index, entry)
    now = known_until(sides)
    sent: list[list[Entry]] = [[] for _ in function.outputs]
    if now is not None and now != known_until(before):
        for firing in _firings(function, sides, now, context):
            _fired(function, firing, histories, sent, context, entry)
        sides = [replace(s, pending=tuple(i for i in s.pending if i.time > now)) for s in sides]
    mark, sides = marks_due(before, sides, entry)
    outputs = tuple((*items, *mark) for items in sent)
    return Result(outputs, (*sides, *histories.values()))


@dataclass(frozen=True, slots=True)
class Firing:
    """Values that arrive in the cells of one key at one time."""

    key: Value
    time: int
    given: Mapping[Address, Scalar] = field(default_factory=dict)


def _firings(function: Sheet, sides: list[Side], now: int, context: Context) -> Iterator[Firing]:
    """One firing per tuple, or per key and instant, in order."""
    items = sorted(
        (
            (item.time, index, item)
            for index, side in enumerate(sides)
            for item in side.pending
            if item.time <= now
        ),
        key=lambda arrival: arrival[:2],
    )
    waiting: dict[tuple[int, Value], dict[Address, Scalar]] = {}
    for time, index, item in items:
        key, given = _arrival(function, index, item.row, context)
        if function.fires_per_instant:
            waiting.setdefault((time, key), {}).update(given)
        else:
            yield Firing(key, time, given)
    for (time, key), given in waiting.items():
        yield Firing(key, time, given)


def _arrival(
    function: Sheet, index: int, row: Row, context: Context
) -> tuple[Value, dict[Address, Scalar]]:
    schema = context.input_types[index].schema
    values = dict(zip(schema.names, row, strict=True))
    key = values[function.keys[index]] if function.keys else None
    given = {
        address: to_cell(values[column], schema[column], uses_1904=function.uses_1904)
        for address, column in function.fed(index)
    }
    return key, given


def _fired(
    function: Sheet,
    firing: Firing,
    histories: dict[Address, dict[Value, History]],
    sent: list[list[Entry]],
    context: Context,
    cause: Entry,
) -> None:
    # Of a cell that is not remembered nobody asks for more than its value at this firing.
    kept = {a: h.get(firing.key, ()) for a, h in histories.items()}
    figure = Figure(function, {c.address: kept.get(c.address, ()) for c in function.cells})
    ticked = figure.tick(firing.time, firing.given)
    for address in ticked & histories.keys():
        histories[address][firing.key] = figure.histories[address]
    for items, columns in zip(sent, function.outputs, strict=True):
        if any(c.address in ticked for c in columns):
            row = tuple(
                from_cell(figure.value(*c.address), c, context.faults, uses_1904=function.uses_1904)
                for c in columns
            )
            items.append(Item(firing.time, row, origin=cause.origin))


@lru_cache(maxsize=64)
def _constants(function: Sheet) -> ConstantCells:
    return ConstantCells(dict(function.constants), [c.address for c in function.cells])


class Figure(Cells):
    """Mutable: the histories of one partition, grown by one tick. It is the `Cells`."""

    def __init__(self, function: Sheet, histories: dict[Address, History]) -> None:
        self.function = function
        self.histories = histories
        self.constants = _constants(function)
        self.number = 1 + max((h[-1].number for h in histories.values() if h), default=0)

    def tick(self, time: int, given: Mapping[Address, Scalar]) -> set[Address]:
        """T and E of every cell at the next number."""
        ticked: set[Address] = set()
        for cell in self.function.cells:
            boxed = self._value(cell, time, given, ticked)
            if boxed is not None:
                self.histories[cell.address] += (Tick(self.number, time, boxed[0]),)
                ticked.add(cell.address)
        return ticked

    def _value(
        self, cell: SheetCell, time: int, given: Mapping[Address, Scalar], ticked: set[Address]
    ) -> tuple[Any] | None:
        """E(c, t) if t is in T(c), in a tuple of one; else None."""
        rule = cell.rule
        match rule:
            case Fed():
                return (given[cell.address],) if cell.address in given else None
            case Computed():
                is_due = any(a in ticked for a in cell.refers_to)
                return (self._evaluated(cell.address, rule),) if is_due else None
            case Selected(source, condition):
                is_true = condition in ticked and self.value(*condition) is True
                is_due = is_true and self.is_present(source, self.number)
                return (self.value(*source),) if is_due else None
            case TimeWindow(source, length, trigger):
                if trigger not in ticked:
                    return None
                history = self.histories.get(source, ())  # of what never changes it is empty
                return ([k.value for k in history if k.time > time - length],)
            case CountWindow(source, count, trigger):
                if trigger not in ticked:
                    return None
                return ([k.value for k in self.histories.get(source, ())[-count:]],)
            case Previous(source, trigger, initial):
                return (self._previous(source, trigger, initial),) if trigger in ticked else None

    def _previous(self, source: Address, trigger: Address, initial: Scalar) -> Scalar:
        ticks = self.histories[trigger]
        if len(ticks) < 2:
            return initial
        before = ticks[-2].number
        return self.value_at(source, before) if self.is_present(source, before) else initial

    def is_present(self, address: Address, number: int) -> bool:
        """Is T(c, t) not empty? What never changes is there, unless it is empty."""
        if address not in self.histories:
            return self.constants.value(*address) is not None
        return any(k.number <= number for k in self.histories[address])

    def value_at(self, address: Address, number: int) -> Scalar:
        """E(c, t); what is absent looks empty to functions."""
        if address not in self.histories:
            return self.constants.value(*address)
        for tick in reversed(self.histories[address]):
            if tick.number <= number:
                return tick.value  # type: ignore[no-any-return]
        return None

    def _evaluated(self, address: Address, rule: Computed) -> Scalar:
        sheet, row, column = address
        context = FormulaContext(
            self, self.constants, sheet, row, column, uses_1904=self.function.uses_1904
        )
        if not rule.is_array:
            return value_of(rule.formula, context)
        array = array_of(rule.formula, context)
        i = 0 if array.height == 1 else rule.element[0]
        j = 0 if array.width == 1 else rule.element[1]
        return array.at(i, j) if i < array.height and j < array.width else NA

    # --- what formulas ask ---

    def value(self, sheet: str, row: int, column: int) -> Scalar:
        return self.value_at((sheet, row, column), self.number)

    def window(self, sheet: str, row: int, column: int) -> Array:
        history = self.histories[sheet, row, column]
        return window_of(tuple(history[-1].value)) if history else window_of(())

    def filled(self, area: Area) -> Iterator[tuple[int, int]]:
        return self.constants.filled(area)

    def extent(self, sheet: str) -> tuple[int, int]:
        return self.constants.extent(sheet)

    def sheet_names(self) -> list[str]:
        return self.constants.sheet_names()
