"""The kernel of a sheet that is not compiled: formulas walked for each tuple."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from millstream.calculus.sheets import Address, Sheet
from millstream.calculus.types import QueueType, Row, Value
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.sheets.machine import (
    ABSENT,
    SheetMachine,
    SheetState,
    WindowBuffer,
    constants_of,
)
from millstream.meaning.sheet_values import from_cell, to_cell
from millstream.plan.batch import Array, Batch, batch_of
from millstream.values.excel.values import ERRORS_BY_NAME, ErrorValue, Scalar

_ERROR, _NOTHING = "error", "absent"


def merged_order(inputs: tuple[Batch, ...]) -> tuple[Array, Array]:
    """For the items of all inputs in order: of which input, and at which place in it."""
    times = np.concatenate([b.time for b in inputs])
    which = np.concatenate([np.full(len(b), n, np.int64) for n, b in enumerate(inputs)])
    place = np.concatenate([np.arange(len(b), dtype=np.int64) for b in inputs])
    order = np.argsort(times, kind="stable")
    return which[order], place[order]


class SheetKernel:
    """Mutable: the sheets of all keys."""

    rests = False

    def __init__(
        self, function: Sheet, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.function = function
        self.input_types = input_types
        self.output_types = function.output_types(input_types, output_count)
        constants = constants_of(function)
        self.machine = SheetMachine(
            function.cells, constants, constants, uses_1904=function.uses_1904
        )
        self.fed = [self._fed(n) for n in range(len(input_types))]
        self.states: dict[Value, SheetState] = {}
        self.counted: Counter[str] = Counter()
        #: What `explain` shows.
        self.source = "# formulas are walked"

    def _fed(self, index: int) -> list[tuple[Address, int]]:
        schema = self.input_types[index].schema
        return [(address, schema.index(name)) for address, name in self.function.fed(index)]

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        which, place = merged_order(inputs)
        rows = [b.rows() for b in inputs]
        times = [b.time.tolist() for b in inputs]
        ranks = [None if b.rank is None else b.rank.tolist() for b in inputs]
        sent = _Sent(len(self.output_types))
        waiting: dict[tuple[int, Value], tuple[dict[Address, Scalar], int | None]] = {}
        for n, i in zip(which.tolist(), place.tolist(), strict=True):
            time, of_input = times[n][i], ranks[n]
            rank = None if of_input is None else of_input[i]
            if waiting and next(iter(waiting))[0] != time:
                self._fire_all(waiting, sent)
            key, given = self._arrival(n, rows[n][i])
            if self.function.fires_per_instant:
                waiting.setdefault((time, key), ({}, rank))[0].update(given)
            else:
                self._fire(key, time, given, rank, sent)
        self._fire_all(waiting, sent)
        return tuple(sent.batch(n, type_) for n, type_ in enumerate(self.output_types))

    def _arrival(self, index: int, row: Row) -> tuple[Value, dict[Address, Scalar]]:
        schema = self.input_types[index].schema
        given = {
            address: to_cell(
                row[column], schema.fields[column].type, uses_1904=self.function.uses_1904
            )
            for address, column in self.fed[index]
        }
        key = row[schema.index(self.function.keys[index])] if self.function.keys else None
        return key, given

    def _fire_all(self, waiting: dict[Any, Any], sent: _Sent) -> None:
        for (time, key), (given, rank) in waiting.items():
            self._fire(key, time, given, rank, sent)
        waiting.clear()

    def _fire(
        self, key: Value, time: int, given: dict[Address, Scalar], rank: int | None, sent: _Sent
    ) -> None:
        state = self.states.get(key)
        if state is None:
            state = self.states[key] = SheetState()
        ticked = self.machine.compute(state, time, given)
        value = self.machine.live.value
        for number, columns in enumerate(self.function.outputs):
            if any(c.address in ticked for c in columns):
                row = tuple(
                    from_cell(value(*c.address), c, self.counted, uses_1904=self.function.uses_1904)
                    for c in columns
                )
                sent.add(number, time, row, rank)

    # --- state ---

    def snapshot(self) -> State:
        return {
            "keys": list(self.states),
            "sheets": [_written(s) for s in self.states.values()],
            "counted": dict(self.counted),
        }

    def restore(self, state: State) -> None:
        self.states = {
            key: _read(stored) for key, stored in zip(state["keys"], state["sheets"], strict=True)
        }
        self.counted = Counter(state["counted"])

    def faults(self) -> dict[str, int]:
        return dict(self.counted)


class _Sent:
    """Mutable: the rows that leave in a round."""

    def __init__(self, outputs: int) -> None:
        self.times: list[list[int]] = [[] for _ in range(outputs)]
        self.rows: list[list[Row]] = [[] for _ in range(outputs)]
        self.ranks: list[list[int]] = [[] for _ in range(outputs)]

    def add(self, output: int, time: int, row: Row, rank: int | None) -> None:
        self.times[output].append(time)
        self.rows[output].append(row)
        if rank is not None:
            self.ranks[output].append(rank)

    def batch(self, output: int, type_: QueueType) -> Batch:
        """A row bears the rank of the tuple that caused it, so that any place can order it."""
        batch = batch_of(type_, self.times[output], self.rows[output])
        ranks = self.ranks[output]
        if len(ranks) != len(batch) or not ranks:
            return batch
        return Batch(type_, batch.time, batch.columns, None, np.array(ranks, np.int64))


# --- states as plain values -------------------------------------------------------------


def _written(state: SheetState) -> dict[str, Any]:
    return {
        "values": [(a, _plain(v)) for a, v in state.values.items()],
        "remembered": [(a, _plain(v)) for a, v in state.remembered.items()],
        "windows": [
            (a, [_plain(v) for v in b.values], list(b.times), b.first, b.last)
            for a, b in state.windows.items()
        ],
    }


def _read(stored: dict[str, Any]) -> SheetState:
    return SheetState(
        {tuple(a): _scalar(v) for a, v in stored["values"]},
        {
            tuple(a): WindowBuffer([_scalar(v) for v in values], list(times), first, last)
            for a, values, times, first, last in stored["windows"]
        },
        {tuple(a): _scalar(v) for a, v in stored["remembered"]},
    )


def _plain(value: Any) -> Any:
    """A value that a file can hold: errors and absence are marked, texts stay texts."""
    if value is ABSENT:
        return (_NOTHING,)
    return (_ERROR, str(value)) if type(value) is ErrorValue else value


def _scalar(stored: Any) -> Any:
    if not isinstance(stored, (tuple, list)):
        return stored
    return ABSENT if stored[0] == _NOTHING else ERRORS_BY_NAME.get(stored[1], ErrorValue(stored[1]))
