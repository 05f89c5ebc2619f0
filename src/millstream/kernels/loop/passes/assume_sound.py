"""Assume that nothing fails, and stop where it does.

Law: rows are done by blocks. The loop does the same for all blocks before the first in which an
operation fails, also if nobody would have looked at what that gave, and tells where it begins.
What it has written of this block counts for nothing.

    v1 = divide(a, b)        ->   w1 = divide(a, b); failed = failed | has_faults(w1)
                                  v1 = the value of w1, which is there

    for i in range(begin, rows): s   ->   reached = begin
                                          while reached < rows:
                                              failed = False; sent = c0
                                              for i in range(reached, end of the block): s
                                              if failed: c0 = sent; break
                                              reached = end of the block

It is the plain code that runs first; the careful code does a block again in which it has failed.
So it is not for loops that change what they find: those of folds stay as they are. Nor does it
count faults that columns have brought along: `assume_present` has seen to it that there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.kernels.loop.ir import (
    BOX_WITH_FAULTS,
    FAULTS_OF,
    INTEGER,
    NO,
    TRUTH,
    VALID_OF,
    VALUE_OF,
    ZERO,
    Body,
    Count,
    Function,
    Guarded,
    Leave,
    Local,
    Loop,
    Memory,
    Op,
    Rep,
    Set,
    Statement,
    Store,
    When,
    integer,
    op,
    statements_in,
)
from millstream.kernels.loop.numbers import LESS_OF, all_of, differ, either, less, plus
from millstream.kernels.loop.passes.rewriting import with_bodies

#: How many rows are done again if one fails.
BLOCK = 512
REACHED = Memory("reached", Rep.INTEGER)

_REACHED, _END = Local("reached", INTEGER), Local("end", INTEGER)
_FAILED = Local("failed", TRUTH)


def can_assume(function: Function) -> bool:
    """Whether anything may fail, and can be done again: rows of one input that keep nothing."""
    statements = list(statements_in(function.body))
    keeps = any(isinstance(s, Store) and s.memory.kind == "state" for s in statements)
    has_parts = any(isinstance(s, Count) and s.begin != ZERO for s in function.body)
    return has_parts and not keeps and any(_may_fail(s) for s in statements)


def assume_sound(function: Function) -> Function:
    (rows,) = (s for s in function.body if isinstance(s, Count))
    at = function.body.index(rows)
    changed = _locals_set(rows.body)
    counters = [local for local in _locals_set(function.body[:at]) if local in changed]
    body = (
        *function.body[:at],
        Set(_REACHED, rows.begin),
        Loop(less(_REACHED, rows.limit), tuple(_blocks(rows, counters))),
        *function.body[at + 1 :],
        Store(REACHED, ZERO, _REACHED),
    )
    return Function(body, function.parents)


def _may_fail(statement: Statement) -> bool:
    return (
        isinstance(statement, Set)
        and isinstance(statement.value, Op)
        and statement.value.place is not None
    )


def _locals_set(body: Body) -> list[Local]:
    return [s.local for s in statements_in(body) if isinstance(s, Set)]


def _blocks(rows: Count, counters: list[Local]) -> Iterator[Statement]:
    end = op(LESS_OF, plus(_REACHED, integer(BLOCK)), rows.limit, rep=Rep.INTEGER)
    before = [Local(f"{counter.name}_before", counter.form) for counter in counters]
    yield Set(_END, end)
    yield Set(_FAILED, NO)
    for kept, counter in zip(before, counters, strict=True):
        yield Set(kept, counter)
    yield Count(rows.local, _END, _sound(rows.body), _REACHED)
    undone = (Set(counter, kept) for kept, counter in zip(before, counters, strict=True))
    yield When(_FAILED, (*undone, Leave("break")))
    yield Set(_REACHED, _END)


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
