"""Leave out what nobody reads.

Law: memory holds the same after the loop, but for the truths of `_TRUE_UNLESS_GIVEN`: where only
True would be written, the loop does not ask for that memory, and its caller knows.

    v1 = column[i]                    ->   nothing, if v1 is not read
    out_valid[c] = True               ->   nothing, if all that is written there is True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from millstream.kernels.loop.ir import (
    YES,
    Body,
    Function,
    Guarded,
    Local,
    Memory,
    Set,
    Statement,
    Store,
    statements_in,
    values_in,
    values_of,
)
from millstream.kernels.loop.passes.rewriting import with_bodies

_TRUE_UNLESS_GIVEN = frozenset({"out_valid"})


def unneeded(function: Function) -> Function:
    body = _without_truths(function.body)
    read = Counter(name for statement in statements_in(body) for name in _read(statement))
    return Function(_needed(body, read), function.parents)


def _read(statement: Statement) -> Iterator[str]:
    for value in values_of(statement):
        for part in values_in(value):
            if isinstance(part, Local):
                yield part.name


def _needed(body: Body, read: Counter[str]) -> Body:
    """From the end: what is left out reads nothing either."""
    kept: list[Statement] = []
    for statement in reversed(body):
        kept += reversed(_if_needed(statement, read))
    return tuple(reversed(kept))


def _if_needed(statement: Statement, read: Counter[str]) -> Body:
    if isinstance(statement, Set) and not read[statement.local.name]:
        read.subtract(_read(statement))
        return ()
    if isinstance(statement, Guarded):
        lines = [
            (guard, made)
            for guard, line in reversed(statement.lines)
            for made in _if_needed(line, read)
        ]
        return (Guarded(tuple(reversed(lines))),)
    return (with_bodies(statement, lambda inside: _needed(inside, read)),)


def _without_truths(body: Body) -> Body:
    are_true: dict[Memory, bool] = {}
    for s in statements_in(body):
        if isinstance(s, Store) and s.memory.kind in _TRUE_UNLESS_GIVEN:
            are_true[s.memory] = are_true.get(s.memory, True) and s.value == YES
    plain = {memory for memory, is_true in are_true.items() if is_true}

    def without(inside: Body) -> Body:
        return tuple(
            with_bodies(s, without)
            for s in inside
            if not (isinstance(s, Store) and s.memory in plain)
        )

    return without(body) if plain else body
