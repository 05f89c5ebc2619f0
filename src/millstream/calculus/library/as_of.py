"""As-of joins: for each row the latest of those that were valid at its time.

    slots = the log, with the slot of time in which each row begins
    asked = every row twice: for the slot its time lies in, and for the one before
    pairs = Join(asked, slots) on keys and slot, where the one is valid for the other
    as of = Aggregate(pairs): the latest

A slot is as long as a row lasts, so what is valid begins in one of two slots, and they are found
by their hash: it does not matter how much else the log holds, only how many rows lie within the
time that one lasts.
"""

from __future__ import annotations

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Branch,
    FlatMap,
    Join,
    Map,
)
from millstream.calculus.library.columns import kept
from millstream.calculus.library.outer_joins import Pairs
from millstream.calculus.terms import Call, Literal, Term
from millstream.calculus.types import BOOLEAN, DURATION, TIME
from millstream.calculus.wiring import Queue, Wiring

SLOT = "slot"


def as_of(
    wiring: Wiring,
    asked: Queue,
    log: Queue,
    on: Pairs,
    times: tuple[str, str],
    lasts: int,
    by: str,
    *,
    name: str,
) -> Queue:
    """Of each value of `by` the time of the row of the log that is valid, if there is one.

    `times` are the column of the time that is asked for, and of the time from which a row of
    the log is valid, up to `lasts` microseconds later.
    """
    length = Literal(max(lasts, 1), DURATION)
    when, begin = asked.column(times[0]), log.column(times[1])
    slots = Map((*kept(log.schema), Assign(SLOT, _slot(begin, length))))
    here = _slot(when, length)
    before = Call("-", (here, length), TIME)
    both = FlatMap(
        tuple(Branch(None, (*kept(asked.schema), Assign(SLOT, t))) for t in (here, before))
    )
    end = Call("+", (begin, Literal(lasts, DURATION)), TIME)
    is_valid = Call("and", (Call("<=", (begin, when), BOOLEAN),
                            Call("<=", (when, end), BOOLEAN)), BOOLEAN)  # fmt: skip
    pairs = wiring.add(
        Join((*on, (SLOT, SLOT)), is_valid),
        wiring.add(both, asked, name=name), wiring.add(slots, log, name=name), name=name,
    )  # fmt: skip
    last = Aggregation(times[1], "max", pairs.column(times[1]))
    return wiring.add(Aggregate((by,), (last,)), pairs, name=name)


def _slot(time: Term, length: Literal) -> Term:
    return Call("floor_time", (time, length), TIME)
