"""Lookups and references: MATCH, INDEX, VLOOKUP, XLOOKUP; matrices."""

from __future__ import annotations

import re

from millstream.values.excel.arrays import Area, Array, Operand, Table, Union
from millstream.values.excel.functions_criteria import cells_of, table
from millstream.values.excel.gather import has_wildcards
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.syntax import MAX_COLUMN, MAX_ROW, column_name
from millstream.values.excel.values import (
    NA,
    REF,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    fail,
    fail_if,
    finite,
    folded,
    order_of,
    to_boolean,
    to_number,
    to_text,
)
from millstream.wildcards import excel_pattern

# --- searching a line -------------------------------------------------------------------


def _line(values: Table) -> list[Scalar]:
    fail_if(values.height > 1 and values.width > 1, NA)
    index = values.index() if isinstance(values, Area) else None
    return list(values.to_array().values()) if index is None else index.line


def exact_place(wanted: Scalar, values: Table, *, wildcards: bool) -> int | None:
    """The first place of a value in a row or column; None if it is not there."""
    fail_if(values.height > 1 and values.width > 1, NA)
    is_pattern = type(wanted) is str and wildcards and has_wildcards(wanted)
    pattern = excel_pattern(wanted) if is_pattern else None
    lowered = folded(wanted) if type(wanted) is str else None
    if wanted is None:
        wanted = 0.0
    kind = type(wanted)
    if pattern is None and isinstance(values, Area):
        index = values.index()
        if index is not None:
            return index.first(wanted)
    for i, j, value in cells_of(values, with_empty=False):
        if type(value) is not kind:
            continue
        if pattern is not None:
            if pattern.matches(value):  # type: ignore[arg-type]
                return max(i, j)
        elif lowered is not None:
            if folded(value) == lowered:  # type: ignore[arg-type]
                return max(i, j)
        elif value == wanted:
            return max(i, j)
    return None


def approximate_place(wanted: Scalar, keys: Table) -> int:
    """Binary search for the last value up to the one wanted, among those of its type.

    The values need not be in order: many a workbook relies on what is found then. Where the
    search meets the value wanted it goes on to the last of the equal ones that follow it.
    """
    if wanted is None:
        wanted = 0.0
    kind = type(wanted)
    values = _line(keys)
    low, high = 0, len(values) - 1
    best = -1
    while low <= high:
        middle = (low + high) // 2
        probe = middle
        while probe <= high and type(values[probe]) is not kind:
            probe += 1
        if probe > high:
            high = middle - 1
            continue
        order = order_of(values[probe], wanted)
        if order == 0:
            return _last_of_run(keys, values, probe)
        if order < 0:
            best = probe
            low = probe + 1
        else:
            high = middle - 1
    return best if best >= 0 else fail(NA)


def _last_of_run(keys: Table, values: list[Scalar], place: int) -> int:
    index = keys.index() if isinstance(keys, Area) else None
    if index is not None:
        return index.ends_of_runs[place]
    wanted, best = values[place], place
    for later in range(place + 1, len(values)):
        value = values[later]
        if type(value) is type(wanted):
            if order_of(value, wanted) != 0:
                break
            best = later
    return best


def _descending_place(wanted: Scalar, values: list[Scalar]) -> int:
    """MATCH with -1: the first that is equal, else the last before one that is smaller."""
    best = -1
    for place, value in enumerate(values):
        if type(value) is not type(wanted):
            continue
        order = order_of(value, wanted)
        if order == 0:
            return place
        if order < 0:
            break
        best = place
    return best if best >= 0 else fail(NA)


def match(wanted: Scalar, operand: Operand, mode: Scalar = 1.0) -> float:
    values = table(operand)
    kind = to_number(mode)
    if kind == 0:
        place = exact_place(wanted, values, wildcards=True)
        return float(place + 1) if place is not None else fail(NA)
    if kind > 0:
        return float(approximate_place(wanted, values) + 1)
    return float(_descending_place(0.0 if wanted is None else wanted, _line(values)) + 1)


def _number_of_line(index: Scalar) -> int:
    """Which column or row to take; what is no number is no column either, and no `#VALUE!`."""
    try:
        return int(to_number(index))
    except Raised:
        fail(REF)


