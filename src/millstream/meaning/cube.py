"""Cubify: at every instant at which it moves, its window followed by one aggregate per vertex."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.functions import Aggregate
from millstream.calculus.types import INT64_MAX, TIME, Field, Row, Schema
from millstream.meaning.firing import Context, Result, State, fire, initial_state
from millstream.meaning.instants import advanced
from millstream.meaning.items import Bag, Entry, Item, bag_with, changes
from millstream.meaning.relations import aggregated
from millstream.meaning.waiting import Side, heard, known_until, marks_due

#: The column with the time at which a cell's part of time begins, unlike any of the stream.
_PART = ".part"


@initial_state.register
def _start(function: Cubify, inputs: int) -> State:
    """What waits and what has come; and of each further vertex that is kept its cells."""
    return (Side(), *({} for _ in function.kept[1:]))


@fire.register
def _cubify(function: Cubify, entry: Entry, index: int, state: State, context: Context) -> Result:
    before = [state[0]]
    sides = heard(before, index, entry)
    now = known_until(sides)
    sent: list[list[Entry]] = [[] for _ in function.outputs]
    schema = context.input_types[0].schema
    cells = state[1:]
    if now is not None and now != known_until(before):
        for instant in sorted(_instants(function, sides[0], before[0].known_until, now)):
            later = advanced(sides[0], instant)
            for number, vertex in enumerate(function.outputs):
                sent[number] += _moved(function, vertex, sides[0], later, instant, context)
            sides = [later]
        sides = [advanced(sides[0], now)]
        present = _window(function, sides[0], now, is_live=True)
        cells = tuple(_cells(function, v, present, schema, {}) for v in function.kept[1:])
    mark, sides = marks_due(before, sides, entry)
    return Result(tuple((*queue, *mark) for queue in sent), (*sides, *cells))


def _instants(function: Cubify, side: Side, previous: int | None, now: int) -> set[int]:
    """When a row comes and when it leaves, if that is after the previous mark, up to this one."""
    grain = function.grain
    moves: set[int] = set()
    for time in {i.time for i in (*side.history, *side.pending)}:
        partition = grain.index(time)
        moves |= {time if function.is_live else grain.start(partition + 1)}
        moves |= {grain.start(partition + function.window + 1)}
    return {m for m in moves if (previous is None or m > previous) and m <= min(now, INT64_MAX)}


def _moved(
    function: Cubify, vertex: Vertex, before: Side, after: Side, instant: int, context: Context
) -> list[Item]:
    """What an instant changes of a vertex, beside what it was the microsecond before."""
    schema = context.input_types[0].schema
    faulty: dict[Row, Counter[str]] = {}
    was = _window(function, before, instant - 1, is_live=function.is_live)
    now = _window(function, after, instant, is_live=function.is_live)
    old = _cells(function, vertex, was, schema, {})
    sent = changes(instant, old, _cells(function, vertex, now, schema, faulty))
    for item in sent:
        if item.weight > 0:
            context.faults.update(faulty.get(item.row, ()))
    return sent


def _window(function: Cubify, side: Side, instant: int, *, is_live: bool) -> list[Item]:
    """The rows of the partitions that are seen at an instant, the active one last."""
    active = function.grain.index(instant)
    last = active if is_live else active - 1
    first = active - function.window
    return [i for i in side.history if first <= function.grain.index(i.time) <= last]


def _cells(
    function: Cubify,
    vertex: Vertex,
    rows: Iterable[Item],
    schema: Schema,
    faulty: dict[Row, Counter[str]],
) -> Bag:
    """One row for every group of a vertex that has rows."""
    grain = vertex.grain
    parted = (Item(i.time, (*i.row, grain.start(grain.index(i.time)))) for i in rows)
    together = Aggregate((*vertex.attributes, _PART), function.measures)
    with_part = Schema((*schema.fields, Field(_PART, TIME)))
    return aggregated(together, Side(bag=bag_with({}, parted)), with_part, faulty)
