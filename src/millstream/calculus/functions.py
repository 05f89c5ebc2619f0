"""The functions of the calculus: small frozen descriptions, never closures.

A function says what it accepts and gives (`output_types`), how many private state
variables it threads (`state_count`), and what an optimiser may rely on (`facts`). What
it computes is said by an environment: `meaning` or `kernels`.

Three families. *Row* functions (`Map`, `Filter`, `FlatMap`, `Fold`, `Opaque`) work on one
item at a time; all but `Fold` also on changes of relations. *Time* functions (windows,
`Merge`, relational ones, and those back to streams) speak when time has passed and give
the exact answer at every instant. *Order* functions (`RoundRobinSplit`, `RoundRobinJoin`)
count items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from millstream.calculus.aggregation import AGGREGATIONS, SQUARABLE, Aggregation
from millstream.calculus.base import (
    Assign,
    Columns,
    Facts,
    Function,
    FunctionFault,
    columns_read_by,
    facts_of_counting,
    facts_of_keeping,
    forwarded_columns,
    require_columns,
    require_kind,
    require_same,
    schema_of,
)
from millstream.calculus.cube import Cubify
from millstream.calculus.judging import Judge
from millstream.calculus.matching import Comparison, Join, Lookup, Top
from millstream.calculus.ordering import Frame, Ordered, Placed
from millstream.calculus.tables import RunScript, Tally
from millstream.calculus.terms import Term, columns_read, variables_read
from millstream.calculus.types import (
    BOOLEAN,
    Field,
    QueueType,
    Row,
    Schema,
)
from millstream.calculus.windows import Held, Latest, Now, Range, Rows, Until, Window
from millstream.calculus.work import Interleave, Work

# --- row functions ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Map(Function):
    """One row out for one row in."""

    columns: Columns
    acts_at_once: ClassVar[bool] = True

    def terms(self) -> tuple[Term, ...]:
        return tuple(c.term for c in self.columns)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        return (QueueType(schema_of(self.columns), inputs[0].is_relation),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        forwards = forwarded_columns(self.columns)
        return Facts(
            reads=columns_read_by(self.terms()),
            forwards=forwards,
            writes=frozenset(c.name for c in self.columns) - forwards,
            is_stateless=True,
        )


@dataclass(frozen=True, slots=True)
class Filter(Function):
    """Keep the rows for which the condition is true (neither false nor null)."""

    condition: Term
    acts_at_once: ClassVar[bool] = True

    def terms(self) -> tuple[Term, ...]:
        return (self.condition,)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        if self.condition.type != BOOLEAN:
            raise FunctionFault(f"a condition must be boolean, got {self.condition.type}")
        return inputs

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, reads=columns_read(self.condition))


@dataclass(frozen=True, slots=True)
class Branch:
    """One possible output row of a `FlatMap`: sent if `when` is absent or true."""

    when: Term | None
    columns: Columns


@dataclass(frozen=True, slots=True)
class FlatMap(Function):
    """One output row for each branch whose condition holds, in order."""

    branches: tuple[Branch, ...]
    acts_at_once: ClassVar[bool] = True

    def terms(self) -> tuple[Term, ...]:
        conditions = tuple(b.when for b in self.branches if b.when is not None)
        return conditions + tuple(c.term for b in self.branches for c in b.columns)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        schemas = [schema_of(b.columns) for b in self.branches]
        if not schemas:
            raise FunctionFault("FlatMap needs at least one branch")
        for number, schema in enumerate(schemas[1:], 2):
            if schema != schemas[0]:
                raise FunctionFault(
                    f"branch 1 gives {schemas[0]}, but branch {number} gives {schema}"
                )
        return (QueueType(schemas[0], inputs[0].is_relation),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        forwards = frozenset.intersection(*(forwarded_columns(b.columns) for b in self.branches))
        return Facts(
            reads=columns_read_by(self.terms()),
            forwards=forwards,
            writes=frozenset(c.name for c in self.branches[0].columns) - forwards,
            is_stateless=True,
        )


@dataclass(frozen=True, slots=True)
class Update:
    """A new value for a field of a state variable."""

    variable: str
    field: str
    term: Term


@dataclass(frozen=True, slots=True)
class Fold(Function):
    """Update named state with a row and perhaps send a row; per key if `by` is given.

    `when` sees the state before the update; if it is not true nothing happens. All
    updates read the state before, and `emit` sees the state after. The variables are
    ordinary ones of the program, so several folds may share them.
    """

    by: tuple[str, ...] = ()
    when: Term | None = None
    updates: tuple[Update, ...] = ()
    emit: Columns | None = None
    output_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    def terms(self) -> tuple[Term, ...]:
        first = () if self.when is None else (self.when,)
        emitted = tuple(c.term for c in self.emit or ())
        return first + tuple(u.term for u in self.updates) + emitted

    def variables_read(self) -> frozenset[str]:
        return frozenset().union(*(variables_read(t) for t in self.terms()))

    def variables_written(self) -> frozenset[str]:
        return frozenset(u.variable for u in self.updates)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Fold", is_relation=False)
        require_columns(self.by, inputs[0].schema, "Fold")
        wanted = 0 if self.emit is None else 1
        if outputs != wanted:
            raise FunctionFault(
                f"this Fold {'emits nothing' if not wanted else 'emits rows'} and needs "
                f"{wanted} output queue{'s' if wanted != 1 else ''}, got {outputs}"
            )
        return () if self.emit is None else (QueueType(schema_of(self.emit)),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        forwards = forwarded_columns(self.emit or ())
        return Facts(
            reads=columns_read_by(self.terms()) | frozenset(self.by),
            forwards=forwards,
            writes=frozenset(c.name for c in self.emit or ()) - forwards,
            is_stateless=not (self.variables_read() | self.variables_written()),
            key=self.by,
        )


@dataclass(frozen=True, slots=True)
class Opaque(Function):
    """A Python callable from the API that could not be traced into terms.

    It takes a row and its time and returns a list of rows. It must be pure.
    """

    label: str
    schema: Schema
    call: Callable[[Row, int], list[Row]] = field(repr=False)
    acts_at_once: ClassVar[bool] = True

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        return (QueueType(self.schema, inputs[0].is_relation),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return Facts(
            reads=frozenset(inputs[0].schema.names),
            forwards=frozenset(),
            writes=frozenset(self.schema.names),
            is_stateless=True,
        )


@dataclass(frozen=True, slots=True)
class OpaqueFold(Function):
    """A Python callable with state that could not be traced into terms.

    It takes the state of the row's key and a row, and returns the new state and the row
    to send. For no state it is called with `initial`, the very object; a new state of
    None forgets the key, and a row of None sends nothing. It must be pure.
    """

    label: str
    by: tuple[str, ...]
    schema: Schema
    initial: Row
    call: Callable[[Row, Row], tuple[Row | None, Row | None]] = field(repr=False)
    acts_at_once: ClassVar[bool] = True

    def state_count(self, inputs: int) -> int:
        return 1

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "OpaqueFold", is_relation=False)
        require_columns(self.by, inputs[0].schema, "OpaqueFold")
        return (QueueType(self.schema),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return Facts(
            reads=frozenset(inputs[0].schema.names),
            forwards=frozenset(),
            writes=frozenset(self.schema.names),
            is_stateless=False,
            key=self.by,
        )


# --- time functions --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merge(Function):
    """All items of all inputs, by (time, number of the input, position).

    Of relations it is the union of bags.
    """

    input_count: ClassVar[int | None] = None

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_same(inputs, "Merge")
        return (inputs[0],)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False)


@dataclass(frozen=True, slots=True)
class Aggregate(Function):
    """One row per group that has rows: the key and the aggregates.

    Without `by` there is one group: it has no row before its first input, and from
    then on always one.
    """

    by: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]

    def terms(self) -> tuple[Term, ...]:
        return tuple(term for a in self.aggregations for term in a.terms)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Aggregate", is_relation=True)
        schema = inputs[0].schema
        require_columns(self.by, schema, "Aggregate")
        fields = tuple(Field(n, schema[n]) for n in self.by)
        fields += tuple(Field(a.name, a.result_type()) for a in self.aggregations)
        return (QueueType(Schema(fields), is_relation=True),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return Facts(
            reads=columns_read_by(self.terms()) | frozenset(self.by),
            forwards=frozenset(self.by),
            writes=frozenset(a.name for a in self.aggregations),
            is_stateless=False,
            key=self.by,
            is_commutative=True,
        )


@dataclass(frozen=True, slots=True)
class Distinct(Function):
    """Each row once, however often it is present."""

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Distinct", is_relation=True)
        return inputs

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_counting(inputs, index)


@dataclass(frozen=True, slots=True)
class Except(Function):
    """The rows of the first relation, each as often as it is there more often than in the second.

    The difference of bags, and with it the rest of their algebra: `a except (a except b)` has
    each row as often as it is in both.
    """

    input_count: ClassVar[int | None] = 2

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Except", is_relation=True)
        require_same(inputs, "Except")
        return (inputs[0],)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_counting(inputs, index)


class ToStream(Function):
    """The base of the functions from a relation to a stream.

    The rows of one instant leave in the order of their values.
    """

    __slots__ = ()

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, self.name, is_relation=True)
        return (QueueType(inputs[0].schema),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_counting(inputs, index)


@dataclass(frozen=True, slots=True)
class Istream(ToStream):
    """The rows that have come into the relation at this instant."""


@dataclass(frozen=True, slots=True)
class Dstream(ToStream):
    """The rows that have left the relation at this instant."""


@dataclass(frozen=True, slots=True)
class Changes(ToStream):
    """For each key the row that has come at this instant, beside the one that it replaces.

    `old` are columns, under new names, of the row with the same key that has left at this
    instant; they are null if none has. Of several rows of a key the first one counts.
    """

    by: tuple[str, ...]
    old: Columns

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        (given,) = ToStream.output_types(self, inputs, outputs)
        require_columns(self.by, given.schema, "Changes")
        clash = [c.name for c in self.old if c.name in given.schema]
        if clash:
            raise FunctionFault(f'Changes: there is a column "{clash[0]}" already')
        return (QueueType(Schema((*given.schema.fields, *schema_of(self.old).fields))),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = inputs[0].schema.names
        return facts_of_keeping(
            inputs, index, reads=frozenset(names), writes=frozenset(c.name for c in self.old),
            is_stateless=False, key=self.by, is_commutative=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rstream(ToStream):
    """The whole relation at every instant at which a program input behind it has a row in time.

    A change that is rejected, as it takes away what is not there, is such a row as well. From the
    first such instant on it also speaks at the multiples of each of `every`, microseconds.
    """

    every: tuple[int, ...] = ()

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        if any(one < 1 for one in self.every):
            raise FunctionFault("a heartbeat must be longer than nothing")
        return ToStream.output_types(self, inputs, outputs)


# --- order functions -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duplicate(Function):
    """Every item to every output."""

    output_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        return inputs * outputs

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index)


def _check_weights(weights: tuple[int, ...], queues: int, name: str) -> None:
    if weights and len(weights) != queues:
        raise FunctionFault(f"{name} has {len(weights)} weights for {queues} queues")
    if any(w < 1 for w in weights):
        raise FunctionFault(f"the weights of {name} must be positive")


@dataclass(frozen=True, slots=True)
class RoundRobinSplit(Function):
    """The first `weights[0]` items to the first output, the next to the second, and so on."""

    weights: tuple[int, ...] = ()
    output_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    def state_count(self, inputs: int) -> int:
        return 1

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "RoundRobinSplit", is_relation=False)
        _check_weights(self.weights, outputs, "RoundRobinSplit")
        return inputs * outputs

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False, key=())


@dataclass(frozen=True, slots=True)
class RoundRobinJoin(Function):
    """`weights[0]` items of the first input, then of the second, and so on.

    An item leaves at the time at which its turn has come: its own time or that of the
    item before it, whichever is later. What is `enqueued` was there from the beginning, and
    takes the time of what comes before it: rows by the number of the input.
    """

    weights: tuple[int, ...] = ()
    enqueued: tuple[tuple[Row, ...], ...] = ()
    input_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    def state_count(self, inputs: int) -> int:
        return inputs + 1

    def can_begin(self, is_there: Sequence[bool]) -> bool:
        return any(is_there)

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "RoundRobinJoin", is_relation=False)
        require_same(inputs, "RoundRobinJoin")
        _check_weights(self.weights, len(inputs), "RoundRobinJoin")
        return (inputs[0],)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False, key=())


FUNCTIONS: dict[str, type[Function]] = {
    f.__name__: f
    for f in (
        Map, Filter, FlatMap, Fold, Merge, Now, Range, Until, Rows, Latest, Held, Join, Lookup,
        Aggregate, Distinct, Except, Top, Ordered, Istream, Dstream, Changes, Rstream, Duplicate,
        RoundRobinSplit, RoundRobinJoin, Judge, Cubify, Opaque, OpaqueFold, Work, Interleave,
        RunScript, Tally,
    )
}  # fmt: skip

__all__ = [
    "AGGREGATIONS", "FUNCTIONS", "SQUARABLE", "Aggregate", "Aggregation", "Assign", "Branch",
    "Changes", "Columns", "Comparison", "Cubify", "Distinct", "Dstream", "Duplicate", "Except",
    "Facts", "Filter", "FlatMap", "Fold", "Frame", "Function", "FunctionFault", "Held",
    "Interleave", "Istream", "Join", "Judge", "Latest", "Lookup", "Map", "Merge", "Now", "Opaque",
    "OpaqueFold", "Ordered", "Placed", "Range", "RoundRobinJoin", "RoundRobinSplit", "Rows",
    "Rstream", "RunScript", "Tally", "ToStream", "Top", "Until", "Update", "Window", "Work",
    "schema_of",
]  # fmt: skip
