"""Types as they are written, and what they are in the calculus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.terms import Call, Place, Read, Term
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, TEXT, Type

COMPLEX = RecordOf((("real", SINGLE), ("imag", SINGLE)))

PLAIN: Mapping[str, Shape] = {
    "int": INT32, "float": SINGLE, "bit": BIT, "boolean": BOOLEAN, "complex": COMPLEX,
}  # fmt: skip

#: Numbers from the narrowest to the widest: one that comes earlier can stand for a later one.
_WIDTHS: tuple[Shape, ...] = (BOOLEAN, BIT, INT32, SINGLE, COMPLEX)


def portal_of(listener: str) -> RecordOf:
    """A portal is known by a text: where it is declared."""
    return RecordOf(((listener, TEXT),))


def is_portal(shape: Shape) -> bool:
    return isinstance(shape, RecordOf) and any(part == TEXT for _, part in shape.parts)


def is_number(shape: Shape) -> bool:
    return shape in _WIDTHS


def wider(left: Shape, right: Shape) -> Shape | None:
    """The type in which two numbers are calculated with."""
    if left == right:
        return left
    if not (is_number(left) and is_number(right)):
        return None
    return max(left, right, key=_WIDTHS.index)


def spoken(shape: Shape | None) -> str:
    """A type as a person writes it."""
    if shape is None:
        return "void"
    if isinstance(shape, ArrayOf):
        return f"an array of {spoken(shape.element)}"
    named = {plain: name for name, plain in PLAIN.items() if isinstance(plain, Type)}
    if shape == COMPLEX:
        return "complex"
    if isinstance(shape, RecordOf) and is_portal(shape):
        return f"portal<{shape.parts[0][0]}>"
    return named.get(shape, str(shape)) if isinstance(shape, Type) else f"struct {shape}"


def replaced(term: Term, values: Mapping[str, Term]) -> Term:
    """A term in which some variables stand for terms."""
    match term:
        case Read(Place(variable, ())) if variable in values:
            return values[variable]
        case Call(_, args):
            return replace(term, args=tuple(replaced(a, values) for a in args))
        case _:
            return term


def with_values(shape: Shape, values: Mapping[str, Term]) -> Shape:
    """A shape in whose sizes some variables stand for terms."""
    match shape:
        case ArrayOf(element, size):
            return ArrayOf(with_values(element, values), replaced(size, values))
        case _:
            return shape
