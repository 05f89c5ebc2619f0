"""Windows of streams, and what is made of the rows of tables as bags.

`Stream` and `Table` have these as methods. A window gives a table without a key: it may hold
rows that are alike. What is aggregated by columns has these for its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from millstream.calculus import functions
from millstream.calculus.library.event_windows import (
    END,
    EVENT_TIME,
    MOST_WINDOWS,
    START,
    hopping,
    sessions,
    stretches,
    tumbling,
)
from millstream.calculus.terms import Column
from millstream.calculus.types import TIME, Field, QueueType, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.errors import UsageError, listing, suggest
from millstream.languages.algebra import nodes
from millstream.tracing.lambdas import RowFunction, Untraceable, trace_term
from millstream.tracing.rows import micros

Length = str | timedelta
Node = nodes.StreamNode | nodes.TableNode
#: How a column is aggregated, and of what: a column, a lambda, or None where rows are counted.
Aggregated = str | tuple[str, str | RowFunction | None]


def names_of(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def required(names: Iterable[str], schema: Schema, what: str) -> None:
    for name in names:
        if name not in schema:
            hint = f"columns are: {listing(schema.names)}. {suggest(name, schema.names) or ''}"
            raise UsageError(f'{what}: unknown column "{name}"', hint=hint.strip())


def bag(function: functions.Function, *parents: Node) -> nodes.TableOf:
    """A table without a key."""
    return nodes.TableOf(_schema(function, parents), (), parents, function)


def stream_of(function: functions.Function, *parents: Node) -> nodes.StreamOf:
    return nodes.StreamOf(_schema(function, parents), parents, function)


def aggregated(
    table: nodes.TableNode, by: str | Iterable[str], wanted: Mapping[str, Aggregated]
) -> nodes.TableOf:
    """A row for each group, whose columns are its key."""
    keys = names_of(by)
    required(keys, table.schema, "aggregate by")
    if not wanted:
        raise UsageError("nothing to aggregate", hint='write total=("sum", lambda r: r.volume)')
    sums = tuple(_aggregation(name, how, table.schema) for name, how in wanted.items())
    function = functions.Aggregate(keys, sums)
    schema = _schema(function, (table,))
    return nodes.TableOf(schema, keys, (table,), function, is_keyed=True)


def framed(
    node: nodes.StreamNode, slide: Length | None, size: Length, offset: Length
) -> nodes.Framed:
    """Tumbling windows, or hopping ones if they slide."""
    length, start = _length(size, "size"), micros(offset)
    step = None if slide is None else _length(slide, "slide")
    if step is not None and stretches(length, step) > MOST_WINDOWS:
        raise UsageError(f"every row would be in more than {MOST_WINDOWS} windows",
                         hint="hop takes the slide first, and then the size")  # fmt: skip

    def frame(wiring: Wiring, queue: Queue) -> Queue:
        if step is None:
            return tumbling(wiring, queue, EVENT_TIME, length, start, name="windows")
        return hopping(wiring, queue, EVENT_TIME, step, length, start, name="windows")

    return nodes.Framed(_with_window(node.schema), node, frame)


def in_sessions(node: nodes.StreamNode, gap: Length, by: str | Iterable[str]) -> nodes.Sessions:
    keys, length = names_of(by), _length(gap, "gap")
    required(keys, node.schema, "the key of a session")

    def frame(wiring: Wiring, queue: Queue) -> Queue:
        return sessions(wiring, queue, keys, length, is_complete=False, name="sessions")

    return nodes.Sessions(_with_window(node.schema), (), node, frame)


def _length(given: Length, what: str) -> int:
    length = micros(given)
    if length < 1:
        raise UsageError(f"a {what} must be longer than nothing")
    return length


def _with_window(schema: Schema) -> Schema:
    fields = tuple(f for f in schema if f.name not in (START, END))
    return Schema((*fields, Field(START, TIME), Field(END, TIME)))


def _aggregation(name: str, how: Aggregated, schema: Schema) -> functions.Aggregation:
    function, what = (how, None) if isinstance(how, str) else how
    if function not in functions.AGGREGATIONS:
        hint = f"there are: {listing(functions.AGGREGATIONS)}"
        raise UsageError(f'{name}: unknown aggregate "{function}"', hint=hint)
    if what is None:
        return functions.Aggregation(name, function, None)
    if isinstance(what, str):
        required((what,), schema, name)
        return functions.Aggregation(name, function, Column(what, schema[what]))
    try:
        return functions.Aggregation(name, function, trace_term(what, schema))
    except Untraceable as reason:
        hint = "compute it as a column first, with map"
        raise UsageError(f"{name}: this lambda cannot be traced: {reason}", hint=hint) from None


def _schema(function: functions.Function, parents: Iterable[Node]) -> Schema:
    types = tuple(QueueType(p.schema, isinstance(p, nodes.TableNode)) for p in parents)
    try:
        (type_,) = function.output_types(types, 1)
    except functions.FunctionFault as fault:
        raise UsageError("; ".join(fault.messages)) from None
    return type_.schema
