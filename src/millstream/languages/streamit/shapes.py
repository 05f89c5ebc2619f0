"""Types as they are written, and what they are in the calculus."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, Type

COMPLEX = RecordOf((("real", SINGLE), ("imag", SINGLE)))

PLAIN: Mapping[str, Shape] = {
    "int": INT32, "float": SINGLE, "bit": BIT, "boolean": BOOLEAN, "complex": COMPLEX,
}  # fmt: skip

#: Numbers from the narrowest to the widest: one that comes earlier can stand for a later one.
_WIDTHS: tuple[Shape, ...] = (BIT, INT32, SINGLE, COMPLEX)


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
    return named.get(shape, str(shape)) if isinstance(shape, Type) else f"struct {shape}"
