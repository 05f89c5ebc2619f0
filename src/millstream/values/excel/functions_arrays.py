"""Functions that make arrays of arrays: order, choice, shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cmp_to_key

from millstream.values.excel.arrays import MAX_ARRAY, Array, Operand, column_of
from millstream.values.excel.functions_criteria import table
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.syntax import MAX_ROW
from millstream.values.excel.values import (
    NA,
    VALUE,
    ErrorValue,
    Scalar,
    checked,
    fail,
    fail_if,
    folded,
    folded_all,
    order_keys,
    order_of,
    to_boolean,
    to_number,
)

_CALC = ErrorValue("#CALC!")
Rows = tuple[tuple[Scalar, ...], ...]


def _rows(operand: Operand) -> Rows:
    return table(operand).to_array().rows


def _turned(rows: Rows) -> Rows:
    return tuple(zip(*rows, strict=True))


# --- order and choice -------------------------------------------------------------------


def sort(
    operand: Operand,
    place: float = 1.0,
    order: float = 1.0,
    by_column: Scalar = False,  # noqa: FBT002
) -> Array:
    rows = _rows(operand)
    if by_column:
        rows = _turned(rows)
    n = int(place) - 1
    fail_if(not 0 <= n < len(rows[0]) or order not in (1, -1), VALUE)

    there = [r for r in rows if r[n] is not None]
    keys = order_keys([r[n] for r in there])
    places = sorted(range(len(there)), key=keys.__getitem__, reverse=order == -1)
    ordered = [there[p] for p in places] + [r for r in rows if r[n] is None]
    return Array(_turned(tuple(ordered)) if by_column else tuple(ordered))


def sort_by(operand: Operand, *keys: Operand) -> Array:
    """By several lines of keys, each with its order: the last is sorted by first."""
    rows = list(_rows(operand))
    order = list(range(len(rows)))
    pairs = [(list(table(k).to_array().values()), d) for k, d in zip(
        keys[::2], (*keys[1::2], 1.0), strict=False)]  # fmt: skip
    for values, direction in reversed(pairs):
        sign = int(to_number(table(direction).at(0, 0)))
        fail_if(len(values) != len(rows) or sign not in (1, -1), VALUE)

        def by_key(a: int, b: int, values: list[Scalar] = values, sign: int = sign) -> int:
            return sign * order_of(values[a], values[b])

        order.sort(key=cmp_to_key(by_key))
    return Array(tuple(rows[n] for n in order))


def filtered(operand: Operand, include: Operand, empty: Operand = None) -> Operand:
    rows, flags = _rows(operand), table(include).to_array()
    if flags.width == 1 and flags.height == len(rows):
        kept = tuple(r for r, f in zip(rows, flags.values(), strict=True) if _is_true(f))
    elif flags.height == 1 and flags.width == len(rows[0]):
        places = [n for n, f in enumerate(flags.values()) if _is_true(f)]
        kept = tuple(tuple(r[n] for n in places) for r in rows) if places else ()
    else:
        fail(VALUE)
    if kept:
        return Array(kept)
    return empty if empty is not None else fail(_CALC)


def _is_true(value: Scalar) -> bool:
    return to_boolean(checked(value))


def unique(operand: Operand, by_column: Scalar = False, once: Scalar = False) -> Array:  # noqa: FBT002
    rows = _turned(_rows(operand)) if by_column else _rows(operand)
    keys = _keys(rows)
    firsts: dict[object, tuple[Scalar, ...]] = {}
    for key, row in zip(keys, rows, strict=True):
        firsts.setdefault(key, row)
    kept = list(firsts.values())
    if once:
        counts = Counter(keys)
        kept = [row for key, row in firsts.items() if counts[key] == 1]
    fail_if(not kept, _CALC)
    return Array(_turned(tuple(kept)) if by_column else tuple(kept))


def _keys(rows: Rows) -> Sequence[object]:
    """Equal for rows that are the same, whatever the case of texts."""
    if rows and len(rows[0]) == 1:
        (line,) = _turned(rows)
        kinds = set(map(type, line))
        if kinds == {float}:
            return line
        if kinds == {str}:
            return folded_all(line)  # type: ignore[arg-type]
    return [tuple((type(v), folded(v) if type(v) is str else v) for v in row) for row in rows]


def take(operand: Operand, rows: Scalar, columns: Scalar = None) -> Array:
    lines = _rows(operand)

    def cut(count: Scalar, length: int) -> slice:
        if count is None:
            return slice(0, length)
        n = int(to_number(count))
        fail_if(n == 0, _CALC)
        return slice(0, n) if n > 0 else slice(max(0, length + n), length)

    kept = lines[cut(rows, len(lines))]
    return Array(tuple(r[cut(columns, len(r))] for r in kept))


def drop(operand: Operand, rows: Scalar, columns: Scalar = None) -> Array:
    lines = _rows(operand)

    def rest(count: Scalar, length: int) -> slice:
        n = 0 if count is None else int(to_number(count))
        fail_if(abs(n) >= length, _CALC)
        return slice(n, length) if n >= 0 else slice(0, length + n)

    kept = lines[rest(rows, len(lines))]
    return Array(tuple(r[rest(columns, len(r))] for r in kept))


def _chosen_lines(rows: tuple[tuple[Scalar, ...], ...], numbers: tuple[Operand, ...]) -> list[int]:
    chosen = []
    for operand in numbers:
        for value in table(operand).to_array().values():
            n = int(to_number(value))
            fail_if(n == 0 or abs(n) > len(rows), VALUE)
            chosen.append(n - 1 if n > 0 else len(rows) + n)
    return chosen


def choose_rows(operand: Operand, *numbers: Operand) -> Array:
    rows = _rows(operand)
    return Array(tuple(rows[n] for n in _chosen_lines(rows, numbers)))


def choose_columns(operand: Operand, *numbers: Operand) -> Array:
    return transpose(choose_rows(transpose(operand), *numbers))


# --- shapes -----------------------------------------------------------------------------


def sequence(
    rows: float = 1.0, columns: float = 1.0, start: float = 1.0, step: float = 1.0
) -> Array:
    r, c = int(rows), int(columns)
    fail_if(r < 1 or c < 1 or r * c > MAX_ROW, VALUE)
    return Array(tuple(tuple(start + step * (i * c + j) for j in range(c)) for i in range(r)))


def transpose(operand: Operand) -> Array:
    return Array(_turned(_rows(operand)))


def stacked(*operands: Operand) -> Array:
    tables = [table(o).to_array() for o in operands]
    width = max(t.width for t in tables)
    rows = (r + (NA,) * (width - len(r)) for t in tables for r in t.rows)
    return Array(tuple(rows))


def beside(*operands: Operand) -> Array:
    return transpose(stacked(*(transpose(o) for o in operands)))


def _in_line(operand: Operand, ignore: float, by_column: Scalar) -> tuple[Scalar, ...]:
    """All values row by row, without empty ones (1), errors (2) or both (3)."""
    fail_if(ignore not in (0, 1, 2, 3), VALUE)
    rows = _turned(_rows(operand)) if by_column else _rows(operand)
    skips_empty, skips_errors = ignore in (1, 3), ignore in (2, 3)
    kept = tuple(
        0.0 if v is None else v
        for row in rows
        for v in row
        if not (skips_empty and v is None) and not (skips_errors and type(v) is ErrorValue)
    )
    return kept or fail(_CALC)


def to_column(operand: Operand, ignore: float = 0.0, by_column: Scalar = False) -> Array:  # noqa: FBT002
    return column_of(_in_line(operand, ignore, by_column))


def to_row(operand: Operand, ignore: float = 0.0, by_column: Scalar = False) -> Array:  # noqa: FBT002
    return Array((_in_line(operand, ignore, by_column),))


def _wrapped(operand: Operand, length: float, pad: Scalar) -> Rows:
    rows, n = _rows(operand), int(length)
    fail_if(len(rows) > 1 and len(rows[0]) > 1, VALUE)
    fail_if(not 1 <= n <= MAX_ROW)
    line = [v for row in rows for v in row]
    line += [pad] * (-len(line) % n)
    return tuple(tuple(line[k : k + n]) for k in range(0, len(line), n))


def wrap_rows(operand: Operand, length: float, pad: Scalar = NA) -> Array:
    return Array(_wrapped(operand, length, pad))


def wrap_columns(operand: Operand, length: float, pad: Scalar = NA) -> Array:
    return Array(_turned(_wrapped(operand, length, pad)))


def expand(
    operand: Operand, height: float | None = None, width: float | None = None, pad: Scalar = NA
) -> Array:
    rows = _rows(operand)
    to_height = len(rows) if height is None else int(height)
    to_width = len(rows[0]) if width is None else int(width)
    fail_if(to_height < len(rows) or to_width < len(rows[0]), VALUE)
    fail_if(to_height * to_width > MAX_ARRAY)
    wide = tuple(r + (pad,) * (to_width - len(r)) for r in rows)
    return Array(wide + ((pad,) * to_width,) * (to_height - len(rows)))


ARRAYS: Family = {
    "CHOOSECOLS": spec("a a+", choose_columns),
    "CHOOSEROWS": spec("a a+", choose_rows),
    "DROP": spec("a v v?", drop),
    "EXPAND": spec("a n? n? e?", expand, fills_in=True),
    "FILTER": spec("a a r?", filtered),
    "HSTACK": spec("a+", beside),
    "SEQUENCE": spec("n? n? n? n?", sequence, fills_in=True),
    "SORT": spec("a n? n? b?", sort, fills_in=True),
    "SORTBY": spec("a a+", sort_by),
    "TAKE": spec("a v v?", take),
    "TOCOL": spec("a n? b?", to_column, fills_in=True),
    "TOROW": spec("a n? b?", to_row, fills_in=True),
    "TRANSPOSE": spec("a", transpose),
    "UNIQUE": spec("a b? b?", unique, fills_in=True),
    "VSTACK": spec("a+", stacked),
    "WRAPCOLS": spec("a n e?", wrap_columns, fills_in=True),
    "WRAPROWS": spec("a n e?", wrap_rows, fills_in=True),
}
