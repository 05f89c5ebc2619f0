"""What is known of a stretch of code before it runs, so that it can run without checks.

A `Region` is the loop over firings, or a loop inside of it. Wherever it uses an index whose
least and largest value are known before it begins, it asks for a condition instead; if all
conditions hold, the code without checks runs, else the careful one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.calculus.procedures import (
    Assign,
    Body,
    Code,
    Invoke,
    Let,
    Peek,
    Pop,
    Repeat,
    Routine,
    Statement,
    statements_in,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.kernels.loop.ir import ZERO, Local, Value, integer
from millstream.kernels.loop.numbers import (
    ONE,
    all_of,
    at_least,
    divided,
    greater_of,
    minus,
    plus,
    times,
    wide,
)
from millstream.values.types import INT32

#: The least and the largest value, of what does not change.
Range = tuple[Value, Value]
#: The local that a place without indexes is kept in.
Named = Callable[[Place], Local | None]

_LEAST, _MOST = integer(-(2**31)), integer(2**31 - 1)


@dataclass
class Region:
    """Mutable: what changes inside, the ranges of what counts, and what is asked for."""

    changed: set[Local]
    ranges: dict[Local, Range] = field(default_factory=dict)
    conditions: dict[Value, None] = field(default_factory=dict)

    def require(self, *conditions: Value) -> None:
        self.conditions.update(dict.fromkeys(conditions))

    @property
    def condition(self) -> Value:
        return all_of(list(self.conditions))

    def range_of(self, term: Term, named: Named) -> Range | None:
        """The range of an index while the region runs; what that needs is asked for."""
        asked: list[Value] = []
        known = self._range(term, named, asked)
        if known is not None:
            self.require(*asked)
        return known

    def _range(self, term: Term, named: Named, asked: list[Value]) -> Range | None:
        match term:
            case Literal(int(value)):
                return integer(value), integer(value)
            case Read(place, type_) if type_ == INT32:
                return self._of_local(named(place))
            case Call("int32_add" | "int32_sub" | "int32_mul" as function, (left, right)):
                a, b = self._range(left, named, asked), self._range(right, named, asked)
                return None if a is None or b is None else _combined(function, a, b, asked)
            case Call("int32_div", (left, Literal(int(by)))) if by > 0:
                known = self._range(left, named, asked)
                if known is None:
                    return None
                asked.append(at_least(known[0], ZERO))
                return divided(known[0], integer(by)), divided(known[1], integer(by))
            case Call("int32_rem", (left, Literal(int(by)))) if by > 0:
                known = self._range(left, named, asked)
                if known is None:
                    return None
                asked.append(at_least(known[0], ZERO))
                return ZERO, integer(by - 1)
            case Call("int32_and", (_, Literal(int(mask)))) if mask >= 0:
                return ZERO, integer(mask)
            case _:
                return None

    def _of_local(self, local: Local | None) -> Range | None:
        if local is None or (local in self.changed and local not in self.ranges):
            return None
        return self.ranges.get(local, (wide(local), wide(local)))


def _combined(function: str, a: Range, b: Range, asked: list[Value]) -> Range:
    """What wraps would be another number: sums must stay within 32 bits."""
    match function:
        case "int32_add":
            known = plus(a[0], b[0]), plus(a[1], b[1])
        case "int32_sub":
            known = minus(a[0], b[1]), minus(a[1], b[0])
        case _:
            asked += [at_least(a[0], ZERO), at_least(b[0], ZERO)]
            known = times(a[0], b[0]), times(a[1], b[1])
    asked += [at_least(known[0], _LEAST), at_least(_MOST, known[1])]
    return known


@dataclass(frozen=True, slots=True)
class Counter:
    """A loop that counts: its variable, what it begins and ends with, and its step."""

    place: Place
    start: Term
    bound: Term
    step: int
    is_inclusive: bool


_UP = {"int32_lt": False, "int32_le": True}
_DOWN = {"int32_gt": False, "int32_ge": True}


def counter_of(loop: Repeat, before: Statement | None) -> Counter | None:
    """How a loop counts, if what stands before it and after its body says so."""
    match before, loop.condition, loop.after:
        case (
            Assign(Place(begun, ()) as place, Call() | Literal() | Read() as start),
            Call(test, (Read(Place(name, ())), bound)),
            (Assign(Place(stepped, ()), Call("int32_add" | "int32_sub" as way,
                                             (Read(Place(own, ())), Literal(int(by))))),),
        ) if begun == name == stepped == own and loop.tests_first:  # fmt: skip
            step = by if way == "int32_add" else -by
            tests = _UP if step > 0 else _DOWN
            if step and test in tests:
                return Counter(place, start, bound, step, tests[test])
    return None


def counted(counter: Counter, region: Region, named: Named) -> tuple[Range, Value | None] | None:
    """The range of what counts inside of its loop, and how often it goes round if that is known."""
    first = region.range_of(counter.start, named)
    last = region.range_of(counter.bound, named)
    if first is None or last is None:
        return None
    if counter.step > 0:
        inside = first[0], last[1] if counter.is_inclusive else minus(last[1], ONE)
    else:
        inside = last[0] if counter.is_inclusive else plus(last[0], ONE), first[1]
    by = integer(abs(counter.step))
    rounds = None
    if first[0] == first[1] and last[0] == last[1]:
        way = minus(last[0], first[0]) if counter.step > 0 else minus(first[0], last[0])
        steps = divided(plus(way, by if counter.is_inclusive else minus(by, ONE)), by)
        rounds = greater_of(ZERO, steps)
    # What counts must not wrap when it goes beyond its end.
    region.require(at_least(_MOST, plus(inside[1], by)), at_least(minus(inside[0], by), _LEAST))
    return inside, rounds


def assigned_in(body: Body, code: Code) -> set[str]:
    """The variables of a code that statements may change."""
    names: set[str] = set()
    for statement in statements_in(body):
        match statement:
            case Let(slot):
                names.add(slot.name)
            case Assign(target) | Pop(Place() as target) | Peek(_, target):
                names.add(target.variable)
            case Invoke(routine, _, target):
                if target is not None:
                    names.add(target.variable)
                names |= assigned_in(routine_of(code, routine).body, code)
                names |= {slot.name for slot in routine_of(code, routine).parameters}
            case _:
                continue
    return names


def routine_of(code: Code, name: str) -> Routine:
    return next(routine for routine in code.routines if routine.name == name)
