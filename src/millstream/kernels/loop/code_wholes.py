"""Arrays of a firing that need be neither copied nor cleared.

One whose elements are all that is pushed, one after the other, can lie in the output from the
beginning. One that is written as a whole before anybody reads it need not be zero at first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Code,
    Leave,
    Let,
    Push,
    Repeat,
    Return,
    Scope,
    Statement,
    statements_in,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.kernels.loop.code_ranges import Counter, Named, assigned_in, counter_of
from millstream.kernels.loop.ir import ZERO, Local, Value, integer
from millstream.kernels.loop.numbers import all_of, at_least, plus, times, wide
from millstream.source import Span
from millstream.values.types import Type


def pushed_whole(code: Code) -> str | None:
    """The array whose elements, one after the other, are all that a firing pushes."""
    inside = list(statements_in(code.body))
    routines = [s for r in code.routines for s in statements_in(r.body)]
    pushes = [s for s in (*inside, *routines) if isinstance(s, Push) and s.output == 0]
    if len(pushes) != 1 or not isinstance(code.given, Type) or any(
        isinstance(s, Return) for s in inside
    ):  # fmt: skip
        return None
    before: Statement | None = None
    statements = list(_flat(code.body))
    for number, statement in enumerate(statements):
        if isinstance(statement, Repeat):
            name = _walked(statement, before)
            if name is not None:
                shapes = [s.slot.shape for s in statements[:number]
                          if isinstance(s, Let) and s.slot.name == name]  # fmt: skip
                made = any(isinstance(s, ArrayOf) and s.element == code.given for s in shapes)
                later = assigned_in(tuple(statements[number + 1 :]) + statement.body, code)
                return name if made and name not in later else None
        before = statement
    return None


def _walked(loop: Repeat, before: Statement | None) -> str | None:
    """The array that a loop pushes from its first element on."""
    counter = counter_of(loop, before)
    if counter is None or not _from_zero(counter):
        return None
    if any(isinstance(s, Leave) for s in statements_in(loop.body)):
        return None
    for statement in _flat(loop.body):
        match statement:
            case Push(Read(Place(name, (Read(Place(index, ())),))), 0) if (
                index == counter.place.variable
            ):
                return name
            case _:
                continue
    return None


def _from_zero(counter: Counter) -> bool:
    is_first = isinstance(counter.start, Literal) and counter.start.value == 0
    return is_first and counter.step == 1 and not counter.is_inclusive


def _flat(body: Body) -> Iterator[Statement]:
    """The statements that are always done, in their order."""
    for statement in body:
        if isinstance(statement, Scope):
            yield from _flat(statement.body)
        else:
            yield statement


# --- what is written as a whole ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayWrite:
    """A loop that writes an array, how it counts, and by which indexes it writes."""

    loop: Repeat
    before: Statement | None
    counter: Counter
    indexes: tuple[Term, ...]


def writer_of(name: str, rest: Body) -> ArrayWrite | None:
    """The loop that is the first to touch an array, if it only writes it."""
    before: Statement | None = None
    for statement in _flat(rest):
        count = _mentions(statement, name)
        if count:
            counter = counter_of(statement, before) if isinstance(statement, Repeat) else None
            if counter is None or not isinstance(statement, Repeat) or not _from_zero(counter):
                return None
            if any(isinstance(s, (Leave, Return)) for s in statements_in(statement.body)):
                return None
            paths = [s.target.path[:1] for s in _flat(statement.body)
                     if isinstance(s, Assign) and s.target.variable == name]  # fmt: skip
            indexes = tuple(i for path in paths for i in path if not isinstance(i, str))
            # Another place of it is read, or assigned as a whole.
            is_only = len(indexes) == count
            return ArrayWrite(statement, before, counter, indexes) if is_only else None
        before = statement
    return None


def _mentions(node: object, name: str) -> int:
    """How often the name of a variable stands in something."""
    if isinstance(node, tuple):
        return sum(_mentions(part, name) for part in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, (Span, Type)):
        return 0
    own = isinstance(node, Place) and node.variable == name
    return own + sum(_mentions(getattr(node, f.name), name) for f in dataclasses.fields(node))


def covers(written: ArrayWrite, named: Named, rounds: Value, size: Value) -> Value | None:
    """When a loop writes all elements: runs of neighbours that begin where others have ended."""
    runs: dict[tuple[tuple[Local, int], ...], set[int]] = {}
    for index in written.indexes:
        linear = _linear(index, named)
        if linear is None:
            return None
        places, number = linear
        runs.setdefault(tuple(sorted(places.items(), key=lambda p: p[0].name)), set()).add(number)
    counts = named(written.counter.place)
    so_far: Value = ZERO
    conditions: list[Value] = []
    for key, numbers in runs.items():
        places = dict(key)
        step = places.pop(counts, 0) if counts is not None else 0
        first = min(numbers)
        if step < 1 or not numbers >= set(range(first, first + step)):
            return None
        begin: Value = integer(first)
        for local, often in places.items():
            begin = plus(begin, times(integer(often), wide(local)))
        conditions.append(at_least(so_far, begin))
        so_far = plus(begin, times(integer(step), rounds))
    return all_of([*conditions, at_least(so_far, size)])


def _linear(term: Term, named: Named) -> tuple[dict[Local, int], int] | None:
    """A term as so many times each of some locals, and a number."""
    match term:
        case Literal(int(value)):
            return {}, value
        case Read(place):
            local = named(place)
            return None if local is None else ({local: 1}, 0)
        case Call("int32_add" | "int32_sub" as function, (left, right)):
            a, b = _linear(left, named), _linear(right, named)
            if a is None or b is None:
                return None
            way = 1 if function == "int32_add" else -1
            both = {k: a[0].get(k, 0) + way * b[0].get(k, 0) for k in {**a[0], **b[0]}}
            return both, a[1] + way * b[1]
        case Call("int32_mul", (Literal(int(by)), other) | (other, Literal(int(by)))):
            of = _linear(other, named)
            return None if of is None else ({k: by * n for k, n in of[0].items()}, by * of[1])
        case _:
            return None
