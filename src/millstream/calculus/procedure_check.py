"""What every procedure must obey: names, types, places, and bounds as far as they are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass

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
    statements_in,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term, walk
from millstream.values.core.scalar import Signature
from millstream.values.core.table import SCALARS
from millstream.values.types import BOOLEAN, INT32, TEXT, Type


def code_faults(code: Code) -> Iterator[str]:
    """What is wrong with a code, one sentence each."""
    yield from _names(code)
    checker = _Checker(code, {s.name: s.shape for s in (*code.parameters, *code.fields)})
    yield from checker.sizes(code.fields)
    for body in (code.init, code.first or (), code.body):
        yield from checker.inside(body, None)
    for routine in code.routines:
        yield from checker.routine(routine)


def _names(code: Code) -> Iterator[str]:
    """Every variable has a name of its own, wherever it is declared."""
    slots = [*code.parameters, *code.fields]
    for routine in code.routines:
        slots += routine.parameters
    for body in code.bodies():
        slots += (s.slot for s in statements_in(body) if isinstance(s, Let))
    for names, what in (
        ([slot.name for slot in slots], "variables"),
        ([routine.name for routine in code.routines], "functions"),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield f'{count} {what} of {code.name} are named "{name}"'
    yield from _recursion(code)


def _recursion(code: Code) -> Iterator[str]:
    calls = {
        r.name: {s.routine for s in statements_in(r.body) if isinstance(s, Invoke)}
        for r in code.routines
    }
    for name in calls:
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            for other in calls.get(waiting.pop(), set()) - reached:
                reached.add(other)
                waiting.append(other)
        if name in reached:
            yield f'the function "{name}" of {code.name} calls itself'


#: What is wrong, and at last the shape of what was looked at, if it has one.
Finding = Generator[str, None, Shape | None]


@dataclass
class _Checker:
    """Mutable: the variables that can be seen."""

    code: Code
    known: dict[str, Shape]

    def routine(self, routine: Routine) -> Iterator[str]:
        before = dict(self.known)
        self.known |= {slot.name: slot.shape for slot in routine.parameters}
        yield from self.inside(routine.body, routine)
        self.known = before

    def inside(self, body: Body, routine: Routine | None, loops: int = 0) -> Iterator[str]:
        before = dict(self.known)
        for statement in body:
            yield from self.statement(statement, routine, loops)
        self.known = before

    def statement(self, statement: Statement, routine: Routine | None, loops: int) -> Iterator[str]:
        match statement:
            case Let(slot):
                self.known[slot.name] = slot.shape
                yield from self.sizes((slot,))
            case Choose(condition, then, otherwise):
                yield from self.wanted(condition, BOOLEAN, "a condition")
                yield from self.inside(then, routine, loops)
                yield from self.inside(otherwise, routine, loops)
            case Repeat(condition, inner, after):
                if condition is not None:
                    yield from self.wanted(condition, BOOLEAN, "a condition")
                yield from self.inside(inner, routine, loops + 1)
                yield from self.inside(after, routine, 0)
            case Scope(inner):
                yield from self.inside(inner, routine, loops)
            case Leave(word):
                if not loops:
                    yield f"{self.code.name}: `{word}` stands outside of a loop"
            case Return(value):
                wanted = None if routine is None else routine.result
                if (value is None) != (wanted is None):
                    yield f"{self.code.name}: a return must give {wanted or 'nothing'}"
                elif value is not None and wanted is not None:
                    yield from self.wanted(value, wanted, "what is returned")
            case _:
                yield from self.exchange(statement)

    def exchange(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Assign(target, value):
                shape = yield from self.at(target)
                if shape is not None:
                    yield from self.wanted(value, shape, "what is assigned")
            case Pop(target):
                yield from self.item(target, "pops")
            case Peek(index, target):
                yield from self.wanted(index, INT32, "an index")
                yield from self.item(target, "peeks")
            case Push(value, output):
                given = TEXT if output else self.code.given
                if output > 1:  # a message: whoever hears it knows what it wants
                    return
                if given is None:
                    yield f"{self.code.name} pushes, but gives nothing"
                else:
                    yield from self.wanted(value, given, "what is pushed")
            case Invoke():
                yield from self.invoke(statement)

    def item(self, target: Place | None, word: str) -> Iterator[str]:
        if self.code.taken is None:
            yield f"{self.code.name} {word}, but takes nothing"
        elif target is not None:
            shape = yield from self.at(target)
            if shape is not None and not _alike(shape, self.code.taken):
                yield f"{self.code.name} {word} {self.code.taken} into {shape}"

    def invoke(self, invoke: Invoke) -> Iterator[str]:
        routine = next((r for r in self.code.routines if r.name == invoke.routine), None)
        if routine is None:
            yield f'{self.code.name}: unknown function "{invoke.routine}"'
            return
        if len(invoke.arguments) != len(routine.parameters):
            count = len(routine.parameters)
            yield f'"{routine.name}" takes {count} arguments, got {len(invoke.arguments)}'
            return
        for slot, argument in zip(routine.parameters, invoke.arguments, strict=True):
            yield from self.wanted(argument, slot.shape, f'"{slot.name}"')
        if invoke.target is not None:
            shape = yield from self.at(invoke.target)
            if routine.result is None or (shape and not _alike(shape, routine.result)):
                yield f'"{routine.name}" gives {routine.result or "nothing"}, wanted {shape}'

    # --- places and terms ---

    def sizes(self, slots: tuple[Slot, ...]) -> Iterator[str]:
        for slot in slots:
            for size in _sizes(slot.shape):
                yield from self.wanted(size, INT32, f'the size of "{slot.name}"')
                if isinstance(size, Literal) and int(size.value or 0) < 0:
                    yield f'the size of "{slot.name}" is {size.value}'

    def wanted(self, operand: Operand, shape: Shape, what: str) -> Iterator[str]:
        if isinstance(operand, Place):
            got = yield from self.at(operand)
        else:
            yield from self.term(operand)
            got = operand.type
        if got is not None and not _alike(got, shape):
            yield f"{self.code.name}: {what} must be {shape}, got {got}"

    def term(self, term: Term) -> Iterator[str]:
        for node in walk(term):
            match node:
                case Read(place, type_):
                    shape = yield from self.at(place, is_deep=False)
                    if shape is not None and shape != type_:
                        yield f'{self.code.name}: "{place.variable}" is {shape}, read as {type_}'
                case Call(function, args, type_):
                    scalar = SCALARS.get(function)
                    answer = None if scalar is None else scalar.rule(tuple(a.type for a in args))
                    if answer is None:
                        yield f'{self.code.name}: unknown function "{function}"'
                    elif not isinstance(answer, Signature):
                        yield f"{self.code.name}: {function}: {answer}"
                    elif answer.result != type_:
                        yield f"{self.code.name}: {function} gives {answer.result}, not {type_}"
                case Literal():
                    continue
                case _:
                    yield f"{self.code.name}: a procedure sees no columns"

    def at(self, place: Place, *, is_deep: bool = True) -> Finding:
        """The shape of a place; indexes are looked at too, unless the caller does."""
        shape = self.known.get(place.variable)
        if shape is None:
            yield f'{self.code.name}: unknown variable "{place.variable}"'
        for step in place.path:
            if shape is None:
                return None
            if isinstance(step, str):
                part = shape.part(step) if isinstance(shape, RecordOf) else None
                if part is None:
                    yield f'{self.code.name}: "{place.variable}" has no part "{step}"'
                shape = part
                continue
            if is_deep:
                yield from self.term(step)
            if step.type != INT32:
                yield f"{self.code.name}: an index must be {INT32}, got {step.type}"
            if not isinstance(shape, ArrayOf):
                yield f'{self.code.name}: "{place.variable}" has no elements there'
                return None
            yield from self.bounds(step, shape.size, place)
            shape = shape.element
        return shape

    def bounds(self, index: Term, size: Term, place: Place) -> Iterator[str]:
        match index, size:
            case Literal(int(number)), Literal(int(count)) if not 0 <= number < count:
                yield f'{self.code.name}: "{place.variable}" has {count} elements, none is {number}'


def _sizes(shape: Shape) -> Iterator[Term]:
    match shape:
        case ArrayOf(element, size):
            yield size
            yield from _sizes(element)
        case RecordOf(parts):
            for _, part in parts:
                yield from _sizes(part)


def _alike(one: Shape, other: Shape) -> bool:
    """Sizes may be told in several ways, and are looked at when it runs."""
    match one, other:
        case ArrayOf(a, Literal(m)), ArrayOf(b, Literal(n)):
            return m == n and _alike(a, b)
        case ArrayOf(a), ArrayOf(b):
            return _alike(a, b)
        case RecordOf(parts), RecordOf(others):
            return len(parts) == len(others) and all(
                n == m and _alike(a, b) for (n, a), (m, b) in zip(parts, others, strict=True)
            )
        case _:
            return isinstance(one, Type) and one == other
