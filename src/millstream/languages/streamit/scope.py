"""What names stand for, and which of them a stream takes from around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.terms import Literal, Read, walk
from millstream.errors import Fault
from millstream.languages.streamit import ast
from millstream.source import Span

#: Streams that are there without being defined.
IDENTITY, READER, WRITER = "Identity", "FileReader", "FileWriter"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable under the name that no other has in its code."""

    name: str
    shape: Shape


@dataclass
class Names:
    """Mutable: the names of a block, those around it, and all that a code has used."""

    outer: Names | None = None
    own: dict[str, Variable] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def inner(self) -> Names:
        return Names(self, {}, self.used)

    def declare(self, name: str, shape: Shape) -> Variable:
        """A new variable of this block; it may hide one of the same name around it."""
        unique, number = name, 2
        while unique in self.used:
            unique, number = f"{name}_{number}", number + 1
        self.used.add(unique)
        self.own[name] = Variable(unique, shape)
        return self.own[name]

    def temporary(self, shape: Shape) -> Variable:
        """A variable that nobody has written; its name can be nobody's."""
        name = f"t${len(self.used)}"
        self.used.add(name)
        return Variable(name, shape)

    def get(self, name: str) -> Variable | None:
        if name in self.own or self.outer is None:
            return self.own.get(name)
        return self.outer.get(name)

    def visible(self) -> dict[str, Variable]:
        """All that a stream written here can see."""
        return {**({} if self.outer is None else self.outer.visible()), **self.own}


def mentioned(node: object) -> set[str]:
    """The names that stand in a tree, whatever they are names of."""
    if isinstance(node, ast.Name):
        return {node.name}
    if isinstance(node, ast.Send):
        return {node.portal} | mentioned([node.arguments, node.latency])
    if isinstance(node, ast.Invoke) and "." in node.function:
        return {node.function.partition(".")[0]} | mentioned(node.arguments)
    if isinstance(node, tuple | list):
        return set().union(*map(mentioned, node))
    if isinstance(node, dict):
        return mentioned(list(node.values()))
    if dataclasses.is_dataclass(node) and not isinstance(node, Span):
        return mentioned([getattr(node, f.name) for f in dataclasses.fields(node)])
    return set()


def expressions_in(node: object) -> Iterator[ast.Expression]:
    """What is written inside, the innermost first, but not in other statements and streams."""
    if isinstance(node, tuple):
        inside: Iterable[object] = node
    else:
        inside = (getattr(node, f.name) for f in dataclasses.fields(node))  # type: ignore[arg-type]
    for part in inside:
        if isinstance(part, tuple | ast.Expression | ast.TypeName | ast.Instance):
            yield from expressions_in(part)
        if isinstance(part, ast.Expression):
            yield part


def names_in(shape: Shape) -> set[str]:
    """The variables that sizes of a shape read."""
    match shape:
        case ArrayOf(element, size):
            read = {node.place.variable for node in walk(size) if isinstance(node, Read)}
            return read | names_in(element)
        case RecordOf(parts):
            return set().union(*(names_in(part) for _, part in parts))
        case _:
            return set()


@dataclass
class Program:
    """Mutable: what a whole text defines, and the faults found in it."""

    text: ast.Text
    faults: list[Fault] = field(default_factory=list)
    #: What is odd, but has a meaning.
    warnings: list[Fault] = field(default_factory=list)
    structs: dict[str, RecordOf] = field(default_factory=dict)
    #: Constants that are one value, and those that are handed to whoever mentions them.
    constants: dict[str, Literal] = field(default_factory=dict)
    statics: dict[str, Variable] = field(default_factory=dict)
    streams: dict[str, ast.Stream] = field(default_factory=dict)
    #: Names whose declarations have faults: where they stand nothing more is said.
    spoilt: set[str] = field(default_factory=set)

    def warn(self, message: str, span: Span | None, hint: str | None = None) -> None:
        if all(warning.span != span for warning in self.warnings):
            self.warnings.append(Fault(message, span, hint))

    def fault(self, message: str, span: Span | None, hint: str | None = None) -> None:
        """Noted once per place: instances of a stream have the same faults."""
        if span is None or all(fault.span != span for fault in self.faults):
            self.faults.append(Fault(message, span, hint))