def _looked_up(
    wanted: Scalar, operand: Operand, index: Scalar, *, is_near: Scalar, by_row: bool
) -> Scalar:
    values = table(operand)
    place = _number_of_line(index) - 1
    fail_if(place < 0, VALUE)
    fail_if(place >= (values.height if by_row else values.width), REF)
    if by_row:
        keys: Table = values.part(0, 0, 1, values.width)
    else:
        keys = values.part(0, 0, values.height, 1)
    if is_near:
        position: int | None = approximate_place(wanted, keys)
    else:
        position = exact_place(wanted, keys, wildcards=True)
    if position is None:
        fail(NA)
    return values.at(place, position) if by_row else values.at(position, place)


def _flag(value: Operand) -> bool:
    if isinstance(value, (Area, Array)):
        value = value.at(0, 0)
    assert not isinstance(value, Union)
    return to_boolean(value)


def vlookup(wanted: Scalar, operand: Operand, index: Scalar, near: Scalar = True) -> Scalar:  # noqa: FBT002
    return _looked_up(wanted, operand, index, is_near=_flag(near), by_row=False)


def hlookup(wanted: Scalar, operand: Operand, index: Scalar, near: Scalar = True) -> Scalar:  # noqa: FBT002
    return _looked_up(wanted, operand, index, is_near=_flag(near), by_row=True)


def lookup(wanted: Scalar, operand: Operand, results: Operand = None) -> Scalar:
    """The vector form, or the array form along the longer side."""
    values = table(operand)
    if results is not None:
        place = approximate_place(wanted, values)
        target = table(results)
        if isinstance(target, Array) and place >= max(target.height, target.width):
            fail(NA)
        return target.at(0, place) if target.width > target.height else target.at(place, 0)
    if values.width > values.height:
        keys = values.part(0, 0, 1, values.width)
        return values.at(values.height - 1, approximate_place(wanted, keys))
    keys = values.part(0, 0, values.height, 1)
    return values.at(approximate_place(wanted, keys), values.width - 1)


# --- XLOOKUP ----------------------------------------------------------------------------


def _x_place(wanted: Scalar, values: Table, mode: int, direction: int) -> int | None:
    if mode == 2:
        line = _line(values)
        ends = [n for n, v in enumerate(line) if _is_like(v, wanted)]
        return (ends[0] if direction > 0 else ends[-1]) if ends else None
    if mode == 0 and direction == 1 and wanted is not None:
        return exact_place(wanted, values, wildcards=False)
    line = _line(values)
    order = range(len(line)) if direction > 0 else range(len(line) - 1, -1, -1)
    best: int | None = None
    for n in order:
        value = line[n]
        if value is None and wanted is None:
            return n
        if type(value) is not type(wanted):
            continue
        difference = order_of(value, wanted)
        if difference == 0:
            return n
        if mode and difference == mode and (best is None or order_of(value, line[best]) == -mode):
            best = n
    return best


def _is_like(value: Scalar, wanted: Scalar) -> bool:
    if type(wanted) is str and type(value) is str:
        return excel_pattern(wanted).matches(value)
    return type(value) is type(wanted) and order_of(value, wanted) == 0


def xlookup(
    wanted: Scalar, keys: Operand, results: Operand, missing: Operand = None,
    mode: float = 0.0, direction: float = 1.0,
) -> Operand:  # fmt: skip
    values, target = table(keys), table(results)
    is_column = values.height == target.height and values.width == 1
    # What is looked for in one row or column goes along with what is as long.
    fail_if(not is_column and (values.width != target.width or values.height != 1), VALUE)
    place = _x_place(wanted, values, int(mode), 1 if direction in (1, 2) else -1)
    if place is None:
        return fail(NA) if missing is None else missing
    if is_column:
        return _line_of(target.part(place, 0, 1, target.width))
    return _line_of(target.part(0, place, target.height, 1))


def _line_of(values: Table) -> Operand:
    if values.height == 1 and values.width == 1:
        return values if isinstance(values, Area) else values.at(0, 0)
    return values


def xmatch(wanted: Scalar, keys: Operand, mode: float = 0.0, direction: float = 1.0) -> float:
    place = _x_place(wanted, table(keys), int(mode), 1 if direction in (1, 2) else -1)
    return float(place + 1) if place is not None else fail(NA)


# --- INDEX ------------------------------------------------------------------------------


