"""Folds that begin anew at every instant, and so need only the rows of an instant together.

Law: let x be the event time of a stream, and `last` a field that is x if x > last and else stays as
it is. If for x > last nothing that is kept or sent depends on what was kept before, then rows of
different instants do not see each other. So they may be in different places:

    (out, $v) <- Fold[set $v.last = if(x > $v.last, x, $v.last), $v.taken = (not x > $v.last);
                      emit x, taken = $v.taken](in, $v)                            by x

Guards: `last` begins before all times, or the first instants would see each other; it is moved
by x alone, or a later instant could be taken for an old one; at the first row of an instant
nothing is read from before; and nobody else uses the variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.calculus.functions import Duplicate, Filter, FlatMap, Fold, Map
from millstream.calculus.graph import Program, in_dependency_order
from millstream.calculus.lineage import carried
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField, walk
from millstream.calculus.types import BOOLEAN, INT64_MIN

#: What hands items on at the instant at which they come.
_AT_ONCE = (Map, Filter, FlatMap, Duplicate, Fold)


def folds_by_instants(program: Program) -> dict[str, str]:
    """The folds that begin anew, each with the column that is the event time of its input."""
    times, shared = _event_times(program), program.shared_variables()
    folds: dict[str, str] = {}
    for op in program.operators:
        if isinstance(op.function, Fold) and shared.isdisjoint(op.variables):
            columns = sorted(times.get(op.inputs[0], ()))
            column = next((c for c in columns if _begins_anew(op.function, c, program)), None)
            if column is not None:
                folds[op.id] = column
    return folds


def _event_times(program: Program) -> dict[str, frozenset[str]]:
    """The columns of each queue that are the event times of its rows."""
    types = program.queue_types()
    times = {
        input_.name: frozenset((input_.time,))
        for input_ in program.inputs
        if input_.time is not None
    }
    for op in in_dependency_order(program):
        if isinstance(op.function, _AT_ONCE) and op.inputs[0] in times:
            known = times[op.inputs[0]]
            for queue in op.outputs:
                names = carried(op, (types[op.inputs[0]],), 0)
                times[queue] = frozenset(n for n, old in names.items() if old in known)
    return times


def _begins_anew(fold: Fold, column: str, program: Program) -> bool:
    if fold.by or fold.when is not None:
        return False
    updates = {(u.variable, u.field): u.term for u in fold.updates}
    read = {(f.variable, f.field) for t in fold.terms() for f in _fields(t)}
    if not read <= updates.keys():
        return False
    return any(
        _begins_before_all(program, variable, field)
        and all(_is_of_row(term, is_later) for term in updates.values())
        and _assumed(moved, is_later, holds=True) == is_later.args[0]
        and _assumed(moved, is_later, holds=False) == is_later.args[1]
        for (variable, field), moved in updates.items()
        for is_later in _comparisons(moved, column, variable, field)
    )


def _fields(term: Term) -> Iterator[VariableField]:
    return (part for part in walk(term) if isinstance(part, VariableField))


def _comparisons(term: Term, column: str, variable: str, field: str) -> list[Call]:
    """Where a term asks whether the event time is later than a field."""
    return [
        part
        for part in walk(term)
        if isinstance(part, Call)
        and part.function == ">"
        and isinstance(part.args[0], Column)
        and part.args[0].name == column
        and isinstance(part.args[1], VariableField)
        and (part.args[1].variable, part.args[1].field) == (variable, field)
    ]


def _begins_before_all(program: Program, variable: str, field: str) -> bool:
    known = next(v for v in program.variables if v.name == variable)
    names = [f.name for f in known.fields]
    return known.initial[names.index(field)] == INT64_MIN


def _is_of_row(term: Term, is_later: Call) -> bool:
    """Whether a term reads nothing that was kept before, at the first row of an instant."""
    return not any(_fields(_assumed(term, is_later, holds=True)))


def _assumed(term: Term, condition: Call, *, holds: bool) -> Term:
    """A term in which a condition is known to hold, or not to."""
    if term == condition:
        return Literal(holds, BOOLEAN)
    if not isinstance(term, Call):
        return term
    args = tuple(_assumed(arg, condition, holds=holds) for arg in term.args)
    match term.function, args:
        case "if", (Literal(bool(value)), yes, no):
            return yes if value else no
        case "not", (Literal(bool(value)),):
            return Literal(not value, BOOLEAN)
        case _:
            return Call(term.function, args, term.type)
