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

So does what goes through cells of a sheet, if the sheet keeps nothing or keeps it by that
column; an infinity leaves as null, and a cell that shows an empty one as zero (`sheet_terms`):

    before  (q) <- Sheet[by symbol; sym = A3, ...](trades); (out) <- Filter[sym == "IBM"](q);
    after   (q) <- Filter[symbol == "IBM"](trades); (out) <- Sheet[by symbol; sym = A3, ...](q);

A sheet with several inputs may send a tuple before anything has come to the cell with the key; if
the condition is not true of null, that is all that is left to ask:

    before  (q) <- Sheet[by s, sym; sym = A3, ...](trades, quotes);
            (out) <- Filter[sym == "IBM"](q);
    after   (a) <- Filter[s == "IBM"](trades); (b) <- Filter[sym == "IBM"](quotes);
            (q) <- Sheet[by s, sym; sym = A3, ...](a, b); (out) <- Filter[not is_null(sym)](q);

Of a condition `a and b` the half that can move moves:

    before  (q) <- Join[on k](l, r); (out) <- Filter[x > 1 and z > 2 and x < z](q);
    after   (a) <- Filter[x > 1](l); (b) <- Filter[z > 2](r); (q) <- Join[on k](a, b);
            (out) <- Filter[x < z](q);

One that meets another on its way moves on together with it, or without it if that one stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.base import Facts
from millstream.calculus.functions import Filter, Join, Lookup, Map
from millstream.calculus.graph import Operator, Program, in_dependency_order, rewritten
from millstream.calculus.lineage import carried
from millstream.calculus.rename import substitute
from millstream.calculus.sheet_terms import carried_keys, carried_terms
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import (
    Call,
    Column,
    Literal,
    Term,
    all_of,
    columns_read,
    conjuncts,
    is_known,
    walk,
)
from millstream.calculus.types import TIME_COLUMN, QueueType
from millstream.optimiser.fold_constants import folded


def hoist_select(program: Program) -> Program:
    """Hoist every selection as far as it can be; the same program if none can."""
    producers = dict(program.producers())
    types = dict(program.queue_types())
    shared = program.shared_variables()
    instead: dict[int, list[Operator]] = {}
    #: Selections that have moved, and those that have been looked at.
    moved_ones: set[int] = set()
    tried: set[int] = set()
    # Those next to the outputs first: they take those along that they meet on their way.
    waiting = [op for op in in_dependency_order(program) if _is_select(op)]
    while waiting:
        select = waiting.pop()
        below = producers.get(select.inputs[0])
        if id(select) in instead:
            continue
        tried.add(id(select))
        if below is None:
            continue
        if _is_select(below):
            if id(select) not in moved_ones and id(below) not in tried:
                waiting += [select, below]  # it may make way
            elif id(select) in moved_ones:
                both = _met(below, select)
                instead[id(select)], instead[id(below)] = [], [both]
                producers[both.outputs[0]] = both
                moved_ones.add(id(both))
                waiting.append(both)
            continue
        inputs = tuple(types[q] for q in below.inputs)
        parted = _parted(select, below, inputs, shared)
        if parted is None:
            halves = _halves(select, below, inputs, shared)
            if halves:
                instead[id(select)] = list(halves)
                producers[select.outputs[0]] = halves[1]
                waiting += reversed(halves)
            continue
        selects, rest = parted
        moved = _behind(below, selects, rest[0].inputs if rest else select.outputs)
        instead[id(select)], instead[id(below)] = rest, [*selects, moved]
        for op in (*selects, moved, *rest):
            producers.update(dict.fromkeys(op.outputs, op))
        types.update({s.outputs[0]: types[s.inputs[0]] for s in selects})
        moved_ones.update(map(id, selects))
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


def _met(first: Operator, second: Operator) -> Operator:
    """A selection with another that has come to stand behind it, as one that can move on."""
    assert isinstance(first.function, Filter)
    assert isinstance(second.function, Filter)
    both = all_of((first.function.condition, second.function.condition))
    assert both is not None
    return replace(second, function=Filter(both), inputs=first.inputs)


def _parted(
    select: Operator, below: Operator, inputs: tuple[QueueType, ...], shared: frozenset[str]
) -> tuple[list[Operator], list[Operator]] | None:
    """The selections to be made before an operator, and what is left to ask behind it."""
    selects = _hoisted(select, below, inputs, shared)
    if not isinstance(selects, str):
        return selects, []
    return _by_keys(select, below, inputs, shared)


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
    old = _old_names(below, inputs, reads)
    if old is not None:
        if any(not isinstance(t, Column) or t.name != name for name, t in old.items()):
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
    kept = [carried(below, inputs, index) for index in range(len(inputs))]
    computed = sorted(reads.difference(*kept))
    if computed:
        return f"{', '.join(computed)} is only known behind {below.id}"
    if not any(reads <= one.keys() for one in kept):
        return f"it reads columns of several inputs of {below.id}"
    return f"{below.id} keeps in one state what is selected and what is not"


