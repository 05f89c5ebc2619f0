"""What passes share: statements and values made anew from changed parts."""

from __future__ import annotations

from collections.abc import Callable

from millstream.kernels.loop.ir import (
    Body,
    Count,
    Decide,
    Guarded,
    Leave,
    Load,
    Loop,
    Op,
    Set,
    Statement,
    Stop,
    Store,
    TallyFaults,
    Value,
    When,
    op,
)

Change = Callable[[Value], Value]


def changed(value: Value, change: Change) -> Value:
    """A value after a change of all its parts, the innermost first, and then of itself.

    What an operation gives may be held in another way afterwards: its form is told anew.
    """
    match value:
        case Load(memory, index):
            return change(Load(memory, changed(index, change)))
        case Op(operation, args, form, place):
            made = tuple(changed(arg, change) for arg in args)
            if made == args:
                return change(value)
            return change(op(operation, *made, rep=form.rep, place=place))
        case _:
            return change(value)


def with_values(statement: Statement, change: Change) -> Statement:
    """A statement with its own values changed; what stands inside of it is left alone."""
    match statement:
        case Set(local, value):
            return Set(local, changed(value, change))
        case Store(memory, index, value):
            return Store(memory, changed(index, change), changed(value, change))
        case TallyFaults(counters, base, faults):
            return TallyFaults(counters, base, changed(faults, change))
        case When(condition, then, otherwise):
            return When(changed(condition, change), then, otherwise)
        case Count(local, limit, body, begin):
            return Count(local, changed(limit, change), body, changed(begin, change))
        case Decide(opens, condition):
            return Decide(opens, changed(condition, change))
        case Loop(condition, body):
            return Loop(None if condition is None else changed(condition, change), body)
        case Stop(answer):
            return Stop(changed(answer, change))
        case Guarded() | Leave():
            return statement


def with_bodies(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """A statement with what stands inside of it changed; of guarded lines, each alone."""
    match statement:
        case When(condition, then, otherwise):
            return When(condition, change(then), change(otherwise))
        case Count(local, limit, body, begin):
            return Count(local, limit, change(body), begin)
        case Loop(test, body):
            return Loop(test, change(body))
        case Guarded(lines):
            return Guarded(tuple((g, s) for g, line in lines for s in change((line,))))
        case _:
            return statement


def everywhere(body: Body, change: Change) -> Body:
    """A body with all its values changed."""
    return tuple(
        with_values(with_bodies(s, lambda inside: everywhere(inside, change)), change) for s in body
    )
