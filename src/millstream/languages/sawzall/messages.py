"""Files of protocol buffers: the messages in them as types of a program.

Messages, `oneof`, enumerations, maps, and imports of files beside the program. What says nothing of
how fields travel (services, options, extensions) is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.calculus.cursor import Stop
from millstream.errors import Fault
from millstream.languages.sawzall.scope import Constant, Entry, TypeName
from millstream.languages.sawzall.tokens import unescaped
from millstream.source import Source, Span
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STRING,
    UINT,
    ArrayOf,
    Field,
    Named,
    RecordType,
    TupleOf,
    resolved,
)

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<name>\.?[A-Za-z_]\w*(?:\.\w+)*)
  | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
#: The types of fields, and how each travels.
SCALARS: dict[str, tuple[RecordType, str | None]] = {
    "int32": (INT, None), "int64": (INT, None), "uint32": (UINT, None), "uint64": (UINT, None),
    "sint32": (INT, "zigzag"), "sint64": (INT, "zigzag"), "fixed32": (UINT, "fixed32"),
    "fixed64": (UINT, "fixed64"), "sfixed32": (INT, "fixed32"), "sfixed64": (INT, "fixed64"),
    "double": (FLOAT, None), "float": (FLOAT, "float32"), "bool": (BOOL, None),
    "string": (STRING, None), "bytes": (BYTES, None),
}  # fmt: skip
_LABELS = ("optional", "required", "repeated")
_PASSED_OVER = ("option", "extensions", "reserved", "syntax", "edition", "package")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    span: Span


@dataclass
class _Message:
    """Mutable while it is read: the fields and what is declared inside."""

    name: str
    fields: list[_Declared] = field(default_factory=list)
    members: dict[str, Entry] = field(default_factory=dict)
    inner: dict[str, _Message | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    type: str
    tag: int
    is_repeated: bool
    default: _Token | None
    span: Span
    #: Of a map: the types of its keys and values.
    entry: tuple[str, str] | None = None


class MessageReader:
    """Mutable: reads a file; enumerations are kept as `enum` in what is known."""

    def __init__(
        self, source: Source, faults: list[Fault], included: Callable[[str, Span], Source]
    ) -> None:
        self.faults = faults
        self.included = included
        self.known: dict[str, _Message | str] = {}
        self.constants: dict[str, Entry] = {}
        self.files = {source.name}
        self._open(source)

    def _open(self, source: Source) -> None:
        self.tokens = [
            _Token(str(m.lastgroup), m[0], Span(source, m.start(), m.end()))
            for m in _TOKEN.finditer(source.text)
            if m.lastgroup != "space"
        ]
        self.tokens.append(_Token("end", "", Span(source, len(source.text), len(source.text))))
        self.position = 0
        while self.token.kind != "end":
            try:
                self._top()
            except Stop:
                self._after_statement()

    # --- tokens ---

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def advance(self) -> _Token:
        token = self.token
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def expect(self, text: str) -> _Token:
        if self.token.text != text:
            got = f"`{self.token.text}`" if self.token.text else "the end of the file"
            self.faults.append(Fault(f"expected `{text}`, got {got}", self.token.span))
            raise Stop
        return self.advance()

    def accept(self, text: str) -> bool:
        is_there = self.token.text == text
        if is_there:
            self.advance()
        return is_there

    def word(self, what: str) -> _Token:
        if self.token.kind != "name":
            got = f"`{self.token.text}`" if self.token.text else "the end of the file"
            self.faults.append(Fault(f"expected {what}, got {got}", self.token.span))
            raise Stop
        return self.advance()

    def whole(self) -> int:
        token = self.token
        if token.kind != "number" or not re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", token.text):
            self.faults.append(Fault(f"expected a number, got `{token.text}`", token.span))
            raise Stop
        return int(self.advance().text, 0)

    def _after_statement(self) -> None:
        """Past the next `;`, or the next block as a whole."""
        depth = 0
        while self.token.kind != "end":
            text = self.advance().text
            depth += (text == "{") - (text == "}")
            if depth <= 0 and text in (";", "}"):
                return

    # --- declarations ---

    def _top(self) -> None:
        word = self.token.text
        if word == "import":
            self._import()
        elif word == "message":
            self._message(self.known, self.constants)
        elif word == "enum":
            self._enum(self.known, self.constants)
        else:
            self._after_statement()

    def _import(self) -> None:
        start = self.advance().span
        if self.token.text in ("public", "weak"):
            self.advance()
        name = self.advance()
        self.expect(";")
        path = name.text.strip("\"'")
        if path in self.files or path.startswith("google/protobuf/"):
            return
        self.files.add(path)
        kept = self.tokens, self.position
        self._open(self.included(path, start.to(name.span)))
        self.tokens, self.position = kept

    def _message(self, known: dict[str, _Message | str], members: dict[str, Entry]) -> None:
        self.advance()
        name = self.word("the name of a message")
        message = known[name.text] = _Message(name.text)
        self.expect("{")
        while self.token.kind != "end" and not self.accept("}"):
            try:
                self._part(message)
            except Stop:
                self._after_statement()

    def _part(self, message: _Message) -> None:
        word = self.token.text
        if word == ";":
            self.advance()
        elif word == "message" and self._is_block():
            self._message(message.inner, message.members)
        elif word == "enum" and self._is_block():
            self._enum(message.inner, message.members)
        elif word == "oneof":
            self.advance()
            self.word("a name")
            self.expect("{")
            while self.token.kind != "end" and not self.accept("}"):
                self._field(message)
        elif word == "extend" or (word in _PASSED_OVER and not self._is_field()):
            self._after_statement()
        else:
            self._field(message)

    def _is_block(self) -> bool:
        return self.tokens[min(self.position + 2, len(self.tokens) - 1)].text == "{"

    def _is_field(self) -> bool:
        return self.tokens[min(self.position + 2, len(self.tokens) - 1)].text == "="

    def _enum(self, known: dict[str, _Message | str], members: dict[str, Entry]) -> None:
        self.advance()
        known[self.word("the name of an enumeration").text] = "enum"
        self.expect("{")
        while self.token.kind != "end" and not self.accept("}"):
            if self.token.text in ("option", "reserved") and not self._is_value():
                self._after_statement()
                continue
            name = self.word("a name")
            self.expect("=")
            members[name.text] = Constant(self.whole(), INT)
            self._after_statement()

    def _is_value(self) -> bool:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)].text == "="

    def _field(self, message: _Message) -> None:
        start = self.token.span
        label = self.advance().text if self.token.text in _LABELS else ""
        kind = self.word("the type of a field").text
        entry = None
        if kind == "group":
            self.faults.append(Fault("groups cannot be read", start, "make it a message"))
            raise Stop
        if kind == "map" and self.accept("<"):
            key = self.word("the type of the keys").text
            self.expect(",")
            entry = (key, self.word("the type of the values").text)
            self.expect(">")
        name = self.word("the name of a field").text
        self.expect("=")
        tag = self.whole()
        default = self._options() if self.accept("[") else None
        end = self.expect(";").span
        span = start.to(end)
        message.fields.append(_Declared(name, kind, tag, label == "repeated", default, span, entry))

    def _options(self) -> _Token | None:
        default = None
        depth = 1
        while self.token.kind != "end":
            token = self.advance()
            depth += (token.text in "[{(") - (token.text in "]})") if token.text else 0
            if depth == 0:
                break
            if token.text == "default" and self.accept("="):
                default = self.advance()
        return default


def declared_in(reader: MessageReader) -> dict[str, Entry]:
    """What a program can name of a file: its messages, with what is declared inside of them."""
    made = _Types(reader)
    found: dict[str, Entry] = dict(reader.constants)
    for name, message in reader.known.items():
        found[name] = made.entry(message, [reader.known], name)
    return found


class _Types:
    """Mutable: messages as types, each made once."""

    def __init__(self, reader: MessageReader) -> None:
        self.faults = reader.faults
        #: By the identity of a message: its type; and of those that are being made, their names.
        self.made: dict[int, TypeName] = {}
        self.scopes: dict[int, dict[str, RecordType]] = {}
        self.outer: dict[int, list[dict[str, _Message | str]]] = {}
        self._place([reader.known])

    def _place(self, around: list[dict[str, _Message | str]]) -> None:
        for message in around[-1].values():
            if isinstance(message, _Message):
                self.outer[id(message)] = around
                self._place([*around, message.inner])

    def entry(
        self, message: _Message | str, around: list[dict[str, _Message | str]], name: str
    ) -> TypeName:
        if isinstance(message, str):
            return TypeName(INT)
        if id(message) not in self.made:
            scope: dict[str, RecordType] = {}
            self.scopes[id(message)] = scope
            inside = [*around, message.inner]
            fields = tuple(self.field(d, inside) for d in message.fields)
            scope[name] = made = TupleOf(fields, is_proto=True)
            del self.scopes[id(message)]
            members = dict(message.members)
            self.made[id(message)] = TypeName(made, members)
            for inner, one in message.inner.items():
                members[inner] = self.entry(one, inside, inner)
        return self.made[id(message)]

    def field(self, one: _Declared, around: list[dict[str, _Message | str]]) -> Field:
        if one.entry is not None:
            key, value = (self.named(t, around, one.span, is_in_array=True) for t in one.entry)
            pair = (
                Field("key", key[0], 1, wire=key[1]),
                Field("value", value[0], 2, wire=value[1]),
            )
            return Field(one.name, ArrayOf(TupleOf(pair, is_proto=True)), one.tag)
        type_, wire = self.named(one.type, around, one.span, is_in_array=one.is_repeated)
        if one.is_repeated:
            return Field(one.name, ArrayOf(type_), one.tag, wire=wire)
        return Field(one.name, type_, one.tag, self.default(one, type_, around), wire)

    def find(
        self, name: str, around: list[dict[str, _Message | str]]
    ) -> tuple[_Message | str | None, str]:
        """What a name stands for, from the inside to the outside; packages may stand before it."""
        parts = name.lstrip(".").split(".")
        for first in range(len(parts)):
            for level in reversed(around):
                found: _Message | str | None = level.get(parts[first])
                for part in parts[first + 1 :]:
                    found = found.inner.get(part) if isinstance(found, _Message) else None
                if found is not None:
                    return found, parts[-1]
        return None, parts[-1]

    def named(
        self, name: str, around: list[dict[str, _Message | str]], span: Span, *, is_in_array: bool
    ) -> tuple[RecordType, str | None]:
        if name in SCALARS:
            return SCALARS[name]
        found, last = self.find(name, around)
        if found is None:
            self.faults.append(Fault(f'unknown type "{name}"', span))
            return INT, None
        if isinstance(found, str):
            return INT, None
        if id(found) in self.scopes:  # it is being made: it contains itself
            if not is_in_array:
                hint = "make the field repeated, or leave it out"
                message = f'a "{last}" that contains itself cannot be read'
                self.faults.append(Fault(message, span, hint))
                return BYTES, None
            return Named(last, self.scopes[id(found)]), None
        return self.entry(found, self.outer[id(found)], last).type, None

    def default(
        self, one: _Declared, type_: RecordType, around: list[dict[str, _Message | str]]
    ) -> object:
        token = one.default
        if token is None:
            return None
        kind = resolved(type_)
        if token.kind == "text":
            text = unescaped(token.text[1:-1], token.span, self.faults)
            return text.encode("latin-1", "replace") if kind == BYTES else text
        if kind == BOOL:
            return token.text == "true"
        if token.kind == "number":
            return float(token.text) if kind == FLOAT else int(token.text, 0)
        if kind == FLOAT:
            return float(token.text)  # inf or nan
        found = self._value(token.text, around)
        if found is None:
            self.faults.append(Fault(f'unknown default "{token.text}"', token.span))
        return found

    def _value(self, name: str, around: list[dict[str, _Message | str]]) -> object:
        """The number of a name in an enumeration."""
        for message in self._messages(around[0]):
            entry = message.members.get(name)
            if isinstance(entry, Constant):
                return entry.value
        return None

    def _messages(self, level: dict[str, _Message | str]) -> list[_Message]:
        inside = [m for m in level.values() if isinstance(m, _Message)]
        return inside + [m for one in inside for m in self._messages(one.inner)]
