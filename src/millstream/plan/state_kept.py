"""What state a program keeps and how it is bounded, in words, before anything is run.

For every relation on a queue its size is known as far as the program tells: the rows of
a while, so many rows for each key, the rows of a relation that comes from outside, or all
rows that ever came. State is some of the rows of what an operator reads.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from millstream.calculus.functions import (
    Aggregate,
    Distinct,
    Fold,
    Function,
    Join,
    Latest,
    Lookup,
    Merge,
    Now,
    Range,
    Rows,
    Rstream,
    Top,
    ToStream,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.text import render_duration


class Growth(enum.Enum):
    """How state grows: not beyond what is said, with something outside, or without end."""

    BOUNDED = "bounded"
    OUTSIDE = "as large as the relation that is given"
    BY_KEYS = "grows with the number of keys"
    UNBOUNDED = "grows without end"


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows a relation has, in words."""

    words: str
    growth: Growth = Growth.BOUNDED


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of one operator."""

    operator: Operator
    words: str
    growth: Growth


_FROM_GOOD_TO_BAD = tuple(Growth)
#: Words for pairs of pairs of pairs help nobody; then the name of the queue says more.
_MOST_LETTERS = 80


def _worst(*growths: Growth) -> Growth:
    return max(growths, key=_FROM_GOOD_TO_BAD.index)


def state_kept(program: Program) -> tuple[Kept, ...]:
    """The state of every operator that keeps any, producers before consumers."""
    known = sizes(program)
    found: list[Kept] = []
    for op in in_dependency_order(program):
        kept = _kept(op.function, tuple(known.get(q, Size(q)) for q in op.inputs))
        if kept is not None:
            found.append(Kept(op, kept.words, kept.growth))
    return tuple(found)


def sizes(program: Program) -> dict[str, Size]:
    """How many rows there are on every queue."""
    found = {
        one.name: Size(f"the rows of {one.name}", Growth.OUTSIDE)
        if one.type.is_relation
        else Size(one.name)
        for one in program.inputs
    }
    for op in in_dependency_order(program):
        inputs = tuple(found.get(q, Size(q)) for q in op.inputs)
        # A stream has no size; it goes by its name.
        is_stream = isinstance(op.function, ToStream)
        size = Size(op.outputs[0]) if is_stream else _size(op.function, inputs)
        if len(size.words) > _MOST_LETTERS:
            size = Size(f"the rows of {op.outputs[0]}", size.growth)
        found.update(dict.fromkeys(op.outputs, size))
    return found


def operators_behind(program: Program, output: str) -> frozenset[str]:
    """The ids of the operators that an output depends on."""
    producers = program.producers()
    found: set[str] = set()
    waiting = [output]
    while waiting:
        op = producers.get(waiting.pop())
        if op is not None and op.id not in found:
            found.add(op.id)
            waiting.extend(op.inputs)
    return frozenset(found)


def _size(function: Function, inputs: tuple[Size, ...]) -> Size:
    """The size of what an operator gives."""
    match function:
        case Now() | Range() | Rows() | Latest():
            return _window(function, inputs[0].words)
        case Join():
            words = f"pairs of {inputs[0].words} with {inputs[1].words}"
            return Size(words, _worst(*(i.growth for i in inputs)))
        case Aggregate(by):
            if not by:
                return Size("one row")
            return Size(f"one row for each {', '.join(by)}", _by_keys(inputs[0]))
        case Top(count):
            return Size(f"{count} rows")
        case Merge():
            words = " and ".join(dict.fromkeys(i.words for i in inputs))
            return Size(words, _worst(*(i.growth for i in inputs)))
        case _:
            return inputs[0] if inputs else Size("nothing")


def _window(function: Function, stream: str) -> Size:
    match function:
        case Now():
            return Size(f"the rows of one instant of {stream}")
        case Range(None):
            return Size(f"all rows that ever came on {stream}", Growth.UNBOUNDED)
        case Range(length, slide):
            assert length is not None
            step = f", in steps of {render_duration(slide)}" if slide is not None else ""
            return Size(f"the rows of the last {render_duration(length)} of {stream}{step}")
        case Rows(count, by, length):
            rows = (
                f"the last {count} rows of {stream}" if count > 1 else f"the last row of {stream}"
            )
            if length is not None:
                keys = f" for each {', '.join(by)}" if by else ""
                return Size(f"{rows}{keys} that are not older than {render_duration(length)}")
            if not by:
                return Size(rows)
            return Size(f"{rows} for each {', '.join(by)}", Growth.BY_KEYS)
        case Latest(by, unless):
            words = f"the last row of {stream} for each {', '.join(by)}"
            if unless is not None:
                return Size(f"{words} that is not {unless}", Growth.OUTSIDE)
            return Size(words, Growth.BY_KEYS)
        case _:
            raise AssertionError(function)


def _by_keys(size: Size) -> Growth:
    """What is kept once per key grows with the keys where rows never leave."""
    return Growth.BY_KEYS if size.growth is Growth.UNBOUNDED else size.growth


def _kept(function: Function, inputs: tuple[Size, ...]) -> Size | None:
    """The state of an operator; None if it keeps nothing."""
    match function:
        case Now() | Range() | Rows() | Latest():
            waits = isinstance(function, Range) and function.length is None
            return None if waits else _window(function, inputs[0].words)
        case Join() | Lookup():
            words = "; ".join(i.words for i in inputs)
            return Size(words, _worst(*(i.growth for i in inputs)))
        case Aggregate(by, aggregations):
            groups = f"a row of sums for each {', '.join(by)}" if by else "one row of sums"
            growth = _by_keys(inputs[0]) if by else Growth.BOUNDED
            if any(a.function in ("min", "max") for a in aggregations):
                growth = _worst(growth, inputs[0].growth)
                return Size(f"{groups}, and the values of {inputs[0].words}", growth)
            return Size(f"{groups} of {inputs[0].words}", growth)
        case Distinct():
            return Size(f"each different row of {inputs[0].words}", _by_keys(inputs[0]))
        case Top() | Rstream():
            return inputs[0]
        case Fold(by):
            if not function.variables_read() | function.variables_written():
                return None
            words = f"the variables for each {', '.join(by)}" if by else "the variables"
            return Size(words, Growth.BY_KEYS if by else Growth.BOUNDED)
        case _:
            return None
