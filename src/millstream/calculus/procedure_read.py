"""Reading what `procedure_text` prints: names get their types, and what is wrong is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.cursor import Cursor, Stop
from millstream.calculus.lexer import Token, tokens_of
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
from millstream.calculus.work import Hearing, Pace, Rates, Telling, Work
from millstream.errors import Fault, suggest
from millstream.source import Source, Span
from millstream.values.core.scalar import Signature
from millstream.values.core.table import SCALARS
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, TEXT, Type

_TYPES = {str(type_): type_ for type_ in (INT32, SINGLE, BIT, BOOLEAN, TEXT)}
_PATTERN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[fb]?)
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<quoted>`[^`\n]+`)
  | (?P<name>[^\W\d]\w*)
  | (?P<symbol>[-={}()\[\],;.])
    """,
    re.VERBOSE | re.DOTALL,
)


def work_of_lines(lines: Sequence[str], faults: list[Fault]) -> Work | None:
    """The function that lines describe; None, with faults, if they describe none."""
    before = len(faults)
    tokens = tokens_of(Source("Work", "\n".join(lines)), faults, _PATTERN)
    if len(faults) > before:
        return None
    try:
        return _Reader(tokens, faults).work()
    except Stop:
        return None


@dataclass
class _Reader(Cursor):
    """Mutable: a place in the tokens, and the shapes of the names so far."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    results: dict[str, Shape | None] = field(default_factory=dict)

    # --- the whole ---

    def work(self) -> Work:
        code = self.code()
        arguments = self.arguments(code) if self.accept("with") else ()
        sides: dict[str, Shape | None] = {"takes": None, "gives": None}
        while self.accept("item"):
            side = self.one_of(tuple(sides))
            sides[side] = self.shape()
        self.expect("rates", "before how many items a firing takes and gives")
        rates, first, pace = self.rates(), None, None
        if self.accept("first"):
            self.expect("rates", "after `first`")
            first = self.rates()
        if self.accept("pace"):
            initially = self.whole()
            self.expect(",", "between the firings at first and at each tick")
            pace = Pace(initially, self.whole())
        prints = self.accept("prints")
        tells: list[Telling] = []
        while self.accept("tells"):
            tells.append(self.telling())
        hears: list[Hearing] = []
        while self.accept("hears"):
            hears.append(self.hearing())
        turns = (0, 0)
        if self.accept("turns"):
            turns = self.pair()
        if self.token.kind != "end":
            self.fail(f"expected the end of Work, got {self.token}")
        sent = sides["takes"], sides["gives"]
        return Work(code, arguments, *sent, rates, first, pace, prints, tuple(tells), tuple(hears),
                    turns_taken=turns[0], turns_given=turns[1])  # fmt: skip

    def pair(self) -> tuple[int, int]:
        first = self.whole()
        self.expect("to", "between two numbers")
        return first, self.whole()

    def signed(self) -> int:
        self.expect("with", "before the latency")
        return -self.whole() if self.accept("-") else self.whole()

    def telling(self) -> Telling:
        output, box = self.pair()
        self.expect("call", "before what is to be called")
        routine = self.expect_name("a function of whoever hears it").name
        latency = self.signed()
        by_items = self.accept("by")
        if by_items:
            self.expect("items", "which are counted instead of firings")
        return Telling(output, box, routine, latency, by_items)

    def hearing(self) -> Hearing:
        begins = [self.whole()]
        while self.accept(","):
            begins.append(self.whole())
        self.expect("then", "before what is repeated")
        return Hearing(tuple(begins), *self.pair(), self.signed())

    def code(self) -> Code:
        self.expect("code", "at the beginning")
        name = self.expect_name("the name of the code").name
        parameters = self.slots()
        taken = self.shape() if self.accept("takes") else None
        given = self.shape() if self.accept("gives") else None
        fields = []
        while self.accept("field"):
            fields.append(self.slot())
        routines = []
        while self.accept("function"):
            routines.append(self.routine())
        init = self.block() if self.accept("init") else ()
        first = self.block() if self.accept("first") else None
        self.expect("work", "before what is done at every firing")
        body = self.block()
        return Code(name, parameters, tuple(fields), taken, given, init, first, body,
                    tuple(routines))  # fmt: skip

    def routine(self) -> Routine:
        name = self.expect_name("the name of a function").name
        parameters = self.slots()
        result = None if self.at("{") and not self.is_record() else self.shape()
        self.results[name] = result
        return Routine(name, parameters, result, self.block())

    def is_record(self) -> bool:
        """Whether `{` begins a shape: then a block follows it."""
        depth = 0
        for number, token in enumerate(self.tokens[self.position :], self.position):
            if token.kind == "symbol" and token.value in "{}":
                depth += 1 if token.value == "{" else -1
                if depth == 0:
                    after = self.tokens[number + 1]
                    return after.kind == "symbol" and after.value == "{"
        return False

    def arguments(self, code: Code) -> tuple[Any, ...]:
        values = []
        for number, slot in enumerate(code.parameters):
            if number:
                self.expect(",", "between arguments")
            values.append(self.value(slot.shape))
        return tuple(values)

    def value(self, shape: Shape) -> Any:
        if isinstance(shape, Type):
            literal = self.term(shape)
            if not isinstance(literal, Literal):
                self.fail("expected a value", self.previous.span)
            return literal.value
        self.expect("(", "before the parts of an argument")
        values: list[Any] = []
        parts = [p for _, p in shape.parts] if isinstance(shape, RecordOf) else None
        while not self.at(")"):
            part = parts[len(values)] if parts else shape.element  # type: ignore[union-attr]
            values.append(self.value(part))
            if not self.accept(","):
                break
        self.expect(")", "after the parts of an argument")
        return tuple(values)

    def rates(self) -> Rates:
        numbers: list[int] = []
        most: list[int | None] = []
        for word in ("pop", "peek", "push"):
            self.expect(word, "in rates")
            numbers.append(self.whole())
            if self.accept("to"):
                most.append(None if self.accept("all") else self.whole())
        if most and len(most) < len(numbers):
            self.fail("rates that change need the most of pop, peek and push")
        pop, peek, push = numbers
        return Rates(pop, peek, push, (most[0], most[1], most[2]) if most else None)

    def whole(self) -> int:
        if self.token.kind != "number" or not self.token.value.isdigit():
            self.fail(f"expected a whole number, got {self.token}")
        return int(self.advance().value)

    def one_of(self, words: tuple[str, ...]) -> str:
        for word in words:
            if self.accept(word):
                return word
        self.fail(f"expected {' or '.join(words)}, got {self.token}")

    # --- shapes ---

    def slots(self) -> tuple[Slot, ...]:
        self.expect("(", "before parameters")
        slots = self.separated(self.slot, ")")
        self.expect(")", "after parameters")
        return tuple(slots)

    def slot(self) -> Slot:
        name = self.expect_name("the name of a variable").name
        shape = self.shape()
        self.shapes[name] = shape
        return Slot(name, shape)

    def shape(self) -> Shape:
        if self.accept("["):
            size = self.term(INT32)
            self.expect("]", "after the size of an array")
            return ArrayOf(self.shape(), size)
        if self.accept("{"):
            parts = self.separated(self.part, "}")
            self.expect("}", "after the parts of a record")
            return RecordOf(tuple(parts))
        word = self.expect_name("a type")
        if word.name not in _TYPES:
            hint = suggest(word.name, _TYPES)
            self.fail(f'unknown type "{word.name}"', word.span, hint)
        return _TYPES[word.name]

    def part(self) -> tuple[str, Shape]:
        return self.expect_name("the name of a part").name, self.shape()

    # --- statements ---

    def block(self) -> Body:
        self.expect("{", "before statements")
        body = []
        while not self.at("}") and self.token.kind != "end":
            body.append(self.statement())
        self.expect("}", "after statements")
        return tuple(body)

    def statement(self) -> Statement:
        if self.at("{"):
            return Scope(self.block())
        if self.accept("if"):
            condition, then = self.term(BOOLEAN), self.block()
            return Choose(condition, then, self.block() if self.accept("else") else ())
        for word in ("while", "until", "loop"):
            if self.accept(word):
                test = None if self.at("{") else self.term(BOOLEAN)
                body = self.block()
                after = self.block() if self.accept("then") else ()
                return Repeat(test, body, after, word != "until")
        statement = self.simple()
        self.expect(";", "after a statement")
        return statement

    def simple(self) -> Statement:
        span = self.token.span
        if self.accept("let"):
            return Let(self.slot(), span)
        for word in ("break", "continue"):
            if self.accept(word):
                return Leave("break" if word == "break" else "continue", span)
        if self.accept("pop"):
            return Pop(None, span)
        if self.accept("push"):
            value = self.operand()
            return Push(value, self.whole() if self.accept("to") else 0, span)
        if self.accept("return"):
            return Return(None if self.at(";") else self.operand(), span)
        if self.accept("call"):
            return self.invoke(None, span)
        place = self.place()
        self.expect("=", "after what is assigned")
        if self.accept("pop"):
            return Pop(place, span)
        if self.accept("peek"):
            return Peek(self.term(INT32), place, span)
        if self.accept("call"):
            return self.invoke(place, span)
        return Assign(place, self.operand(), span)

    def invoke(self, target: Place | None, span: Span) -> Invoke:
        name = self.expect_name("the name of a function")
        if name.name not in self.results:
            hint = suggest(name.name, self.results)
            self.fail(f'unknown function "{name.name}"', name.span, hint)
        self.expect("(", "before arguments")
        arguments = self.separated(self.operand, ")")
        self.expect(")", "after arguments")
        return Invoke(name.name, tuple(arguments), target, span)

    def operand(self) -> Operand:
        return self.place() if self.accept("all") else self.term(None)

    # --- terms ---

    def place(self) -> Place:
        word = self.expect_name("a variable")
        path: list[Term | str] = []
        while True:
            if self.accept("["):
                path.append(self.term(INT32))
                self.expect("]", "after an index")
            elif self.accept("."):
                path.append(self.expect_name("a part").name)
            else:
                return Place(word.name, tuple(path), word.span)

    def shape_at(self, place: Place) -> Shape:
        shape = self.shapes.get(place.variable)
        if shape is None:
            hint = suggest(place.variable, self.shapes)
            self.fail(f'unknown variable "{place.variable}"', place.span, hint)
        for step in place.path:
            if isinstance(step, str):
                part = shape.part(step) if isinstance(shape, RecordOf) else None
                if part is None:
                    self.fail(f'{shape} has no part "{step}"', place.span)
                shape = part
            elif isinstance(shape, ArrayOf):
                shape = shape.element
            else:
                self.fail(f"{shape} has no elements", place.span)
        return shape

    def term(self, wanted: Type | None) -> Term:
        start = self.token.span
        term = self.plain_term()
        if wanted is not None and term.type != wanted:
            self.fail(f"expected {wanted}, got {term.type}", start)
        return term

    def plain_term(self) -> Term:
        token = self.token
        if self.accept("-"):
            return self.number(self.advance(), -1)
        if token.kind == "number" or (self.at("inf", "nan") and not token.is_quoted):
            return self.number(self.advance(), 1)
        if token.kind == "text":
            return Literal(self.advance().value, TEXT)
        if self.at("true", "false"):
            return Literal(self.advance().value == "true", BOOLEAN)
        after = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.kind == "name" and after.value == "(" and after.kind == "symbol":
            return self.call()
        place = self.place()
        shape = self.shape_at(place)
        if not isinstance(shape, Type):
            self.fail(f"{shape} is no single value", place.span, "all of it is written: all x")
        return Read(place, shape, place.span)

    def number(self, token: Token, sign: int) -> Literal:
        text = token.value
        if text in ("inf", "nan"):
            return Literal(sign * float(text), SINGLE)
        try:
            if text.endswith("f"):
                return Literal(sign * float(text[:-1]), SINGLE)
            if text.endswith("b"):
                return Literal(int(text[:-1]), BIT)
            return Literal(sign * int(text), INT32)
        except ValueError:
            self.fail(f"expected a number, got {token}", token.span)

    def call(self) -> Call:
        name = self.expect_name("a function")
        self.expect("(", "before arguments")
        args = tuple(self.separated(lambda: self.term(None), ")"))
        self.expect(")", "after arguments")
        scalar = SCALARS.get(name.name)
        if scalar is None:
            self.fail(f'unknown function "{name.name}"', name.span, suggest(name.name, SCALARS))
        answer = scalar.rule(tuple(a.type for a in args))
        if not isinstance(answer, Signature):
            self.fail(f"{name.name}: {answer}", name.span, f"usage: {scalar.usage}")
        return Call(name.name, args, answer.result, name.span)
