"""Row functions and order functions: they act at once, item by item. Marks pass through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus.functions import (
    Columns,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Map,
    Opaque,
    OpaqueFold,
    RoundRobinJoin,
    RoundRobinSplit,
)
from millstream.calculus.terms import fitted
from millstream.calculus.types import START_OF_TIME, Row, Value
from millstream.errors import RunError
from millstream.meaning.firing import Context, Result, State, fire, initial_state, row_of
from millstream.meaning.items import Entry, Item, Mark
from millstream.meaning.scalars import Names, evaluate
from millstream.meaning.waiting import Side, heard, marks_due


def _row(columns: Columns, names: Names, context: Context, variables: Any = None) -> Row:
    return tuple(evaluate(c.term, names, variables, context.faults) for c in columns)


@fire.register
def _map(function: Map, entry: Entry, index: int, state: State, context: Context) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),))
    row = _row(function.columns, context.names(index, entry), context)
    return Result(((replace(entry, row=row),),))


@fire.register
def _filter(function: Filter, entry: Entry, index: int, state: State, context: Context) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),))
    names = context.names(index, entry)
    kept = evaluate(function.condition, names, None, context.faults) is True
    return Result(((entry,) if kept else (),))


@fire.register
def _flat_map(
    function: FlatMap, entry: Entry, index: int, state: State, context: Context
) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),))
    names = context.names(index, entry)
    sent = tuple(
        replace(entry, row=_row(branch.columns, names, context))
        for branch in function.branches
        if branch.when is None or evaluate(branch.when, names, None, context.faults) is True
    )
    return Result((sent,))


@fire.register
def _opaque(function: Opaque, entry: Entry, index: int, state: State, context: Context) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),))
    try:
        rows = [_fitting(function, row) for row in function.call(entry.row, entry.time)]
    except Exception as error:
        raise RunError(
            f"the callable {function.label} failed on the row {entry.row!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    return Result((tuple(replace(entry, row=row) for row in rows),))


@initial_state.register
def _opaque_fold_state(function: OpaqueFold, inputs: int) -> State:
    return ({},)


@fire.register
def _opaque_fold(
    function: OpaqueFold, entry: Entry, index: int, state: State, context: Context
) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),), state)
    records: dict[Row, Row] = state[0]
    key = row_of(context.names(index, entry), function.by)
    try:
        new, row = function.call(records.get(key, function.initial), entry.row)
        sent = () if row is None else (_fitting(function, row),)
    except Exception as error:
        raise RunError(
            f"the callable {function.label} failed on the row {entry.row!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    others = {k: v for k, v in records.items() if k != key}
    after = others if new is None else {**others, key: new}
    return Result((tuple(replace(entry, row=row) for row in sent),), (after,))


def _fitting(function: Opaque | OpaqueFold, row: Iterable[Value]) -> Row:
    """A row as the callable's schema promises it; integers may stand for numbers."""
    values = tuple(row)
    if len(values) != len(function.schema):
        raise ValueError(f"expected {len(function.schema)} columns, got {len(values)}")
    checked: list[Value] = []
    for field, value in zip(function.schema, values, strict=True):
        try:
            checked.append(fitted(value, field.type))
        except TypeError as error:
            raise TypeError(f"{field.name}: {error}") from error
    return tuple(checked)


@fire.register
def _fold(function: Fold, entry: Entry, index: int, state: State, context: Context) -> Result:
    """A variable maps keys to records; a key not seen yet has the initial record."""
    operator = context.operator
    stored: dict[str, Any] = dict(zip(operator.variables, state, strict=True))
    unchanged = tuple(stored[v] for v in operator.writes)
    nothing: tuple[tuple[Entry, ...], ...] = () if function.emit is None else ((),)
    if isinstance(entry, Mark):
        return Result(() if function.emit is None else ((entry,),), unchanged)
    names = context.names(index, entry)
    key = row_of(names, function.by)
    before = {v: stored[v].get(key, context.initial[v]) for v in operator.variables}
    if function.when is not None:
        if evaluate(function.when, names, before, context.faults) is not True:
            return Result(nothing, unchanged)
    after = {v: dict(record) for v, record in before.items()}
    for update in function.updates:
        value = evaluate(update.term, names, before, context.faults)
        after[update.variable][update.field] = value
    written = tuple({**stored[v], key: after[v]} for v in operator.writes)
    if function.emit is None:
        return Result((), written)
    row = _row(function.emit, names, context, after)
    return Result(((replace(entry, row=row),),), written)


@fire.register
def _duplicate(
    function: Duplicate, entry: Entry, index: int, state: State, context: Context
) -> Result:
    return Result(((entry,),) * len(context.operator.outputs))


# --- round robin ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cursor:
    """Whose turn it is, how many items of the turn are done, and the last time sent."""

    queue: int = 0
    done: int = 0
    last_time: int | None = None

    def advanced(self, weights: tuple[int, ...]) -> Cursor:
        if self.done + 1 < weights[self.queue]:
            return replace(self, done=self.done + 1)
        return replace(self, queue=(self.queue + 1) % len(weights), done=0)


@initial_state.register
def _split_state(function: RoundRobinSplit, inputs: int) -> State:
    return (Cursor(),)


@initial_state.register
def _join_state(function: RoundRobinJoin, inputs: int) -> State:
    enqueued = function.enqueued or ((),) * inputs
    sides = (Side(tuple(Item(START_OF_TIME, row) for row in rows)) for rows in enqueued)
    return (*sides, Cursor())


@fire.register
def _split(
    function: RoundRobinSplit, entry: Entry, index: int, state: State, context: Context
) -> Result:
    count = len(context.operator.outputs)
    cursor: Cursor = state[0]
    if isinstance(entry, Mark):
        return Result(((entry,),) * count, state)
    sent: tuple[tuple[Entry, ...], ...] = tuple(
        (entry,) if number == cursor.queue else () for number in range(count)
    )
    return Result(sent, (cursor.advanced(function.weights or (1,) * count),))


@fire.register
def _join(
    function: RoundRobinJoin, entry: Entry, index: int, state: State, context: Context
) -> Result:
    sides: list[Side] = list(state[:-1])
    cursor: Cursor = state[-1]
    weights = function.weights or (1,) * len(sides)
    before = sides
    sides = heard(sides, index, entry)
    sent: list[Entry] = []
    while sides[cursor.queue].pending:
        first, *rest = sides[cursor.queue].pending
        sides[cursor.queue] = replace(sides[cursor.queue], pending=tuple(rest))
        time = first.time if cursor.last_time is None else max(first.time, cursor.last_time)
        sent.append(replace(first, time=time, origin=entry.origin))
        cursor = replace(cursor.advanced(weights), last_time=time)
    mark, sides = marks_due(before, sides, entry)
    return Result((tuple(sent) + mark,), (*sides, cursor))
