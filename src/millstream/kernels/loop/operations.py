"""Which compiled function means which scalar function, by the shapes of its arguments."""

from __future__ import annotations

from millstream.calculus.types import Kind, Type
from millstream.kernels.loop.ir import Rep
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


_REPS = {
    Kind.TEXT: Rep.INTEGER, Kind.INT32: Rep.SHORT, Kind.BIT: Rep.SHORT, Kind.SINGLE: Rep.SINGLE,
}  # fmt: skip


def rep_of(type_: Type) -> Rep:
    """How a value is held in a loop; texts by their codes."""
    return _REPS.get(type_.kind) or Rep(shape_of(type_))


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
