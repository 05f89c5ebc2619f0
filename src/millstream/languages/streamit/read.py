"""Streams and statements: from tokens to our tree.

What cannot be read is noted, and reading goes on with the next statement or the next stream,
so that all syntax errors are told together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Literal, NoReturn, cast

from millstream.calculus.cursor import Stop
from millstream.calculus.lexer import tokens_of
from millstream.errors import Fault, ParseError, suggest
from millstream.languages.streamit.ast import (
    Block,
    Composite,
    Declare,
    Do,
    Enqueue,
    Expression,
    Filter,
    Helper,
    If,
    Instance,
    Invoke,
    Leave,
    Loop,
    Name,
    Parameter,
    Place,
    Print,
    Push,
    Rate,
    Return,
    Routine,
    Send,
    Set,
    Split,
    Statement,
    Static,
    Stream,
    Struct,
    Text,
    TypeName,
    Work,
)
from millstream.languages.streamit.read_terms import TermReader
from millstream.languages.streamit.tokens import PATTERN
from millstream.source import Source, Span

_KINDS = ("filter", "pipeline", "splitjoin", "feedbackloop")
_STREAM = "a stream, such as `float->float filter Name { ... }`"
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


class _Reader(TermReader):
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
            self.fail(f"expected {_STREAM}, got {self.token}")
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

    def output_type(self, input_: TypeName) -> TypeName:
        if not self.at("->"):
            hint = suggest(input_.name, ("struct", "static", "helper"))
            self.fail(f"expected `->` and what the stream gives, got {self.token}", hint=hint)
        self.advance()
        return self.type_name()

    def stream(
        self, input_: TypeName | None, output: TypeName | None, start: Span, *, is_named: bool
    ) -> Stream:
        self.accept("stateful")  # a remark
        self.refuse()
        if not self.at(*_KINDS):
            self.fail(f"expected filter, pipeline, splitjoin or feedbackloop, got {self.token}",
                      hint=suggest(self.token.value, _KINDS))  # fmt: skip
        kind = self.advance().value
        name = self.new_name(f"the name of the {kind}") if is_named else None
        parameters = self.parameters() if self.at("(") else ()
        head = self.since(start)
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

    def with_sizes(self, type_: TypeName) -> TypeName:
        """Sizes after the name, as C has them, are those of the type."""
        sizes = self.sizes()
        return TypeName(type_.name, type_.sizes + sizes, type_.span, type_.argument)

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

    def refuse_stream(self, start: Span) -> None:
        if self.at("->"):
            self.fail("a stream cannot begin here", start, "is a `}` missing before it?")

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

    # --- statements ---

    def block(self) -> Block:
        start = self.expect("{", "and statements").span
        statements: list[Statement] = []
        while not self.at("}") and self.token.kind != "end":
            try:
                statements += self.statement()
            except Stop:
                self.depth = 0
                self.skip_statement()
        self.expect("}", "at the end of the statements")
        return Block(tuple(statements), self.since(start))

    def skip_statement(self) -> None:
        """Behind the next semicolon or braces, or to the end of those we are in."""
        depth = 0
        while self.token.kind != "end":
            if self.at("}") and depth == 0:
                return
            value = self.advance().value
            depth += {"{": 1, "}": -1}.get(value, 0)
            if depth == 0 and value in (";", "}"):
                return

    def one(self) -> Statement:
        """A statement where one is wanted: the body of a loop or a branch."""
        start = self.token.span
        statements = self.statement()
        return statements[0] if len(statements) == 1 else Block(tuple(statements), start)

    def statement(self) -> list[Statement]:
        start = self.token.span
        if self.accept(";"):
            return []
        if self.at("{"):
            return [self.block()]
        reader = _STATEMENTS.get(self.token.value) if self.token.kind == "name" else None
        if reader is not None:
            self.advance()
            return [reader(self, start)]
        self.refuse()
        if self.at("work", "prework", "init"):
            self.fail(f"only a filter has {self.token}, and only once, outside of other braces")
        simple = self.simple()
        self.expect(";", "after a statement")
        return simple

    def simple(self) -> list[Statement]:
        """A declaration, an assignment or a call, without its semicolon."""
        start = self.token.span
        if self.at_type():
            type_ = self.type_name()
            self.refuse_stream(start)
            return list(self.declared(type_))
        target = self.expression()
        if isinstance(target, Set):
            return [target]
        if isinstance(target, Invoke) and self.at("["):
            return [self.sent(target, start)]
        return [Do(target, self.since(start))]

    def sent(self, call: Invoke, start: Span) -> Send:
        """A message with its latency: from, to, or any."""
        portal, dot, handler = call.function.partition(".")
        if not dot:
            self.fail("only a message to a portal can have a latency")
        self.expect("[", "and the latency of a message")
        latency: tuple[Expression | None, ...] = (None, None)
        if not self.accept("*"):
            least = None if self.at(":") else self.expression()
            self.expect(":", "between the least and the most latency")
            latency = (least, None if self.at("]") else self.expression())
        self.expect("]", "after the latency")
        return Send(portal, handler, call.arguments, latency, self.since(start))

    def declared(self, type_: TypeName) -> list[Declare]:
        declarations = [self.declaration(type_)]
        while self.accept(","):
            declarations.append(self.declaration(type_))
        return declarations

    def declaration(self, type_: TypeName) -> Declare:
        start = type_.span or self.token.span
        name = self.new_name("a name")
        whole = self.with_sizes(type_)
        value = self.expression() if self.accept("=") else None
        return Declare(whole, name, value, self.since(start))

    def push(self, start: Span) -> Statement:
        self.expect("(", "and what is pushed")
        value = self.expression()
        self.expect(")", "after what is pushed")
        return self.ended(Push(value, self.since(start)))

    def ended(self, statement: Statement) -> Statement:
        self.expect(";", "after a statement")
        return statement

    def print_(self, start: Span) -> Statement:
        return self.printed(start, ends_line=False)

    def println(self, start: Span) -> Statement:
        return self.printed(start, ends_line=True)

    def printed(self, start: Span, *, ends_line: bool) -> Statement:
        self.expect("(", "and what is printed")
        value = None if self.at(")") else self.expression()
        self.expect(")", "after what is printed")
        return self.ended(Print(value, ends_line, self.since(start)))

    def if_(self, start: Span) -> Statement:
        condition = self.condition()
        then = self.one()
        otherwise = self.one() if self.accept("else") else None
        return If(condition, then, otherwise, self.since(start))

    def condition(self) -> Expression:
        self.expect("(", "and a condition")
        condition = self.expression()
        self.expect(")", "after the condition")
        return condition

    def while_(self, start: Span) -> Statement:
        condition = self.condition()
        return Loop((), condition, (), self.one(), True, self.since(start))

    def do(self, start: Span) -> Statement:
        body = self.one()
        self.expect("while", "after the statements of `do`")
        condition = self.condition()
        return self.ended(Loop((), condition, (), body, False, self.since(start)))

    def for_(self, start: Span) -> Statement:
        self.expect("(", "and the parts of the loop")
        before = self.simples(";")
        self.expect(";", "after the beginning of the loop")
        condition = None if self.at(";") else self.expression()
        self.expect(";", "after the condition of the loop")
        after = self.simples(")")
        self.expect(")", "after the parts of the loop")
        return Loop(tuple(before), condition, tuple(after), self.one(), True, self.since(start))

    def simples(self, closing: str) -> list[Statement]:
        return [s for some in self.separated(self.simple, closing) for s in some]

    def leave(self, start: Span) -> Statement:
        word = cast("Literal['break', 'continue']", self.previous.value)
        return self.ended(Leave(word, start))

    def return_(self, start: Span) -> Statement:
        value = None if self.at(";") else self.expression()
        return self.ended(Return(value, self.since(start)))

    # --- what only composites have ---

    def add(self, start: Span) -> Statement:
        role = cast("Literal['add', 'body', 'loop']", self.previous.value)
        stream = self.child()
        portals: tuple[Name, ...] = ()
        if self.accept("to"):
            portals = tuple(self.separated(self.portal, ";"))
        is_defined = isinstance(stream, Stream)
        if not (is_defined and not self.at(";")):
            self.expect(";", "after a stream")
        return Place(role, stream, portals, self.since(start))

    def portal(self) -> Name:
        span = self.token.span
        return Name(self.new_name("a portal"), span)

    def child(self) -> Instance | Stream:
        start = self.token.span
        if self.at(*_KINDS, "stateful"):
            return self.stream(None, None, start, is_named=False)
        if self.tokens[self.after_sizes(self.position + 1)].value == "->":
            input_ = self.type_name()
            return self.stream(input_, self.output_type(input_), start, is_named=False)
        name = self.new_name(_STREAM)
        type_ = None
        if self.accept("<"):
            type_ = self.type_name()
            self.expect(">", "after the type")
        arguments = self.arguments() if self.at("(") else ()
        return Instance(name, type_, arguments, self.since(start))

    def split(self, start: Span) -> Statement:
        role = cast("Literal['split', 'join']", self.previous.value)
        if not self.at("duplicate", "roundrobin"):
            self.wrong_split(role)
        kind = cast("Literal['duplicate', 'roundrobin']", self.advance().value)
        if (role, kind) == ("join", "duplicate"):
            self.fail("streams are joined by roundrobin", self.previous.span)
        weights = self.arguments() if self.at("(") else ()
        if kind == "duplicate" and weights:
            self.fail("duplicate has no weights: every stream gets every item", self.since(start))
        return self.ended(Split(role, kind, weights, self.since(start)))

    def wrong_split(self, role: str) -> NoReturn:
        wanted = "roundrobin" if role == "join" else "duplicate or roundrobin"
        hint = suggest(self.token.value, ("duplicate", "roundrobin"))
        self.fail(f"expected {wanted}, got {self.token}", hint=hint)

    def enqueue(self, start: Span) -> Statement:
        return self.ended(Enqueue(self.expression(), self.since(start)))


def _as_handler(routine: Routine) -> Routine:
    return Routine(routine.type, routine.name, routine.parameters, routine.body, routine.span, True)


_STATEMENTS = {
    "push": _Reader.push, "print": _Reader.print_, "println": _Reader.println, "if": _Reader.if_,
    "while": _Reader.while_, "do": _Reader.do, "for": _Reader.for_, "break": _Reader.leave,
    "continue": _Reader.leave, "return": _Reader.return_, "add": _Reader.add, "body": _Reader.add,
    "loop": _Reader.add, "split": _Reader.split, "join": _Reader.split,
    "enqueue": _Reader.enqueue,
}  # fmt: skip
