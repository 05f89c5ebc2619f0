"""Types, and what every part of the reader stands on.

The language declares every name before it is used, so a text is read and typed in one go. What
is wrong is noted; reading goes on with the next statement, so that all faults are told together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.calculus.cursor import Reader, Stop
from millstream.calculus.scripts import Const, Expression, Statement, Table, Var
from millstream.errors import CheckError, Fault, suggest
from millstream.languages.sawzall.messages import MessageReader, declared_in
from millstream.languages.sawzall.scope import (
    UNKNOWN,
    Entry,
    Names,
    TableType,
    TypeName,
    an,
    can_be_key,
)
from millstream.languages.sawzall.tokens import RESERVED, Token
from millstream.source import Source, Span
from millstream.values.records.proto import TRAVELS, WIRES
from millstream.values.records.types import (
    ArrayOf,
    Field,
    FunctionOf,
    MapOf,
    Named,
    RecordType,
    TupleOf,
    resolved,
)

#: Deeper nesting than this is refused, as it could not be worked with.
MOST_NESTED = 150

_TABLES = "a table is declared under a name of its own, or is a parameter of a function"


class TypeReader(Reader[Token]):
    """Mutable: a place in the tokens, the names so far, and the faults so far."""

    def __init__(
        self, tokens: list[Token], faults: list[Fault], included: Callable[[str, Span], Source]
    ) -> None:
        self.tokens = tokens
        self.faults = faults
        self.included = included
        self.position = 0
        self.depth = 0
        self.names = Names()
        self.tables: list[Table] = []
        self.statics: list[Statement] = []
        self.variables = 0
        #: How deep functions are nested, and how many variables there were before what is static.
        self.level = 0
        self.static_from: list[int] = []
        #: The names of the parameters of the last type of functions that was read.
        self.parameters: tuple[Token, ...] = ()
        #: Whether a file that is included is not there, and any name may be of it.
        self.lacks_files = False

    # --- tokens ---

    def word(self, token: Token) -> str:
        return token.text

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def expect(self, text: str, where: str) -> Token:
        if self.at(text):
            return self.advance()
        hint = "`==` compares" if text == ")" and self.at("=") else None
        if self.at("?"):
            hint = "a choice between two values is ?{ if (c) result a; result b; }"
        if text == ";":
            last = self.previous.span
            place = Span(last.source, last.end, last.end + 1)
            self.note(f"expected `;` {where}, got {self.token}", place, hint)
            if "\n" in last.source.text[last.end : self.token.span.start]:
                return self.previous  # what comes on the next line stands for itself
            raise Stop
        self.fail(f"expected `{text}` {where}, got {self.token}", hint=hint)

    def expect_name(self, what: str) -> Token:
        if self.token.kind == "name" and self.token.text not in RESERVED:
            return self.advance()
        if self.token.kind == "name":
            self.fail(f"expected {what}, got the word `{self.token.text}`", hint="choose another")
        self.fail(f"expected {what}, got {self.token}")

    def since(self, start: Span) -> Span:
        """From a place to what has been read last."""
        last = self.previous.span
        return start.to(last) if start.source is last.source else start

    def nested(self) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            self.depth = 0
            self.fail("this is nested too deeply")

    # --- names ---

    def new_var(self, name: str, type_: RecordType, *, is_static: bool = False) -> Var:
        self.variables += 1
        return Var(self.variables, name, type_, -1 if is_static else self.level)

    def declare(self, name: Token, entry: Entry) -> None:
        if self.names.is_taken(name.text):
            self.note(f'"{name.text}" is declared already in this block', name.span)
        self.names.declare(name.text, entry)

    # --- types ---

    def type(self) -> RecordType:
        self.nested()
        start = self.token
        if self.accept("array"):
            self.expect("of", "in the type of an array")
            read: RecordType = ArrayOf(self.component()[1])
        elif self.accept("map"):
            read = self.map_type()
        elif self.at("{") or self.accept("parsedmessage"):
            read = self.tuple_type({})
        elif self.accept("function"):
            read = self.function_type()[1]
        elif self.accept("proto"):
            read = self.proto_type(start.span)
        elif self.at("table"):
            self.fail(_TABLES)
        else:
            read = self.type_named(self.expect_name("a type"))
        self.depth -= 1
        return read

    def component(self) -> tuple[str | None, RecordType]:
        """`name: type` or a type alone."""
        name = None
        if self.token.kind == "name" and self.peek().text == ":" and self.peek().kind == "symbol":
            name = self.advance().text
            self.advance()
        return name, self.type()

    def map_type(self) -> RecordType:
        self.expect("[", "before the type of the key")
        start = self.token.span
        _, key = self.component()
        if not can_be_key(key):
            self.note(f"{an(key)} cannot be a key", self.since(start))
        self.expect("]", "after the type of the key")
        self.expect("of", "before the type of the values")
        return MapOf(key, self.component()[1])

    def function_type(self) -> tuple[list[Token], FunctionOf]:
        """What stands after `function`; with the names of the parameters."""
        self.expect("(", "after `function`")
        names: list[Token] = []
        types: list[RecordType] = []
        while not self.at(")"):
            if self.token.kind == "name" and self.peek().text == ":":
                names.append(self.advance())
                self.advance()
            else:
                names.append(self.token)
            types.append(self.table_parameter() if self.is_table() else self.type())
            if not self.accept(","):
                break
        self.expect(")", "after the parameters")
        result = self.type() if self.accept(":") else None
        self.parameters = tuple(names)
        return names, FunctionOf(tuple(types), result)

    def proto_type(self, start: Span) -> RecordType:
        inner = resolved(self.type())
        if isinstance(inner, TupleOf):
            return messaged(inner)
        if inner != UNKNOWN:
            self.note(f"expected a tuple after `proto`, got {inner}", self.since(start))
        return UNKNOWN

    def tuple_type(self, members: dict[str, Entry]) -> RecordType:
        """A tuple; types and static variables inside of it become its members."""
        start = self.expect("{", "before the fields").span
        self.names.levels.append(members)
        fields: list[Field] = []
        while not self.at("}"):
            if self.at("type"):
                self.type_declaration()
            elif self.at("static"):
                self.static_member()
            else:
                fields.append(self.field())
            if not self.accept(",") and not self.accept(";"):
                break
        self.expect("}", "after the fields of a tuple")
        self.names.levels.pop()
        span = self.since(start)
        names = [f.name for f in fields if f.name is not None]
        tags = [f.tag for f in fields if f.tag is not None]
        if len(set(names)) < len(names):
            self.note("two fields have the same name", span)
        if len(set(tags)) < len(tags):
            self.note("two fields have the same tag", span)
        if tags and len(tags) < len(fields):
            self.note("either all fields of a tuple have a tag or none", span)
        return TupleOf(tuple(fields), bool(tags))

    def field(self) -> Field:
        start = self.token.span
        name, type_ = self.component()
        default = None
        if self.accept("="):
            default = self.default_of(type_)
        tag = wire = None
        if self.accept("@"):
            token = self.advance()
            tag = token.value if isinstance(token.value, int) else 0
            if tag <= 0:
                self.note("expected a tag greater than 0", token.span)
                tag = None
            if name is None:
                self.note("a field with a tag needs a name", self.since(start))
            if self.accept(":"):
                wire = self.wire(type_)
        elif default is not None:
            self.note("only a field with a tag has a default", self.since(start))
        return Field(name, type_, tag, default, wire)

    def wire(self, type_: RecordType) -> str | None:
        """How a field travels, if not as its type usually does."""
        name = self.expect_name("how the field travels")
        if name.text not in WIRES:
            hint = suggest(name.text, WIRES) or f"there are: {', '.join(WIRES)}"
            self.note(f'unknown encoding "{name.text}"', name.span, hint)
            return None
        wire = WIRES[name.text]
        inner = resolved(type_)
        inner = resolved(inner.element) if isinstance(inner, ArrayOf) else inner
        fits = inner in TRAVELS.get(wire, ()) or wire is None or inner == UNKNOWN
        if not fits:
            self.note(f"{an(inner)} does not travel as {name.text}", name.span)
        return wire if fits else None

    def proto_statement(self) -> list[Statement]:
        """The messages of a file are types from here on."""
        start = self.advance().span
        token = self.advance()
        if not isinstance(token.value, str):
            self.fail("expected the name of a file in quotes", token.span)
        source = self.beside(token.value, start.to(token.span))
        self.accept(";")
        if source is not None:
            messages = MessageReader(source, self.faults, self.included)
            for name, entry in declared_in(messages).items():
                self.names.declare(name, entry)
        return []

    def beside(self, name: str, span: Span) -> Source | None:
        """The file of a name, or a fault; what is declared in one that is not there is unknown."""
        try:
            return self.included(name, span)
        except CheckError as error:
            self.faults.extend(error.faults)
            self.lacks_files = True
            return None

    def unknown(self, what: str, name: str, span: Span, hint: str | None) -> None:
        """A name that nothing has declared, unless a file may have that is not there."""
        if not self.lacks_files:
            self.note(f'unknown {what} "{name}"', span, hint)

    def type_named(self, name: Token) -> RecordType:
        entry = self.names.find(name.text)
        while isinstance(entry, TypeName) and self.at(".") and self.peek().kind == "name":
            self.advance()
            name = self.advance()
            entry = entry.members.get(name.text)
        if isinstance(entry, TypeName):
            self.parameters = entry.parameters
            return entry.type
        types = [n for n in self.names.all() if isinstance(self.names.find(n), TypeName)]
        if isinstance(entry, TableType):
            self.note(_TABLES, name.span)
        elif entry is None:
            hint = suggest(name.text, types)
            self.unknown("type", name.text, name.span, hint)
        else:
            self.note(f'"{name.text}" is no type', name.span, suggest(name.text, types))
        return UNKNOWN

    def type_declaration(self) -> None:
        self.advance()
        name = self.expect_name("the name of a type")
        self.expect("=", "after the name of a type")
        if self.at("table"):
            self.table_type(name)
            return
        scope: dict[str, RecordType] = {}
        members: dict[str, Entry] = {}
        if self.names.is_taken(name.text):
            self.note(f'"{name.text}" is declared already in this block', name.span)
        # Until it is known, the name stands for itself: so a type can contain itself.
        scope[name.text] = UNKNOWN
        self.names.declare(name.text, TypeName(Named(name.text, scope), members))
        self.parameters = ()
        read = self.tuple_type(members) if self.at("{") else self.type()
        scope[name.text] = read
        if contains_itself(read, name.text):
            hint = "put it into an array or a map"
            self.note(f'a "{name.text}" would contain itself for ever', name.span, hint)
            scope[name.text] = read = UNKNOWN
        self.names.declare(name.text, TypeName(read, members, self.parameters))

    # --- what other parts give ---

    def static_member(self) -> None:
        raise NotImplementedError

    def default_of(self, type_: RecordType) -> Any:
        raise NotImplementedError

    def expression(self) -> Expression:
        raise NotImplementedError

    def table_type(self, name: Token) -> None:
        raise NotImplementedError

    def is_table(self) -> bool:
        raise NotImplementedError

    def table_parameter(self) -> RecordType:
        raise NotImplementedError


def messaged(type_: TupleOf) -> TupleOf:
    """A tuple as it travels: fields that have no tags get their places, from 1."""
    fields = []
    for number, one in enumerate(type_.fields, 1):
        inner = one.type
        if isinstance(resolved(inner), TupleOf):
            inner = messaged(resolved(inner))  # type: ignore[arg-type]
        elif isinstance(inner, ArrayOf) and isinstance(resolved(inner.element), TupleOf):
            inner = ArrayOf(messaged(resolved(inner.element)))  # type: ignore[arg-type]
        fields.append(replace(one, type=inner, tag=one.tag or number))
    return replace(type_, fields=tuple(fields), is_proto=True)


def contains_itself(type_: RecordType, name: str) -> bool:
    """Whether a value would hold another of its kind, and not in an array or a map."""
    match type_:
        case Named(named, _):
            return named == name
        case TupleOf(fields):
            return any(contains_itself(f.type, name) for f in fields)
        case _:
            return False


def constant(value: Any, type_: RecordType, span: Span | None = None) -> Const:
    return Const(value, type_, span)
