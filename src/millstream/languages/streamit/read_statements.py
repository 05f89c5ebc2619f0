"""Statements, and streams where they are added: from tokens to our tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NoReturn, cast

from millstream.calculus.cursor import Stop
from millstream.errors import suggest
from millstream.languages.streamit.ast import (
    AddStream,
    Block,
    Declare,
    Do,
    Enqueue,
    Expression,
    If,
    Instance,
    Invoke,
    Leave,
    Loop,
    Name,
    Print,
    Push,
    Return,
    Send,
    Set,
    Split,
    Statement,
    Stream,
    TypeName,
)
from millstream.languages.streamit.read_terms import TermReader
from millstream.source import Span

KINDS = ("filter", "pipeline", "splitjoin", "feedbackloop")
STREAM = "a stream, such as `float->float filter Name { ... }`"


class StatementReader(TermReader, ABC):
    """Mutable: reads statements; how a stream is read is left open."""

    @abstractmethod
    def stream(
        self, input_: TypeName | None, output: TypeName | None, start: Span, *, is_named: bool
    ) -> Stream:
        """A stream whose types have been read."""

    def output_type(self, input_: TypeName) -> TypeName:
        if not self.at("->"):
            hint = suggest(input_.name, ("struct", "static", "helper"))
            self.fail(f"expected `->` and what the stream gives, got {self.token}", hint=hint)
        self.advance()
        return self.type_name()

    def with_sizes(self, type_: TypeName) -> TypeName:
        """Sizes after the name, as C has them, are those of the type."""
        sizes = self.sizes()
        return TypeName(type_.name, type_.sizes + sizes, type_.span, type_.argument)

    def refuse_stream(self, start: Span) -> None:
        if self.at("->"):
            self.fail("a stream cannot begin here", start, "is a `}` missing before it?")

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
        return AddStream(role, stream, portals, self.since(start))

    def portal(self) -> Name:
        span = self.token.span
        return Name(self.new_name("a portal"), span)

    def child(self) -> Instance | Stream:
        start = self.token.span
        if self.at(*KINDS, "stateful"):
            return self.stream(None, None, start, is_named=False)
        if self.tokens[self.after_sizes(self.position + 1)].value == "->":
            input_ = self.type_name()
            return self.stream(input_, self.output_type(input_), start, is_named=False)
        name = self.new_name(STREAM)
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


_R = StatementReader
_STATEMENTS = {
    "push": _R.push, "print": _R.print_, "println": _R.println, "if": _R.if_, "while": _R.while_,
    "do": _R.do, "for": _R.for_, "break": _R.leave, "continue": _R.leave, "return": _R.return_,
    "add": _R.add, "body": _R.add, "loop": _R.add, "split": _R.split, "join": _R.split,
    "enqueue": _R.enqueue,
}  # fmt: skip
