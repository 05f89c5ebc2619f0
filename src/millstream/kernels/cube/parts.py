"""The cells of one place as rows that others put together: exact, and not yet rounded.

A sum is told as floats, or integers, that add up to it. One row has the first of them, and the
counts and extremes of its cell; further ones have what is left of a sum, if anything is. What is
counted by hidden keys has rows of its own, which come as often as it was counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from millstream.calculus.cube_parts import PartColumn
from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind
from millstream.kernels.cube.cells import Measures
from millstream.kernels.cube.loops import Numbers
from millstream.kernels.relational.accumulators import INTEGER_SUM, REST_SUM, SQUARE_SUM
from millstream.kernels.relational.hidden_keys import HiddenKeys
from millstream.kernels.windows.sums import (
    COUNT,
    HI,
    HIGH,
    LO,
    LOW,
    MINUS_INF,
    NANS,
    PLUS_INF,
    WIDE,
)
from millstream.plan.batch import DTYPES, Array, Vector

#: The unit of wide sums is the smallest float; a float can be so many bits long.
_SMALLEST = 1074
_LARGEST = 2.0**1023


def told_in_parts(
    measures: Measures, columns: Sequence[PartColumn], numbers: Numbers
) -> tuple[Array, list[Vector]]:
    """Rows that tell of cells: the cell of each, and their columns."""
    size = len(numbers.rows)
    firsts: list[Array] = []
    #: What is left after the first number: cell, column and value.
    rest: list[tuple[int, int, float]] = []
    for place, one in enumerate(columns):
        first, more = (_none(size), []) if one.is_key else _first(measures, one, numbers)
        firsts.append(first)
        rest += [(cell, place, value) for cell, value in more]
    cells = np.concatenate([np.arange(size), np.array([c for c, _, _ in rest], np.int64)])
    vectors = []
    for place, (one, first) in enumerate(zip(columns, firsts, strict=True)):
        values = np.zeros(len(cells), first.dtype)
        values[:size] = first
        for row, (_, of, value) in enumerate(rest, size):
            if of == place:
                values[row] = value
        vectors.append(_vector(measures, one, numbers, values, size))
    return cells, vectors


def keys_told_in_parts(
    measures: Measures, columns: Sequence[PartColumn], keys: HiddenKeys, hidden: Array
) -> list[Vector]:
    """The columns of rows that tell of hidden keys, and of nothing else."""
    size = len(hidden)
    return [
        keys.examples(hidden)
        if (column.what, column.column) == (keys.function, keys.column)
        else _vector(measures, column, None, _none(size), size)
        for column in columns
    ]


def _none(size: int) -> Array:
    return np.zeros(size, np.int64)


def _first(
    measures: Measures, part: PartColumn, numbers: Numbers
) -> tuple[Array, list[tuple[int, float]]]:
    """The first number of each cell, and what is left of some."""
    if part.what == "rows":
        return numbers.rows, []
    if part.what in ("min", "max"):
        return numbers.extremes[:, _extreme(measures, part)], []
    place = _cell(measures, part)
    sums = numbers.sums[:, place]
    if part.what == "count":
        return sums[:, COUNT], []
    if measures.layout.sums[place] != INTEGER_SUM:
        floats = numbers.floats[:, place]
        odd: Array = (sums[:, [WIDE, PLUS_INF, MINUS_INF, NANS, LO]] != 0).any(axis=1)
        limbs = measures.wides.limbs
        return _with_odd(floats[:, HI], odd, lambda cell: _floats(sums[cell], floats[cell], limbs))
    if part.what == "sum":
        is_long = sums[:, HIGH] != sums[:, LOW] >> 63
        return _with_odd(sums[:, LOW], is_long, lambda cell: _integers(_whole(sums[cell])))
    low = sums[:, LOW]
    is_long = (sums[:, HIGH] != low >> 63) | (low > 2**53) | (low < -(2**53))
    floats = low.astype(np.float64)
    return _with_odd(floats, is_long, lambda cell: _exact(_whole(sums[cell]), 0))


def _with_odd(
    firsts: Array, odd: Array, parts: Callable[[int], list[float]]
) -> tuple[Array, list[tuple[int, float]]]:
    made, rest = firsts.copy(), []
    for cell in np.flatnonzero(odd).tolist():
        first, *others = parts(cell) or [0]
        made[cell] = first
        rest += [(cell, value) for value in others]
    return made, rest


def _whole(cell: Array) -> int:
    return (int(cell[HIGH]) << 64) + (int(cell[LOW]) & (1 << 64) - 1)


def _integers(whole: int) -> list[float]:
    """Integers of 64 bits that add up to one of more."""
    made: list[float] = []
    while whole:
        made.append(min(max(whole, INT64_MIN), INT64_MAX))
        whole -= int(made[-1])
    return made


def _floats(cell: Array, floats: Array, limbs: Array) -> list[float]:
    """Floats that add up to a sum; infinities and NaN are among them once."""
    made = [
        value
        for place, value in ((PLUS_INF, np.inf), (MINUS_INF, -np.inf), (NANS, np.nan))
        if cell[place] > 0
    ]
    if cell[WIDE] == 0:
        return [*(float(v) for v in (floats[HI], floats[LO]) if v != 0.0), *made]
    whole = 0
    for limb in reversed(limbs[cell[WIDE]].tolist()):
        whole = (whole << 32) + limb
    return [*_exact(whole, _SMALLEST), *made]


def _exact(whole: int, scale: int) -> list[float]:
    """Floats that add up to whole / 2^scale."""
    made: list[float] = []
    while whole:
        value = Fraction(whole, 1 << scale)
        near = float(value) if abs(value) < _LARGEST else float(np.copysign(_LARGEST, whole))
        made.append(near)
        whole -= int(Fraction(near) * (1 << scale))
    return made


def _cell(measures: Measures, part: PartColumn) -> int:
    """The cell of a column, or that of its squares or of what these lose by rounding."""
    wanted = {"squares": SQUARE_SUM, "rests": REST_SUM}.get(part.what)
    cells = zip(measures.layout.cells, measures.layout.sums, strict=True)
    return next(
        place for place, (name, sum_) in enumerate(cells)
        if name == part.column
        and (sum_ == wanted if wanted else sum_ not in (SQUARE_SUM, REST_SUM))
    )  # fmt: skip


def _extreme(measures: Measures, part: PartColumn) -> int:
    extremes = [(function, name) for function, name, _ in measures.layout.extremes]
    return extremes.index((part.what, part.column))


def _vector(
    measures: Measures, part: PartColumn, numbers: Numbers | None, values: Array, size: int
) -> Vector:
    """A column of rows of which the first tell of cells, the others only of what sums have left."""
    if part.is_key:
        if part.type.kind is Kind.TEXT:
            return Vector(part.type, pa.nulls(len(values), pa.string()))
        nothing = np.zeros(len(values), DTYPES[part.type.kind])
        return Vector(part.type, nothing, np.zeros(len(values), np.bool_))
    if part.what in ("min", "max"):
        place = _extreme(measures, part)
        known = np.zeros(len(values), np.bool_)
        if numbers is not None:
            known[:size] = numbers.known[:, place]
        return measures.looks.vector(place, values, known)
    return Vector(part.type, values.astype(DTYPES[part.type.kind]))
