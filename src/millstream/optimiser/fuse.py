"""Two operators in a row become one.

Law: if all that the first gives goes to the second, then one function can do what both do, item
by item, however many items there are between them.

    before  (q) <- Map[b = a + 1](in); (out) <- Filter[b > 2](q);
    after   (out) <- FlatMap[when a + 1 > 2 emit b = a + 1](in);

Folds keep their variables, and both are written by one:

    before  (q, $v) <- Fold[set $v.n = $v.n + x; emit n = $v.n](in, $v);
            (out, $w) <- Fold[set $w.s = $w.s + 1.0; emit n, s = $w.s](q, $w);
    after   (out, $v, $w) <- Fold[set $v.n = $v.n + x, $w.s = $w.s + 1.0;
                                  emit n = $v.n, s = $w.s](in, $v, $w);

The paper's rule O-Fuse asks that nobody else writes the variables, and forgets that nobody else
may read them either: who does could see the first of them before the second was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from millstream.calculus.costs import never_fails
from millstream.calculus.functions import (
    Assign,
    Branch,
    Columns,
    Filter,
    FlatMap,
    Fold,
    Map,
    Update,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order, rewritten
from millstream.calculus.rename import substitute, substitute_fields
from millstream.calculus.terms import Column, Literal, Term, VariableField, all_of, walk
from millstream.calculus.types import QueueType

#: Branches of one operator are those of the first times those of the second.
_MOST_BRANCHES = 8
#: Loops work out once what occurs several times, but a term that doubles with each fold never ends.
_MOST_PARTS = 64


def fuse(program: Program) -> Program:
    """Fuse all neighbours that can be; the same program if there are none."""
    types = program.queue_types()
    made: dict[str, Operator] = {}
    instead: dict[int, list[Operator]] = {}
    for op in in_dependency_order(program):
        second = op
        first = made.pop(op.inputs[0], None) if len(op.inputs) == 1 else None
        if first is not None and _refusal(program, first, op, types) is None:
            second = _fused(first, op, types)
            instead[id(first)], instead[id(op)] = [], [second]
        if _can_be_seen_into(second) and len(second.outputs) == 1:
            made[second.outputs[0]] = second
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The operators that stay apart from those before them, and the guard of each."""
    producers, types = program.producers(), program.queue_types()
    for op in program.operators:
        for below in filter(None, map(producers.get, op.inputs)):
            why = _refusal(program, below, op, types)
            if why is not None:
                yield op, why


def _refusal(
    program: Program, first: Operator, second: Operator, types: Mapping[str, QueueType]
) -> str | None:
    """Why two operators in a row stay apart; None if they can be fused."""
    for op in (first, second):
        if not _can_be_seen_into(op):
            return f"{op.function.title} keeps state, or takes and gives other than row by row"
    if not (_works_row_by_row(first) and _works_row_by_row(second)):
        return _refusal_of_folds(program, first, second, types)
    ours, theirs = _branches(first, types), _branches(second, types)
    if len(ours) * len(theirs) > _MOST_BRANCHES:
        return f"the one that does both would have {len(ours) * len(theirs)} branches"
    used = Counter(
        t.name for b in theirs for term in _terms(b) for t in walk(term) if isinstance(t, Column)
    )
    if any(used[c.name] > 1 and _computes(c.term) for b in ours for c in b.columns):
        return "what the first computes once would be computed several times"
    return None


def _can_be_seen_into(op: Operator) -> bool:
    return _works_row_by_row(op) or isinstance(op.function, Fold)


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
    if not (_works_row_by_row(first) and _works_row_by_row(second)):
        return _fused_folds(first, second, types)
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


# --- with variables ---


@dataclass(frozen=True, slots=True)
class _Firing:
    """What one row does to variables, and the row that comes of it, whatever the operator."""

    by: tuple[str, ...]
    when: Term | None
    updates: tuple[Update, ...]
    emit: Columns | None

    @property
    def keeps(self) -> bool:
        return bool(self.updates) or any(
            isinstance(part, VariableField)
            for term in (*([self.when] if self.when is not None else []),
                         *(c.term for c in self.emit or ()))
            for part in walk(term)
        )  # fmt: skip


