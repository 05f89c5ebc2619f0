"""What functions made of scripts emit: a list for each table, and batches of these lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from millstream.calculus.scripts import Emit, Script, Table, nodes_in
from millstream.calculus.tables import RunScript, chances, emitted_schema, to_file, to_queue
from millstream.calculus.types import Type
from millstream.plan.batch import DTYPES, Array, Vector, text_array
from millstream.values.records.types import BOOL


def can_send_by_table(function: RunScript) -> bool:
    """Whether emits of a script need not be told apart by their order across tables."""
    static = any(isinstance(n, Emit) for n in nodes_in(function.script.statics))
    is_apart = len(function.sent) == len(function.told)
    named = any(table.names_files for table in function.tables)
    return not (static or named or function.as_source or chances(function)) and is_apart


class Lists:
    """Mutable: what was emitted to each table, in order: the number of a row, then the parts."""

    def __init__(self, script: Script, told_tables: Sequence[int]) -> None:
        self.tables = {n: script.tables[n] for n in told_tables}
        self.emitted: dict[int, list[tuple[Any, ...]]] = {n: [] for n in told_tables}

    def names(self) -> dict[str, Any]:
        """What a generated function calls."""
        return {f"emit{n}": emitted.append for n, emitted in self.emitted.items()}

    def clear(self) -> None:
        for emitted in self.emitted.values():
            emitted.clear()

    def taken(self, number: int) -> tuple[Array, tuple[Vector, ...]]:
        """The rows that have emitted to a table since it was asked last, and the columns."""
        emitted = self.emitted[number]
        table = self.tables[number]
        fields = list(emitted_schema(table))
        if not emitted:
            return np.zeros(0, np.int64), tuple(_vector(f.type, []) for f in fields)
        rows, *columns = ([row[n] for row in emitted] for n in range(len(emitted[0])))
        emitted.clear()
        sent = [
            values if to is None else list(map(to, values))
            for to, values in zip(_ways(table), _sent(table, columns), strict=True)
        ]
        vectors = tuple(_vector(f.type, v) for f, v in zip(fields, sent, strict=True))
        return np.array(rows, np.int64), vectors


def _sent(table: Table, columns: list[Any]) -> list[Any]:
    """A file gets values and nothing else."""
    return columns if table.file is None else columns[len(table.indexes) : len(table.indexes) + 1]


def _ways(table: Table) -> list[Callable[[Any], Any] | None]:
    """How each part is made to travel; None is as it is."""
    if table.file is not None:
        ways = [to_file(table.value)]
    else:
        types = [*(t for _, t in table.indexes), table.value]
        ways = [to_queue(t) for t in (types if table.weight is None else [*types, table.weight])]
    return [None if way is to_queue(BOOL) else way for way in ways]


def _vector(type_: Type, values: Sequence[Any]) -> Vector:
    if type_.kind not in DTYPES:
        return Vector(type_, text_array(values))
    return Vector(type_, np.array(values, DTYPES[type_.kind]))
