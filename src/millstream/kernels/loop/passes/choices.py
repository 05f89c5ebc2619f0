"""Make choices of guards, one after the other.

Law: the loop does the same. It comes last: what stands under a guard need not be under one
choice, nor choices inside of each other, for a hundred filters in a row would be as many levels.

    under 1: a; under 1: b; under 2: c   ->   if g1: a; b
                                              if g2: c
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.kernels.loop.ir import (
    NO,
    TRUTH,
    Body,
    Decide,
    Function,
    Guarded,
    Local,
    Set,
    Statement,
    When,
)
from millstream.kernels.loop.passes.rewriting import with_bodies


def choices(function: Function) -> Function:
    return Function(_plain(function.body, function.parents), (0,))


def _plain(body: Body, parents: tuple[int, ...]) -> Body:
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, Guarded):
            made += _chosen(statement, parents)
        else:
            made.append(with_bodies(statement, lambda inside: _plain(inside, parents)))
    return tuple(made)


def _chosen(guarded: Guarded, parents: tuple[int, ...]) -> Iterator[Statement]:
    opened = [s.opens for g, s in guarded.lines if isinstance(s, Decide) and g]
    for guard in opened:
        yield Set(_truth(guard), NO)
    lines = guarded.lines
    begin = 0
    while begin < len(lines):
        guard = lines[begin][0]
        end = begin
        while end < len(lines) and lines[end][0] == guard:
            end += 1
        together = _plain(tuple(_decided(s) for _, s in lines[begin:end]), parents)
        if guard:
            yield When(_truth(guard), together)
        else:
            yield from together
        begin = end


def _decided(statement: Statement) -> Statement:
    if isinstance(statement, Decide):
        return Set(_truth(statement.opens), statement.condition)
    return statement


def _truth(guard: int) -> Local:
    return Local(f"g{guard}", TRUTH)
