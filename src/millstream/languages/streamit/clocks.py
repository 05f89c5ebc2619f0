"""Sources inside of a program that takes items: how often they fire is what its items allow.

Each gets a clock, which sees the items too. At the end of the initialisation, and of each steady
state, a clock gives as many ticks as its source fires by then, and the source takes one for each
firing. So there is no source left, and everything else is as in other programs that take items.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.procedures import (
    Assign,
    Body,
    Code,
    Let,
    Pop,
    Push,
    Repeat,
    Shape,
    Slot,
)
from millstream.calculus.terms import Call, Literal, Place, Read
from millstream.calculus.work import Rates
from millstream.errors import CheckError, Fault
from millstream.languages.streamit.balance import Balance, balanced
from millstream.languages.streamit.flat import Actor, Flat
from millstream.languages.streamit.graph import Filter, Weights
from millstream.values.types import BIT, BOOLEAN, INT32


def with_clocks(flat: Flat, balance: Balance, shape: Shape | None) -> Balance:
    """The schedule of a graph whose sources have got clocks; `shape` is that of its items."""
    sources = [
        actor for actor in flat.actors
        if actor.is_source and isinstance(actor.work, Filter) and actor.work.file is None
    ]  # fmt: skip
    if flat.entry is None or shape is None or not sources:
        return balance
    initially, each = balance.entry
    if flat.changes or not each:
        why = "rates change" if flat.changes else "no item from outside is ever taken"
        raise CheckError([
            Fault(f"{source.path} is a source in a program that takes items, and where {why} "
                  "nobody can say how often it is to fire", source.span,
                  "let it take an item for each firing, or let the program begin with a source")
            for source in sources
        ])  # fmt: skip
    split = _split(flat)
    for source in sources:
        number = source.number
        counts = balance.initially[number], balance.repeats[number]
        clock = _clock(source, shape, (initially, each), counts)
        _put_before(flat, split, clock, source)
    _renumber(flat)
    return balanced(flat)


def _split(flat: Flat) -> Actor:
    """Lets the items go where they went, and to the clocks."""
    assert flat.entry is not None
    target = flat.entry.target
    assert target is not None
    span = target.span
    split = flat.actor("Clock.split", Weights("duplicate", (), span), span)
    onward = flat.channel()
    target.inputs[target.inputs.index(flat.entry)] = onward
    onward.target = target
    flat.read(split, flat.entry, 1)
    flat.write(split, onward, 1)
    return split


def _put_before(flat: Flat, split: Actor, clock: Filter, source: Actor) -> None:
    assert isinstance(source.work, Filter)
    items, ticks = flat.channel(), flat.channel()
    actor = flat.actor(clock.path, clock, clock.span)
    flat.write(split, items, 1)
    flat.read(actor, items, clock.rates.pop)
    flat.write(actor, ticks, clock.rates.push)
    source.work = _ticking(source.work)
    flat.read(source, ticks, 1)


def _renumber(flat: Flat) -> None:
    """Actors stand in the order in which data passes them: clocks before all others."""
    flat.actors.sort(key=lambda actor: not actor.path.startswith("Clock."))
    for number, actor in enumerate(flat.actors):
        actor.number = number


def _clock(
    source: Actor, shape: Shape, items: tuple[int, int], firings: tuple[int, int]
) -> Filter:  # fmt: skip
    (initially, each), (first, later) = items, firings
    has_first = bool(initially or first)
    code = Code(
        "Clock", (), (), shape, BIT, (),
        _takes_and_gives(initially, first, "first") if has_first else None,
        _takes_and_gives(each, later, "each"),
    )  # fmt: skip
    return Filter(
        f"Clock.{source.path}", code, (), shape, BIT, Rates(each, each, later),
        Rates(initially, initially, first) if has_first else None, source.span,
    )  # fmt: skip


def _takes_and_gives(taken: int, given: int, which: str) -> Body:
    tick = Push(Literal(0, BIT))
    return (*_repeated(Pop(), taken, f"taken_{which}"), *_repeated(tick, given, f"given_{which}"))


def _repeated(statement: Pop | Push, times: int, name: str) -> Body:
    if times <= 1:
        return (statement,) * times
    count = Read(Place(name), INT32)
    goes_on = Call("int32_lt", (count, Literal(times, INT32)), BOOLEAN)
    counts = Assign(count.place, Call("int32_add", (count, Literal(1, INT32)), INT32))
    return (Let(Slot(name, INT32)), Repeat(goes_on, (statement,), (counts,)))


def _ticking(work: Filter) -> Filter:
    """A source that takes a tick for each firing."""
    code = work.code
    first = None if code.first is None else (Pop(), *code.first)
    code = replace(code, taken=BIT, first=first, body=(Pop(), *code.body))
    one_more = (
        None if rates is None else replace(rates, pop=1, peek=1)
        for rates in (work.rates, work.first)
    )
    rates, first_rates = one_more
    assert rates is not None
    return replace(work, code=code, taken=BIT, rates=rates, first=first_rates)
