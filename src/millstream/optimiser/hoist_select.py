"""Selections move towards the inputs.

Law: a selection commutes with an operator if it reads only columns that the operator
forwards unchanged, and rows on which it may decide differently never meet in the
operator's state. They never meet if the operator has no state, if any partitioning of
its input will do (windows by time, merges), or if the selection reads only the key.

    before  (q) <- Range[5 min](trades); (out) <- Filter[symbol == "IBM"](q);
    after   (q) <- Filter[symbol == "IBM"](trades); (out) <- Range[5 min](q);

The paper's rule O-HoistSelect is the case of a stateless operator. A column that a Map
only renames goes by its old name before it:

    before  (q) <- Map[sym = symbol](trades); (out) <- Filter[sym == "IBM"](q);
    after   (q) <- Filter[symbol == "IBM"](trades); (out) <- Map[sym = symbol](q);

Of a condition `a and b` the half that can move moves:

    before  (q) <- Join[on k](l, r); (out) <- Filter[x > 1 and z > 2 and x < z](q);
    after   (a) <- Filter[x > 1](l); (b) <- Filter[z > 2](r); (q) <- Join[on k](a, b);
            (out) <- Filter[x < z](q);

One that can move passes others that cannot, for selections commute.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.functions import Filter, Join, Lookup, Map
from millstream.calculus.graph import Operator, Program, in_dependency_order, rewritten
from millstream.calculus.rename import substitute
from millstream.calculus.terms import Column, all_of, columns_read, conjuncts
from millstream.calculus.types import TIME_COLUMN, QueueType


def hoist_select(program: Program) -> Program:
    """Hoist every selection as far as it can be; the same program if none can."""
    producers = dict(program.producers())
    types = dict(program.queue_types())
    shared = program.shared_variables()
    instead: dict[int, list[Operator]] = {}
    numbers = itertools.count(1)
    # Those next to the inputs first: they make way for the others.
    waiting = [op for op in reversed(in_dependency_order(program)) if _is_select(op)]
    while waiting:
        select = waiting.pop()
        others, below = _up_to_work(select, producers)
        if below is None:
            continue
        inputs = tuple(types[q] for q in below.inputs)
        selects = _hoisted(select, below, inputs, shared)
        if isinstance(selects, str):
            halves = _halves(select, below, inputs, shared, _name(others, numbers))
            instead |= {id(select): list(halves)} if halves else {}
            if others:  # else the first moves on at once, and what it passes takes its name
                producers.update({half.outputs[0]: half for half in halves})
                types.update({half.outputs[0]: types[select.inputs[0]] for half in halves})
            waiting += reversed(halves)
            continue
        if others:
            changed = _passed(select, others)
            instead |= {id(old): [new] for old, new in zip((select, *others), changed, strict=True)}
            producers.update({op.outputs[0]: op for op in changed})
            waiting.append(changed[0])
            continue
        moved = _behind(below, selects, select.outputs)
        instead[id(select)], instead[id(below)] = [], [*selects, moved]
        for op in (*selects, moved):
            producers.update(dict.fromkeys(op.outputs, op))
        types.update({s.outputs[0]: types[s.inputs[0]] for s in selects})
        waiting += selects
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The selections that stay behind other operators, and the guard that keeps each there."""
    producers, types = program.producers(), program.queue_types()
    for select in filter(_is_select, program.operators):
        below = producers.get(select.inputs[0])
        if below is not None and not _is_select(below):
            inputs = tuple(types[q] for q in below.inputs)
            selects = _hoisted(select, below, inputs, program.shared_variables())
            if isinstance(selects, str):
                yield select, selects


def _is_select(op: Operator) -> bool:
    return isinstance(op.function, Filter)


def _up_to_work(
    select: Operator, producers: Mapping[str, Operator]
) -> tuple[list[Operator], Operator | None]:
    """The selections before a selection, nearest first, and what comes before them."""
    others: list[Operator] = []
    below = producers.get(select.inputs[0])
    while below is not None and _is_select(below):
        others.append(below)
        below = producers.get(below.inputs[0])
    return others, below


def _name(others: list[Operator], numbers: Iterator[int]) -> str:
    """What is between the halves of a selection: a name that stays if others come before it."""
    return f"first{next(numbers)}" if others else "first"


def _passed(select: Operator, others: list[Operator]) -> list[Operator]:
    """A selection before others instead of behind them, and these: each takes the next place.

    Selections commute, so one that can go on need not wait for others that cannot.
    """
    row = [select, *others]
    places = [(op.inputs, op.outputs) for op in row]
    return [
        replace(op, inputs=inputs, outputs=outputs)
        for op, (inputs, outputs) in zip(row, (places[-1], *places[:-1]), strict=True)
    ]


