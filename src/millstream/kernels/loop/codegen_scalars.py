"""Which compiled function means which scalar function, by the shapes of its arguments."""

from __future__ import annotations

from millstream.calculus.types import Kind, Type
from millstream.values.core.scalar import Operation
from millstream.values.core.table import SCALARS

_SHAPES = {
    Kind.NUMBER: "f",
    Kind.INTEGER: "i",
    Kind.TIME: "i",
    Kind.DURATION: "i",
    Kind.BOOLEAN: "b",
    Kind.TEXT: "s",
}


def shape_of(type_: Type) -> str:
    return _SHAPES[type_.kind]


def _shapes(args: tuple[Type, ...]) -> str:
    return "".join(map(shape_of, args))


def operation(function: str, args: tuple[Type, ...]) -> Operation:
    """The compiled function for these arguments."""
    return SCALARS[function].loop[_shapes(args)]


def chained(function: str, arg: Type) -> Operation | None:
    """The compiled function that takes any number of arguments, two at a time from the left."""
    return SCALARS[function].loop.get(f"{shape_of(arg)}*")


def fault_messages(function: str, args: tuple[Type, ...], result: Type) -> tuple[str, ...]:
    """What can go wrong in a call that does not touch text."""
    compiled = SCALARS[function].loop.get(_shapes(args))
    return tuple(m.format(result) for m in compiled.faults) if compiled else ()
