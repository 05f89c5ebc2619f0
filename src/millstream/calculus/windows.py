"""Windows: from a stream to the relation of the rows that are present."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    facts_of_keeping,
    require_columns,
    require_kind,
)
from millstream.calculus.types import BOOLEAN, TIME, QueueType


class Window(Function):
    """The base of windows: a stream in, the relation of the rows that are present out."""

    __slots__ = ()

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, self.name, is_relation=False)
        return (QueueType(inputs[0].schema, is_relation=True),)


@dataclass(frozen=True, slots=True)
class Now(Window):
    """The rows of this very instant."""

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False, is_commutative=True)


@dataclass(frozen=True, slots=True)
class Range(Window):
    """The rows of the last `length` microseconds, both ends included.

    A row of time t is present from t to t + length and leaves at t + length + 1. With
    `length` None rows never leave. With a `slide` the window moves only at multiples of
    so many microseconds: between them it is what it was at the last one.
    """

    length: int | None
    slide: int | None = None

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        if self.length is not None and self.length < 0:
            raise FunctionFault("a range cannot be negative")
        if self.slide is not None and self.slide < 1:
            raise FunctionFault("a slide must be longer than nothing")
        return Window.output_types(self, inputs, outputs)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False, is_commutative=True)


@dataclass(frozen=True, slots=True)
class Rows(Window):
    """The last `count` rows, of each partition if `by` is given.

    With a `length` a row also leaves that many microseconds and one after its time.
    """

    count: int
    by: tuple[str, ...] = ()
    length: int | None = None

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        if self.count < 1:
            raise FunctionFault("a window of rows needs at least one row")
        if self.length is not None and self.length < 0:
            raise FunctionFault("a range cannot be negative")
        require_columns(self.by, inputs[0].schema, "Rows")
        return Window.output_types(self, inputs, outputs)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(
            inputs, index, reads=frozenset(self.by), is_stateless=False, key=self.by
        )


@dataclass(frozen=True, slots=True)
class Latest(Window):
    """The latest row of each key: a table kept up to date by a stream.

    Where the column `unless` is true, the row says that its key has no row any more, and
    the key is forgotten.
    """

    by: tuple[str, ...]
    unless: str | None = None

    @property
    def looked_at(self) -> tuple[str, ...]:
        return self.by if self.unless is None else (*self.by, self.unless)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        schema = inputs[0].schema
        require_columns(self.looked_at, schema, "Latest")
        if self.unless is not None and schema[self.unless] != BOOLEAN:
            raise FunctionFault(
                f'Latest: "{self.unless}" must be a boolean, got {schema[self.unless]}'
            )
        if self.unless in self.by:
            raise FunctionFault(f'Latest: "{self.unless}" cannot be part of the key')
        return Window.output_types(self, inputs, outputs)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(
            inputs, index, reads=frozenset(self.looked_at), is_stateless=False, key=self.by
        )


@dataclass(frozen=True, slots=True)
class Until(Window):
    """The rows whose time in a column has not come yet.

    A row of time t is present from t on and leaves at the time in its column `until`; if that is
    not later than t, it is never there, and if it is null, it never leaves.
    """

    until: str

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        schema = inputs[0].schema
        require_columns((self.until,), schema, "Until")
        if schema[self.until] != TIME:
            raise FunctionFault(f'Until: "{self.until}" must be a time, got {schema[self.until]}')
        return Window.output_types(self, inputs, outputs)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(
            inputs, index, reads=frozenset((self.until,)), is_stateless=False, is_commutative=True
        )


@dataclass(frozen=True, slots=True)
class Held(Window):
    """Rows that are held back until the time that they say, and are there at that instant only.

    The column `until` says when; before its own time, or at null, no row can leave. The rows of
    one key leave together, with the latest of their times: a row that comes while others of its
    key are held, or at the very instant at which they would leave, joins them. If `is_alone`
    every row leaves by itself. In what leaves the column is the time at which it does.
    """

    until: str
    by: tuple[str, ...] = ()
    is_alone: bool = False

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        schema = inputs[0].schema
        require_columns((self.until, *self.by), schema, "Held")
        if schema[self.until] != TIME:
            raise FunctionFault(f'Held: "{self.until}" must be a time, got {schema[self.until]}')
        if self.until in self.by:
            raise FunctionFault(f'Held: "{self.until}" cannot be part of the key')
        if self.is_alone and self.by:
            raise FunctionFault("Held: rows that leave alone have no key")
        return Window.output_types(self, inputs, outputs)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = frozenset(inputs[0].schema.names)
        return Facts(
            reads=frozenset((self.until, *self.by)),
            forwards=names - {self.until},
            writes=frozenset((self.until,)),
            is_stateless=False,
            key=None if self.is_alone else self.by,
            is_commutative=True,
        )
