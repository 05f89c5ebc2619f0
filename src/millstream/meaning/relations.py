"""Time functions: they speak when time has passed, with the exact answer at every instant.

Relations are whole bags here: at every instant at which an input changes, the function is
applied to the bags before and after, and the difference is sent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from millstream.calculus.functions import (
    SQUARABLE,
    Aggregate,
    Aggregation,
    Changes,
    Distinct,
    Dstream,
    Except,
    Held,
    Istream,
    Latest,
    Merge,
    Now,
    Range,
    Rows,
    Rstream,
    Until,
    Window,
)
from millstream.calculus.sketches import distinct_nearly, quantile_of
from millstream.calculus.terms import canonical
from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind, Row, Schema, Value
from millstream.meaning.firing import Context, Result, State, fire
from millstream.meaning.instants import Sides, from_bags, times_of_changes, waited
from millstream.meaning.items import (
    Bag,
    Entry,
    Item,
    bag_with,
    changes,
    difference,
    rows_in_order,
)
from millstream.meaning.scalars import evaluate
from millstream.meaning.waiting import Side
from millstream.values.core.logic import less

# --- windows ----------------------------------------------------------------------------


@fire.register
def _window(function: Window, entry: Entry, index: int, state: State, context: Context) -> Result:
    schema = context.input_types[0].schema

    def instants(sides: Sides, now: int) -> set[int]:
        items = (*sides[0].history, *sides[0].pending)
        times = {i.time for i in items} if _instants_of_change(function, 0) else ()
        moved = {e for t in times for e in _instants_of_change(function, t)}
        if isinstance(function, Until):
            said = (i.row[schema.index(function.until)] for i in items)
            moved = {int(s) for s in said if s is not None}
        return times_of_changes(sides, now) | {e for e in moved if _is_new(e, now, state)}

    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        # Just before an instant the window is what it was the microsecond before.
        old = _contents(function, before[0].history, instant - 1, schema)
        return changes(instant, old, _contents(function, after[0].history, instant, schema))

    return waited(entry, index, state, instants, speak)


def _instants_of_change(function: Window, time: int) -> tuple[int, ...]:
    """When a row of some time may come into a window or leave it, beside that time itself."""
    match function:
        case Now():
            return (time + 1,)
        case Range(length, None) if length is not None:
            return (time + length + 1,)
        case Range(length, slide) if slide is not None:
            entry = -(-time // slide) * slide
            return (entry,) if length is None else (entry, ((time + length) // slide + 1) * slide)
        case Rows(_, _, length) if length is not None:
            return (time + length + 1,)
        case _:
            return ()


def _is_new(expiry: int, now: int, state: State) -> bool:
    """An expiry is dealt with once: after the previous mark, up to this one."""
    previous = state[0].known_until
    return (previous is None or expiry > previous) and expiry <= now and expiry <= INT64_MAX


def _contents(function: Window, history: tuple[Item, ...], instant: int, schema: Schema) -> Bag:
    """The rows in a window at an instant, from the whole history of its stream."""
    match function:
        case Now():
            present = [i for i in history if i.time == instant]
        case Range(length, slide):
            end = instant if slide is None else instant // slide * slide
            present = [i for i in history if i.time <= end and _is_within(i, end, length)]
        case Until(until):
            place = schema.index(until)
            present = [i for i in history if _has_yet_to_come(i.row[place], instant)]
        case Rows(count, by, length):
            last = _last(history, count, by, schema)
            present = [i for i in last if _is_within(i, instant, length)]
        case Latest(by, unless):
            last = _last(history, 1, by, schema)
            gone = None if unless is None else schema.index(unless)
            present = [i for i in last if gone is None or i.row[gone] is not True]
        case _:
            raise NotImplementedError(function.name)
    return bag_with({}, present)


def _is_within(item: Item, instant: int, length: int | None) -> bool:
    return length is None or item.time >= instant - length


def _has_yet_to_come(time: Value, instant: int) -> bool:
    return time is None or int(time) > instant


def _last(history: tuple[Item, ...], count: int, by: tuple[str, ...], schema: Schema) -> list[Item]:
    partitions: dict[Row, list[Item]] = {}
    for item in history:
        key = tuple(item.row[schema.index(name)] for name in by)
        partitions.setdefault(key, []).append(item)
    return [item for items in partitions.values() for item in items[-count:]]


@fire.register
def _held(function: Held, entry: Entry, index: int, state: State, context: Context) -> Result:
    schema = context.input_types[0].schema

    def instants(sides: Sides, now: int) -> set[int]:
        items = (*sides[0].history, *sides[0].pending)
        said = [i.row[schema.index(function.until)] for i in items]
        ends = {i.time for i in items} | {int(s) for s in said if s is not None}
        moved = {e + later for e in ends for later in (0, 1)}
        return times_of_changes(sides, now) | {e for e in moved if _is_new(e, now, state)}

    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        old = _released(function, before[0].history, instant - 1, schema)
        return changes(instant, old, _released(function, after[0].history, instant, schema))

    return waited(entry, index, state, instants, speak)


def _released(function: Held, history: tuple[Item, ...], instant: int, schema: Schema) -> Bag:
    """The rows that leave at an instant, from the whole history of their stream."""
    place = schema.index(function.until)
    together: dict[Row, list[tuple[int, list[Row]]]] = {}
    for number, item in enumerate(history):
        said = item.row[place]
        end = max(item.time, item.time if said is None else int(said))
        key = tuple(item.row[schema.index(name)] for name in function.by)
        held = together.setdefault((number,) if function.is_alone else key, [])
        if held and held[-1][0] >= item.time:
            held[-1] = (max(held[-1][0], end), [*held[-1][1], item.row])
        else:
            held.append((end, [item.row]))
    bag: Counter[Row] = Counter()
    for end, rows in (one for held in together.values() for one in held):
        if end == instant:
            bag.update((*row[:place], end, *row[place + 1 :]) for row in rows)
    return dict(bag)


# --- from relations to relations --------------------------------------------------------


@fire.register
def _distinct(
    function: Distinct, entry: Entry, index: int, state: State, context: Context
) -> Result:
    def once(sides: Sides) -> Bag:
        return dict.fromkeys((row for row, count in sides[0].bag.items() if count > 0), 1)

    return waited(entry, index, state, times_of_changes, from_bags(once))


@fire.register
def _except(function: Except, entry: Entry, index: int, state: State, context: Context) -> Result:
    def more_often(sides: Sides) -> Bag:
        return difference(sides[0].bag, sides[1].bag)

    return waited(entry, index, state, times_of_changes, from_bags(more_often))


@fire.register
def _aggregate(
    function: Aggregate, entry: Entry, index: int, state: State, context: Context
) -> Result:
    schema = context.input_types[0].schema
    places = [schema.index(name) for name in function.by]

    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        # Faults are counted once per change that has them, and once per row that is sent.
        come = [i for i in before[0].pending if i.time <= instant]
        for aggregation in function.aggregations:
            for item in come if aggregation.term is not None else ():
                assert aggregation.term is not None
                evaluate(aggregation.term, _named(schema, item.row), None, context.faults)
        faulty: dict[Row, Counter[str]] = {}
        moved = {tuple(item.row[p] for p in places) for item in come}
        old = aggregated(function, before[0], schema, {}, moved)
        sent = changes(instant, old, aggregated(function, after[0], schema, faulty, moved))
        for item in sent:
            if item.weight > 0:
                context.faults.update(faulty.get(item.row, ()))
        return sent

    return waited(entry, index, state, times_of_changes, speak)


def _named(schema: Schema, row: Row) -> dict[str, Value]:
    return dict(zip(schema.names, row, strict=True))


def aggregated(
    function: Aggregate,
    side: Side,
    schema: Schema,
    faulty: dict[Row, Counter[str]],
    moved: Collection[Row] | None = None,
) -> Bag:
    """A row for every group (of `moved`) with rows; `faulty` says which hold an overflow."""
    groups: dict[Row, dict[Row, int]] = {}
    if not function.by and side.has_changed:
        groups[()] = {}
    places = [schema.index(name) for name in function.by]
    for row, count in side.bag.items():
        key = tuple(row[place] for place in places)
        if moved is None or key in moved:
            groups.setdefault(key, {})[row] = count
    result: dict[Row, int] = {}
    for key, bag in groups.items():
        if function.by and sum(bag.values()) <= 0:
            continue
        faults: Counter[str] = Counter()
        values = tuple(aggregate_of(a, bag, schema, faults) for a in function.aggregations)
        result[key + values] = 1
        faulty[key + values] = faults
    return result


def aggregate_of(
    aggregation: Aggregation, bag: Bag, schema: Schema, faults: Counter[str] | None = None
) -> Value:
    """An aggregate of the rows of a bag; `faults` counts what does not fit."""
    if aggregation.term is None:
        return sum(bag.values())
    values: list[tuple[Any, int]] = []
    names = schema.names
    for row, count in bag.items():
        value = evaluate(aggregation.term, dict(zip(names, row, strict=True)))
        if value is not None:
            values.append((value, count))
    how_many = sum(count for _, count in values)
    if aggregation.function == "count":
        return how_many
    if aggregation.function == "distinct":
        return len({v for v, count in values if count > 0})
    if aggregation.function == "approx_distinct":
        return distinct_nearly(v for v, count in values if count > 0)
    if aggregation.function == "quantile":
        value = quantile_of(values, aggregation.at or 0)
        return None if value is None else canonical(value)
    if aggregation.function in ("min", "max"):
        there = [v for v, count in values if count > 0]
        return _extreme(there, aggregation.function) if there else None
    if how_many <= 0:
        return None
    if aggregation.function in ("variance", "var_pop"):
        less = 1 if aggregation.function == "variance" else 0
        return (
            _spread_of_sums(aggregation, bag, schema, less)
            if aggregation.beside
            else _spread(values, less)
        )
    total = _exact_sum(values)
    if aggregation.function == "avg":
        return canonical(float_of(total) / how_many)
    if aggregation.term.type.kind is Kind.NUMBER:
        return canonical(float_of(total))
    if INT64_MIN <= total <= INT64_MAX:
        return int(total)
    if faults is not None:
        faults[f"{aggregation.term.type} overflow in {aggregation.name}"] += 1
    return None


def _spread(values: list[tuple[Any, int]], less: int) -> Value:
    how_many = sum(count for _, count in values)
    if not all(abs(v) < SQUARABLE for v, _ in values):
        return None if how_many <= less else canonical(float("nan"))
    total = sum(Fraction(v) * count for v, count in values)
    squares = sum(Fraction(v) * Fraction(v) * count for v, count in values)
    return _variance(how_many, total, squares, less)


def _spread_of_sums(aggregation: Aggregation, bag: Bag, schema: Schema, less: int) -> Value:
    """The variance of all values whose counts and sums are in rows, by parts."""
    columns = [
        [(evaluate(term, _named(schema, row)), count) for row, count in bag.items()]
        for term in aggregation.terms
    ]
    total, squares, rests, how_many = (
        _exact_sum([(v, count) for v, count in column if v is not None]) for column in columns
    )
    return _variance(int(how_many), total, squares + rests, less)


def _variance(how_many: int, total: Any, squares: Any, less: int) -> Value:
    """The variance of so many values, exact up to its last division."""
    if how_many <= less:
        return None
    if any(isinstance(x, float) and not math.isfinite(x) for x in (total, squares)):
        return canonical(math.nan)
    upper = how_many * squares - total * total
    return canonical(float_of(upper) / (how_many * (how_many - less)))


def _extreme(values: list[Any], which: str) -> Value:
    def order(a: Any, b: Any) -> int:
        return int(less(b, a)) - int(less(a, b))

    chosen = min if which == "min" else max
    value: Value = chosen(values, key=cmp_to_key(order))
    return value


def _exact_sum(values: Iterable[tuple[Any, int]]) -> Any:
    """The exact sum as an int or a fraction, or an infinity or NaN if one is there."""
    strange = {v for v, _ in values if isinstance(v, float) and v - v != 0}
    if strange:
        return sum(strange)
    parts: Counter[int] = Counter()  # the numerators of each denominator: few, as floats are binary
    for value, count in values:
        numerator, denominator = value.as_integer_ratio()
        parts[denominator] += numerator * count
    return sum((Fraction(n, d) for d, n in parts.items() if d > 1), parts[1])


def float_of(total: Any) -> float:
    """The nearest float; beyond the largest, the infinity of its sign."""
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")


@fire.register
def _merge(function: Merge, entry: Entry, index: int, state: State, context: Context) -> Result:
    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        return [i for side in before for i in side.pending if i.time <= instant]

    return waited(entry, index, state, times_of_changes, speak)


# --- from relations to streams ----------------------------------------------------------


@fire.register
def _istream(function: Istream, entry: Entry, index: int, state: State, context: Context) -> Result:
    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        come = difference(after[0].bag, before[0].bag)
        return [Item(instant, row) for row in rows_in_order(come)]

    return waited(entry, index, state, times_of_changes, speak)


@fire.register
def _dstream(function: Dstream, entry: Entry, index: int, state: State, context: Context) -> Result:
    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        gone = difference(before[0].bag, after[0].bag)
        return [Item(instant, row) for row in rows_in_order(gone)]

    return waited(entry, index, state, times_of_changes, speak)


@fire.register
def _changes(function: Changes, entry: Entry, index: int, state: State, context: Context) -> Result:
    schema = context.input_types[0].schema

    def key(row: Row) -> Row:
        return tuple(row[schema.index(name)] for name in function.by)

    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        gone: dict[Row, Row] = {}
        for row in rows_in_order(difference(before[0].bag, after[0].bag)):
            gone.setdefault(key(row), row)
        come: dict[Row, Row] = {}
        for row in rows_in_order(difference(after[0].bag, before[0].bag)):
            old = gone.get(key(row), (None,) * len(schema))
            beside = (evaluate(c.term, _named(schema, old)) for c in function.old)
            come.setdefault(key(row), (*row, *beside))
        return [Item(instant, row) for row in come.values()]

    return waited(entry, index, state, times_of_changes, speak)


@fire.register
def _rstream(function: Rstream, entry: Entry, index: int, state: State, context: Context) -> Result:
    def ticks(sides: Sides, now: int) -> set[int]:
        due = {t for t in sides[0].ticks if t <= now}
        first = sides[0].first_tick
        if first is None:
            return due
        before = state[0].known_until
        after = first if before is None else max(first, before)
        for every in function.every:
            due |= set(range((after // every + 1) * every, now + 1, every))
        return due

    def speak(instant: int, before: Sides, after: Sides) -> list[Item]:
        return [Item(instant, row) for row in rows_in_order(after[0].bag)]

    return waited(entry, index, state, ticks, speak)
