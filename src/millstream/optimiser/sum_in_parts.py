"""A total over a window that slides is summed in parts first, and so are those of few groups.

Law: a bag is the sum of its parts, whichever way it is cut. Numbers, sums of integers,
smallest and largest values of the parts give those of the whole; sums of floating-point
numbers would be rounded twice, so they stay whole. A part that has become empty has no row,
so the number of rows of nothing at all must be said to be none.

    before  (w) <- Range[1 h; slide 1 min](s); (out) <- Aggregate[n = count()](w);
    after   (s.parts) <- Map[..., part = integer(_time) % 31](s);
            (w) <- Range[1 h; slide 1 min](s.parts);
            (w.sums) <- Aggregate[by part; n = count()](w);
            (out.sums) <- Aggregate[n = sum(n)](w.sums); (out) <- Map[n = coalesce(n, 0)](out.sums);

All rows of a total must come together in one place. With parts only their sums must, and
those of a window that slides change only when it does, not with every row. Without a slide
every row would change a sum, and nothing would be won. The totals of groups are by their keys in
many places already, unless the groups are few: as many as truth values, or as a sample shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.estimates import NOTHING, Measures
from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Filter,
    Map,
    Range,
)
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import INTEGER, NUMBER, TIME, TIME_COLUMN, Kind, Schema

#: More than there are cores in a machine, and prime, so that no rhythm of times falls on a few.
PARTS = 31
#: Of more groups each can have a place of its own.
FEW = 16
#: True, false and null.
_TRUTHS = 3
#: How the results of parts become that of the whole.
_COMBINED = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def sum_in_parts(program: Program, measures: Measures = NOTHING) -> Program:
    """Cut all totals that can be; the same program if there are none."""
    instead: dict[int, list[Operator]] = {}
    for op, function, path in _totals_of_windows(program):
        if _refusal(function, path, _groups(program, op, measures)) is None:
            instead |= _cut(program, op, function, path)
    return rewritten(program, instead)


def refusals(program: Program, measures: Measures = NOTHING) -> Iterator[tuple[Operator, str]]:
    """The totals over windows that stay whole, and the guard of each."""
    for op, function, path in _totals_of_windows(program):
        why = _refusal(function, path, _groups(program, op, measures))
        if why is not None:
            yield op, why


def _totals_of_windows(program: Program) -> Iterator[tuple[Operator, Aggregate, list[Operator]]]:
    """The totals of all rows of a window, each with its path from there."""
    for op in program.operators:
        if isinstance(op.function, Aggregate):
            path = _path(program, op)
            if path is not None and not _is_of_parts(program, op.function, path):
                yield op, op.function, path


def _is_of_parts(program: Program, function: Aggregate, path: list[Operator]) -> bool:
    """Whether these are sums of parts already, or groups of a window that does not slide."""
    window = path[0].function
    assert isinstance(window, Range)
    if not function.by:
        return False
    before = program.producers().get(path[0].inputs[0])
    numbered = before.function if before is not None else None
    return window.slide is None or (
        isinstance(numbered, Map) and numbered.columns[-1] == Assign(function.by[-1], _number())
    )


def _groups(program: Program, op: Operator, measures: Measures) -> int | None:
    """How many groups a total has at most; None if nobody knows."""
    assert isinstance(op.function, Aggregate)
    schema = program.queue_types()[op.inputs[0]].schema
    if all(schema[name].kind is Kind.BOOLEAN for name in op.function.by):
        return int(_TRUTHS ** len(op.function.by))
    return measures.groups.get(op.function)


def _refusal(function: Aggregate, path: list[Operator], groups: int | None) -> str | None:
    """Why a total stays whole; None if it can be cut."""
    window = path[0].function
    assert isinstance(window, Range)
    if window.slide is None:
        return "its window does not slide, so every row would change a part and the total too"
    if groups is None or groups > FEW:
        many = "nobody knows how many" if groups is None else f"{groups}"
        return f"its groups, {many}, can each have a place of its own; parts are for {FEW} at most"
    rounded = next(
        (aggregation for aggregation in function.aggregations if not _is_exact(aggregation)), None
    )
    if rounded is None:
        return None
    return f"{rounded.name} is a {rounded.function} of numbers, which parts would round otherwise"


def _is_exact(one: Aggregation) -> bool:
    if one.function in ("count", "min", "max"):
        return True
    return one.term is not None and one.term.type.kind in (Kind.INTEGER, Kind.DURATION)


def _path(program: Program, total: Operator) -> list[Operator] | None:
    """From a window to what is totalled, if only rows are chosen and made between."""
    producers = program.producers()
    path: list[Operator] = []
    queue = total.inputs[0]
    while (op := producers.get(queue)) is not None and len(op.outputs) == 1:
        path.insert(0, op)
        if isinstance(op.function, Range):
            return path
        if not isinstance(op.function, (Filter, Map)):
            return None
        queue = op.inputs[0]
    return None


def _cut(
    program: Program, total: Operator, function: Aggregate, path: list[Operator]
) -> dict[int, list[Operator]]:
    """What comes instead of the total and of what lies on its path, which no other reads."""
    window = path[0]
    stream = window.inputs[0]
    types = program.queue_types()
    part = _fresh("part", [types[q].schema for op in (*path, total) for q in op.inputs])
    columns = tuple(Assign(f.name, Column(f.name, f.type)) for f in types[stream].schema)
    numbered = Operator(
        Map((*columns, Assign(part, _number()))),
        (stream,),
        (f"{stream}.parts",),
        origin=window.origin,
    )
    changed: dict[int, list[Operator]] = {
        id(window): [numbered, replace(window, inputs=numbered.outputs)],
        id(total): _totals(total, function, part, types[total.inputs[0]].schema),
    }
    for op in path[1:]:
        if isinstance(op.function, Map):
            own = Assign(part, Column(part, INTEGER))
            changed[id(op)] = [replace(op, function=Map((*op.function.columns, own)))]
    return changed


def _number() -> Term:
    """The number of the part that a row belongs to."""
    when = Call("integer", (Column(TIME_COLUMN, TIME),), INTEGER)
    return Call("%", (when, Literal(PARTS, INTEGER)), INTEGER)


def _totals(total: Operator, function: Aggregate, part: str, schema: Schema) -> list[Operator]:
    """The sums of parts, the sums of these, and the results made of them."""
    small: list[Aggregation] = []
    large: list[Aggregation] = []
    results = [Assign(name, Column(name, schema[name])) for name in function.by]
    for aggregation in function.aggregations:
        kept = _kept(aggregation)
        for name, aggregate in kept:
            small.append(replace(aggregation, name=name, function=aggregate))
            value = Column(name, small[-1].result_type())
            large.append(Aggregation(name, _COMBINED[aggregate], value))
        parts = [Column(a.name, a.result_type()) for a in large[-len(kept) :]]
        results.append(Assign(aggregation.name, _result(aggregation, parts)))
    (source,), (out,) = total.inputs, total.outputs
    (variable,) = total.reads
    sums, together = f"{source}.sums", f"{out}.sums"
    state = (f"{variable}.parts",)
    return [
        Operator(
            Aggregate((*function.by, part), tuple(small)),
            (source,),
            (sums,),
            state,
            state,
            total.origin,
        ),
        replace(
            total,
            function=Aggregate(function.by, tuple(large)),
            inputs=(sums,),
            outputs=(together,),
        ),
        Operator(Map(tuple(results)), (together,), (out,), origin=total.origin),
    ]


def _kept(one: Aggregation) -> list[tuple[str, str]]:
    """What is kept of each part for an aggregate: names and functions."""
    if one.function == "avg":
        return [(f"{one.name}.sum", "sum"), (f"{one.name}.count", "count")]
    return [(one.name, one.function)]


def _result(one: Aggregation, kept: list[Column]) -> Term:
    if one.function == "avg":
        total, count = (Call("number", (column,), NUMBER) for column in kept)
        return Call("/", (total, count), NUMBER)
    if one.function == "count":
        return Call("coalesce", (kept[0], Literal(0, INTEGER)), INTEGER)
    return kept[0]


def _fresh(wanted: str, schemas: list[Schema]) -> str:
    taken = {name for schema in schemas for name in schema.names}
    return next(name for n in range(len(taken) + 1)
                if (name := f"{wanted}{n or ''}") not in taken)  # fmt: skip
