"""Rows in bulk for a sheet inside another program: the compiled loop instead of the walk.

Every cell that is filled is an input of its own, and a row is an instant, so that any cells may
be given together.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.calculus.sheets import Address, Sheet, address_text
from millstream.calculus.types import BOOLEAN, NUMBER, TEXT, Field, Schema, Type
from millstream.errors import UsageError
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.sheets.rows import rows_kernel
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.given import number_of
from millstream.languages.sheets.translate import translate_workbook
from millstream.plan.batch import Array, Batch, Vector, empty_batch, vector_of
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import Workbook, address_of

_VALUE = "value"
_NUMBERS = (float, int, dt.datetime, dt.date, dt.timedelta)
_TYPES: dict[type, Type] = {str: TEXT, bool: BOOLEAN} | dict.fromkeys(_NUMBERS, NUMBER)

#: What a cell is given by many rows: values, or an array of numpy.
Column = Sequence[Any] | Array


class Bulk:
    """Mutable: one instance of a sheet, compiled; of the cells that are read, the last values."""

    def __init__(
        self, workbook: Workbook, inputs: Mapping[Address, Type], read: Sequence[Address]
    ) -> None:
        self.uses_1904 = workbook.uses_1904
        self.types = dict(inputs)
        self.read = list(read)
        bindings = Bindings(
            tuple(_input(a, t) for a, t in inputs.items()),
            tuple(OutputBinding(_named(a), (Binding(_VALUE, _named(a)),)) for a in read),
            fires_per_instant=True,
        )
        program = translate_workbook(workbook, bindings)
        function = program.operators[0].function
        assert isinstance(function, Sheet)
        self.queues = tuple(one.type for one in program.inputs)
        self.kernel = rows_kernel(function, self.queues, len(self.read))
        self.values: dict[Address, Scalar] = {}

    def fire(self, times: Array, given: Mapping[Address, Column]) -> dict[Address, list[Scalar]]:
        """Let rows arrive; answers what each cell that ticked held after each of them."""
        rows = np.arange(len(times))
        inputs = tuple(
            Batch(queue, times, (self._vector(a, given[a]),), None, rows)
            if a in given else replace(empty_batch(queue), rank=rows[:0])
            for a, queue in zip(self.types, self.queues, strict=True)
        )  # fmt: skip
        batches = self.kernel.process(inputs, Round(int(times[-1]), times))
        answers: dict[Address, list[Scalar]] = {}
        for address, batch in zip(self.read, batches, strict=True):
            if len(batch):
                assert batch.rank is not None
                values = batch.columns[0].to_list()
                if len(batch) < len(times):
                    last = np.searchsorted(batch.rank, rows, side="right")
                    values = [self.values.get(address), *values]
                    values = [values[place] for place in last.tolist()]
                answers[address] = values
                self.values[address] = values[-1]
        return answers

    def _vector(self, address: Address, column: Column) -> Vector:
        type_ = self.types[address]
        type_given = type_of(column)
        if type_given not in (None, type_):
            raise UsageError(
                f"{address_text(address)} was given a {type_} at first, and now a {type_given}"
            )
        if isinstance(column, np.ndarray) and type_ is not TEXT:
            return Vector(type_, self._finite(address, column.astype(_DTYPES[type_])))
        if type_ is not NUMBER:
            return vector_of(type_, list(column))
        kinds = set(map(type, column))
        if kinds <= {float, int}:
            return Vector(type_, self._finite(address, np.array(column, np.float64)))
        plain = [None if v is None else number_of(v, uses_1904=self.uses_1904) for v in column]
        vector = vector_of(type_, plain)
        return Vector(type_, self._finite(address, vector.values), vector.valid)

    def _finite(self, address: Address, values: Array) -> Array:
        if values.dtype == np.float64:
            if not np.isfinite(values).all():
                raise UsageError(f"{address_text(address)} is given what is no number")
            values = values + 0.0  # there is no minus zero
        return values


_DTYPES = {NUMBER: np.float64, BOOLEAN: np.bool_}


def columns_of(
    cells: Sequence[str], rows: Sequence[Sequence[Any]] | Mapping[str, Column]
) -> list[Column]:
    """What each cell is given, by rows or by columns."""
    if isinstance(rows, Mapping):
        if set(rows) != set(cells):
            raise UsageError("columns and cells are not the same")
        return [rows[cell] for cell in cells]
    if any(len(row) != len(cells) for row in rows):
        raise UsageError(f"each row has a value for each of the {len(cells)} cells")
    return list(zip(*rows, strict=True)) if rows else [()] * len(cells)


def type_of(column: Column) -> Type | None:
    """What a column of values holds; None if that cannot be told, as where all are None."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return BOOLEAN if column.dtype.kind == "b" else NUMBER
    kinds = set(map(type, column)) - {type(None)}
    types = {_TYPES.get(kind) for kind in kinds}
    if None in types:
        names = ", ".join(sorted(k.__name__ for k in kinds if k not in _TYPES))
        raise UsageError(f"a cell cannot hold {names}")
    if len(types) > 1:
        raise UsageError("the values of a cell in many rows are all numbers, texts or booleans")
    return next(iter(types), None)


def _named(address: Address) -> str:
    sheet, row, column = address
    quoted = sheet.replace("'", "''")
    return f"'{quoted}'!{address_of(row, column)}"


def _input(address: Address, type_: Type) -> InputBinding:
    binding = Binding(_VALUE, _named(address))
    return InputBinding(_named(address), (binding,), columns=Schema((Field(_VALUE, type_),)))
