"""Filters that keep nothing work side by side, so many items at a time.

Law: what a firing gives depends on the items that it sees, and on nothing else. If every firing
takes u items off and sends w, then copies of the filter can take turns with the firings: items are
split by u and put together by w.

    before  (out) <- Work[... pop 2 peek 2 push 3](in);
    after   (t1, t2, $sc) <- RoundRobinSplit[2, 2](in, $sc);
            (out.1) <- Work[...](t1); (out.2) <- Work[...](t2);
            (out, $v1, $v2, $jc) <- RoundRobinJoin[3, 3](out.1, out.2, $v1, $v2, $jc);

A filter that looks further than it takes off needs items that are another's turn, so each copy is
given all of them. Before its first firing it passes over the items of the copies before it, and
before each other firing over those of all other copies; it looks as far as the filter did, so what
it sends leaves when it did.

    before  (out) <- Work[... pop 1 peek 4 push 1](in);
    after   (t1, t2) <- Duplicate(in);
            (out.1) <- Work[first: fire; then: pass over 1, fire](t1);
            (out.2) <- Work[first: pass over 1, fire; then: pass over 1, fire](t2);
            (out, $v1, $v2, $jc) <- RoundRobinJoin[1, 1](out.1, out.2, $v1, $v2, $jc);

The paper's rule O-Split asks only that there be no variables; see `split_stateless`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.procedures import Assign, Body, Invoke, Let, Pop, Repeat, Routine, Slot
from millstream.calculus.terms import Call, Literal, Place, Read
from millstream.calculus.types import BOOLEAN
from millstream.calculus.work import Rates, Work
from millstream.optimiser.split_stateless import is_given_turns
from millstream.values.types import INT32

#: How many copies there are, if nobody says.
DEGREE = 2
#: What copies that are given all items do at each of their own turns.
_FIRING = "firing$"
_DONE = "it is one of several that take turns already"


def split_by_rates(program: Program, degree: int = DEGREE) -> Program:
    """Split every filter that can be; the same program if none can."""
    producers = program.producers()
    return rewritten(program, {
        id(op): _copies(op, op.function, degree)
        for op in program.operators
        if isinstance(op.function, Work) and _refusal(op, op.function, producers) is None
    })  # fmt: skip


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The filters that stay as they are, and the guard of each."""
    producers = program.producers()
    for op in program.operators:
        if isinstance(op.function, Work):
            why = _refusal(op, op.function, producers)
            if why is not None and why != _DONE:
                yield op, why


def _refusal(op: Operator, work: Work, producers: Mapping[str, Operator]) -> str | None:
    """Why a filter stays as it is; None if it can be split."""
    if work.pace is not None:
        return "it is a source, which is given nothing that could be shared"
    if work.changes:
        return "its rates change, so it is not known before whose turn an item is"
    if work.rates.push == 0 or len(op.outputs) != 1:
        return "it sends no items, or texts as well, so turns would not meet again"
    if work.tells or work.hears or work.turns_taken:
        return "messages between filters count its firings"
    if not work.is_fixed:
        return "a firing leaves something that the next one sees"
    if _is_copy(work) or is_given_turns(op, producers):
        return _DONE
    if work.first is not None:
        return "its first firing is another than the rest, and only one copy would have it"
    return None


def _copies(op: Operator, work: Work, degree: int) -> list[Operator]:
    """The filter as several between a split, or copies of all items, and a join."""
    (given,), (taken,) = op.inputs, op.outputs
    numbers = range(1, degree + 1)
    turns = tuple(f"{taken}.turn{n}" for n in numbers)
    inner = tuple(f"{taken}.{n}" for n in numbers)
    held = (*(f"{taken}.held{n}" for n in numbers), f"{taken}.join")
    looks_further = work.rates.peek > work.rates.pop
    made = [_shared_out(op, given, turns, work)]
    for number, (turn, out) in enumerate(zip(turns, inner, strict=True)):
        kept = tuple(f"{name}.{number + 1}" for name in op.reads)
        copy = _every_other(work, number, degree) if looks_further else work
        made.append(Operator(copy, (turn,), (out,), kept, kept, op.origin))
    join = RoundRobinJoin((work.rates.push,) * degree)
    made.append(Operator(join, inner, (taken,), held, held, op.origin))
    return made


def _shared_out(op: Operator, given: str, turns: tuple[str, ...], work: Work) -> Operator:
    if work.rates.peek > work.rates.pop:
        return Operator(Duplicate(), (given,), turns, origin=op.origin)
    cursor = (f"{op.outputs[0]}.split",)
    split = RoundRobinSplit((work.rates.pop,) * len(turns))
    return Operator(split, (given,), turns, cursor, cursor, op.origin)


def _every_other(work: Work, number: int, degree: int) -> Work:
    """The copy of a number, counted from 0, which is given all items."""
    pop, peek, push = work.rates.pop, work.rates.peek, work.rates.push
    before, between = number * pop, (degree - 1) * pop
    code = replace(
        work.code,
        name=f"{work.code.name}_{number + 1}",
        first=(*_passing(before, "passed$first"), Invoke(_FIRING, ())),
        body=(*_passing(between, "passed$then"), Invoke(_FIRING, ())),
        routines=(*work.code.routines, Routine(_FIRING, (), None, work.code.body)),
    )
    return replace(
        work, code=code,
        first=Rates(before + pop, before + peek, push),
        rates=Rates(between + pop, between + peek, push),
    )  # fmt: skip


def _passing(count: int, name: str) -> Body:
    """So many items are passed over, counted under a name."""
    if count == 0:
        return ()
    passed = Read(Place(name), INT32)
    goes_on = Call("int32_lt", (passed, Literal(count, INT32)), BOOLEAN)
    more = Call("int32_add", (passed, Literal(1, INT32)), INT32)
    return (Let(Slot(name, INT32)), Repeat(goes_on, (Pop(),), (Assign(Place(name), more),)))


def _is_copy(work: Work) -> bool:
    return any(routine.name == _FIRING for routine in work.code.routines)
