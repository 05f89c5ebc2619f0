"""Dimensions whose members change: their coarser levels come from versions of members by key.

    Changing = customer: CUSTOMER(customerID) type 2

    type 2: a fact keeps the version of its time     cube(istream(facts [Now] left join versions))
    type 1: facts in the window get the version of now
                                        group(cube by keys left join versions) by what is asked

A stream of versions has the latest of each key; a relation is taken as it is. A fact without a
version has null for its levels, and is counted like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import TIME_OF_CELL, Cubify, Moving, Vertex
from millstream.calculus.functions import (
    Aggregate,
    Assign,
    Dstream,
    Filter,
    Istream,
    Join,
    Latest,
    Map,
    Merge,
    Range,
    Rows,
)
from millstream.calculus.graph import Operator, Program
from millstream.calculus.library.columns import kept, unlike
from millstream.calculus.library.outer_joins import padded, without_partner
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TIME, TIME_COLUMN, Field
from millstream.calculus.wiring import Queue, Wiring
from millstream.errors import Fault
from millstream.source import Span

#: The column of what is told of versions that says whether one is there no longer.
GONE = ".gone"
#: How the measures of cells become those of cells of which they are parts.
COMBINED = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Changing:
    """Levels of a dimension that come from a source of versions, by the key of each fact."""

    source: str
    key: str
    levels: tuple[str, ...]
    keeps_versions: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Cube:
    """A cube as it is asked for, and the dimensions that change."""

    function: Cubify
    changing: tuple[Changing, ...] = ()
    #: The types of the levels that come from elsewhere.
    types: tuple[Field, ...] = ()
    #: Columns of numbers, made of those of integers.
    numbers: tuple[tuple[str, str], ...] = ()

    @property
    def moving(self) -> tuple[Changing, ...]:
        """Those of type 1."""
        return tuple(c for c in self.changing if not c.keeps_versions)


def overlapping(wiring: Wiring, versions: Mapping[str, Queue], cube: Cube) -> list[Fault]:
    """Relations of versions that may have two of one key at a time: a fact would count twice."""
    producers = {q: op.function for op in wiring.operators for q in op.outputs}
    faults = []
    for one in cube.changing:
        queue = versions[one.source]
        made = producers.get(queue.name)
        by = made.by if isinstance(made, (Latest, Rows, Aggregate)) else None
        if queue.type.is_relation and by != (one.key,):
            message = f'"{one.source}" may have two rows of one {one.key} at a time'
            hint = f"declare it with KEY ({one.key}), or as a stream, of which the latest counts"
            faults.append(Fault(message, one.span, hint))
    return faults


def facts_with_versions(
    wiring: Wiring, facts: Queue, versions: Mapping[str, Queue], cube: Cube, origin: Span | None
) -> Queue:
    """Facts with the levels that they keep."""
    for one in cube.changing:
        if one.keeps_versions:
            facts = _of_their_time(wiring, facts, versions[one.source], one, origin)
    return facts


def facts_with_numbers(wiring: Wiring, facts: Queue, cube: Cube, origin: Span | None) -> Queue:
    """Facts with what is measured of integers as if they were numbers."""
    if not cube.numbers:
        return facts
    more = tuple(
        Assign(new, Call("number", (facts.column(old),), NUMBER)) for new, old in cube.numbers
    )
    columns = (*kept(facts.schema), *more)
    return wiring.add(Map(columns), facts, name="facts_with_numbers", origin=origin)


def by_keys(cube: Cube) -> Cubify:
    """The cube that runs: of levels that move it has the keys."""
    keys = {level: one.key for one in cube.moving for level in one.levels}

    def vertex(given: Vertex) -> Vertex:
        names = dict.fromkeys(keys.get(a, a) for a in given.attributes)
        return replace(given, attributes=tuple(names))

    made = cube.function
    return replace(
        made,
        moving=tuple(_moving(made, one, cube.types) for one in cube.moving),
        dimensions=tuple(tuple(a for a in d if a not in keys) for d in made.dimensions),
        kept=tuple(dict.fromkeys(map(vertex, made.kept))),
        outputs=tuple(map(vertex, made.outputs)),
    )


def _moving(cube: Cubify, changing: Changing, types: tuple[Field, ...]) -> Moving:
    place = next(n for n, levels in enumerate(cube.dimensions) if levels[0] == changing.key)
    levels = tuple(f for f in types if f.name in changing.levels)
    return Moving(place, changing.key, levels, cube.dimensions[place])


def with_versions_at_hand(
    wiring: Wiring, facts: Queue, versions: Mapping[str, Queue], cube: Cube, origin: Span | None
) -> Queue:
    """The facts, and beside them what is told of versions, of which nothing comes through.

    So a program has what whoever asks a cube needs, also if no output does: see `told_of`.
    """
    inputs = [facts]
    for one in cube.moving:
        name = f"{one.source}_told"
        versions_told = _told(wiring, versions[one.source], one, name, origin)
        none = wiring.add(Filter(Literal(False, BOOLEAN)), versions_told, name=name, origin=origin)
        nulls = tuple(Assign(f.name, Literal(None, f.type)) for f in facts.schema)
        inputs.append(wiring.add(Map(nulls), none, name=name, origin=origin))
    return (
        facts
        if len(inputs) == 1
        else wiring.add(Merge(), *inputs, name="facts_and_versions", origin=origin)
    )


def _told(
    wiring: Wiring, versions: Queue, changing: Changing, name: str, origin: Span | None
) -> Queue:
    """A stream of keys with their levels as they come, and of a relation also as they go."""
    ways = [(Istream(), False), (Dstream(), True)] if versions.type.is_relation else [(None, False)]
    made = []
    for function, is_gone in ways:
        came = versions
        if function is not None:
            came = wiring.add(function, versions, name=name, origin=origin)
        columns = (*(Assign(n, came.column(n)) for n in (changing.key, *changing.levels)),
                   Assign(GONE, Literal(is_gone, BOOLEAN)))  # fmt: skip
        made.append(wiring.add(Map(columns), came, name=name, origin=origin))
    return made[0] if len(made) == 1 else wiring.add(Merge(), *made, name=name, origin=origin)


def told_of(program: Program, cube: Operator) -> tuple[str, tuple[str, ...]]:
    """The queue of the facts of a cube, and those of what is told of its versions."""
    makers = program.producers()
    (given,) = cube.inputs
    facts, *others = makers[given].inputs
    filters = [makers[makers[queue].inputs[0]] for queue in others]
    return facts, tuple(one.inputs[0] for one in filters)


def moved(
    wiring: Wiring, cells: Queue, vertex: Vertex, versions: Mapping[str, Queue], cube: Cube,
    name: str, origin: Span | None,
) -> Queue:  # fmt: skip
    """The cells of a vertex, of those by keys and of the versions of now."""
    is_moved = False
    for one in cube.moving:
        if wanted := tuple(a for a in one.levels if a in vertex.attributes):
            source, by_key = versions[one.source], f"{name}_by_key"
            cells = _joined(wiring, cells, source, one, wanted, by_key, origin)
            is_moved = True
    if not is_moved:
        return cells
    measures = cube.function.measures
    sums = tuple(Aggregation(m.name, COMBINED[m.function], cells.column(m.name)) for m in measures)
    together = Aggregate((*vertex.attributes, TIME_OF_CELL), sums)
    made = wiring.add(together, cells, name=f"{name}_moved", origin=origin)
    counts = {m.name for m in measures if m.function == "count"}
    # Of cells that are there a count is never null.
    columns = tuple(
        Assign(f.name, Call("coalesce", (Column(f.name, f.type), Literal(0, INTEGER)), INTEGER)
               if f.name in counts else Column(f.name, f.type))
        for f in made.schema
    )  # fmt: skip
    return wiring.add(Map(columns), made, name=f"{name}_counted", origin=origin)


def _of_their_time(
    wiring: Wiring, facts: Queue, versions: Queue, changing: Changing, origin: Span | None
) -> Queue:
    at = unlike("at", facts.schema)
    name = f"{changing.source}_versions"
    # With their times equal facts of two instants differ, and none is taken for another.
    stamp = (*kept(facts.schema), Assign(at, Column(TIME_COLUMN, TIME)))
    stamped = wiring.add(Map(stamp), facts, name=name, origin=origin)
    present = wiring.add(Range(0), stamped, name=name, origin=origin)
    joined = _joined(wiring, present, versions, changing, changing.levels, name, origin)
    came = wiring.add(Istream(), joined, name=name, origin=origin)
    columns = {n: n for n in came.schema.names if n != at}
    return wiring.columns(came, columns, name, origin)


def _joined(
    wiring: Wiring, facts: Queue, versions: Queue, changing: Changing, levels: tuple[str, ...],
    name: str, origin: Span | None,
) -> Queue:  # fmt: skip
    """Rows with some levels of the version of their key, or with nulls."""
    if not versions.type.is_relation:
        latest = Rows(1, (changing.key,))
        versions = wiring.add(latest, versions, name=f"{changing.source}_now", origin=origin)
    key = unlike(changing.key, facts.schema)
    known = wiring.columns(
        versions, {key: changing.key} | {n: n for n in levels}, f"{changing.source}_levels", origin
    )
    on = ((changing.key, key),)
    pairs = wiring.add(Join(on), facts, known, name=name, origin=origin)
    wanted = (*facts.schema.names, *levels)
    pairs = wiring.columns(pairs, {n: n for n in wanted}, name, origin)
    alone = without_partner(
        wiring, facts, known, on, padded(pairs.schema, facts.schema), name=name, origin=origin
    )
    return wiring.add(Merge(), pairs, alone, name=name, origin=origin)