def index(operand: Operand, row: float = 0.0, *more: float) -> Operand:
    """A cell, or with a zero a whole row or column, as a reference if given one."""
    if isinstance(operand, Union):
        which = int(more[1]) if len(more) > 1 else 1
        fail_if(not 1 <= which <= len(operand.areas), REF)
        values: Table = operand.areas[which - 1]
    else:
        values = table(operand)
    i = int(row)
    j = int(more[0]) if more else 0
    if not more and values.height == 1 and values.width > 1:
        i, j = 0, i
    fail_if(i < 0 or j < 0, VALUE)
    fail_if(i > values.height or j > values.width, REF)
    if i and not more and isinstance(values, Area) and values.width > 1 and values.height > 1:
        fail(REF)
    top, height = (0, values.height) if i == 0 else (i - 1, 1)
    left, width = (0, values.width) if j == 0 else (j - 1, 1)
    fail_if(height == 0, REF)
    return _line_of(values.part(top, left, height, width))


def address(
    row: float,
    column: float,
    form: float = 1.0,
    is_a1: Scalar = True,  # noqa: FBT002
    sheet: Scalar = None,
) -> str:
    r, c, kind = int(row), int(column), int(form)
    fail_if(not 1 <= r <= MAX_ROW or not 1 <= c <= MAX_COLUMN or not 1 <= kind <= 8, VALUE)
    kind -= 4 if kind > 4 else 0  # 5 to 8 mean the same again
    if is_a1:
        text = f"{'$' if kind in (1, 3) else ''}{column_name(c)}{'$' if kind in (1, 2) else ''}{r}"
    else:
        text = f"R{r if kind in (1, 2) else f'[{r}]'}C{c if kind in (1, 3) else f'[{c}]'}"
    if sheet is None:
        return text
    name = to_text(sheet)
    quoted = (
        name
        if re.fullmatch(r"(\[[\w.]+\])?[^\W\d]\w*", name)
        else "'" + name.replace("'", "''") + "'"
    )
    return f"{quoted}!{text}"


# --- matrices ---------------------------------------------------------------------------


def matrix(operand: Operand) -> list[list[float]]:
    rows = table(operand).to_array().rows
    return [[v if type(v) is float else _no_number(v) for v in row] for row in rows]


def _no_number(value: Scalar) -> float:
    if type(value) is ErrorValue:
        raise Raised(value)
    fail(VALUE)


def multiply(first: Operand, second: Operand) -> Array:
    a, b = matrix(first), matrix(second)
    fail_if(len(a[0]) != len(b), VALUE)
    columns = list(zip(*b, strict=True))
    return Array(
        tuple(
            tuple(finite(sum(x * y for x, y in zip(r, c, strict=True))) for c in columns) for r in a
        )
    )


def _reduced(rows: list[list[float]]) -> tuple[float, list[list[float]]]:
    """Gauss-Jordan with pivoting: the determinant, and the rows with the left part cleared."""
    size = len(rows)
    determinant = 1.0
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(rows[i][k]))
        if rows[pivot][k] == 0:
            return 0.0, rows
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            determinant = -determinant
        determinant *= rows[k][k]
        scale = rows[k][k]
        rows[k] = [v / scale for v in rows[k]]
        for i in range(size):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [v - factor * w for v, w in zip(rows[i], rows[k], strict=True)]
    return determinant, rows


def _square(operand: Operand) -> list[list[float]]:
    rows = matrix(operand)
    return rows if len(rows) == len(rows[0]) else fail(VALUE)


def determinant(operand: Operand) -> float:
    return _reduced(_square(operand))[0]


def inverse(operand: Operand) -> Array:
    rows = _square(operand)
    size = len(rows)
    wide = [r + [float(i == j) for j in range(size)] for i, r in enumerate(rows)]
    determinant, reduced = _reduced(wide)
    fail_if(abs(determinant) < 1e-300)
    return Array(tuple(tuple(finite(v) for v in r[size:]) for r in reduced))


def identity(size: float) -> Array:
    n = int(size)
    fail_if(not 1 <= n <= 1000, VALUE)
    return Array(tuple(tuple(float(i == j) for j in range(n)) for i in range(n)))


LOOKUP: Family = {
    "ADDRESS": spec("n n n? b? v?", address, fills_in=True),
    "HLOOKUP": spec("v r e b?", hlookup),
    "INDEX": spec("a n? n? n?", index),
    "LOOKUP": spec("v a a?", lookup),
    "MATCH": spec("v r n?", match),
    "MDETERM": spec("a", determinant),
    "MINVERSE": spec("a", inverse),
    "MMULT": spec("a a", multiply),
    "MUNIT": spec("n", identity),
    "VLOOKUP": spec("v r e b?", vlookup),
    "XLOOKUP": spec("v a a r? n? n?", xlookup, fills_in=True),
    "XMATCH": spec("v a n? n?", xmatch, fills_in=True),
}
