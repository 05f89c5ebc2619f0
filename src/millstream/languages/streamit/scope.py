"""What names stand for, and which of them a stream takes from around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.terms import Read, walk
from millstream.errors import Fault
from millstream.languages.streamit import ast
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable under the name that no other has in its code."""

    name: str
    shape: Shape


@dataclass
class Names:
    """Mutable: the names of a block, those around it, and what a whole code has used.

    Names of `outside` are those of the code in which an anonymous stream stands, or constants
    of the program: what is used of them becomes a parameter.
    """

    outer: Names | None = None
    outside: Mapping[str, Variable] = field(default_factory=dict)
    own: dict[str, Variable] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    captured: dict[str, Variable] = field(default_factory=dict)

    def inner(self) -> Names:
        return Names(self, self.outside, {}, self.taken, self.captured)

    def declare(self, name: str, shape: Shape) -> Variable:
        """A new variable of this block; it may hide one of the same name around it."""
        unique, number = name, 2
        while unique in self.taken:
            unique, number = f"{name}_{number}", number + 1
        self.taken.add(unique)
        self.own[name] = Variable(unique, shape)
        return self.own[name]

    def temporary(self, shape: Shape) -> Variable:
        """A variable that nobody has written; its name can be nobody's."""
        number = sum(1 for name in self.taken if name.startswith("t$"))
        name = f"t${number + 1}"
        self.taken.add(name)
        return Variable(name, shape)

    def get(self, name: str) -> Variable | None:
        scope: Names | None = self
        while scope is not None:
            if name in scope.own:
                return scope.own[name]
            scope = scope.outer
        known = self.outside.get(name)
        return None if known is None else self.capture(known)

    def capture(self, variable: Variable) -> Variable:
        """What lies outside, as a parameter; so do the variables that its sizes read."""
        if variable.name not in self.captured:
            for name in names_in(variable.shape):
                around = next((v for v in self.outside.values() if v.name == name), None)
                if around is not None:
                    self.capture(around)
            self.captured[variable.name] = variable
            self.taken.add(variable.name)
        return variable

    def visible(self) -> dict[str, Variable]:
        """All that a stream written here can see."""
        around = {} if self.outer is None else self.outer.visible()
        return {**self.outside, **around, **self.own}


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
    structs: dict[str, RecordOf] = field(default_factory=dict)
    statics: dict[str, Variable] = field(default_factory=dict)
    streams: dict[str, ast.Stream] = field(default_factory=dict)

    def fault(self, message: str, span: Span | None, hint: str | None = None) -> None:
        fault = Fault(message, span, hint)
        if fault not in self.faults:
            self.faults.append(fault)
