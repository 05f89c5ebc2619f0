"""Whole texts and streams: from tokens to our tree.

What cannot be read is noted, and reading goes on with the next statement or the next stream,
so that all syntax errors are told together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Literal, cast

from millstream.calculus.cursor import Stop
from millstream.calculus.lexer import tokens_of
from millstream.errors import Fault, ParseError, suggest
from millstream.languages.streamit.ast import (
    Block,
    Composite,
    Declare,
    Expression,
    Filter,
    Helper,
    Name,
    Parameter,
    Rate,
    Routine,
    Set,
    Statement,
    Static,
    Stream,
    Struct,
    Text,
    TypeName,
    Work,
)
from millstream.languages.streamit.read_statements import KINDS, STREAM, StatementReader
from millstream.languages.streamit.tokens import PATTERN
from millstream.source import Source, Span

_RATES = ("push", "pop", "peek")


def read(source: Source) -> Text:
    """The text as a tree, or a `ParseError` with every syntax error."""
    faults: list[Fault] = []
    tokens = tokens_of(source, faults, PATTERN)
    if faults:
        raise ParseError(faults)  # what follows a stray character is not to be trusted
    text = _Reader(tokens, faults).text()
    if faults:
        raise ParseError(sorted(faults, key=lambda f: f.span.start if f.span else 0))
    return text


def stream_in(text: str, span: Span, name: str | None = None) -> Stream:
    """A stream of our own; what is said of it is said of a place in a user's text."""
    tokens = [replace(token, span=span) for token in tokens_of(Source("", text), [], PATTERN)]
    return replace(_Reader(tokens, []).stream(None, None, span, is_named=False), name=name)


def type_in(text: str, span: Span) -> TypeName:
    """A type that stands in a text of our own."""
    tokens = [replace(token, span=span) for token in tokens_of(Source("", text), [], PATTERN)]
    faults: list[Fault] = []
    try:
        type_ = _Reader(tokens, faults).type_name()
    except Stop:
        raise ParseError(faults) from None
    return replace(type_, span=span)


@dataclass
class _Parts:
    """Mutable: what stands in the braces of a filter, a helper or `static`."""

    fields: list[Declare]
    routines: list[Routine]
    init: Block | None = None
    works: dict[str, Work] | None = None
    #: Statements between the constants of `global`, which older programs have.
    between: list[Statement] = dataclass_field(default_factory=list)


