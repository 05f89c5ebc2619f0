"""Calls of what is there without being declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.calculus.scripts import (
    Assert,
    Const,
    Cut,
    Defined,
    Do,
    Expression,
    Get,
    Index,
    Intrinsic,
    New,
    Part,
    Place,
    Present,
    Saw,
    Slice,
    Statement,
    Step,
    Undefine,
)
from millstream.errors import suggest
from millstream.languages.sawzall.library import INTRINSICS, REFUSED, signature
from millstream.languages.sawzall.read_terms import BAD, TermReader
from millstream.languages.sawzall.scope import UNKNOWN, VOID, an
from millstream.languages.sawzall.tokens import Token
from millstream.source import Span
from millstream.values.records.formats import complaint
from millstream.values.records.matching import pattern_of
from millstream.values.records.patterns import BadPattern, compiled
from millstream.values.records.types import (
    BOOL,
    BYTES,
    INT,
    STRING,
    ArrayOf,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
)


def is_outside(path: str) -> bool:
    """Whether a name leads away from where a program lies."""
    return path.startswith("/") or ".." in path.split("/")


class CallReader(TermReader):
    """Mutable: reads calls by name."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.special: dict[str, Callable[[Token], Expression]] = {
            "convert": self.convert, "new": self.new, "def": self.defined, "regex": self.regex,
            "saw": self.saw, "sawn": self.saw, "sawzall": self.saw, "inproto": self.in_message,
        }  # fmt: skip

    def call_by_name(self, name: Token) -> Expression:
        if name.text in self.special:
            self.advance()
            made = self.special[name.text](name)
            self.expect(")", "after the arguments")
            return made
        if name.text in REFUSED:
            self.fail(f'"{name.text}" is not there: {REFUSED[name.text]}', name.span)
        if name.text in ("assert", "___undefine", "clearproto"):
            self.fail(f'"{name.text}" gives no value, and is a statement', name.span)
        self.advance()
        arguments = self.separated(self.expression, ")")
        self.expect(")", "after the arguments")
        return self.intrinsic(name, self.entries(name, arguments))

    def entries(self, name: Token, arguments: list[Expression]) -> list[Expression]:
        """Arguments that are a key or a value of a map take the types of it."""
        held = resolved(arguments[0].type) if arguments else UNKNOWN
        if name.text not in ("lookup", "haskey") or not isinstance(held, MapOf):
            return [self.finished(a) for a in arguments]
        types = (held, held.key, held.value)
        pairs = zip(arguments, types, strict=False)
        fitted = [self.fitted(a, t) or self.finished(a) for a, t in pairs]
        return fitted + [self.finished(a) for a in arguments[3:]]

    def intrinsic(self, name: Token, arguments: list[Expression]) -> Expression:
        span = self.since(name.span)
        if name.text not in INTRINSICS:
            known = [*INTRINSICS, *self.special, *self.names.all()]
            self.unknown("function", name.text, name.span, suggest(name.text, known))
            return BAD
        types = tuple(a.type for a in arguments)
        if UNKNOWN in types:
            return BAD
        if VOID in types:
            self.note("a function that returns nothing is no argument", span)
            return BAD
        found = signature(name.text, types)
        if isinstance(found, str):
            self.note(f"{name.text}: {found}", span, f"it is {INTRINSICS[name.text].usage}")
            return BAD
        first = arguments[0] if arguments else None
        if name.text == "format" and isinstance(first, Const):
            wrong = complaint(first.value, types[1:])
            if wrong is not None:
                self.note(wrong, span)
        if name.text in ("match", "matchposns", "matchstrs") and isinstance(first, Const):
            self.readable(first)
        if name.text == "load" and isinstance(first, Const) and is_outside(first.value):
            self.note("this file lies outside of the project's folder", first.span,
                      "name a file beside the program")  # fmt: skip
        return Intrinsic(name.text, tuple(arguments), found.result, span)

    def readable(self, pattern: Expression) -> None:
        """A pattern that is written down can be read, or it is told why not."""
        if isinstance(pattern, Const) and isinstance(pattern.value, str):
            try:
                compiled(pattern.value)
            except BadPattern as bad:
                self.note(f"this pattern cannot be read: {bad}", pattern.span)

    # --- with types as arguments ---

    def convert(self, name: Token) -> Expression:
        type_ = self.type()
        self.expect(",", "after the type")
        arguments = self.separated(self.expression, ")")
        if not arguments:
            self.fail("expected a value to convert")
        return self.converted(arguments[0], type_, tuple(arguments[1:]), self.since(name.span))

    def new(self, name: Token) -> Expression:
        type_ = self.type()
        arguments = self.separated(self.expression, ")") if self.accept(",") else []
        span = self.since(name.span)
        plain = resolved(type_)
        if isinstance(plain, MapOf):
            for argument in arguments:
                self.wanted(argument, INT, "the size")
            return Const({}, type_, span)
        if plain == UNKNOWN:
            return BAD
        if not isinstance(plain, ArrayOf) and plain not in (STRING, BYTES):
            self.note(f"new makes arrays, maps, strings and bytes, no {type_}", span)
            return BAD
        if len(arguments) != 2:
            self.note(f"expected a type, a count and a value, got {len(arguments) + 1} arguments",
                      span, "as in new(array of int, 10, 0)")  # fmt: skip
            return Const(None, type_, span)
        item = plain.element if isinstance(plain, ArrayOf) else INT
        count = self.wanted(arguments[0], INT, "the count")
        return New(count, self.wanted(arguments[1], item, "the value"), type_, span)

    def regex(self, name: Token) -> Expression:
        type_ = self.type()
        base = self.wanted(self.expression(), INT, "the base") if self.accept(",") else None
        arguments = (Const(str(type_), STRING, name.span), *(() if base is None else (base,)))
        if type_ == UNKNOWN:
            return BAD
        if pattern_of(resolved(type_)) is None:
            self.note(f"there is no pattern for {an(type_)}", self.since(name.span))
        return Intrinsic("regex", arguments, STRING, self.since(name.span))

    def defined(self, name: Token) -> Expression:
        value = self.finished(self.expression())
        if value.type == VOID:
            self.note("a function that returns nothing has no value to ask for", name.span)
        return Defined(value, self.since(name.span))

    def in_message(self, name: Token) -> Expression:
        value = self.expression()
        if value.type == UNKNOWN:
            return BAD
        base = value.base if isinstance(value, Part) else None
        if not isinstance(value, Part) or not resolved(value.base.type).is_proto:  # type: ignore[union-attr]
            self.note("expected a field of a proto tuple, such as t.f", self.since(name.span))
            return BAD
        assert base is not None
        return Present(base, value.position, self.since(name.span))

    # --- cutting texts ---

    def saw(self, name: Token) -> Expression:
        word = name.text
        count: Expression | None = Const(1, INT) if word == "saw" else None
        if word == "sawn":
            count = self.wanted(self.expression(), INT, "the count")
            self.expect(",", "after the count")
        text = self.wanted(self.finished(self.expression()), STRING, "what is cut")
        cuts: list[Cut] = []
        rests: list[tuple[Place, int]] = []
        while self.accept(","):
            if rests and word != "saw":
                self.note("`rest` comes last here", self.token.span)
            if self.at("rest") and self.peek().kind == "name":
                span = self.advance().span
                rest = self.place(self.factor(), span)
                self.wanted_place(rest, STRING, span)
                if rest is not None:
                    rests.append((rest, len(cuts)))
                continue
            cuts.append(self.cut())
        if not cuts:
            self.note("expected a pattern to cut by", self.since(name.span))
        return Saw(text, tuple(cuts), count, tuple(rests), self.since(name.span))

    def cut(self) -> Cut:
        is_skipped = is_submatch = False
        while self.at("skip", "submatch") and self.peek().text not in (",", ")", "+"):
            is_skipped |= self.token.text == "skip"
            is_submatch |= self.token.text == "submatch"
            self.advance()
        pattern = self.wanted(self.finished(self.expression()), STRING, "the pattern")
        self.readable(pattern)
        return Cut(pattern, is_skipped, is_submatch)

    def wanted_place(self, place: Place | None, type_: RecordType, span: Span) -> None:
        if place is not None and resolved(place.type) not in (type_, UNKNOWN):
            self.note(f"expected a variable of type {type_}, got {place.type}", span)

    # --- places ---

    def place(self, value: Expression, span: Span) -> Place | None:
        """What an expression can be assigned to, if it is one that can."""
        path: list[Step] = []
        inner = value
        while not isinstance(inner, Get):
            match inner:
                case Index(base, index, _, number):
                    path.append(Step(index, number=number, inside=base.type))
                case Slice(base, low, high, number):
                    path.append(Step(low, high, number=number, inside=base.type))
                case Part(base, position):
                    path.append(Step(position=position, inside=base.type))
                case _:
                    if value.type != UNKNOWN:
                        self.note("this cannot be assigned to", value.span or span)
                    return None
            inner = base
        if inner.var.number in self.fixed_names:
            self.note(f'"{inner.var.name}" cannot be changed', inner.span or span)
        if inner.var.level < 0 and self.is_running():
            self.note(f'"{inner.var.name}" is static and cannot be changed', inner.span or span)
        return Place(inner.var, tuple(reversed(path)), value.type, value.span)

    @property
    def fixed_names(self) -> set[int]:
        return self.quantified

    def is_running(self) -> bool:
        """Whether what is read is done for records, and not once."""
        return not self.static_from

    # --- statements that look like calls ---

    def call_statement(self) -> Statement | None:
        """`assert(...)`, `clearproto(...)` and what is there for tests."""
        name = self.token
        if name.kind != "name" or self.peek().text != "(" or self.names.find(name.text):
            return None
        if name.text not in ("assert", "___undefine", "__undefine", "clearproto"):
            return None
        self.advance()
        self.advance()
        value = self.finished(self.expression())
        message = None
        if name.text == "assert" and self.accept(","):
            message = self.wanted(self.finished(self.expression()), STRING, "the message")
        self.expect(")", "after the arguments")
        span = self.since(name.span)
        if name.text == "assert":
            condition = self.wanted(value, BOOL, "the condition")
            return Assert(condition, message, span)
        place = self.place(value, span)
        if place is None:
            return Do(Const(None, UNKNOWN), span)
        if name.text == "clearproto":
            last = place.path[-1] if place.path else None
            is_message = last is not None and isinstance(resolved(last.inside), TupleOf)
            if last is None or last.position is None or not is_message:
                self.note("expected a field of a proto tuple, such as t.f", span)
            return Undefine(place, is_field=True, span=span)
        return Undefine(place, span=span)

    quantified: set[int]
