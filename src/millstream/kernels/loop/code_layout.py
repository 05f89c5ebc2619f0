"""What a code holds, laid out in flat memory.

There are two arrays, one of single precision and one of 32-bit integers (bits and booleans
too). A value that stands alone is a local of the loop, kept in the first cells of its array
between calls if it is of a parameter or a field. An array is a stretch of cells whose place and
sizes are data, so that the same loop serves all arguments. Names of the code never become names
of the loop: those are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape, Slot
from millstream.calculus.terms import Term
from millstream.kernels.loop.ir import INTEGER, Const, Form, Local, Rep, Value
from millstream.kernels.loop.numbers import ONE, times
from millstream.kernels.loop.operations import rep_of
from millstream.values.types import SINGLE, TEXT, Type


class NotCompiled(Exception):
    """The code has something that is not compiled; the message says what."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A plain value of a variable, or an array of such: where it stands in the variable."""

    path: tuple[str, ...]
    sizes: tuple[Term, ...]
    type: Type


def leaves_of(shape: Shape) -> tuple[Leaf, ...]:
    """A shape as plain values; an array of records is a record of arrays."""
    match shape:
        case ArrayOf(element, size):
            inner = leaves_of(element)
            return tuple(Leaf(leaf.path, (size, *leaf.sizes), leaf.type) for leaf in inner)
        case RecordOf(parts):
            return tuple(
                Leaf((name, *leaf.path), leaf.sizes, leaf.type)
                for name, part in parts
                for leaf in leaves_of(part)
            )
        case _:
            return (Leaf((), (), shape),)


def memory_of(type_: Type) -> str:
    """The letter of the array that holds values of a type."""
    return "F" if type_ == SINGLE else "I"


_ZEROS = {Rep.SINGLE: 0.0, Rep.SHORT: 0, Rep.TRUTH: False}


def zero_of(rep: Rep) -> Const:
    return Const(_ZEROS[rep], Form(rep))


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """An array in memory: its variable, its leaf, and where its place and sizes are told."""

    name: str
    leaf: Leaf
    number: int
    told_at: int

    @property
    def begin(self) -> Local:
        return Local(f"o{self.number}", INTEGER)

    def size(self, dimension: int) -> Local:
        return Local(f"d{self.number}_{dimension}", INTEGER)

    def count(self, done: int = 0) -> Value:
        """How many values lie below a place that has so many indexes."""
        count: Value = ONE
        for number in range(done, len(self.leaf.sizes)):
            count = times(count, self.size(number))
        return count


@dataclass
class CodeLayout:
    """Mutable: what a code holds, as far as it was met."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    stretches: dict[tuple[str, tuple[str, ...]], ArrayPlace] = field(default_factory=dict)
    #: Plain values of parameters and fields, in the order of their cells.
    kept: list[tuple[str, Leaf]] = field(default_factory=list)
    names: dict[tuple[str, tuple[str, ...]], Local] = field(default_factory=dict)
    told: int = 0

    def hold(self, slot: Slot, *, is_kept: bool = False) -> None:
        self.shapes[slot.name] = slot.shape
        for leaf in leaves_of(slot.shape):
            key = (slot.name, leaf.path)
            if leaf.type == TEXT:
                raise NotCompiled("a variable of texts")
            if leaf.sizes:
                self.stretches[key] = ArrayPlace(slot.name, leaf, len(self.stretches), self.told)
                self.told += 1 + len(leaf.sizes)
                continue
            self.names[key] = Local(f"v{len(self.names)}", Form(rep_of(leaf.type)))
            if is_kept:
                self.kept.append((slot.name, leaf))

    def local(self, name: str, path: tuple[str, ...] = ()) -> Local:
        """The local that holds a plain value."""
        return self.names[name, path]

    def locals(self, name: str) -> set[Local]:
        """All locals that hold a part of a variable of the code."""
        return {local for (owner, _), local in self.names.items() if owner == name}
