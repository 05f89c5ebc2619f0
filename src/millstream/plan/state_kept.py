"""What state a program keeps and how it is bounded, in words, before anything is run.

State is some of the rows of what an operator reads, of which `sizes` tells how many there are.
Rows that wait until all inputs are known up to their time are no state of an operator.
Every function is described here by name: of one that is not, nothing may be said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch

from millstream.calculus import functions as fn
from millstream.calculus.each import PerKey
from millstream.calculus.functions import Function
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    CountWindow,
    Sheet,
    TimeWindow,
    address_text,
)
from millstream.calculus.text import render_duration
from millstream.errors import listing
from millstream.plan.sizes import Growth, Size, Sizes, by_keys, for_each, size_of, sizes, worst

#: So many cells are named one by one.
_MOST_CELLS = 3


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of one operator."""

    operator: Operator
    words: str
    growth: Growth


def state_kept(program: Program) -> tuple[Kept, ...]:
    """The state of every operator that keeps any, producers before consumers."""
    known = sizes(program)
    every: list[Kept] = []
    for op in in_dependency_order(program):
        kept = kept_by(op.function, tuple(known.get(q, Size(q)) for q in op.inputs))
        if kept is not None:
            every.append(Kept(op, kept.words, kept.growth))
    return tuple(every)


def operators_behind(program: Program, output: str) -> frozenset[str]:
    """The ids of the operators that an output depends on."""
    producers = program.producers()
    behind: set[str] = set()
    waiting = [output]
    while waiting:
        op = producers.get(waiting.pop())
        if op is not None and op.id not in behind:
            behind.add(op.id)
            waiting.extend(op.inputs)
    return frozenset(behind)


@singledispatch
def kept_by(function: Function, inputs: Sizes) -> Size | None:
    """The state of a function; None if it keeps nothing."""
    raise AssertionError(f"what {function.name} keeps is not described")


@kept_by.register(
    fn.Map | fn.Filter | fn.FlatMap | fn.Opaque | fn.Judge | fn.Duplicate | fn.Merge | fn.Istream
    | fn.Dstream | fn.Changes | fn.RunScript
)  # fmt: skip
def _nothing(function: Function, inputs: Sizes) -> None:
    """It looks at one row, or at the changes of one instant."""


@kept_by.register(fn.Now | fn.Rows | fn.Latest)
def _in_window(function: fn.Window, inputs: Sizes) -> Size:
    return size_of(function, inputs, "")


@kept_by.register
def _in_range(function: fn.Range, inputs: Sizes) -> Size | None:
    if function.length is not None:
        return size_of(function, inputs, "")
    if function.slide is None:
        return None  # what never leaves need not be known any more
    step = render_duration(function.slide)
    return Size(f"the rows of {inputs[0].words} that wait for the next multiple of {step}")


@kept_by.register
def _held_back(function: fn.Held | fn.Until, inputs: Sizes) -> Size:
    return Size(f"the rows of {inputs[0].words} until their {function.until}")


@kept_by.register(fn.Join | fn.Lookup)
def _both_sides(function: Function, inputs: Sizes) -> Size:
    return Size("; ".join(i.words for i in inputs), worst(inputs))


@kept_by.register
def _sums(function: fn.Aggregate, inputs: Sizes) -> Size:
    groups = f"a row of sums{for_each(function.by)}" if function.by else "one row of sums"
    growth = Size(groups, by_keys(inputs[0]) if function.by else Growth.BOUNDED)
    if any(a.function in ("min", "max") for a in function.aggregations):
        words = f"{groups}, and the values of {inputs[0].words}"
        return Size(words, worst((growth, inputs[0])))
    return Size(f"{groups} of {inputs[0].words}", growth.growth)


@kept_by.register
def _vertices(function: fn.Cubify, inputs: Sizes) -> Size:
    several = f" in {len(function.kept)} vertices" if len(function.kept) > 1 else ""
    return Size(f"{size_of(function, inputs, '').words}{several}", Growth.BY_KEYS)


