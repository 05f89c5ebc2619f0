"""Relations compared with each other and with themselves: joins, lookups, the first rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    facts_of_keeping,
    require_columns,
    require_kind,
)
from millstream.calculus.terms import Term, columns_read
from millstream.calculus.types import BOOLEAN, Field, QueueType, Schema

#: Columns of a first input, each with the one of a second that it must equal.
Pairs = tuple[tuple[str, str], ...]


def require_pairs(on: Pairs, left: Schema, right: Schema, name: str) -> None:
    require_columns((pair[0] for pair in on), left, f"{name}, first input")
    require_columns((pair[1] for pair in on), right, f"{name}, second input")
    for one, other in on:
        if left[one] != right[other]:
            raise FunctionFault(f"cannot join {one} ({left[one]}) with {other} ({right[other]})")


@dataclass(frozen=True, slots=True)
class Join(Function):
    """Pairs of rows with equal keys for which the condition holds.

    `on` pairs a column of the first input with one of the second; a pair of one name
    leaves once. Null keys match nothing, unless `nulls_match` says that they match each
    other. Without keys every pair is tried.
    """

    on: Pairs = ()
    where: Term | None = None
    nulls_match: bool = False
    input_count: ClassVar[int | None] = 2

    def terms(self) -> tuple[Term, ...]:
        return () if self.where is None else (self.where,)

    def right_kept(self, right: Schema) -> tuple[str, ...]:
        """The columns of the second input that leave: all but keys of the same name."""
        shared = {r for left, r in self.on if left == r}
        return tuple(n for n in right.names if n not in shared)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Join", is_relation=True)
        left, right = inputs[0].schema, inputs[1].schema
        require_pairs(self.on, left, right, "Join")
        kept = self.right_kept(right)
        clash = [n for n in kept if n in left]
        if clash:
            raise FunctionFault(
                f'both inputs of the join have a column "{clash[0]}"; '
                "rename one with Map, or join on it"
            )
        fields = left.fields + tuple(Field(n, right[n]) for n in kept)
        return (QueueType(Schema(fields), is_relation=True),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        keys = tuple(pair[index] for pair in self.on)
        names = inputs[index].schema.names
        forwards = names if index == 0 else self.right_kept(inputs[1].schema)
        read = columns_read(self.where) if self.where is not None else frozenset()
        return Facts(
            reads=(read & frozenset(names)) | frozenset(keys),
            forwards=frozenset(forwards),
            writes=frozenset(),
            is_stateless=False,
            key=keys,
            is_commutative=True,
        )


#: What values can be compared by.
ORDERS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column of a first input, and one of a second that it must stand in an order to."""

    ours: str
    order: str
    theirs: str

    def require(self, left: Schema, right: Schema, name: str) -> None:
        require_pairs(((self.ours, self.theirs),), left, right, name)
        if self.order not in ORDERS:
            raise FunctionFault(f"{name} compares by {', '.join(ORDERS)}, not by {self.order}")


@dataclass(frozen=True, slots=True)
class Lookup(Function):
    """The rows of the first input, with whether the second has a row with equal keys.

    The answer is the new column `column`, true or false. Null keys match nothing, unless
    `nulls_match`. Without keys the question is whether the second input has any row. With
    `where` the row must also compare so; a null compares with nothing.
    """

    column: str
    on: Pairs = ()
    nulls_match: bool = False
    where: Comparison | None = None
    input_count: ClassVar[int | None] = 2

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Lookup", is_relation=True)
        left, right = inputs[0].schema, inputs[1].schema
        require_pairs(self.on, left, right, "Lookup")
        if self.where is not None:
            self.where.require(left, right, "Lookup")
        if self.column in left:
            raise FunctionFault(f'the first input of Lookup already has a column "{self.column}"')
        return (QueueType(Schema((*left.fields, Field(self.column, BOOLEAN))), is_relation=True),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        keys = tuple(pair[index] for pair in self.on)
        names = frozenset(inputs[0].schema.names) if index == 0 else frozenset()
        compared = () if self.where is None else (self.where.ours, self.where.theirs)
        return Facts(
            reads=frozenset(keys) | frozenset(compared[index : index + 1]),
            forwards=names,
            writes=frozenset((self.column,)),
            is_stateless=False,
            key=keys,
            is_commutative=True,
        )


@dataclass(frozen=True, slots=True)
class Top(Function):
    """The first `count` rows in the order of the columns `by`.

    Those also in `descending` are ordered downwards. Nulls are less than all else; rows
    that are alike in these columns are ordered by all columns, upwards.
    """

    count: int
    by: tuple[str, ...]
    descending: tuple[str, ...] = ()

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Top", is_relation=True)
        require_columns(self.by, inputs[0].schema, "Top")
        if self.count < 1:
            raise FunctionFault("Top needs at least one row")
        strange = [name for name in self.descending if name not in self.by]
        if strange:
            raise FunctionFault(f'"{strange[0]}" is descending but not among the columns of `by`')
        return inputs

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = frozenset(inputs[0].schema.names)
        return facts_of_keeping(inputs, index, reads=names, is_stateless=False, key=())
