"""What every function is made of: its base, its facts and its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from millstream.calculus.terms import Column, Term, columns_read
from millstream.calculus.types import Field, QueueType, Schema

ANY_PARTITIONING = None
"""A `Facts.key` that says: the function may be run on any partition of its input."""


class FunctionFault(Exception):
    """A function does not fit its inputs; `messages` has one sentence per misfit."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages


@dataclass(frozen=True, slots=True)
class Facts:
    """What the optimiser may rely on.

    `reads`: input columns looked at. `forwards`: columns that leave under the same name
    and unchanged. `writes`: output columns that are computed. `key`: the input columns by
    which state is partitioned; `()` means one state for all rows; `None` means that any
    partitioning of the input will do.
    """

    reads: frozenset[str]
    forwards: frozenset[str]
    writes: frozenset[str]
    is_stateless: bool
    key: tuple[str, ...] | None = ANY_PARTITIONING
    is_commutative: bool = False


@dataclass(frozen=True, slots=True)
class PicturePart:
    """A piece of a function that is worth a box of its own in a picture.

    It comes `after` other parts or inputs of the operator, remembers what lies `beside` it,
    and may be what gives an `output`.
    """

    name: str
    label: str
    detail: str
    after: tuple[str, ...]
    beside: tuple[str, ...] = ()
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """An output column and the term that computes it."""

    name: str
    term: Term


Columns = tuple[Assign, ...]


def schema_of(columns: Columns) -> Schema:
    return Schema(tuple(Field(c.name, c.term.type) for c in columns))


def forwarded_columns(columns: Columns) -> frozenset[str]:
    return frozenset(
        c.name for c in columns if isinstance(c.term, Column) and c.term.name == c.name
    )


def columns_read_by(terms: Iterable[Term | None]) -> frozenset[str]:
    return frozenset().union(*(columns_read(t) for t in terms if t is not None))


class Function:
    """The base of all functions. Most have one input and one output."""

    __slots__ = ()
    #: How many input and output queues; None means one or more.
    input_count: ClassVar[int | None] = 1
    output_count: ClassVar[int | None] = 1
    #: Whether each item is dealt with when it comes, rather than when time has passed.
    acts_at_once: ClassVar[bool] = False
    #: Whether it has something to tell when its input is over.
    waits_for_end: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def title(self) -> str:
        """What people are shown instead of its name."""
        return self.name

    def state_count(self, inputs: int) -> int:
        """How many private variables the operator must thread: to wait, one for each input."""
        return 0 if self.acts_at_once else inputs

    def can_begin(self, is_there: Sequence[bool]) -> bool:
        """Whether it can fire with some of its inputs, while the others come round a cycle."""
        return all(is_there)

    @property
    def shared_count(self) -> int:
        """How many of its last variables others of its kind may use too."""
        return 0

    def terms(self) -> tuple[Term, ...]:
        """Every term inside the function."""
        return ()

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        raise NotImplementedError

    def following(self) -> Function:
        """The function as it is when inputs have no end."""
        return self

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        """What may be relied on, seen from input number `index`."""
        raise NotImplementedError


def facts_of_keeping(inputs: tuple[QueueType, ...], index: int, **more: object) -> Facts:
    names = frozenset(inputs[index].schema.names)
    return Facts(**({"reads": frozenset(), "forwards": names, "writes": frozenset(),
                     "is_stateless": True} | more))  # type: ignore[arg-type]  # fmt: skip


def facts_of_counting(inputs: tuple[QueueType, ...], index: int) -> Facts:
    """Of what counts how often each row is there."""
    names = inputs[index].schema.names
    return facts_of_keeping(
        inputs, index, reads=frozenset(names), is_stateless=False, key=names, is_commutative=True
    )


def require_kind(inputs: tuple[QueueType, ...], name: str, *, is_relation: bool) -> None:
    for number, queue in enumerate(inputs, 1):
        if queue.is_relation != is_relation:
            wanted, got = ("relation", "stream") if is_relation else ("stream", "relation")
            hint = "put a window before it" if is_relation else "put Istream before it"
            which = f"input {number}" if len(inputs) > 1 else "its input"
            raise FunctionFault(f"{name} takes a {wanted}, but {which} is a {got}; {hint}")


def require_columns(names: Iterable[str], schema: Schema, name: str) -> None:
    missing = [n for n in names if n not in schema]
    if missing:
        raise FunctionFault(
            f'{name}: unknown column "{missing[0]}"; the input has: {", ".join(schema.names)}'
        )


def require_same(inputs: tuple[QueueType, ...], name: str) -> None:
    for number, queue in enumerate(inputs[1:], 2):
        if queue != inputs[0]:
            raise FunctionFault(
                f"the inputs of {name} must be alike: input 1 is {inputs[0]}, "
                f"input {number} is {queue}"
            )