def _hoisted(
    select: Operator, below: Operator, inputs: tuple[QueueType, ...], shared: frozenset[str]
) -> list[Operator] | str:
    """The selections to be made before an operator instead of behind it, or why there are none."""
    assert isinstance(select.function, Filter)
    reads = columns_read(select.function.condition)
    if not shared.isdisjoint(below.variables):
        return f"others that share a variable of {below.id} would see that rows are missing"
    if not reads:
        return "a constant says nothing about rows"
    if TIME_COLUMN in reads:
        return "it reads the time of rows, which changes on the way"
    if len(below.outputs) != 1:
        return f"other readers of what {below.id} gives want all rows"
    old = _old_names(below, reads)
    if old is not None:
        if any(term.name != name for name, term in old.items()):
            condition = substitute(select.function.condition, dict(old))
            select = replace(select, function=Filter(condition))
        chosen = [0]
    else:
        chosen = _inputs_to_filter(below, inputs, reads)
    if not chosen:
        return _why_not(below, inputs, reads)
    queues = [below.inputs[index] for index in chosen]
    return [replace(select, inputs=(q,), outputs=(f"{q}.selected",)) for q in queues]


def _why_not(below: Operator, inputs: tuple[QueueType, ...], reads: frozenset[str]) -> str:
    """No input of an operator can be filtered instead of what it gives."""
    kept = [below.function.facts(inputs, index).forwards for index in range(len(inputs))]
    computed = sorted(reads - frozenset().union(*kept))
    if computed:
        return f"{', '.join(computed)} is only known behind {below.id}"
    if not any(reads <= one for one in kept):
        return f"it reads columns of several inputs of {below.id}"
    return f"{below.id} keeps in one state what is selected and what is not"


def _halves(
    select: Operator, below: Operator, inputs: tuple[QueueType, ...], shared: frozenset[str],
    name: str,
) -> tuple[Operator, ...]:  # fmt: skip
    """A selection as two in a row, of which the first can move; none if no part of it can."""
    assert isinstance(select.function, Filter)
    parts = conjuncts(select.function.condition)
    places = []
    for part in parts:
        selects = _hoisted(replace(select, function=Filter(part)), below, inputs, shared)
        places.append(() if isinstance(selects, str) else tuple(s.inputs for s in selects))
    place = next(filter(None, places), ())
    moving = all_of(p for p, where in zip(parts, places, strict=True) if where == place)
    staying = all_of(p for p, where in zip(parts, places, strict=True) if where != place)
    if not place or moving is None or staying is None:
        return ()
    between = (f"{select.outputs[0]}.{name}",)
    first = replace(select, function=Filter(moving), outputs=between)
    return first, replace(select, function=Filter(staying), inputs=between)


def _behind(below: Operator, selects: list[Operator], outputs: tuple[str, ...]) -> Operator:
    """An operator that reads what was selected, and gives what was selected of its output."""
    selected = {s.inputs[0]: s.outputs[0] for s in selects}
    return replace(below, inputs=tuple(selected.get(q, q) for q in below.inputs), outputs=outputs)


def _old_names(below: Operator, reads: frozenset[str]) -> dict[str, Column] | None:
    """What a Map makes columns of, if it takes each of them as it is, under whatever name."""
    if not isinstance(below.function, Map):
        return None
    old: dict[str, Column] = {}
    for column in below.function.columns:
        if column.name in reads:
            if not isinstance(column.term, Column) or column.term.name == TIME_COLUMN:
                return None
            old[column.name] = column.term
    return old


def _inputs_to_filter(
    below: Operator, inputs: tuple[QueueType, ...], reads: frozenset[str]
) -> list[int]:
    """The inputs that must be filtered instead, or none if the law does not apply."""
    fits = []
    for index in range(len(inputs)):
        facts = below.function.facts(inputs, index)
        never_meet = facts.is_stateless or facts.key is None or reads <= frozenset(facts.key)
        # A join is linear in each input: selecting pairs by one half is selecting halves.
        # So is a lookup in its first input, the only one whose columns leave.
        is_linear = isinstance(below.function, (Join, Lookup))
        fits.append(reads <= facts.forwards and (never_meet or is_linear))
    if isinstance(below.function, (Join, Lookup)):
        return [fits.index(True)] if any(fits) else []
    return list(range(len(inputs))) if all(fits) else []
