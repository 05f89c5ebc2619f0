"""Generated codes: every statement, every scalar of machines, and rates that are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Choose,
    Code,
    Invoke,
    Leave,
    Let,
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
from millstream.calculus.work import Pace, Rates, Work
from millstream.values.core.machine import MACHINE, single
from millstream.values.core.scalar import Signature
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, TEXT, Type

T = TypeVar("T")
TYPES = (INT32, SINGLE, BIT, BOOLEAN)
_SIZE = 4
_INTEGERS = st.sampled_from([0, 1, 2, 3, -1, 7, 31, 1 << 20, 2**31 - 1, -(2**31)])
_SINGLES = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 3e7, 1e30, -1e-30, 2.5, float("inf")])
VALUES: dict[Type, Any] = {
    INT32: _INTEGERS, SINGLE: _SINGLES.map(single), BIT: st.integers(0, 1), BOOLEAN: st.booleans(),
}  # fmt: skip


def _results() -> dict[Type, list[tuple[str, tuple[Type, ...]]]]:
    """The scalars that give each type, with what they take."""
    table: dict[Type, list[tuple[str, tuple[Type, ...]]]] = {type_: [] for type_ in (*TYPES, TEXT)}
    named = {str(type_): type_ for type_ in TYPES}
    for scalar in MACHINE:
        types = tuple(named[name] for name in scalar.usage.split("(")[1][:-1].split(", "))
        signature = scalar.rule(types)
        assert isinstance(signature, Signature)
        table[signature.result].append((scalar.name, types))
    return table


@dataclass
class CodeDraft:
    """Mutable: a code in the making."""

    draw: st.DrawFn
    taken: Shape | None
    given: Shape | None
    names: list[tuple[Place, Type]] = field(default_factory=list)
    arrays: list[tuple[str, Type]] = field(default_factory=list)
    routines: list[Routine] = field(default_factory=list)
    count: int = 0
    prints: bool = False

    def fresh(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def chance(self) -> bool:
        return self.draw(st.booleans())

    # --- terms ---

    def term(self, type_: Type, depth: int = 2) -> Term:
        kind = self.pick(("literal", "read", "read", "call", "call", "call") if depth else
                         ("literal", "read"))  # fmt: skip
        if kind == "read":
            places = [place for place, t in self.names if t == type_]
            places += [self.element(name) for name, t in self.arrays if t == type_ and depth]
            if places:
                return Read(self.pick(places), type_)
        if kind == "call":
            name, types = self.pick(RESULTS[type_])
            args = [self.term(t, depth - 1) for t in types]
            if name in ("int32_div", "int32_rem"):
                args[1] = Call("int32_or", (args[1], Literal(1, INT32)), INT32)
            return Call(name, tuple(args), type_)
        return Literal(self.draw(VALUES[type_]), type_)

    def element(self, name: str) -> Place:
        """An element whose number is within the array, one way or another."""
        index: Term = Literal(self.draw(st.integers(0, _SIZE - 1)), INT32)
        counters = [place for place, t in self.names if place.variable.startswith("i")]
        if counters and self.chance():
            index = Read(self.pick(counters), INT32)
        elif self.chance():
            index = Call("int32_and", (self.term(INT32, 0), Literal(_SIZE - 1, INT32)), INT32)
        return Place(name, (index,))

    def text(self) -> Term:
        function, (type_,) = self.pick(RESULTS[TEXT])
        value = Call(function, (self.term(type_, 1),), TEXT)
        end = Literal(self.pick(["", ", ", "\n", "é"]), TEXT)
        return Call("||", (value, end), TEXT)

    # --- statements ---

    def target(self) -> tuple[Place, Type] | None:
        options = [(p, t) for p, t in self.names if not p.variable.startswith(("i", "n"))]
        options += [(self.element(name), t) for name, t in self.arrays]
        return self.pick(options) if options else None

    def body(self, depth: int, *, in_loop: bool = False) -> Body:
        kept = len(self.names), len(self.arrays)
        body: list[Statement] = []
        for _ in range(self.draw(st.integers(1, 3))):
            body += self.some(depth, in_loop=in_loop)
        del self.names[kept[0] :], self.arrays[kept[1] :]
        return tuple(body)

    def some(self, depth: int, *, in_loop: bool) -> list[Statement]:
        kinds = ["assign", "assign", "let", "array", "copy", "print"]
        kinds += ["choose", "loop", "scope", "invoke"] if depth else []
        kind = self.pick([*kinds, "leave"] if in_loop else kinds)
        made: list[Statement] = getattr(self, f"_{kind}")(depth)
        return made

    def _assign(self, depth: int) -> list[Statement]:
        target = self.target()
        return [] if target is None else [Assign(target[0], self.term(target[1]))]

    def _let(self, depth: int) -> list[Statement]:
        name, type_ = self.fresh(), self.pick(TYPES)
        self.names.append((Place(name), type_))
        return [Let(Slot(name, type_)), Assign(Place(name), self.term(type_))]

    def _array(self, depth: int) -> list[Statement]:
        name, type_ = self.fresh(), self.pick(TYPES)
        self.arrays.append((name, type_))
        size: Term = Read(Place("n"), INT32) if self.draw(st.booleans()) else Literal(_SIZE, INT32)
        return [Let(Slot(name, ArrayOf(type_, size)))]

    def _copy(self, depth: int) -> list[Statement]:
        pairs = [(a, b) for a, t in self.arrays for b, u in self.arrays if t == u and a != b]
        if not pairs:
            return []
        to, source = self.pick(pairs)
        return [Assign(Place(to), Place(source))]

    def _print(self, depth: int) -> list[Statement]:
        return [Push(self.text(), 1)] if self.prints else []

    def _choose(self, depth: int) -> list[Statement]:
        otherwise = self.body(depth - 1) if self.draw(st.booleans()) else ()
        return [Choose(self.term(BOOLEAN), self.body(depth - 1), otherwise)]

    def _scope(self, depth: int) -> list[Statement]:
        return [Scope(self.body(depth - 1))]

    def _leave(self, depth: int) -> list[Statement]:
        return [Choose(self.term(BOOLEAN, 1), (Leave(self.pick(("break", "continue"))),))]

    def _loop(self, depth: int) -> list[Statement]:
        return self.counted(lambda: self.body(depth - 1, in_loop=True), self.bound())

    def bound(self) -> Term:
        return Read(Place("n"), INT32) if self.draw(st.booleans()) else Literal(_SIZE, INT32)

    def counted(self, body: Callable[[], Body], bound: Term) -> list[Statement]:
        """Up, down, or while something holds, so many times."""
        self.count += 1
        name = f"i{self.count}"
        place, one = Place(name), Literal(1, INT32)
        read = Read(place, INT32)
        kept = len(self.names)
        self.names.append((place, INT32))
        inner = body()
        del self.names[kept:]
        if self.draw(st.booleans()):
            last = Call("int32_sub", (bound, one), INT32)
            test = Call("int32_ge", (read, Literal(0, INT32)), BOOLEAN)
            step = Call("int32_sub", (read, one), INT32)
            begin: Term = last
        else:
            begin, test = Literal(0, INT32), Call("int32_lt", (read, bound), BOOLEAN)
            step = Call("int32_add", (read, one), INT32)
        tests_first = self.draw(st.integers(0, 4)) > 0
        loop = Repeat(test, inner, (Assign(place, step),), tests_first)
        return [Let(Slot(name, INT32)), Assign(place, begin), loop]

    def _invoke(self, depth: int) -> list[Statement]:
        target = self.target()
        routines = [r for r in self.routines if target is not None and r.result == target[1]]
        if not routines or target is None:
            return []
        routine = self.pick(routines)
        args = tuple(self.term(s.shape, 1) for s in routine.parameters)
        return [Invoke(routine.name, args, target[0])]

    # --- items ---

    def pops(self, count: int) -> list[Statement]:
        return self.often(count, self.popped)

    def pushes(self, count: int) -> list[Statement]:
        return self.often(count, self.pushed)

    def often(self, count: int, make: Callable[[], Body]) -> list[Statement]:
        """One after the other, or in a loop, the number of which may be a parameter."""
        if count == _SIZE and self.draw(st.booleans()):
            return self.counted(make, self.bound())
        if count and self.draw(st.booleans()):
            return self.counted(make, Literal(count, INT32))
        return [statement for _ in range(count) for statement in make()]

    def held(self, shape: Shape) -> tuple[list[Statement], Place]:
        name = self.fresh()
        if isinstance(shape, Type):
            self.names.append((Place(name), shape))
        return [Let(Slot(name, shape))], Place(name)

    def popped(self) -> Body:
        assert self.taken is not None
        if self.draw(st.booleans()):
            return (Pop(),)
        before, place = self.held(self.taken)
        return (*before, Pop(place))

    def pushed(self) -> Body:
        assert self.given is not None
        if isinstance(self.given, Type):
            return (Push(self.term(self.given)),)
        before, place = self.held(self.given)
        return (*before, *self.filled(place, self.given), Push(place))

    def filled(self, place: Place, shape: Shape) -> list[Statement]:
        match shape:
            case RecordOf(parts):
                inner = [(Place(place.variable, (*place.path, n)), s) for n, s in parts]
            case ArrayOf(element):
                inner = [
                    (Place(place.variable, (*place.path, Literal(n, INT32))), element)
                    for n in range(2)
                ]
            case _:
                return [Assign(place, self.term(shape))]
        return [s for p, part in inner for s in self.filled(p, part)]

    def peeks(self, most: int) -> list[Statement]:
        if self.taken is None or not most or self.draw(st.booleans()):
            return []
        before, place = self.held(self.taken)
        index: Term = Literal(self.draw(st.integers(0, most - 1)), INT32)
        return [*before, Peek(index, place)]


def types_in(shape: Shape) -> list[Type]:
    """The types of the columns of an item."""
    match shape:
        case ArrayOf(element):
            return types_in(element) * 2
        case RecordOf(parts):
            return [t for _, part in parts for t in types_in(part)]
        case _:
            return [shape]


RESULTS = _results()
SHAPES: tuple[Shape, ...] = (
    INT32, SINGLE, BIT, BOOLEAN, RecordOf((("real", SINGLE), ("imag", SINGLE))),
    ArrayOf(INT32, Literal(2, INT32)),
    RecordOf((("a", BIT), ("b", ArrayOf(SINGLE, Literal(2, INT32))))),
)  # fmt: skip


@st.composite
def works(
    draw: st.DrawFn, taken: Shape | None, given: Shape | None, rates: Rates | None = None
) -> Work:
    """A function that keeps its word; a source if it takes nothing."""
    draft = CodeDraft(draw, taken, given)
    prints = draw(st.booleans())
    parameters = (Slot("n", INT32), Slot("p", SINGLE))
    fields = (Slot("f", INT32), Slot("g", SINGLE), Slot("h", ArrayOf(INT32, Literal(_SIZE, INT32))),
              Slot("b", ArrayOf(BOOLEAN, Read(Place("n"), INT32))))  # fmt: skip
    draft.names += [(Place("n"), INT32), (Place("p"), SINGLE), (Place("f"), INT32),
                    (Place("g"), SINGLE)]  # fmt: skip
    draft.arrays += [("h", INT32), ("b", BOOLEAN)]
    routine = Routine("r", (Slot("y", INT32), Slot("z", SINGLE)), SINGLE, ())
    first = draw(_rates(taken, given)) if rates is None else rates
    rates = draw(_rates(taken, given)) if rates is None else rates
    init = draft.body(1) if draw(st.booleans()) else ()
    draft.routines.append(_routine(draft, routine))
    draft.prints = prints
    body = _firing(draft, rates)
    special = _firing(draft, first) if draw(st.integers(0, 3)) == 0 else None
    code = Code("F", parameters, fields, taken, given, init, special, body, tuple(draft.routines))
    pace = None if taken is not None else Pace(draw(st.integers(0, 2)), draw(st.integers(1, 3)))
    arguments = (_SIZE, draw(VALUES[SINGLE]))
    return Work(code, arguments, taken, given, rates, None if special is None else first, pace,
                prints)  # fmt: skip


@st.composite
def _rates(draw: st.DrawFn, taken: Shape | None, given: Shape | None) -> Rates:
    pop = 0 if taken is None else draw(st.sampled_from([1, 1, 2, 4]))
    peek = 0 if taken is None else pop + draw(st.sampled_from([0, 0, 1, 3]))
    push = 0 if given is None else draw(st.sampled_from([0, 1, 1, 2, 4]))
    return Rates(pop, peek, push)


def _routine(draft: CodeDraft, routine: Routine) -> Routine:
    kept = len(draft.names)
    draft.names += [(Place(s.name), s.shape) for s in routine.parameters if s.shape in TYPES]
    early = Choose(draft.term(BOOLEAN, 1), (Return(draft.term(SINGLE, 1)),))
    body = (*draft.body(1), early, Return(draft.term(SINGLE, 1)))
    del draft.names[kept:]
    return Routine(routine.name, routine.parameters, routine.result, body)


def _firing(draft: CodeDraft, rates: Rates) -> Body:
    kept = len(draft.names), len(draft.arrays)
    body = draft.peeks(rates.peek)
    for part in draft.draw(st.permutations(("pops", "pushes", "others"))):
        match part:
            case "pops":
                body += draft.pops(rates.pop)
            case "pushes":
                body += draft.pushes(rates.push)
            case _:
                body += draft.body(2)
    del draft.names[kept[0] :], draft.arrays[kept[1] :]
    return tuple(body)
