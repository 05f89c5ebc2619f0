"""The tree of a CQL file: statements, queries, windows and expressions.

Spans take no part in equality. Shorthands of SQL (`BETWEEN`, `CASE`, `IN (1, 2)`) are
already applications of functions here, under the names of the calculus.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass

from millstream.calculus.functions import Frame
from millstream.calculus.types import Type, Value
from millstream.source import Span

# --- expressions ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """A name at a place; `is_quoted` names are taken letter by letter."""

    name: str
    span: Span = dataclasses.field(compare=False)
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, perhaps with the name of the stream or relation it is of."""

    owner: Word | None
    name: Word
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value
    type: Type | None
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function, by the name it was written with or that of an operator."""

    function: Word
    args: tuple[Expression, ...]
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate: `SUM(x)`, `COUNT(DISTINCT x)`; `COUNT(*)` has no argument.

    With `where` it is of the rows for which that is true. Some look at the `order` of rows, and
    take a constant beside their argument.
    """

    function: Word
    arg: Expression | None
    is_distinct: bool
    span: Span = dataclasses.field(compare=False)
    where: Expression | None = None
    order: tuple[Ordering, ...] = ()
    beside: Value = None


#: What several values in parentheses are; nobody can write its name.
ROW = "(row)"


@dataclass(frozen=True, slots=True)
class Membership:
    """`operand IN (query)`, or `EXISTS (query)` if there is no operand.

    In `(a, b) IN (query)` the operand is `ROW` applied to a and b.
    """

    operand: Expression | None
    query: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A query that stands for the one value it has, or for null."""

    query: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Quantified:
    """`operand > ALL (query)`, or `ANY`; the operator is that of the calculus."""

    operand: Expression
    operator: str
    is_all: bool
    query: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Over:
    """`function(args) OVER (PARTITION BY by ORDER BY order frame)`.

    With `where` an aggregate is of the rows for which that is true.
    """

    function: Word
    args: tuple[Expression, ...]
    by: tuple[Expression, ...]
    order: tuple[Ordering, ...]
    frame: Frame
    span: Span = dataclasses.field(compare=False)
    where: Expression | None = None


Question = Membership | Scalar | Quantified
Expression = Reference | Constant | Apply | Total | Over | Question


# --- windows ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """What stands in brackets after a stream.

    `length` is a number of microseconds; with neither `rows` nor `length` the window is
    unbounded. `by` partitions `rows`.
    """

    length: int | None = None
    slide: int | None = None
    rows: int | None = None
    by: tuple[Reference, ...] = ()
    is_now: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False)


# --- queries ----------------------------------------------------------------------------


class StreamOperator(enum.Enum):
    """From a relation to a stream."""

    ISTREAM = "Istream"
    DSTREAM = "Dstream"
    RSTREAM = "Rstream"


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a select list; without an alias its name comes from the expression."""

    value: Expression
    alias: Word | None
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Star:
    """`*`, or `owner.*`; `has_all` shows columns that are equal by a join more than once."""

    owner: Word | None
    span: Span = dataclasses.field(compare=False)
    has_all: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """A stream, relation or view in a FROM clause; `columns` are other names for its first."""

    name: Word
    alias: Word | None
    window: Window | None
    span: Span = dataclasses.field(compare=False)
    columns: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Nested:
    """A subquery in a FROM clause."""

    query: Query
    alias: Word | None
    window: Window | None
    span: Span = dataclasses.field(compare=False)
    columns: tuple[Word, ...] = ()


class JoinKind(enum.Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Joined:
    """How a source is joined to those before it; a comma is an inner join without `on`.

    `is_said` if the word INNER stands there, which some languages tell from none.
    """

    source: Named | Nested
    kind: JoinKind = JoinKind.INNER
    on: Expression | None = None
    using: tuple[Word, ...] = ()
    is_said: bool = False


@dataclass(frozen=True, slots=True)
class Ordering:
    value: Expression
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """`ORDER BY ... LIMIT count`."""

    order: tuple[Ordering, ...]
    count: int
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    items: tuple[Item | Star, ...]
    sources: tuple[Joined, ...]
    span: Span = dataclasses.field(compare=False)
    is_distinct: bool = False
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    limit: Limit | None = None
    qualify: Expression | None = None


@dataclass(frozen=True, slots=True)
class Combined:
    """`left UNION right` and its like; `kind` is union, except or intersect."""

    kind: str
    keeps_duplicates: bool
    left: Query
    right: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Streamed:
    """`Istream(query)`, also where it was written around a select list."""

    operator: StreamOperator
    query: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class With:
    """A query, and the views that only it can name; each may read those before it."""

    views: tuple[View, ...]
    query: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Framed:
    """`TUMBLE(TABLE source, DESCRIPTOR(time), size)` and its like: rows with their windows.

    `kind` is tumble, hop or session, of which the `size` is the gap; `by` partitions sessions.
    All lengths are microseconds.
    """

    kind: str
    source: Named | Nested
    time: Reference
    size: int
    slide: int
    offset: int
    by: tuple[Reference, ...]
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Final:
    """`query EMIT FINAL`: the answer for each window of time inside it, when that has ended."""

    query: Query
    span: Span = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Early:
    """`query EMIT EARLY`: the answer from what has come, corrected by what comes later."""

    query: Query
    span: Span = dataclasses.field(compare=False)


Query = Select | Combined | Streamed | With | Framed | Final | Early


# --- statements -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared:
    name: Word
    type: Type


@dataclass(frozen=True, slots=True)
class Declaration:
    """A stream or relation that comes from outside.

    A relation with a `key` is a log in which the latest row of each key counts. One that is
    read once has no times and is there from the beginning.
    """

    name: Word
    is_relation: bool
    columns: tuple[Declared, ...]
    time: Word | None = None
    slack: int = 0
    heartbeat: int | None = None
    key: tuple[Word, ...] = ()
    is_read_once: bool = False
    source: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A query with a name, perhaps with other names for its columns.

    `declared` is what a `vtable` says of it: its columns with types, and what it is.
    """

    name: Word
    columns: tuple[Word, ...]
    query: Query
    declared: Declaration | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A query whose result leaves; `to` says where, if the file says so."""

    name: Word
    query: Query
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Cube:
    """A query of which a cube is made, as a file says; what leaves may be made streams."""

    name: Word
    query: Query
    file: str
    span: Span = dataclasses.field(compare=False)
    operator: StreamOperator | None = None


Statement = Declaration | View | Output | Cube
