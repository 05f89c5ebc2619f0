"""Functions that have no loop on columns: each different combination of arguments is asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from millstream.calculus.types import INTEGER, TEXT
from millstream.kernels.records.between import DTYPES, TEXTS, BatchValues, column_of, has_columns
from millstream.kernels.records.column import Column, NotOnColumns, either
from millstream.kernels.records.slices import Slices
from millstream.kernels.runtime.interning import Interner
from millstream.plan.batch import Array, Vector
from millstream.values.records.types import RecordType, resolved
from millstream.values.undefined import Undefined

#: So many rows tell whether arguments come up again.
_TRIED = 2048


class SameInEveryRow:
    """An argument that is the same in every row, of whatever type."""

    def __init__(self, value: Any) -> None:
        self.value = value


#: A column with the type of its values, or what is the same in every row.
Argument = tuple[Column, RecordType] | SameInEveryRow


def answered(
    function: Callable[..., Any], arguments: Sequence[Argument], type_: RecordType,
    active: Array, values: BatchValues,
) -> tuple[Column, Array | None]:  # fmt: skip
    """What a function gives in the rows that are asked, and where that is not plain."""
    columns = [a for a in arguments if not isinstance(a, SameInEveryRow)]
    for _, kind in columns:
        if resolved(kind) not in DTYPES and resolved(kind) not in TEXTS:
            raise NotOnColumns(f"a function of {kind}")
    if not has_columns(type_):
        raise NotOnColumns(f"what is of type {type_}")
    bad = either(*(column.bad for column, _ in columns))
    rows = np.flatnonzero(active if bad is None else active & ~bad)
    first, numbers = _different([column for column, _ in columns], rows)
    lists = [
        repeat(a.value, len(first)) if isinstance(a, SameInEveryRow) else values.of(*a, first)
        for a in arguments
    ]
    results, nothing = _asked(function, lists, len(first))
    kept = [n for n in range(len(results)) if n not in nothing] if nothing else None
    count = len(active)
    where = np.full(count, -1)
    if kept is None:
        where[rows] = numbers
    else:
        places = np.full(len(results), -1)
        places[kept] = np.arange(len(kept))
        results = [results[n] for n in kept]
        where[rows] = places[numbers]
        bad = either(bad, (where < 0) & active)
    column, odd = column_of(results, type_, where, count)
    return Column(column.values, bad), odd


def _asked(
    function: Callable[..., Any], lists: Sequence[Any], count: int
) -> tuple[list[Any], set[int]]:
    results: list[Any] = []
    nothing: set[int] = set()
    for arguments in zip(*lists, strict=True) if lists else repeat((), count):
        try:
            results.append(function(*arguments))
        except Undefined:
            nothing.add(len(results))
            results.append(None)
    return results, nothing


def _different(columns: list[Column], rows: Array) -> tuple[Array, Array]:
    """A row for each combination of values, and the number of its combination for each row."""
    if not columns:
        return rows[:1], np.zeros(len(rows), np.int64)
    if len(rows) > 2 * _TRIED:
        first, _ = _numbered(columns, rows[:_TRIED])
        if len(first) > _TRIED // 2:
            return rows, np.arange(len(rows))
    return _numbered(columns, rows)


def _numbered(columns: list[Column], rows: Array) -> tuple[Array, Array]:
    vectors = [_vector(column, rows) for column in columns]
    interner = Interner([v.type for v in vectors])
    ids = interner.ids(vectors, len(rows))
    first = np.zeros(interner.bound, np.int64)
    first[ids[::-1]] = rows[::-1]
    return first, ids


def _vector(column: Column, rows: Array) -> Vector:
    """Values as what tells them apart: of floats all bits do."""
    values = column.plain().values
    if isinstance(values, Slices):
        return Vector(TEXT, values.arrow(rows))
    assert isinstance(values, np.ndarray)
    chosen = values[rows]
    return Vector(
        INTEGER, chosen.view(np.int64) if chosen.itemsize == 8 else chosen.astype(np.int64)
    )
