"""Assume that nothing fails, and tell whether it did.

Law: where no operation fails, both do the same and `failed` is false; where one does, `failed` is
true, also if nobody would have looked at what it gave.

    v1 = divide(a, b)        ->   w1 = divide(a, b); failed = failed | has_faults(w1)
                                  v1 = the value of w1, which is there

It is the plain code that runs first; if it has failed, the careful code does everything again.
So it is not for loops that change what they find: those of folds stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.kernels.loop.ir import (
    BOX_WITH_FAULTS,
    FAULTS_OF,
    NO,
    TRUTH,
    VALID_OF,
    VALUE_OF,
    ZERO,
    Body,
    Function,
    Guarded,
    Local,
    Memory,
    Op,
    Rep,
    Set,
    Statement,
    Store,
    op,
    statements_in,
)
from millstream.kernels.loop.numbers import all_of, differ, either
from millstream.kernels.loop.passes.rewriting import with_bodies

FAILED = Memory("failed", Rep.TRUTH)

_FAILED = Local("failed", TRUTH)


def can_assume(function: Function) -> bool:
    """Whether anything may fail, and can be done again."""
    statements = list(statements_in(function.body))
    keeps = any(isinstance(s, Store) and s.memory.kind == "state" for s in statements)
    return not keeps and any(_may_fail(s) for s in statements)


def assume_sound(function: Function) -> Function:
    body = (Set(_FAILED, NO), *_sound(function.body), Store(FAILED, ZERO, _FAILED))
    return Function(body, function.parents)


def _may_fail(statement: Statement) -> bool:
    return (
        isinstance(statement, Set)
        and isinstance(statement.value, Op)
        and statement.value.place is not None
    )


def _sound(body: Body) -> Body:
    return tuple(made for statement in body for made in _statements(statement))


def _statements(statement: Statement) -> Iterator[Statement]:
    match statement:
        case Guarded(lines):
            yield Guarded(tuple((g, s) for g, line in lines for s in _statements(line)))
        case Set(local, Op(_, args) as value) if value.place is not None:
            made = Local(f"w{local.name}", value.form)
            yield Set(made, value)
            yield Set(_FAILED, either(_FAILED, differ(op(FAULTS_OF, made), ZERO)))
            is_there = all_of([op(VALID_OF, arg) for arg in args])
            yield Set(local, op(BOX_WITH_FAULTS, op(VALUE_OF, made), is_there, ZERO))
        case _:
            yield with_bodies(statement, _sound)
