"""What building a graph asks of codes, of trees and of the values that bodies hand on."""

from __future__ import annotations

from typing import Any

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.terms import Literal, Read, walk
from millstream.languages.streamit import ast
from millstream.languages.streamit.lowering import PORTAL, Lowering, Said
from millstream.languages.streamit.scope import names_in
from millstream.meaning.procedures import Frame, Machine
from millstream.source import Span
from millstream.values.types import INT32


def needs_fields(made: Lowering) -> bool:
    """Whether rates or the sizes of items may depend on what `init` does."""
    code = made.code
    calculated = [*made.rates.calculated(), *(made.first_rates or Said()).calculated()]
    if any(rate.before for rate in calculated):
        return True
    read = {
        node.place.variable
        for rate in calculated
        for node in walk(rate.term)
        if isinstance(node, Read)
    }
    for shape in (code.taken, code.given):
        read |= set() if shape is None else names_in(shape)
    return bool(read & {slot.name for slot in code.fields})


def declared_in(value: Any, path: str) -> Any:
    """A portal that a composite declares is its own: others may have one of the same name."""
    match value:
        case dict():
            return {name: declared_in(part, path) for name, part in value.items()}
        case str() if value.startswith(PORTAL) and "@" not in value:
            return f"{value}@{path}"
        case _:
            return value


def described(value: Any) -> str:
    match value:
        case list():
            return "an array"
        case dict():
            return "complex" if value.keys() == {"real", "imag"} else "a struct"
        case str():
            return "a text"
        case _:
            return str(value)


def instances(stream: ast.Stream) -> set[str]:
    """The streams that are added somewhere in one."""
    names: set[str] = set()

    def look(node: object) -> None:
        if isinstance(node, ast.Instance):
            names.add(node.name)
        if isinstance(node, tuple | list):
            for part in node:
                look(part)
        elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Span):
            for name in node.__dataclass_fields__:
                look(getattr(node, name))

    look(stream)
    return names


def fixed(shape: Shape, machine: Machine) -> Shape:
    """A shape with its sizes as they are for the arguments of a machine."""
    match shape:
        case ArrayOf(element, size):
            count = Frame(machine, None, {}).value(size)
            return ArrayOf(fixed(element, machine), Literal(count, INT32))
        case RecordOf(parts):
            return RecordOf(tuple((name, fixed(part, machine)) for name, part in parts))
        case _:
            return shape
