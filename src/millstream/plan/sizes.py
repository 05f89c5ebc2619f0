"""How many rows there are on every queue, in words, before anything is run.

The size of a relation is known as far as the program tells: the rows of a while, so many rows
for each key, the rows of a relation that comes from outside, or all rows that ever came.
Every function is described here by name: of one that is not, nothing may be said.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import singledispatch

from millstream.calculus import functions as fn
from millstream.calculus.each import PerKey
from millstream.calculus.functions import Function
from millstream.calculus.graph import Program, in_dependency_order
from millstream.calculus.sheets import Sheet
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


Sizes = tuple[Size, ...]

_FROM_GOOD_TO_BAD = tuple(Growth)
#: Words for pairs of pairs of pairs help nobody; then the name of the queue says more.
_MOST_LETTERS = 80


def worst(sizes: Sizes) -> Growth:
    return max((s.growth for s in sizes), key=_FROM_GOOD_TO_BAD.index)


def by_keys(size: Size) -> Growth:
    """What is kept once per key grows with the keys where rows never leave."""
    return Growth.BY_KEYS if size.growth is Growth.UNBOUNDED else size.growth


def for_each(by: tuple[str, ...]) -> str:
    return f" for each {', '.join(by)}" if by else ""


def sizes(program: Program) -> dict[str, Size]:
    """How many rows there are on every queue; a stream goes by its name."""
    known = {
        input_.name: Size(f"the rows of {input_.name}", Growth.OUTSIDE)
        if input_.type.is_relation
        else Size(input_.name)
        for input_ in program.inputs
    }
    for op in in_dependency_order(program):
        given = tuple(known.get(q, Size(q)) for q in op.inputs)
        for queue in op.outputs:
            size = size_of(op.function, given, queue)
            if len(size.words) > _MOST_LETTERS:
                size = Size(f"the rows of {queue}", size.growth)
            known[queue] = size
    return known


@singledispatch
def size_of(function: Function, inputs: Sizes, queue: str) -> Size:
    """The size of what a function puts on a queue."""
    raise AssertionError(f"the size of what {function.name} gives is not described")


@size_of.register(
    fn.Map | fn.Filter | fn.FlatMap | fn.Fold | fn.Opaque | fn.OpaqueFold | fn.Judge | fn.Lookup
    | fn.Distinct | fn.Except | fn.Duplicate | fn.RoundRobinSplit | fn.Ordered
)  # fmt: skip
def _as_it_came(function: Function, inputs: Sizes, queue: str) -> Size:
    return inputs[0]


@size_of.register(
    fn.Istream | fn.Dstream | fn.Changes | fn.Rstream | Sheet | fn.Work | fn.RunScript | PerKey
)  # fmt: skip
def _stream_of_its_own(function: Function, inputs: Sizes, queue: str) -> Size:
    return Size(queue)


@size_of.register(fn.Merge | fn.RoundRobinJoin | fn.Interleave)
def _together(function: Function, inputs: Sizes, queue: str) -> Size:
    return Size(" and ".join(dict.fromkeys(i.words for i in inputs)), worst(inputs))


@size_of.register
def _of_now(function: fn.Now, inputs: Sizes, queue: str) -> Size:
    return Size(f"the rows of one instant of {inputs[0].words}")


@size_of.register
def _of_range(function: fn.Range, inputs: Sizes, queue: str) -> Size:
    if function.length is None:
        return Size(f"all rows that ever came on {inputs[0].words}", Growth.UNBOUNDED)
    step = "" if function.slide is None else f", in steps of {render_duration(function.slide)}"
    length = function.length
    # A window without its far end is a microsecond shorter than what was meant.
    is_open = length % 1000 == 999
    words = f"just under {render_duration(length + 1)}"
    words = words if is_open else f"the last {render_duration(length)}"
    return Size(f"the rows of {words} of {inputs[0].words}{step}")


@size_of.register
def _of_rows(function: fn.Rows, inputs: Sizes, queue: str) -> Size:
    count = f"last {function.count} rows" if function.count > 1 else "last row"
    words = f"the {count} of {inputs[0].words}{for_each(function.by)}"
    if function.length is not None:
        return Size(f"{words} that are not older than {render_duration(function.length)}")
    return Size(words, Growth.BY_KEYS if function.by else Growth.BOUNDED)


@size_of.register
def _of_latest(function: fn.Latest, inputs: Sizes, queue: str) -> Size:
    words = f"the last row of {inputs[0].words}{for_each(function.by)}"
    if function.unless is not None:
        return Size(f"{words} that is not {function.unless}", Growth.OUTSIDE)
    return Size(words, Growth.BY_KEYS)


@size_of.register
def _of_until(function: fn.Until, inputs: Sizes, queue: str) -> Size:
    return Size(f"the rows of {inputs[0].words} until their {function.until}")


@size_of.register
def _of_held(function: fn.Held, inputs: Sizes, queue: str) -> Size:
    return Size(f"the rows of {inputs[0].words} that leave at one instant")


@size_of.register
def _of_join(function: fn.Join, inputs: Sizes, queue: str) -> Size:
    return Size(f"pairs of {inputs[0].words} with {inputs[1].words}", worst(inputs))


@size_of.register
def _of_aggregate(function: fn.Aggregate, inputs: Sizes, queue: str) -> Size:
    growth = by_keys(inputs[0]) if function.by else Growth.BOUNDED
    return Size(f"one row{for_each(function.by)}", growth)


@size_of.register
def _of_top(function: fn.Top, inputs: Sizes, queue: str) -> Size:
    return Size(f"{function.count} rows")


@size_of.register
def _of_cube(function: fn.Cubify, inputs: Sizes, queue: str) -> Size:
    return Size(f"the cells of {function.window} times {function.grain} of {inputs[0].words}")


@size_of.register
def _of_table(function: fn.Tally, inputs: Sizes, queue: str) -> Size:
    growth = Growth.BY_KEYS if function.by else Growth.BOUNDED
    kinds = "all that was emitted to it" if function.table.kind == "collection" else "its rows"
    growth = Growth.UNBOUNDED if function.table.kind == "collection" else growth
    return Size(f"the table {function.table.name}: {kinds}{for_each(function.by)}", growth)
