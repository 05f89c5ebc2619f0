"""The operators that people know from ReactiveX, made of those of the algebra.

State is a table of one row, whose key has no columns: `scan` is `combine_updates` of it, and
nearly everything else is a `scan` that remembers the row it was given. `docs/algebra.md`
draws a timeline of each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from millstream.calculus.functions import Assign
from millstream.calculus.library.columns import flag, kept, nothing, unlike
from millstream.calculus.terms import Column, Literal
from millstream.calculus.types import TEXT, Field, Schema, Type, Value
from millstream.errors import UsageError, listing, suggest
from millstream.languages.algebra import nodes
from millstream.languages.algebra.groups import Group
from millstream.languages.algebra.reducing import State
from millstream.languages.algebra.stream import Stream, Table, now, refuse_deleted
from millstream.tracing.lambdas import RowFunction, Traced, call, if_
from millstream.tracing.rows import micros


def updates(table: Table) -> Stream:
    """The rows that a table is updated with, without deletions."""
    if nodes.can_delete(table.node):
        refuse_deleted(table.node)
    return Stream(nodes.UpdateStream(table.schema, table.node))


def latest(xs: Stream) -> Table:
    """The table of one row that holds the latest row of a stream."""
    return xs.to_table((), deleted=None)


def scan(xs: Stream, initial: State, step: RowFunction, **columns: str) -> Stream:
    """The state after each row: `scan(xs, {"n": 0}, lambda state, row: {"n": state.n + 1})`.

    `scan(xs, 0, lambda n, row: n + 1)` calls its column `value`.
    """
    return updates(latest(xs).combine_updates(initial, step, **columns))


def key_by(xs: Stream, key: str | Iterable[str] | RowFunction) -> Table:
    """The latest row of each key; a callable computes the columns of the key, or `key`."""
    if not callable(key):
        return xs.to_table(key, deleted=None)
    keys = xs.map(_naming(key))
    clash = [n for n in keys.schema.names if n in xs.schema]
    if clash:
        raise UsageError(f'the stream already has a column "{clash[0]}"', hint="name it in `key`")
    assert isinstance(keys.node, nodes.Rowwise)
    if not isinstance(keys.node.function, nodes.Map):
        raise UsageError("a key must be traced into terms", hint="compute it as a column, with map")
    widened = xs.map(keys.node.function.columns + kept(xs.schema))
    return widened.to_table(keys.schema.names, deleted=None)


def _naming(key: RowFunction) -> RowFunction:
    @functools.wraps(key)
    def call(row: Any) -> object:
        made = key(row)
        return {"key": made} if isinstance(made, Traced) else made

    return call


def group_by(
    xs: Stream,
    key: str | Iterable[str] | RowFunction,
    initial: State,
    aggregate: RowFunction,
    **columns: str,
) -> Table:
    """Each group of rows, aggregated: `key_by`, then `combine_updates`."""
    return key_by(xs, key).combine_updates(initial, aggregate, **columns)


def skip_while(xs: Stream, condition: RowFunction) -> Stream:
    """All rows from the first one on for which a condition does not hold."""
    is_open = unlike("is_open", xs.schema)
    return _remembering(
        xs,
        {is_open: False},
        lambda state, row: {is_open: state[is_open] | _not(_truth(condition(row)))},
        lambda r: r[is_open],
    )


def take_while(xs: Stream, condition: RowFunction) -> Stream:
    """All rows before the first one for which a condition does not hold."""
    is_open = unlike("is_open", xs.schema)
    return _remembering(
        xs,
        {is_open: True},
        lambda state, row: {is_open: state[is_open] & _truth(condition(row))},
        lambda r: r[is_open],
    )


def distinct_until_changed(xs: Stream, *columns: str) -> Stream:
    """The rows that differ from the one before, in all columns or in some."""
    seen, is_new = unlike("seen", xs.schema), unlike("is_new", xs.schema)
    compared = columns or xs.schema.names
    _known(compared, xs.schema)

    def step(state: Any, row: Any) -> dict[str, Any]:
        is_other = _not(state[seen])
        for name in compared:
            is_other = is_other | _not(_same(state[name], row[name]))
        return {seen: True, is_new: is_other}

    return _remembering(xs, {seen: False, is_new: False}, step, lambda r: r[is_new])


def start_with(xs: Stream, *rows: Mapping[str, Value]) -> Stream:
    """Some rows, and then those of a stream."""
    first = now(*rows, **{f.name: f.type for f in xs.schema})  # type: ignore[arg-type]
    return first.merge(xs)


def window(xs: Stream, size: int, group: Group | None = None, /, **groups: Group) -> Stream:
    """The last rows after each row.

    The row number n of the window (1 is the oldest) is in columns `x_n`; those that are not
    there yet are null, and `size` says how many there are. With groups, the window is
    reduced instead, and may be long; rows of one instant then have one result, that of all.
    """
    _positive(size)
    if group is not None or groups:
        place, number = unlike("place", xs.schema), unlike("number", xs.schema)
        counted = _counted(xs, place, number, size)
        reduced = counted.to_table(place, deleted=None).reduce(group, **groups).node
        assert isinstance(reduced, nodes.Reduce)
        return Stream(replace(reduced, each=number))
    return _listed(xs, size, is_sliding=True)


def buffer(xs: Stream, size: int) -> Stream:
    """Every so many rows as one row, with columns `x_1`, `x_2` and so on."""
    _positive(size)
    full = _listed(xs, size, is_sliding=False)
    columns = Schema(full.schema.fields[:-1])
    return full.filter(lambda r: r["size"] == size).map(kept(columns))


def pairwise(xs: Stream) -> Stream:
    """Each row with the one before it, in columns `x_1` (before) and `x_2`."""
    both = _listed(xs, 2, is_sliding=True)
    columns = Schema(both.schema.fields[:-1])
    return both.filter(lambda r: r["size"] == 2).map(kept(columns))


def combine_latest(xs: Stream, ys: Stream) -> Stream:
    """The latest row of each stream, whenever one comes, from when both have come."""
    return _latest_of_both(xs, ys, lambda is_both, _: is_both)


def zip(xs: Stream, ys: Stream) -> Stream:  # noqa: A001 - the word of the thesis
    """What the thesis calls `zip`, and others `combine_latest`."""
    return combine_latest(xs, ys)


def with_latest_from(xs: Stream, ys: Stream) -> Stream:
    """Each row with the latest one of another stream, if there is one.

    At one instant the other stream comes first: its row counts from then on.
    """
    return _latest_of_both(
        xs, ys, lambda is_both, is_first: is_both & is_first, is_second_first=True
    )


def sample(xs: Stream, ticks: Stream) -> Stream:
    """The latest row whenever another stream has one, if it has not been sent already.

    At one instant the tick comes last.
    """
    is_tick, is_new = unlike("is_tick", xs.schema), unlike("is_new", xs.schema)
    is_sent = unlike("is_sent", xs.schema)
    merged = xs.map((*kept(xs.schema), flag(is_tick, value=False))).merge(
        ticks.map((*nothing(xs.schema), flag(is_tick, value=True)))
    )

    def combine(state: Any, row: Any) -> dict[str, Any]:
        new = {n: if_(row[is_tick], state[n], row[n]) for n in xs.schema.names}
        return new | {is_new: _not(row[is_tick]), is_sent: row[is_tick] & state[is_new]}

    start = dict.fromkeys(xs.schema.names) | {is_new: False, is_sent: False}
    known: dict[str, Any] = {f.name: f.type for f in xs.schema}
    states = scan(merged, start, combine, **known)
    return states.filter(lambda r: r[is_sent]).map(kept(xs.schema))


def switch(control: Stream, column: str, **streams: Stream) -> Stream:
    """The rows of one of several streams: the one that the control has named last.

    At one instant the control comes first.
    """
    if column not in control.schema or control.schema[column] != TEXT:
        raise UsageError(
            f'"{column}" must be a text column of the control, which has {control.schema}',
            hint=suggest(column, control.schema.names),
        )
    if not streams:
        raise UsageError("switch needs streams to choose from, by name")
    schema = next(iter(streams.values())).schema
    source, name = unlike("source", schema), unlike("name", schema)
    chosen, is_on = unlike("chosen", schema), unlike("is_on", schema)
    choices = control.map(
        (*nothing(schema), Assign(source, Literal(None, TEXT)), Assign(name, Column(column, TEXT)))
    )
    tagged = [
        one.map((*kept(schema), Assign(source, Literal(label, TEXT)),
                 Assign(name, Literal(None, TEXT))))
        for label, one in streams.items()
    ]  # fmt: skip

    def step(state: Any, row: Any) -> dict[str, Any]:
        is_control = _is_null(row[source])
        return {
            chosen: if_(is_control, row[name], state[chosen]),
            is_on: _truth(_not(is_control) & _same(row[source], state[chosen])),
        }

    merged = choices.merge(*tagged)
    initial = {chosen: None, is_on: False}
    passed = _remembering(merged, initial, step, lambda r: r[is_on], **{chosen: TEXT})
    return passed.map(kept(schema))


def debounce(xs: Stream, quiet: str, *, by: str | Iterable[str] = ()) -> Stream:
    """Each row after which nothing has come for a while, at the end of that while.

    Time is event time: `debounce(xs, "5 s")` sends a row of 10:00:00 at 10:00:05, unless
    another has come before. With `by` each key has its own quiet.
    """
    keys = (by,) if isinstance(by, str) else tuple(by)
    _known(keys, xs.schema)
    length = micros(quiet)
    if length < 1:
        raise UsageError("a quiet time must be longer than nothing")
    return Stream(nodes.Settled(xs.schema, xs.node, keys, length))


# --- what they are made of ------------------------------------------------------------------


def _remembering(
    xs: Stream,
    initial: Mapping[str, Value],
    step: Callable[[Any, Any], Mapping[str, Any]],
    is_sent: Callable[[Any], Any],
    **types: Type,
) -> Stream:
    """The rows for which a state says so, after it has seen them."""
    names = xs.schema.names
    start = dict.fromkeys(names) | dict(initial)
    known: dict[str, Any] = {f.name: f.type for f in xs.schema} | types

    def combine(state: Any, row: Any) -> dict[str, Any]:
        return {n: row[n] for n in names} | dict(step(state, row))

    states = scan(xs, start, combine, **known)
    return states.filter(is_sent).map(kept(xs.schema))


def _counted(xs: Stream, place: str, number: str, size: int) -> Stream:
    """The rows with their number, and their place: from nought on and again after so many."""
    start = dict.fromkeys(xs.schema.names) | {place: size - 1, number: 0}

    def combine(state: Any, row: Any) -> dict[str, Any]:
        following = if_(state[place] == size - 1, 0, state[place] + 1)
        counted = {place: following, number: state[number] + 1}
        return {n: row[n] for n in xs.schema.names} | counted

    known: dict[str, Any] = {f.name: f.type for f in xs.schema}
    return scan(xs, start, combine, **known)


def _listed(xs: Stream, size: int, *, is_sliding: bool) -> Stream:
    """The last rows as columns `x_1` (the oldest) to `x_n`, and how many there are."""
    places = range(1, size + 1)
    fields = [Field(f"{f.name}_{n}", f.type) for n in places for f in xs.schema]
    count = unlike("size", Schema(tuple(fields)))
    start: dict[str, Value] = {**dict.fromkeys(f.name for f in fields), count: 0}

    def combine(state: Any, row: Any) -> dict[str, Any]:
        is_full = state[count] == size
        new: dict[str, Any] = {}
        for f in xs.schema.names:
            for n in places:
                old, value = state[f"{f}_{n}"], row[f]
                added = if_(state[count] == n - 1, value, old)
                if is_sliding:
                    full = value if n == size else state[f"{f}_{n + 1}"]
                else:
                    full = value if n == 1 else None
                new[f"{f}_{n}"] = if_(is_full, full, added)
        grown = size if is_sliding else 1
        return new | {count: if_(is_full, grown, state[count] + 1)}

    known: dict[str, Any] = {f.name: f.type for f in fields}
    return scan(xs, start, combine, **known)


def _latest_of_both(
    xs: Stream, ys: Stream, is_sent: Callable[[Any, Any], Any], *, is_second_first: bool = False
) -> Stream:
    """The latest rows of both, where a function of (are both there, is it the first's) says so."""
    clash = [n for n in ys.schema.names if n in xs.schema]
    if clash:
        raise UsageError(
            f'both streams have a column "{clash[0]}"', hint="rename one of them with map"
        )
    both = Schema((*xs.schema.fields, *ys.schema.fields))
    first = unlike("is_first", both)
    ones = xs.map((*kept(xs.schema), *nothing(ys.schema), flag(first, value=True)))
    others = ys.map((*nothing(xs.schema), *kept(ys.schema), flag(first, value=False)))
    merged = others.merge(ones) if is_second_first else ones.merge(others)
    has_x, has_y = unlike("has_x", both), unlike("has_y", both)

    def combine(state: Any, row: Any) -> dict[str, Any]:
        new = {n: if_(row[first], row[n], state[n]) for n in xs.schema.names}
        new |= {n: if_(row[first], state[n], row[n]) for n in ys.schema.names}
        return new | {
            first: row[first],
            has_x: state[has_x] | row[first],
            has_y: state[has_y] | _not(row[first]),
        }

    start = dict.fromkeys(both.names) | {first: False, has_x: False, has_y: False}
    known: dict[str, Any] = {f.name: f.type for f in both}
    states = scan(merged, start, combine, **known)
    return states.filter(lambda r: is_sent(r[has_x] & r[has_y], r[first])).map(kept(both))


# --- words that mean the same on traced and on plain values ---------------------------------


def _truth(value: Any) -> Any:
    return call("coalesce", value, False)


def _not(value: Any) -> Any:
    return call("not", value)


def _is_null(value: Any) -> Any:
    return call("is_null", value)


def _same(one: Any, other: Any) -> Any:
    if isinstance(one, Traced) or isinstance(other, Traced):
        return call("coalesce", one == other, call("and", _is_null(one), _is_null(other)))
    return one is other or one == other


def _positive(size: int) -> None:
    if size < 1:
        raise UsageError(f"a window needs at least one row, got {size}")


def _known(names: Iterable[str], schema: Schema) -> None:
    for name in names:
        if name not in schema:
            hint = f"columns are: {listing(schema.names)}. {suggest(name, schema.names) or ''}"
            raise UsageError(f'unknown column "{name}"', hint=hint.strip())
