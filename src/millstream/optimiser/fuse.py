"""Two operators in a row become one.

Law: if all that the first gives goes to the second, then one function can do what both do, item
by item, however many items there are between them.

    before  (q) <- Map[b = a + 1](in); (out) <- Filter[b > 2](q);
    after   (out) <- FlatMap[when a + 1 > 2 emit b = a + 1](in);

The paper's rule O-Fuse allows variables if nobody else writes them, and forgets that nobody else
may read them either. Here both must have none: operators with variables are fused where loops are
made, by the plan, which asks that nobody shares them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.functions import Assign, Branch, Filter, FlatMap, Map
from millstream.calculus.graph import Operator, Program, in_dependency_order, rewritten
from millstream.calculus.rename import substitute
from millstream.calculus.terms import Column, Literal, Term, all_of, walk
from millstream.calculus.types import QueueType

#: Branches of one operator are those of the first times those of the second.
_MOST_BRANCHES = 8


def fuse(program: Program) -> Program:
    """Fuse all neighbours that can be; the same program if there are none."""
    types = program.queue_types()
    made: dict[str, Operator] = {}
    instead: dict[int, list[Operator]] = {}
    for op in in_dependency_order(program):
        second = op
        first = made.pop(op.inputs[0], None) if len(op.inputs) == 1 else None
        if first is not None and _refusal(first, op, types) is None:
            second = _fused(first, op, types)
            instead[id(first)], instead[id(op)] = [], [second]
        if _works_row_by_row(second) and len(second.outputs) == 1:
            made[second.outputs[0]] = second
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The operators that stay apart from those before them, and the guard of each."""
    producers, types = program.producers(), program.queue_types()
    for op in program.operators:
        for below in filter(None, map(producers.get, op.inputs)):
            why = _refusal(below, op, types)
            if why is not None:
                yield op, why


def _refusal(first: Operator, second: Operator, types: Mapping[str, QueueType]) -> str | None:
    """Why two operators in a row stay apart; None if they can be fused."""
    for op in (first, second):
        if not _works_row_by_row(op):
            return f"{op.function.title} keeps state, or takes and gives other than row by row"
    ours, theirs = _branches(first, types), _branches(second, types)
    if len(ours) * len(theirs) > _MOST_BRANCHES:
        return f"the one that does both would have {len(ours) * len(theirs)} branches"
    used = Counter(
        t.name for b in theirs for term in _terms(b) for t in walk(term) if isinstance(t, Column)
    )
    if any(used[c.name] > 1 and _computes(c.term) for b in ours for c in b.columns):
        return "what the first computes once would be computed several times"
    return None


def _works_row_by_row(op: Operator) -> bool:
    return isinstance(op.function, (Map, Filter, FlatMap))


def _computes(term: Term) -> bool:
    return not isinstance(term, (Column, Literal))


def _terms(branch: Branch) -> list[Term]:
    return [*([] if branch.when is None else [branch.when]), *(c.term for c in branch.columns)]


def _branches(op: Operator, types: Mapping[str, QueueType]) -> tuple[Branch, ...]:
    """Whatever an operator does, as branches."""
    match op.function:
        case Map(columns):
            return (Branch(None, columns),)
        case Filter(condition):
            fields = types[op.inputs[0]].schema
            return (
                Branch(condition, tuple(Assign(f.name, Column(f.name, f.type)) for f in fields)),
            )
        case FlatMap(branches):
            return branches
        case other:
            raise AssertionError(other)


def _fused(first: Operator, second: Operator, types: Mapping[str, QueueType]) -> Operator:
    branches = [
        _one_after_the_other(ours, theirs)
        for ours in _branches(first, types)
        for theirs in _branches(second, types)
    ]
    function = (
        Map(branches[0].columns)
        if len(branches) == 1 and branches[0].when is None
        else FlatMap(tuple(branches))
    )
    return replace(second, function=function, inputs=first.inputs)


def _one_after_the_other(ours: Branch, theirs: Branch) -> Branch:
    columns = {c.name: c.term for c in ours.columns}
    when = None if theirs.when is None else substitute(theirs.when, columns)
    condition = all_of(t for t in (ours.when, when) if t is not None)
    return Branch(
        condition, tuple(replace(c, term=substitute(c.term, columns)) for c in theirs.columns)
    )
