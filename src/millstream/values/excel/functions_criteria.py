"""COUNTIF, SUMIFS and their kin; DSUM and the database functions; SUBTOTAL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from millstream.values.excel.arrays import Area, Array, Operand, Table, Union
from millstream.values.excel.evaluate import Context, value_of
from millstream.values.excel.functions_math import product, sum_of, total
from millstream.values.excel.functions_order import ORDERED, largest, smallest
from millstream.values.excel.functions_statistics import STATISTICS, average, count, count_all
from millstream.values.excel.gather import Matcher, criterion, equality_key, has_window
from millstream.values.excel.numerals import number_in_text
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.syntax import shifted
from millstream.values.excel.values import (
    DIV0,
    VALUE,
    ErrorValue,
    Raised,
    Scalar,
    fail,
    fail_if,
    finite,
    folded_all,
)


def table(operand: Operand) -> Table:
    if isinstance(operand, (Array, Area)):
        return operand
    if isinstance(operand, Union):
        fail(VALUE)
    if type(operand) is ErrorValue:
        raise Raised(operand)
    return Array(((operand,),))


def cells_of(values: Table, *, with_empty: bool) -> Iterator[tuple[int, int, Scalar]]:
    """Row, column and value; of an area only what is there, unless empty cells are wanted."""
    if isinstance(values, Area) and not with_empty:
        index = values.index(is_to_last=False)
        if index is not None:
            yield from index.given
            return
        for row, column in values.cells.filled(values):
            yield (
                row - values.top,
                column - values.left,
                values.cells.value(values.sheet, row, column),
            )
        return
    for i, line in enumerate(values.to_array().rows):
        for j, value in enumerate(line):
            yield i, j, value


def count_if(operand: Operand, wanted: Scalar) -> float:
    values, matches = table(operand), criterion(wanted)
    near = _candidates(values, wanted)
    if near is not None:
        return float(sum(1 for _, _, v in near if matches(v)))
    if isinstance(values, Area) and matches(None):
        there = [v for _, _, v in cells_of(values, with_empty=False) if v is not None]
        empty = values.height * values.width - len(there)
        return float(empty + sum(1 for v in there if matches(v)))
    return float(sum(1 for _, _, v in cells_of(values, with_empty=False) if matches(v)))


def _matching(conditions: tuple[Operand, ...]) -> Iterator[tuple[int, int]]:
    """The places at which every range meets its criterion."""
    tables = [table(o) for o in conditions[::2]]
    fail_if(len({(t.height, t.width) for t in tables}) > 1, VALUE)
    criteria = [_one(c) for c in conditions[1::2]]
    matchers = [criterion(c) for c in criteria]
    near = [(n, _candidates(t, c)) for n, (t, c) in enumerate(zip(tables, criteria, strict=True))]
    known = [(n, places) for n, places in near if places is not None]
    if known:
        best, places = min(known, key=lambda pair: len(pair[1]))
        others = [n for n in range(len(tables)) if n != best]
        for i, j, value in places:
            if matchers[best](value) and all(matchers[n](tables[n].at(i, j)) for n in others):
                yield i, j
        return
    # One that no empty cell meets is looked at first: an area then need not be walked whole.
    order = sorted(range(len(tables)), key=lambda n: matchers[n](None))
    first, *others = order
    for i, j, value in cells_of(tables[first], with_empty=matchers[first](None)):
        if matchers[first](value) and all(matchers[n](tables[n].at(i, j)) for n in others):
            yield i, j


def _candidates(values: Table, wanted: Scalar) -> list[tuple[int, int, Scalar]] | None:
    """The cells that can meet a criterion, where an index tells; they come row by row."""
    if isinstance(values, Array):
        key = equality_key(wanted)
        return _equal_texts(values, key) if type(key) is str else None
    index = values.index()
    return None if index is None else index.candidates(wanted)


def _equal_texts(values: Array, key: str) -> list[tuple[int, int, Scalar]] | None:
    """The texts of a column that are the same but for capitals, if it holds nothing else."""
    keys = _text_keys(values.rows)
    if keys is None or key not in keys:
        return None if keys is None else []
    return [(n, 0, values.rows[n][0]) for n, other in enumerate(keys) if other == key]


@lru_cache(maxsize=2)
def _text_keys(rows: tuple[tuple[Scalar, ...], ...]) -> list[str] | None:
    """Kept for a moment: in `COUNTIF(w,w)` the same is asked for each of many criteria."""
    if not rows or len(rows[0]) != 1:
        return None
    (line,) = zip(*rows, strict=True)
    return folded_all(line) if set(map(type, line)) == {str} else None


def _one(value: Operand) -> Scalar:
    if isinstance(value, (Array, Area)):
        return value.at(0, 0)
    assert not isinstance(value, Union)
    return value


def _chosen(values: Operand, conditions: tuple[Operand, ...], *, same_shape: bool) -> list[float]:
    source = table(values)
    first = table(conditions[0])
    fail_if(same_shape and (first.height, first.width) != (source.height, source.width), VALUE)
    chosen = []
    for i, j in _matching(conditions):
        value = _at(source, i, j)
        if type(value) is float:
            chosen.append(value)
        elif type(value) is ErrorValue:
            raise Raised(value)
    return chosen


def _at(source: Table, i: int, j: int) -> Scalar:
    """The cell there, even beyond the area: SUMIF takes the shape from its first argument."""
    if isinstance(source, Array) and not (i < source.height and j < source.width):
        return None
    return source.at(i, j)


def sum_if(operand: Operand, wanted: Scalar, values: Operand = None) -> float:
    source = operand if values is None else values
    chosen = _chosen(source, (operand, wanted), same_shape=False)
    return finite(sum_of(chosen, is_exact=has_window(operand)))


def average_if(operand: Operand, wanted: Scalar, values: Operand = None) -> float:
    source = operand if values is None else values
    chosen = _chosen(source, (operand, wanted), same_shape=False)
    return _averaged(chosen, is_exact=has_window(operand))


def _added(values: list[float], *, is_exact: bool) -> float:
    return finite(sum_of(values, is_exact=is_exact))


def _averaged(values: list[float], *, is_exact: bool) -> float:
    return sum_of(values, is_exact=is_exact) / len(values) if values else fail(DIV0)


def count_ifs(*conditions: Operand) -> float:
    if len(conditions) == 2:
        return count_if(conditions[0], _one(conditions[1]))
    return float(sum(1 for _ in _matching(conditions)))


def _ifs(finish: Callable[[list[float]], float]) -> Callable[..., float]:
    def apply(values: Operand, *conditions: Operand) -> float:
        return finish(_chosen(values, conditions, same_shape=True))

    return apply


def _added_ifs(finish: Callable[..., float]) -> Callable[..., float]:
    def apply(values: Operand, *conditions: Operand) -> float:
        chosen = _chosen(values, conditions, same_shape=True)
        return finish(chosen, is_exact=has_window(values))

    return apply


# --- databases --------------------------------------------------------------------------


#: Is a condition met by a record, given its number and its values?
Condition = Callable[[int, tuple[Scalar, ...]], bool]


def _records(context: Context, database: Operand, field: Scalar, criteria: Operand) -> list[Scalar]:
    """The values of a field in the rows that meet one of the rows of criteria."""
    rows = table(database).to_array().rows
    fail_if(not rows, VALUE)
    heads = _heads(rows[0])
    place = None if field is None else _field(heads, field)
    tests = _tests(context, table(criteria), heads)
    matches = [
        row
        for n, row in enumerate(rows[1:])
        if any(all(is_met(n, row) for is_met in test) for test in tests)
    ]
    return [True if place is None else row[place] for row in matches]


def _heads(row: tuple[Scalar, ...]) -> list[str]:
    return [str(h).casefold() if h is not None else "" for h in row]


def _field(heads: list[str], field: Scalar) -> int:
    if type(field) is float:
        place = int(field) - 1
        return place if 0 <= place < len(heads) else fail(VALUE)
    name = str(field).casefold()
    return heads.index(name) if name in heads else fail(VALUE)


def _tests(context: Context, criteria: Table, heads: list[str]) -> list[list[Condition]]:
    names, *rows = criteria.to_array().rows or ((),)
    return [
        [
            condition
            for j, (name, value) in enumerate(zip(_heads(names), row, strict=True))
            if value is not None
            and (condition := _condition(context, heads, name, value, (criteria, i, j)))
        ]
        for i, row in enumerate(rows, 1)
    ]


def _condition(
    context: Context, heads: list[str], name: str, value: Scalar, place: tuple[Table, int, int]
) -> Condition | None:
    """What a cell of criteria asks for; below what is no field, a formula is asked itself.

    Such a formula is written for the first record, and copied down for the others.
    """
    if name in heads:
        n, matches = heads.index(name), _record_criterion(value)
        return lambda _number, row: matches(row[n])
    area, i, j = place
    if not isinstance(area, Area):
        return None
    where = (area.sheet, area.top + i, area.left + j)
    formula = context.cells.formula(*where)
    if formula is None:
        return None
    inside = Context(context.cells, context.names, *where, uses_1904=context.uses_1904)
    return lambda number, _row: value_of(shifted(formula, number, 0), inside) is True


def _record_criterion(value: Scalar) -> Matcher:
    """A plain text means: begins with it; one that reads like a number or TRUE means that."""
    if type(value) is not str or not value or value[0] in "<>=":
        return criterion(value)
    is_typed = number_in_text(value) is not None or value.upper() in ("TRUE", "FALSE")
    return criterion(value if is_typed else f"{value}*")


def _database(function: Callable[..., float]) -> Callable[..., float]:
    def apply(context: Context, database: Operand, field: Scalar, criteria: Operand) -> float:
        values = _records(context, database, field, criteria)
        return function(Array(tuple((v,) for v in values)))

    return apply


def _get(context: Context, database: Operand, field: Scalar, criteria: Operand) -> Scalar:
    values = [v for v in _records(context, database, field, criteria) if v not in (None, "")]
    fail_if(len(values) > 1)
    return values[0] if values else fail(VALUE)


def _count_records(context: Context, database: Operand, field: Scalar, criteria: Operand) -> float:
    values = _records(context, database, field, criteria)
    return float(sum(1 for v in values if field is None or type(v) is float))


# --- SUBTOTAL ---------------------------------------------------------------------------

_SUBTOTALS: dict[int, Callable[..., float]] = {
    1: average, 2: count, 3: count_all, 4: largest, 5: smallest, 6: product,
    7: STATISTICS["STDEV"].call, 8: STATISTICS["STDEVP"].call, 9: total,
    10: STATISTICS["VAR"].call, 11: STATISTICS["VARP"].call,
}  # fmt: skip


def subtotal(which: float, *operands: Operand) -> float:
    number = int(which)
    compute = _SUBTOTALS.get(number - 100 if number > 100 else number)
    if compute is None:
        fail(VALUE)
    # Rows that a filter hides never count; those hidden by hand do, up to 11.
    return compute(*(_counted(o, by_filter=number <= 100) for o in operands))


def _counted(operand: Operand, *, by_filter: bool, has_subtotals: bool = False) -> Operand:
    """An area without rows that are hidden, and cells that are subtotals themselves."""
    if not isinstance(operand, Area):
        return operand
    cells, sheet = operand.cells, operand.sheet
    kept = (
        cells.value(sheet, row, column)
        for row, column in cells.filled(operand)
        if not cells.is_hidden(sheet, row, by_filter=by_filter)
        and (has_subtotals or not cells.is_subtotal(sheet, row, column))
    )
    return Array(tuple((v,) for v in kept))


_AGGREGATES: dict[int, str] = {
    12: "MEDIAN", 13: "MODE", 14: "LARGE", 15: "SMALL", 16: "PERCENTILE", 17: "QUARTILE",
    18: "PERCENTILE.EXC", 19: "QUARTILE.EXC",
}  # fmt: skip


def aggregate(which: float, option: float, *operands: Operand) -> float:
    number = int(which)
    fail_if(not 0 <= option <= 7 or not 1 <= number <= 19, VALUE)
    first = operands[0]
    if int(option) != 4:
        shows_hidden = int(option) in (0, 2, 6)
        first = _counted(first, by_filter=shows_hidden, has_subtotals=int(option) > 3)
    if int(option) in (2, 3, 6, 7) and not isinstance(first, Union):
        kept = [v for v in table(first).values() if type(v) is not ErrorValue and v is not None]
        first = Array(tuple((v,) for v in kept))
    if number in _SUBTOTALS:
        return _SUBTOTALS[number](first, *operands[1:])
    call = ORDERED[_AGGREGATES[number]].call
    if number < 14:
        return float(call(first, *operands[1:]))
    fail_if(len(operands) < 2, VALUE)
    k = _one(operands[1])
    return float(call(first, k)) if type(k) is float else fail(VALUE)


CRITERIA: Family = {
    "AGGREGATE": spec("n n a+", aggregate),
    "AVERAGEIF": spec("r e r?", average_if),
    "AVERAGEIFS": spec("r r+ e+", _added_ifs(_averaged)),
    "COUNTIF": spec("r e", count_if),
    "COUNTIFS": spec("r+ e+", count_ifs),
    "DAVERAGE": spec("r v r", _database(average), wants_context=True),
    "DCOUNT": spec("r v r", _count_records, wants_context=True),
    "DCOUNTA": spec("r v r", _database(count_all), wants_context=True),
    "DGET": spec("r v r", _get, wants_context=True),
    "DMAX": spec("r v r", _database(largest), wants_context=True),
    "DMIN": spec("r v r", _database(smallest), wants_context=True),
    "DPRODUCT": spec("r v r", _database(product), wants_context=True),
    "DSTDEV": spec("r v r", _database(STATISTICS["STDEV"].call), wants_context=True),
    "DSTDEVP": spec("r v r", _database(STATISTICS["STDEVP"].call), wants_context=True),
    "DSUM": spec("r v r", _database(total), wants_context=True),
    "DVAR": spec("r v r", _database(STATISTICS["VAR"].call), wants_context=True),
    "DVARP": spec("r v r", _database(STATISTICS["VARP"].call), wants_context=True),
    "MAXIFS": spec("r r+ e+", _ifs(lambda v: max(v, default=0.0))),
    "MINIFS": spec("r r+ e+", _ifs(lambda v: min(v, default=0.0))),
    "SUBTOTAL": spec("n r+", subtotal),
    "SUMIF": spec("r e r?", sum_if),
    "SUMIFS": spec("r r+ e+", _added_ifs(_added)),
}
