"""Answers to a loop that calls out for parts of formulas which it cannot compute."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from millstream.calculus.sheets import Address, Fed, Sheet, SheetCell
from millstream.kernels.sheets.called import Site
from millstream.kernels.sheets.machine import LiveCells, SheetMachine, SheetState, constants_of
from millstream.kernels.sheets.operands import (
    ABSENT,
    BOOLEAN_HELD,
    EMPTY,
    ERROR_VALUES,
    FIRST_ERROR,
    OK,
    TEXT_HELD,
    ZERO,
    constant,
)
from millstream.kernels.sheets.outside import scalar_of
from millstream.kernels.sheets.paths import Compilation
from millstream.kernels.sheets.recall import (
    ASKED,
    BASE,
    COUNT,
    SITE,
    SIZE,
    STATUS,
    STOPS,
    STRIDE,
    TABLE,
    VALUE,
    WHOM,
    WINDOW,
    refill,
)
from millstream.kernels.sheets.texts import TextNumbers
from millstream.kernels.windows.ring import STATUSES, VALUES
from millstream.plan.batch import Array
from millstream.values.excel.arrays import Array as Content
from millstream.values.excel.arrays import Cells, window_of
from millstream.values.excel.evaluate import part_of
from millstream.values.excel.kinds import Kind
from millstream.values.excel.values import ErrorValue, Scalar

_LEAST, _MOST = 1 << 8, 1 << 18
#: So many texts more than there are parts may be new in one tuple.
_SPARE = 64


class Calls:
    """Mutable: what was given so far for each part, and the cells that it is asked with."""

    def __init__(
        self, sheet: Sheet, whole: Compilation, texts: TextNumbers, pool: Callable[[], Array]
    ) -> None:
        self.sites = sites = whole.called
        self.texts = texts
        #: Where windows lie.
        self.pool = pool
        self.windows = [[_handed(whole, a) for a in site.windows] for site in sites]
        self.machines = [_machine(sheet, site) for site in sites]
        most = max(2 * (1 + len(site.addresses)) + WINDOW * len(site.windows) for site in sites)
        self.asked = np.zeros(ASKED + most, np.int64)
        self.floats = self.asked.view(np.float64)
        self.callback = ctypes.CFUNCTYPE(None)(self._answer)
        self.asked[WHOM] = ctypes.cast(self.callback, ctypes.c_void_p).value or 0
        self.failure: BaseException | None = None
        self.forget()

    def forget(self) -> None:
        self.tables = np.zeros((len(self.sites), TABLE), np.int64)
        self.tables[:, STRIDE] = [3 + 2 * (1 + len(site.addresses)) for site in self.sites]
        self.memo = np.zeros(0, np.int64)
        self._lay_out([_LEAST] * len(self.sites))

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """What the loop is given."""
        return self.memo, self.tables, self.asked

    # --- room ---

    def make_room(self) -> None:
        """For more entries and more texts; a table that is as large as may be starts anew."""
        self.raise_failure()
        self.asked[STOPS] = 0
        self.texts.make_room(len(self.sites) + _SPARE)
        if all(2 * table[COUNT] < table[SIZE] for table in self.tables):
            return
        sizes = []
        for table in self.tables:
            size, is_full = int(table[SIZE]), 2 * table[COUNT] >= table[SIZE]
            if is_full and size >= _MOST:
                table[COUNT] = 0
            sizes.append(4 * size if is_full and size < _MOST else size)
        self._lay_out(sizes)

    def _lay_out(self, sizes: Sequence[int]) -> None:
        """All tables with new sizes, one after the other."""
        before, strides = self.memo, self.tables[:, STRIDE]
        ends = np.cumsum(np.array(sizes) * strides)
        self.memo = np.zeros(int(ends[-1]), np.int64)
        for table, size, end in zip(self.tables, sizes, ends.tolist(), strict=True):
            base = int(end - size * table[STRIDE])
            if table[COUNT]:
                refill(before, table, self.memo, base, size)
            table[BASE], table[SIZE] = base, size

    def raise_failure(self) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    # --- answers ---

    def _answer(self) -> None:
        """Called by the loop; nothing may be raised through it."""
        try:
            self._give(self._value(int(self.asked[SITE])))
        except BaseException as failure:  # noqa: BLE001  raised when the loop has stopped
            self.failure = self.failure or failure
            self.asked[VALUE], self.asked[STATUS], self.asked[STOPS] = 0, FIRST_ERROR, 1

    def _value(self, number: int) -> Scalar:
        site, machine = self.sites[number], self.machines[number]
        first, count = ASKED + 1, 1 + len(site.addresses)
        values = self.floats[first : first + count - 1].tolist()
        statuses = self.asked[first + count : first + 2 * count - 1].tolist()
        state = machine.live.state = SheetState()
        for address, kind, value, status in zip(
            site.addresses, site.kinds, values, statuses, strict=True
        ):
            if status != ABSENT:
                state.values[address] = scalar_of(value, _held(kind, status), self.texts)
        at = ASKED + 2 * count
        for address, window in zip(site.windows, self.windows[number], strict=True):
            words = self.asked[at : at + WINDOW].tolist()
            machine.live.handed[address] = self._content(window, *words)
            at += WINDOW
        if site.is_whole:
            return machine.evaluated(site.place, site.rule)
        return part_of(site.rule.formula, machine.context(site.place))

    def _content(self, window: Handed, base: int, size: int, first: int, seen: int) -> Content:
        """What a window holds, oldest first, read where the loop keeps it."""
        pool, step = self.pool(), window.stride
        floats, shift = pool.view(np.float64), 8 * window.column
        values, statuses = list[float](), list[int]()
        start, count = first & (size - 1), seen - first
        until_end = min(count, size - start)
        # The ring may go on at its beginning.
        for begin, some in ((start, until_end), (0, count - until_end)):
            at = base + begin * step
            end = at + some * step
            values += floats[at + VALUES + window.column : end : step].tolist()
            statuses += pool[at + STATUSES : end : step].tolist()
        if not any(statuses):
            if window.kind is Kind.NUMBER:
                return window_of(tuple(values))
            if window.kind is Kind.TEXT:
                return window_of(self.texts.words_of(values))
        held = (_held(window.kind, (status >> shift) & 0xFF) for status in statuses)
        return window_of(tuple(map(scalar_of, values, held, repeat(self.texts))))

    def _give(self, value: Scalar) -> None:
        site = self.sites[int(self.asked[SITE])]
        held, status = 0.0, OK
        if value is None:
            status = EMPTY
        elif type(value) is ErrorValue:
            status = FIRST_ERROR + ERROR_VALUES.index(value)
        elif type(value) is float:
            held = value
        elif type(value) is bool:
            held, status = float(value), BOOLEAN_HELD
        else:
            held, status = float(self.texts.number(str(value))), TEXT_HELD
            if self.texts.room() < len(self.sites) + _SPARE:
                self.asked[STOPS] = 1
        if site.shows_zero and type(value) is float and value == 0.0:
            status = ZERO
        elif site.kind is not Kind.MIXED and status in (OK, TEXT_HELD, BOOLEAN_HELD):
            assert _held(site.kind, OK) == status, f"{site.place} gives {value!r}"
            status = OK
        self.floats[VALUE], self.asked[STATUS] = held, status


def _held(kind: Kind, status: int) -> int:
    """The status of a value where several kinds may be."""
    if status != OK:
        return status
    return {Kind.TEXT: TEXT_HELD, Kind.BOOLEAN: BOOLEAN_HELD}.get(kind, OK)


@dataclass(frozen=True)
class Handed:
    """A window whose content is handed over: where its values lie in an element, and their kind."""

    stride: int
    column: int
    kind: Kind


def _handed(whole: Compilation, address: Address) -> Handed:
    group, column = whole.windows[address]
    source = group.columns[column]
    known = whole.kinds.get(source) or constant(whole.fixed(source), whole.texts)
    return Handed(group.stride, column, known.kind)


class _HandedCells(LiveCells):
    """Mutable: cells of which windows are as the loop has handed them over."""

    def __init__(self, static: Cells, changing: frozenset[Address]) -> None:
        super().__init__(static, changing)
        self.handed: dict[Address, Content] = {}

    def window(self, sheet: str, row: int, column: int) -> Content:
        return self.handed[sheet, row, column]

    def kept_aggregate(self, *_window: object) -> None:
        return None


class _Machine(SheetMachine):
    """Mutable: computes a part with the values that it is called with."""

    live: _HandedCells


def _machine(sheet: Sheet, site: Site) -> _Machine:
    constants = constants_of(sheet)
    leaves = [SheetCell(a, Fed(0, str(n))) for n, a in enumerate(site.addresses)]
    machine = _Machine(leaves, constants, constants, uses_1904=sheet.uses_1904)
    machine.live = _HandedCells(constants, frozenset(site.addresses))
    return machine