class _Reader(StatementReader):
    """Mutable: reads a whole text."""

    # --- the file ---

    def text(self) -> Text:
        streams: list[Stream] = []
        structs: list[Struct] = []
        statics: list[Static] = []
        helpers: list[Helper] = []
        while self.token.kind != "end":
            try:
                if self.at("struct"):
                    structs.append(self.struct())
                elif self.at("static") or self.at_global():
                    statics.append(self.static())
                elif self.at("helper"):
                    helpers.append(self.helper())
                else:
                    self.defined(streams, statics, helpers)
            except Stop:
                self.depth = 0
                self.skip_to_stream()
        return Text(tuple(streams), tuple(structs), tuple(statics), tuple(helpers))

    def skip_to_stream(self) -> None:
        """Behind the braces that are open, or to the next thing that can begin."""
        depth = 0
        while self.token.kind != "end":
            value = self.advance().value
            depth += {"{": 1, "}": -1}.get(value, 0)
            if value == "}" and depth <= 0 and not self.at("}"):
                return

    def struct(self) -> Struct:
        start = self.advance().span
        name = self.new_name("the name of a struct")
        self.expect("{", "and the fields of the struct")
        fields: list[Parameter] = []
        while not self.at("}"):
            fields += self.fields_of_struct()
        self.expect("}", "after the fields")
        self.accept(";")
        return Struct(name, tuple(fields), self.since(start))

    def fields_of_struct(self) -> list[Parameter]:
        type_ = self.type_name()
        fields = self.separated(lambda: self.parameter_of(type_), ";")
        self.expect(";", "after a field")
        return fields

    def at_global(self) -> bool:
        """`global {...}`: older programs call their constants so."""
        return self.at("global") and self.tokens[self.position + 1].value == "{"

    def static(self) -> Static:
        start = self.advance().span
        parts = self.parts("static")
        if parts.between:
            statements = (*parts.between, *(() if parts.init is None else parts.init.statements))
            parts.init = Block(statements, self.since(start))
        return Static(tuple(parts.fields), parts.init, self.since(start))

    def helper(self) -> Helper:
        start = self.advance().span
        name = self.new_name("the name of a helper")
        parts = self.parts("helper")
        return Helper(name, tuple(parts.routines), self.since(start))

    # --- streams ---

    def defined(self, streams: list[Stream], statics: list[Static], helpers: list[Helper]) -> None:
        """A stream, or a constant or a function that belongs to no stream."""
        start = self.token.span
        if self.accept(";"):
            return
        if self.token.kind != "name":
            self.fail(f"expected {STREAM}, got {self.token}")
        self.refuse()
        self.accept("stateful")
        type_ = self.type_name()
        if self.token.kind != "name":
            output = self.output_type(type_)
            streams.append(self.stream(type_, output, start, is_named=True))
        elif self.tokens[self.position + 1].value == "(":
            name = self.new_name("the name of a function")
            routine = self.routine(type_, name, start)
            helpers.append(Helper("", (routine,), self.since(start)))
        elif self.tokens[self.after_sizes(self.position + 1)].value in ("=", ";", ","):
            fields = tuple(self.declared(type_))
            self.expect(";", "after a constant")
            statics.append(Static(fields, None, self.since(start)))
        else:
            self.output_type(type_)

    def stream(
        self, input_: TypeName | None, output: TypeName | None, start: Span, *, is_named: bool
    ) -> Stream:
        self.accept("stateful")  # a remark
        self.refuse()
        if not self.at(*KINDS):
            self.fail(f"expected filter, pipeline, splitjoin or feedbackloop, got {self.token}",
                      hint=suggest(self.token.value, KINDS))  # fmt: skip
        kind = self.advance().value
        name = self.new_name(f"the name of the {kind}") if is_named else None
        parameters = self.parameters() if self.at("(") else ()
        head = self.since(start)
        if parameters and not is_named:
            self.faults.append(Fault(f"a {kind} without a name has no parameters", head,
                                     "it sees the variables around it"))  # fmt: skip
            parameters = ()
        body = self.filter_body() if kind == "filter" else self.composite_body(kind)
        return Stream(name, input_, output, parameters, body, head)

    def composite_body(self, kind: str) -> Composite:
        known = cast("Literal['pipeline', 'splitjoin', 'feedbackloop']", kind)
        return Composite(known, self.block())

    def parameters(self) -> tuple[Parameter, ...]:
        self.expect("(", "and the parameters")
        parameters = self.separated(lambda: self.parameter_of(self.type_name()), ")")
        self.expect(")", "after the parameters")
        return tuple(parameters)

    def parameter_of(self, type_: TypeName) -> Parameter:
        start = type_.span or self.token.span
        name = self.new_name("a name")
        return Parameter(self.with_sizes(type_), name, self.since(start))

    def filter_body(self) -> Filter:
        parts = self.parts("filter")
        works = parts.works or {}
        return Filter(
            tuple(parts.fields), parts.init, works.get("prework"), works.get("work"),
            tuple(parts.routines),
        )  # fmt: skip

    def parts(self, of: str) -> _Parts:
        """Fields, functions, `init`, `work` and `prework` between braces."""
        self.expect("{", f"and what the {of} has")
        parts = _Parts([], [])
        while not self.at("}") and self.token.kind != "end":
            try:
                self.part(parts, of)
            except Stop:
                self.depth = 0
                self.skip_statement()
        self.expect("}", f"at the end of the {of}")
        return parts

    def part(self, parts: _Parts, of: str) -> None:
        start = self.token.span
        if self.accept(";"):
            return
        if of != "helper" and self.accept("init"):
            if parts.init is not None:
                self.fail("there is one `init` already", start)
            parts.init = self.block()
        elif of == "filter" and self.at("work", "prework"):
            self.work(parts)
        elif of == "filter" and self.at_phase():
            self.advance()
            name = self.new_name("the name of a phase")
            parts.routines.append(self.routine(None, name, start))
        elif of == "filter" and self.accept("handler"):
            name = self.new_name("the name of a handler")
            routine = self.routine(None, name, start)
            parts.routines.append(_as_handler(routine))
        elif of == "filter" and self.at("add", "split", "join"):
            self.fail(f"a filter has no {self.token}: that is for pipelines and splitjoins")
        elif of == "static" and not self.at_type():
            parts.between += self.statement()
        else:
            self.member(parts, of, start)

    def at_phase(self) -> bool:
        """`phase Name push 2 {...}`: older programs call their functions without parameters so."""
        name, after = self.tokens[self.position + 1 : self.position + 3]
        return self.at("phase") and name.kind == "name" and after.value in (*_RATES, "{", "(")

    def work(self, parts: _Parts) -> None:
        start = self.token.span
        word = self.advance().value
        parts.works = parts.works or {}
        if word in parts.works:
            self.fail(f"there is one `{word}` already", start)
        rates = self.rates()
        head = self.since(start)
        parts.works[word] = Work(rates, self.block(), head)

    def rates(self) -> dict[str, Rate]:
        rates: dict[str, Rate] = {}
        while self.at(*_RATES):
            place = self.token.span
            name = self.advance().value
            if name in rates:
                self.fail(f"`{name}` is said twice", place)
            rates[name] = self.rate(place)
            self.accept(",")
        return rates

    def rate(self, start: Span) -> Rate:
        """`8`, `*`, `[1, 4]` or `[1, 2, 4]`: the least, what is usual, the most."""
        if self.accept("*"):
            return Rate(None, None, self.since(start))
        if self.accept("["):
            parts = [self.bound()]
            while self.accept(","):
                parts.append(self.bound())
            self.expect("]", "after a rate")
            return Rate(parts[0], parts[-1] if len(parts) > 1 else None, self.since(start))
        value = self.expression()
        return Rate(value, value, self.since(start))

    def bound(self) -> Expression | None:
        return None if self.accept("*") else self.expression()

    def member(self, parts: _Parts, of: str, start: Span) -> None:
        """A field or a function: both begin with a type and a name."""
        type_ = self.type_name()
        self.refuse_stream(start)
        if self.tokens[self.position + 1].value == "(" or of == "helper":
            name = self.new_name("the name of a function")
            parts.routines.append(self.routine(type_, name, start))
            return
        fields = self.declared(type_)
        if parts.between:  # what they are at first may depend on what was done before
            sets = [Set(Name(f.name, f.span), "", f.value, f.span) for f in fields if f.value]
            parts.between += sets
            fields = [replace(field, value=None) for field in fields]
        parts.fields += fields
        self.expect(";", "after a field")

    def routine(self, type_: TypeName | None, name: str, start: Span) -> Routine:
        parameters = self.parameters() if type_ is not None or self.at("(") else ()
        head = self.since(start)
        self.rates()  # what a function pops and pushes is part of what `work` declares
        return Routine(type_, name, parameters, self.block(), head)


def _as_handler(routine: Routine) -> Routine:
    return Routine(routine.type, routine.name, routine.parameters, routine.body, routine.span, True)
