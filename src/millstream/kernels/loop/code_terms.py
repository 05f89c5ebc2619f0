"""Terms and places of a code as values of a loop, with the checks they need before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from millstream.calculus.procedures import ArrayOf, Code, RecordOf, Shape
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.kernels.loop.code_frame import (
    FAILED,
    FIRING,
    FIRST_NUMBER,
    FRAME,
    MEMORIES,
    PUSH,
    ROOM,
    SECOND_NUMBER,
    SITE,
)
from millstream.kernels.loop.code_layout import ArrayPlace, CodeLayout, Leaf, NotCompiled, memory_of
from millstream.kernels.loop.code_ranges import Region
from millstream.kernels.loop.ir import (
    INTEGER,
    ZERO,
    Const,
    Form,
    Load,
    Local,
    Rep,
    Set,
    Statement,
    Stop,
    Store,
    Value,
    When,
    integer,
    op,
)
from millstream.kernels.loop.numbers import (
    ONE,
    SHORTEN,
    and_,
    at_least,
    differ,
    equal,
    less,
    minus,
    not_,
    or_,
    plus,
    times,
    wide,
)
from millstream.kernels.loop.operations import rep_of
from millstream.source import Span
from millstream.values.core.scalar import Operation
from millstream.values.core.table import SCALARS

#: Where a value is: in a local, or in memory.
Where = Local | Load


def got(where: Where, rep: Rep) -> Value:
    """The value that is there; a truth lies in memory as a number."""
    is_number = isinstance(where, Load) and rep is Rep.TRUTH
    return differ(where, Const(0, Form(Rep.SHORT))) if is_number else where


def put(where: Where, value: Value) -> Statement:
    if isinstance(where, Local):
        return Set(where, value)
    if value.form.rep is Rep.TRUTH:
        value = op(SHORTEN, value, rep=Rep.SHORT)
    return Store(where.memory, where.index, value)


@dataclass
class TermWriter:
    """Mutable: the statements of a loop so far."""

    code: Code
    layout: CodeLayout = field(default_factory=CodeLayout)
    lines: list[Statement] = field(default_factory=list)
    #: What is wrong, by number, and where.
    sites: list[tuple[str, Span | None]] = field(default_factory=list)
    #: The names that variables of a routine have where it is called.
    renamed: dict[str, str] = field(default_factory=dict)
    #: Variables of the code that belong to routines: what they hold is never known before.
    of_routines: set[str] = field(default_factory=set)
    #: Loops that run without checks, the outermost first.
    regions: list[Region] = field(default_factory=list)
    #: Locals that count, and what they are in 64 bits.
    widened: dict[Value, Value] = field(default_factory=dict)
    #: The array that lies in the output.
    sent: str | None = None
    temporaries: int = 0

    def add(self, *statements: Statement) -> None:
        self.lines += statements

    @contextmanager
    def gathered(self) -> Iterator[list[Statement]]:
        """What is added meanwhile stands apart."""
        outside, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outside

    def fresh(self, letter: str, form: Form = INTEGER) -> Local:
        self.temporaries += 1
        return Local(f"{letter}{self.temporaries}", form)

    def kept_apart(self, value: Value) -> Local:
        """A value in a local of its own."""
        local = self.fresh("x", value.form)
        self.add(Set(local, value))
        return local

    def site(self, message: str, span: Span | None) -> int:
        self.sites.append((message, span))
        return len(self.sites)

    def stop_if(
        self, condition: Value, message: str, span: Span | None,
        first: Value = ZERO, second: Value = ZERO,
    ) -> None:  # fmt: skip
        site = integer(self.site(message, span))
        fields = ((SITE, site), (FAILED, FIRING), (FIRST_NUMBER, first), (SECOND_NUMBER, second))
        stores = (Store(FRAME, integer(place), value) for place, value in fields)
        self.add(When(condition, (*stores, Stop(ONE))))

    # --- places ---

    def own(self, name: str) -> str:
        return self.renamed.get(name, name)

    def named(self, place: Place) -> Local | None:
        """The local that a place without indexes is kept in, if its value can be foreseen."""
        name = self.own(place.variable)
        path = tuple(step for step in place.path if isinstance(step, str))
        if len(path) < len(place.path) or name in self.of_routines:
            return None
        return self.layout.names.get((name, path))

    def shape_at(self, place: Place) -> Shape:
        shape = self.layout.shapes[self.own(place.variable)]
        for step in place.path:
            if isinstance(step, str):
                assert isinstance(shape, RecordOf)
                part = shape.part(step)
                assert part is not None
                shape = part
            else:
                assert isinstance(shape, ArrayOf)
                shape = shape.element
        return shape

    def located(self, place: Place, leaf: Leaf) -> tuple[Where, Value]:
        """Where a leaf below a place is, and how many values of it there are."""
        name = self.own(place.variable)
        path = tuple(step for step in place.path if isinstance(step, str)) + leaf.path
        stretch = self.layout.stretches.get((name, path))
        if stretch is None:
            return self.layout.local(name, path), ONE
        indexes = [step for step in place.path if not isinstance(step, str)]
        index: Value = ZERO
        for number, term in enumerate(indexes):
            step = self.checked(term, stretch.size(number), place.span)
            index = plus(times(index, stretch.size(number)), step)
        for number in range(len(indexes), len(stretch.leaf.sizes)):
            index = times(index, stretch.size(number))
        begin = self.begin_of(stretch)
        cell = Load(begin.memory, plus(begin.index, index))
        return cell, stretch.count(len(indexes))

    def begin_of(self, stretch: ArrayPlace) -> Load:
        """Where the first value of an array lies."""
        letter = memory_of(stretch.leaf.type)
        if stretch.name == self.sent:
            return Load(MEMORIES[f"o{letter}"], minus(ROOM, PUSH))
        return Load(MEMORIES[letter], stretch.begin)

    def checked(self, term: Term, size: Value, span: Span | None) -> Value:
        """An index that has been looked at, or needs not be."""
        for region in self.regions:
            known = region.range_of(term, self.named)
            if known is not None:
                region.require(at_least(known[0], ZERO), less(known[1], size))
                return self.exact(term)
        index = self.kept_apart(self.term(term))
        message = "index {} is outside of an array of {}"
        is_bad = or_(less(index, ZERO), at_least(index, size))
        self.stop_if(is_bad, message, span, index, size)
        return index

    # --- terms ---

    def exact(self, term: Term) -> Value:
        """A term whose range is known, in 64 bits: nothing in it wraps."""
        match term:
            case Call(function, (left, right)) if function in _EXACT:
                return _EXACT[function](self.exact(left), self.exact(right))
            # What is divided is not negative, as was asked for.
            case Call("int32_div" | "int32_rem" as function, (left, Literal(int(by)))) if by > 0:
                return op(_DIVIDED[function], self.exact(left), integer(by), rep=Rep.INTEGER)
            case _:
                value = self.term(term)
                return self.widened.get(value, wide(value))

    def term(self, term: Term) -> Value:
        match term:
            case Literal(value, type_):
                assert isinstance(value, (bool, int, float))
                rep = rep_of(type_)
                return Const(bool(value) if rep is Rep.TRUTH else value, Form(rep))
            case Read(place, type_):
                where, _ = self.located(place, Leaf((), (), type_))
                return got(where, rep_of(type_))
            case Call(_, args):
                return self.call(term, [self.term(a) for a in args])
            case _:
                raise NotCompiled(f"the term {term!r}")

    def call(self, call: Call, args: list[Value]) -> Value:
        if call.function in _TRUTHS:
            return _TRUTHS[call.function](*args)
        (operation,) = SCALARS[call.function].loop.values() or [None]
        if operation is None or operation.plain is None:
            raise NotCompiled(call.function)
        if operation.faults and not _is_known_not_zero(call.args[1]):
            args[1] = self.kept_apart(args[1])
            self.stop_if(equal(args[1], ZERO), "division by zero", call.span)
        return op(operation, *args, rep=rep_of(call.type))


_EXACT: dict[str, Callable[[Value, Value], Value]] = {
    "int32_add": plus, "int32_sub": minus, "int32_mul": times,
}  # fmt: skip
_DIVIDED = {
    "int32_div": Operation("", "int32_quotient({0}, {1})"),
    "int32_rem": Operation("", "int32_remainder({0}, {1})"),
}
_TRUTHS: dict[str, Callable[..., Value]] = {
    "and": and_, "or": or_, "==": equal, "!=": differ, "not": not_,
}  # fmt: skip


def _is_known_not_zero(term: Term) -> bool:
    return isinstance(term, Literal) and term.value != 0
