"""What procedures do, statement by statement, on Python values: obvious and slow.

An array is a list, a record a dictionary, all else a plain value. Whatever is assigned, pushed
or handed over is copied. What must not happen, such as an index out of range, is a `Trap`.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Choose,
    Code,
    Invoke,
    Leave,
    Let,
    Operand,
    Peek,
    Pop,
    Push,
    RecordOf,
    Repeat,
    Return,
    Routine,
    Scope,
    Shape,
    Slot,
    Statement,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.source import Span
from millstream.values.core.scalar import ScalarFault
from millstream.values.core.table import SCALARS
from millstream.values.types import Kind

Value = Any


class Trap(Exception):
    """Something that must not happen has happened, at a place."""

    def __init__(self, message: str, span: Span | None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


class Host(Protocol):
    """Where items come from and go to."""

    def pop(self) -> Value: ...

    def peek(self, index: int) -> Value: ...

    def push(self, output: int, value: Value) -> None: ...


class _End(enum.Enum):
    """How statements were left before their end."""

    BREAK = "break"
    CONTINUE = "continue"
    RETURN = "return"


_ZEROS: Mapping[Kind, Value] = {
    Kind.NUMBER: 0.0, Kind.SINGLE: 0.0, Kind.BOOLEAN: False, Kind.TEXT: "",
}  # fmt: skip
#: An array with more of them is taken for a slip, before it has filled the memory.
_MOST_ELEMENTS = 1 << 25
_ENDLESS = "this loop does not come to an end"
#: After so many turns of a loop, and twice as many each time, the variables are looked at. If they
#: are as they were, and nothing comes from outside, then they will always be so.
_LOOKED_AT = 256


@dataclass
class Machine:
    """Mutable: the variables of a code with its arguments, and what runs on them."""

    code: Code
    variables: dict[str, Value] = field(default_factory=dict)
    #: How many statements its loops may still do; none: as many as they like.
    steps_left: int | None = None

    @staticmethod
    def started(
        code: Code, arguments: Sequence[Value], host: Host, most_steps: int | None = None
    ) -> Machine:
        """With its fields as `init` leaves them."""
        machine = Machine(code, steps_left=most_steps)
        for slot, value in zip(code.parameters, arguments, strict=True):
            machine.variables[slot.name] = copy.deepcopy(value)
        for slot in code.fields:
            machine.let(slot, machine.variables)
        machine.run(code.init, host)
        return machine

    def run(self, body: Body, host: Host) -> None:
        """Once through; variables of its own are gone afterwards."""
        Frame(self, host, {}).run(body)

    def called(self, routine: Routine, values: Sequence[Value], host: Host) -> None:
        """A routine, called from outside with values that are as its parameters want them."""
        own = {slot.name: value
               for slot, value in zip(routine.parameters, values, strict=True)}  # fmt: skip
        Frame(self, host, own).run(routine.body)

    def let(self, slot: Slot, variables: dict[str, Value]) -> None:
        frame = Frame(self, None, variables)
        if isinstance(slot.shape, ArrayOf):
            count = frame.elements(slot.shape)
            if count > _MOST_ELEMENTS:
                most = f"no array has more than {_MOST_ELEMENTS:,}"
                raise Trap(f'"{slot.name}" would have {count:,} elements: {most}', None)
        variables[slot.name] = frame.zero(slot.shape)


@dataclass
class Frame:
    """Mutable: one activation of a body, with the variables that it has declared."""

    machine: Machine
    host: Host | None
    own: dict[str, Value]
    returned: Value = None

    # --- values ---

    def zero(self, shape: Shape) -> Value:
        match shape:
            case ArrayOf(element, size):
                count = self.value(size)
                return [self.zero(element) for _ in range(count)]
            case RecordOf(parts):
                return {name: self.zero(part) for name, part in parts}
            case _:
                return _ZEROS.get(shape.kind, 0)

    def elements(self, shape: Shape) -> int:
        """How many values something has in all."""
        match shape:
            case ArrayOf(element, size):
                return int(self.value(size)) * self.elements(element)
            case RecordOf(parts):
                return sum(self.elements(part) for _, part in parts)
            case _:
                return 1

    def value(self, term: Term) -> Value:
        # Not by `match`, which takes twice as long, and nearly all that is done is done here.
        if isinstance(term, Literal):
            return term.value
        if isinstance(term, Read):
            return self.at(term.place)
        assert isinstance(term, Call), f"no term of a procedure: {term!r}"
        return self.called(term, [self.value(a) for a in term.args])

    def called(self, call: Call, values: list[Value]) -> Value:
        scalar = SCALARS[call.function]
        if scalar.sees_nulls:
            return scalar.meaning(*((lambda v=value: v) for value in values))
        kinds = ([a.type.kind for a in call.args],) if scalar.sees_kinds else ()
        try:
            return scalar.meaning(*kinds, *values)
        except ScalarFault as fault:
            raise Trap(str(fault), call.span) from None

    def operand(self, operand: Operand) -> Value:
        if isinstance(operand, Place):
            return copy.deepcopy(self.at(operand))
        return self.value(operand)

    # --- places ---

    def holder(self, name: str) -> dict[str, Value]:
        return self.own if name in self.own else self.machine.variables

    def at(self, place: Place) -> Value:
        value = self.holder(place.variable)[place.variable]
        for step in place.path:
            value = value[self.step(step, value, place)]
        return value

    def step(self, step: Term | str, value: Value, place: Place) -> Any:
        if isinstance(step, str):
            return step
        index = self.value(step)
        if not 0 <= index < len(value):
            raise Trap(f"index {index} is outside of an array of {len(value)}", place.span)
        return index

    def put(self, place: Place, value: Value) -> None:
        holder: Any = self.holder(place.variable)
        last: Any = place.variable
        for step in place.path:
            holder = holder[last]
            last = self.step(step, holder, place)
        holder[last] = value

    # --- statements ---

    def run(self, body: Body) -> _End | None:
        for statement in body:
            end = self.do(statement)
            if end is not None:
                return end
        return None

    def do(self, statement: Statement) -> _End | None:
        match statement:
            case Let(slot):
                self.machine.let(slot, self.own)
            case Assign(target, value):
                self.put(target, self.operand(value))
            case Choose(condition, then, otherwise):
                return self.run(then if self.value(condition) else otherwise)
            case Repeat():
                return self.repeat(statement)
            case Leave(word):
                return _End(word)
            case Scope(body):
                return self.run(body)
            case Invoke(_, _, target):
                result = self.invoke(statement)
                if target is not None:
                    self.put(target, result)
            case Return(value):
                self.returned = None if value is None else self.operand(value)
                return _End.RETURN
            case _:
                self.exchange(statement)
        return None

    def exchange(self, statement: Pop | Peek | Push) -> None:
        """Items that come and go."""
        try:
            self.exchanged(statement)
        except Trap as trap:
            raise Trap(trap.message, trap.span or statement.span) from None

    def exchanged(self, statement: Pop | Peek | Push) -> None:
        assert self.host is not None
        match statement:
            case Pop(target):
                item = self.host.pop()
                if target is not None:
                    self.put(target, item)
            case Peek(index, target):
                self.put(target, copy.deepcopy(self.host.peek(self.value(index))))
            case Push(value, output):
                self.host.push(output, self.operand(value))

    def repeat(self, loop: Repeat) -> _End | None:
        tests = loop.tests_first
        turns, seen = 0, None
        while True:
            if tests and loop.condition is not None and not self.value(loop.condition):
                return None
            tests = True
            end = self.run(loop.body)
            if end is _End.BREAK:
                return None
            if end is _End.RETURN:
                return end
            self.run(loop.after)
            if self.machine.steps_left is not None:
                turns += 1
                self.count_steps(self.machine.steps_left, loop)
                if turns >= _LOOKED_AT and turns.bit_count() == 1:
                    before, seen = seen, copy.deepcopy((self.own, self.machine.variables))
                    if before == seen:
                        raise Trap(_ENDLESS, loop.span)

    def count_steps(self, left: int, loop: Repeat) -> None:
        left -= 1 + len(loop.body) + len(loop.after)
        self.machine.steps_left = left
        if left < 0:
            raise Trap(_ENDLESS, loop.span)

    def invoke(self, statement: Invoke) -> Value:
        routine = next(r for r in self.machine.code.routines if r.name == statement.routine)
        given = [self.operand(a) for a in statement.arguments]
        own = {slot.name: value for slot, value in zip(routine.parameters, given, strict=True)}
        frame = type(self)(self.machine, self.host, own)
        frame.run(routine.body)
        return frame.returned