@kept_by.register(fn.Distinct | fn.Except)
def _counted(function: Function, inputs: Sizes) -> Size:
    words = " and ".join(dict.fromkeys(i.words for i in inputs))
    growths = worst(tuple(Size(i.words, by_keys(i)) for i in inputs))
    return Size(f"each different row of {words}", growths)


@kept_by.register
def _of_table(function: fn.Tally, inputs: Sizes) -> Size:
    return size_of(function, inputs, "")


@kept_by.register(fn.Top | fn.Rstream | fn.Ordered)
def _all_of_it(function: Function, inputs: Sizes) -> Size:
    return inputs[0]


@kept_by.register
def _variables(function: fn.Fold, inputs: Sizes) -> Size | None:
    if not function.variables_read() | function.variables_written():
        return None
    return _per_key(f"the variables{for_each(function.by)}", function.by)


@kept_by.register
def _of_python(function: fn.OpaqueFold, inputs: Sizes) -> Size:
    return _per_key(f"what {function.label} remembers{for_each(function.by)}", function.by)


@kept_by.register
def _turn(function: fn.RoundRobinSplit, inputs: Sizes) -> Size:
    return Size("whose turn it is")


@kept_by.register(fn.RoundRobinJoin | fn.Interleave)
def _waiting(function: Function, inputs: Sizes) -> Size:
    words = " and ".join(dict.fromkeys(i.words for i in inputs))
    return Size(f"what of {words} waits for its turn", Growth.UNBOUNDED)


@kept_by.register
def _of_work(function: fn.Work, inputs: Sizes) -> Size:
    """Its fields, and what it has not taken off: less than it looks at in one firing."""
    fields = (
        [
            f"the variable{'s'[: len(function.code.fields) > 1]} "
            + listing([slot.name for slot in function.code.fields], _MOST_CELLS)
        ]
        if function.code.fields
        else []
    )
    if function.pace is None:
        limits = [r.limits[1] for r in (function.rates, function.first or function.rates)]
        known = [limit for limit in limits if limit is not None]
        if len(known) < len(limits):
            words = f"{listing(fields)} and items" if fields else "items"
            return Size(f"{words} of {inputs[0].words} that are too few", Growth.UNBOUNDED)
        fields.append(f"up to {max(known)} items of {inputs[0].words}")
    return Size(" and ".join(fields) or "how often it has fired")


@kept_by.register
def _of_instances(function: PerKey, inputs: Sizes) -> Size:
    """All that its program keeps, for every key."""
    until = "" if function.first is None else f" that has not given {function.first} items"
    return Size(f"the state of a program for each {listing(function.by)}{until}", Growth.BY_KEYS)


def _per_key(words: str, by: tuple[str, ...]) -> Size:
    return Size(words, Growth.BY_KEYS if by else Growth.BOUNDED)


# --- sheets -----------------------------------------------------------------------------


@kept_by.register
def _cells(function: Sheet, inputs: Sizes) -> Size | None:
    if not function.remembered:
        return None
    parts = _windows_of(function)
    values = function.last_values()
    if values:
        parts.append(f"the last value of {_named(values)}")
    key = function.keys[:1]  # that of the other inputs is the same under other names
    return _per_key(f"{'; '.join(parts)}{for_each(key)}", key)


def _windows_of(sheet: Sheet) -> list[str]:
    """The windows of a sheet, those of one length together."""
    sources: dict[str, list[Address]] = {}
    for cell in sheet.cells:
        match cell.rule:
            case TimeWindow(source, length, _):
                words = f"the values of the last {render_duration(length)} of"
            case CountWindow(source, 1, _):
                words = "the last value of"
            case CountWindow(source, count, _):
                words = f"the last {count} values of"
            case _:
                continue
        sources.setdefault(words, []).append(source)
    return [f"{words} {_named(cells)}" for words, cells in sources.items()]


def _named(addresses: Iterable[Address]) -> str:
    """Cells by name, if they are few and a person has given them a place."""
    cells = sorted(set(addresses))
    if len(cells) > _MOST_CELLS or any(sheet == HIDDEN_SHEET for sheet, _, _ in cells):
        return f"{len(cells)} cells" if len(cells) > 1 else "a part of a formula"
    return ", ".join(map(address_text, cells))
