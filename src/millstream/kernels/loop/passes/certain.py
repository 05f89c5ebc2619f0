"""Resolve guards that are decided by a constant.

Law: the loop does the same.

    guard 3 within 1 = True;   under 3: s   ->   under 1: s
    guard 3 within 1 = False;  under 3: s   ->   nothing, nor under any guard below 3
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.kernels.loop.ir import (
    NO,
    YES,
    Body,
    Decide,
    Function,
    Guarded,
    Statement,
    statements_in,
)
from millstream.kernels.loop.passes.rewriting import with_bodies


def certain(function: Function) -> Function:
    decided = {s.opens: s.condition for s in statements_in(function.body) if isinstance(s, Decide)}
    resolved: dict[int, int | None] = {0: 0}
    for guard in range(1, len(function.parents)):  # parents have smaller numbers
        parent = resolved[function.parents[guard]]
        condition = decided.get(guard)
        is_gone = parent is None or condition == NO
        resolved[guard] = None if is_gone else (parent if condition == YES else guard)
    return Function(_resolved(function.body, resolved), function.parents)


def _resolved(body: Body, resolved: dict[int, int | None]) -> Body:
    return tuple(_statement(s, resolved) for s in body)


def _statement(statement: Statement, resolved: dict[int, int | None]) -> Statement:
    if isinstance(statement, Guarded):
        return Guarded(tuple(_lines(statement, resolved)))
    return with_bodies(statement, lambda body: _resolved(body, resolved))


def _lines(guarded: Guarded, resolved: dict[int, int | None]) -> Iterator[tuple[int, Statement]]:
    for guard, statement in guarded.lines:
        under = resolved[guard]
        if under is None or (
            isinstance(statement, Decide) and resolved[statement.opens] != statement.opens
        ):
            continue
        yield under, statement