def _firing(op: Operator, types: Mapping[str, QueueType]) -> _Firing | None:
    """None if a row may become several, which would come to the variables one by one."""
    if isinstance(op.function, Fold):
        fold = op.function
        return _Firing(fold.by, fold.when, fold.updates, fold.emit)
    branches = _branches(op, types)
    if len(branches) != 1:
        return None
    return _Firing((), branches[0].when, (), branches[0].columns)


def _refusal_of_folds(
    program: Program, first: Operator, second: Operator, types: Mapping[str, QueueType]
) -> str | None:
    users = Counter(name for op in program.operators for name in op.variables)
    for name in (*first.variables, *second.variables):
        if users[name] > 1:
            return f"another operator reads or writes ${name}, and would see it between the two"
    ours, theirs = _firing(first, types), _firing(second, types)
    if ours is None or theirs is None:
        return "of one row several would come to the variables, one after another"
    if ours.updates and theirs.when is not None:
        return "the first keeps something of rows that the second drops"
    key = _key_of_both(ours, theirs)
    return key if isinstance(key, str) else _repeated(ours, theirs, _together(ours, theirs))


def _key_of_both(ours: _Firing, theirs: _Firing) -> tuple[str, ...] | str:
    """The columns of the first input that both keep their state by, or why there are none."""
    columns = {c.name: c.term for c in ours.emit or ()}
    old = [columns.get(name) for name in theirs.by]
    names = tuple(term.name for term in old if isinstance(term, Column))
    if len(names) < len(old):
        return "the second keeps its state by what the first computes"
    if ours.keeps and theirs.keeps and ours.by != names:
        return "the two keep their state by different keys"
    return ours.by if ours.keeps else names


def _together(ours: _Firing, theirs: _Firing) -> _Firing:
    """What a row does to the variables of both.

    The second sees what the first has written. `when` and `set` of one that does both see all
    variables as they were before, so there they are what the first would set them to.
    """
    key = _key_of_both(ours, theirs)
    assert not isinstance(key, str)
    after = {c.name: c.term for c in ours.emit or ()}
    new = {(u.variable, u.field): u.term for u in ours.updates}
    before = {name: substitute_fields(term, new) for name, term in after.items()}
    when = None if theirs.when is None else substitute(theirs.when, before)
    updates = tuple(replace(u, term=substitute(u.term, before)) for u in theirs.updates)
    emit = theirs.emit and tuple(replace(c, term=substitute(c.term, after)) for c in theirs.emit)
    condition = all_of(t for t in (ours.when, when) if t is not None)
    return _Firing(key, condition, (*ours.updates, *updates), emit)


def _repeated(ours: _Firing, theirs: _Firing, together: _Firing) -> str | None:
    """Why what the first does may not stand in several places of what both do."""
    asked = [*([theirs.when] if theirs.when is not None else []),
             *(u.term for u in theirs.updates)]  # fmt: skip
    wanted = [*asked, *(c.term for c in theirs.emit or ())]
    used = Counter(t.name for term in wanted for t in walk(term) if isinstance(t, Column))
    columns = {c.name: c.term for c in ours.emit or ()}
    if any(used[name] > 1 and not never_fails(term) for name, term in columns.items()):
        return "what the first computes once can fail, and would be counted several times"
    new = {(u.variable, u.field): u.term for u in ours.updates}
    read = {t.name for term in asked for t in walk(term) if isinstance(t, Column)}
    fields = {(t.variable, t.field) for name in read if name in columns
              for t in walk(columns[name]) if isinstance(t, VariableField)}  # fmt: skip
    if any(not never_fails(new[f]) for f in fields if f in new):
        return "the second asks for what the first sets, which can fail and would be counted twice"
    parts = sum(1 for u in together.updates for _ in walk(u.term))
    parts += sum(1 for c in together.emit or () for _ in walk(c.term))
    if parts > _MOST_PARTS:
        return f"the one that does both would have terms of {parts} parts"
    return None


def _fused_folds(first: Operator, second: Operator, types: Mapping[str, QueueType]) -> Operator:
    ours, theirs = _firing(first, types), _firing(second, types)
    assert ours is not None and theirs is not None
    both = _together(ours, theirs)
    return replace(
        second, function=Fold(both.by, both.when, both.updates, both.emit), inputs=first.inputs,
        reads=(*first.reads, *second.reads), writes=(*first.writes, *second.writes),
    )  # fmt: skip
