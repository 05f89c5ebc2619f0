"""Leave out what is set and set again before anybody looks.

Law: the loop does the same.

    v1 = 0; v1 = v2 + v3   ->   v1 = v2 + v3

Everything that a procedure declares is zero at first, and most of it is given another value at
once. Numba takes longer the more often a variable is set.
"""

from __future__ import annotations

from millstream.kernels.loop.ir import (
    Body,
    Function,
    Guarded,
    Local,
    Set,
    Statement,
    Store,
    values_in,
    values_of,
)
from millstream.kernels.loop.passes.rewriting import with_bodies


def overwritten(function: Function) -> Function:
    return Function(_without(function.body), function.parents)


def _without(body: Body) -> Body:
    kept: list[Statement] = []
    doomed: set[str] = set()  # what is set again before it is read
    for statement in reversed(body):
        if isinstance(statement, Set) and statement.local.name in doomed:
            continue
        kept.append(_inside(statement))
        if not isinstance(statement, (Set, Store)):
            doomed.clear()  # who knows what happens in there
            continue
        if isinstance(statement, Set):
            doomed.add(statement.local.name)
        doomed -= {
            part.name
            for value in values_of(statement)
            for part in values_in(value)
            if isinstance(part, Local)
        }
    return tuple(reversed(kept))


def _inside(statement: Statement) -> Statement:
    # Lines under guards are set once, but for counts, which are read when they are set.
    return statement if isinstance(statement, Guarded) else with_bodies(statement, _without)