def _halves(
    select: Operator, below: Operator, inputs: tuple[QueueType, ...], shared: frozenset[str]
) -> tuple[Operator, ...]:
    """A selection as two in a row, of which the first can move; none if no part of it can."""
    assert isinstance(select.function, Filter)
    parts = conjuncts(select.function.condition)
    places = []
    #: Where a part can go depends on what it reads.
    known: dict[frozenset[str], tuple[tuple[str, ...], ...]] = {}
    for part in parts:
        reads = columns_read(part)
        if reads not in known:
            selects = _hoisted(replace(select, function=Filter(part)), below, inputs, shared)
            known[reads] = () if isinstance(selects, str) else tuple(s.inputs for s in selects)
        places.append(known[reads])
    place = next(filter(None, places), ())
    moving = all_of(p for p, where in zip(parts, places, strict=True) if where == place)
    staying = all_of(p for p, where in zip(parts, places, strict=True) if where != place)
    if not place or moving is None or staying is None:
        return ()
    between = (f"{select.outputs[0]}.first",)
    first = replace(select, function=Filter(moving), outputs=between)
    return first, replace(select, function=Filter(staying), inputs=between)


def _by_keys(
    select: Operator, below: Operator, inputs: tuple[QueueType, ...], shared: frozenset[str]
) -> tuple[list[Operator], list[Operator]] | None:
    """Selections by the key of a sheet before all its inputs, and what is left to ask behind it."""
    assert isinstance(select.function, Filter)
    if not isinstance(below.function, Sheet) or len(inputs) == 1:
        return None
    if len(below.outputs) != 1 or not shared.isdisjoint(below.variables):
        return None
    keys = [carried_keys(below.function, inputs, index) for index in range(len(inputs))]
    parts = conjuncts(select.function.condition)
    moving = [p for p in parts if _is_of_one(p, frozenset(keys[0])) and not _asks_for_nulls(p)]
    if not moving:
        return None
    asked = dict.fromkeys(t for p in moving for t in walk(p) if isinstance(t, Column))
    staying = dict.fromkeys([is_known(column) for column in asked])
    staying |= dict.fromkeys(p for p in parts if p not in moving)
    before, behind = all_of(moving), all_of(staying)
    assert before is not None
    assert behind is not None
    selects = [
        Operator(Filter(substitute(before, terms)), (q,), (f"{q}.selected",), origin=select.origin)
        for q, terms in zip(below.inputs, keys, strict=True)
    ]
    rest = replace(select, function=Filter(behind), inputs=(f"{select.outputs[0]}.selected",))
    return selects, [rest]


def _is_of_one(condition: Term, names: frozenset[str]) -> bool:
    """Whether a condition reads one of some columns: of several only one may be null."""
    reads = columns_read(condition)
    return len(reads) == 1 and reads <= names


def _asks_for_nulls(condition: Term) -> bool:
    """Whether a condition may hold where its column is null, or asks only whether it is."""
    match condition:
        case Call("not", (Call("is_null", (Column(),)),)):
            return True
    nulls: dict[str, Term] = {
        t.name: Literal(None, t.type) for t in walk(condition) if isinstance(t, Column)
    }
    value = folded(substitute(condition, nulls))
    return not isinstance(value, Literal) or value.value is True


def _behind(below: Operator, selects: list[Operator], outputs: tuple[str, ...]) -> Operator:
    """An operator that reads what was selected, and gives what was selected of its output."""
    selected = {s.inputs[0]: s.outputs[0] for s in selects}
    return replace(below, inputs=tuple(selected.get(q, q) for q in below.inputs), outputs=outputs)


def _old_names(
    below: Operator, inputs: tuple[QueueType, ...], reads: frozenset[str]
) -> Mapping[str, Term] | None:
    """What a Map or a sheet takes as it is, under whatever name, of the columns that are read."""
    if isinstance(below.function, Sheet):
        terms = carried_terms(below.function, inputs)
        if not reads <= terms.keys():
            return None
        old_terms = {name: terms[name] for name in reads}
        asked = frozenset[str]().union(*map(columns_read, old_terms.values()))
        return old_terms if _never_meet(below.function.facts(inputs, 0), asked) else None
    if not isinstance(below.function, Map):
        return None
    names = carried(below, inputs, 0)
    if not all(names.get(name, TIME_COLUMN) != TIME_COLUMN for name in reads):
        return None
    facts = below.function.facts(inputs, 0)
    old = {name: names[name] for name in reads}
    if not _never_meet(facts, frozenset(old.values())):
        return None
    return {name: Column(before, inputs[0].schema[before]) for name, before in old.items()}


def _never_meet(facts: Facts, reads: frozenset[str]) -> bool:
    """Whether rows that differ in some columns have no state in common."""
    return facts.is_stateless or facts.key is None or reads <= frozenset(facts.key)


def _inputs_to_filter(
    below: Operator, inputs: tuple[QueueType, ...], reads: frozenset[str]
) -> list[int]:
    """The inputs that must be filtered instead, or none if the law does not apply."""
    fits = []
    for index in range(len(inputs)):
        facts = below.function.facts(inputs, index)
        # A join is linear in each input: selecting pairs by one half is selecting halves.
        # So is a lookup in its first input, the only one whose columns leave.
        is_linear = isinstance(below.function, (Join, Lookup))
        fits.append(reads <= facts.forwards and (is_linear or _never_meet(facts, reads)))
    if isinstance(below.function, (Join, Lookup)):
        return [fits.index(True)] if any(fits) else []
    return list(range(len(inputs))) if all(fits) else []
