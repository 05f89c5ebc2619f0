"""Scripts: what is done with one record, in statements over structured values.

A script has variables that are new for every record, others that are worked out once, functions
that see the variables around them, and sends values to tables. Any expression may be without a
value: then what stands around it is, up to a declaration, a `return` or `Defined`; beyond these
the record is rejected, unless the script passes over statements that cannot be done.

Everything is checked and typed; names have become variables with numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from millstream.source import Span
from millstream.values.records.types import BOOL, INT, STRING, ArrayOf, RecordType


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; `level` is how deep its function lies: 0 is the script itself, -1 is static."""

    number: int
    name: str
    type: RecordType
    level: int = 0


# --- expressions -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    value: Any
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Get:
    var: Var
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return self.var.type


@dataclass(frozen=True, slots=True)
class Operate:
    """An operator of the machine: `+`, `<`, `neg`, ... on values of one type."""

    operator: str
    arguments: tuple[Expression, ...]
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """`&&` and `||`, which look at the right side only if they must."""

    operator: str
    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function of the library, found again by name and types of arguments."""

    name: str
    arguments: tuple[Expression, ...]
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Convert:
    value: Expression
    parameters: tuple[Expression, ...]
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class New:
    """An array, a text or bytes of so many equal items."""

    count: Expression
    item: Expression
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """`number` names the length of what is indexed, for `$` in the index."""

    base: Expression
    index: Expression
    type: RecordType
    number: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slice:
    base: Expression
    low: Expression
    high: Expression
    number: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return self.base.type


@dataclass(frozen=True, slots=True)
class Length:
    """`$`: the length of what the index with this number is an index of."""

    number: int
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return INT


@dataclass(frozen=True, slots=True)
class Part:
    base: Expression
    position: int
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Make:
    """An array or a tuple of items, or a map of keys and values by turns."""

    items: tuple[Expression, ...]
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    function: Function
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return self.function.type


@dataclass(frozen=True, slots=True)
class Apply:
    function: Expression
    arguments: tuple[Expression, ...]
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Inline:
    """Statements that come to a `Result`."""

    body: Block
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Defined:
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Present:
    """Whether a field was in the message that a tuple was made of, or has been set."""

    base: Expression
    position: int
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Cut:
    """A pattern that a text is cut by; what it matches may be passed over."""

    pattern: Expression
    is_skipped: bool = False
    is_submatch: bool = False


@dataclass(frozen=True, slots=True)
class Saw:
    """Pieces of a text: every pattern searches on from the last match.

    The patterns are gone through `count` times, or as often as they find something. What is
    left goes to `rests`, each after so many of the cuts.
    """

    text: Expression
    cuts: tuple[Cut, ...]
    count: Expression | None
    rests: tuple[tuple[Place, int], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> RecordType:
        return ArrayOf(STRING)


Expression = (
    Const | Get | Operate | Logic | Intrinsic | Convert | New | Index | Slice | Length | Part
    | Make | Lambda | Apply | Inline | Defined | Present | Saw
)  # fmt: skip


# --- statements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """On the way to a part of a variable: an index, a slice or the position of a field."""

    index: Expression | None = None
    high: Expression | None = None
    position: int | None = None
    number: int | None = None
    #: The type of what the step is made in.
    inside: RecordType = INT


@dataclass(frozen=True, slots=True)
class Place:
    var: Var
    path: tuple[Step, ...]
    type: RecordType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declare:
    """A new variable; without a value until one is assigned."""

    var: Var
    value: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assign:
    target: Place
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Undefine:
    """Take a variable its value, or mark a field of a message as not there."""

    target: Place
    is_field: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Do:
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assert:
    condition: Expression
    message: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Block
    otherwise: Block
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """`after` is done after every round, also after one that was left by `continue`."""

    condition: Expression | None
    body: Block
    after: Block = ()
    tests_first: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Leave:
    word: Literal["break", "continue"]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Choose:
    """The first case with a label that equals the tag; labels without a value do not count."""

    tag: Var
    value: Expression
    cases: tuple[tuple[tuple[Expression, ...], Block], ...]
    otherwise: Block
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quantifier:
    """A variable that goes through the indexes of what it is an index of in a condition."""

    word: Literal["some", "each", "all"]
    var: Var
    ranges: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class When:
    quantifiers: tuple[Quantifier, ...]
    condition: Expression
    body: Block
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Emit:
    """Values for a table, by the number of the table."""

    table: int
    indexes: tuple[Expression, ...]
    value: Expression
    weight: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Result:
    value: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scope:
    body: Block


Statement = (
    Declare | Assign | Undefine | Do | Assert | If | Loop | Leave | Choose | When | Emit | Return
    | Result | Scope
)  # fmt: skip
Block = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """`number` is how functions are told apart; the body of one is as deep as `level`."""

    number: int
    name: str | None
    parameters: tuple[Var, ...]
    type: RecordType
    level: int
    body: Block


@dataclass(frozen=True, slots=True)
class Table:
    """What values are emitted to: `indexes` and the value, perhaps with a weight.

    The value is what is really sent: a text where there is a `format`. One with a `file` is
    written as it is, and aggregates nothing; where every emit names a file of its own, that name
    comes behind its indexes.
    """

    name: str
    kind: str
    parameter: Any
    indexes: tuple[tuple[str | None, RecordType], ...]
    value: RecordType
    weight: RecordType | None = None
    file: str | None = None
    names_files: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


#: Tables that count records with statements that were passed over, and why these were.
UNDEFINED_COUNT, UNDEFINED_REASONS = "_undef_cnt", "_undef_details"


@dataclass(frozen=True, slots=True)
class Script:
    """A whole one. `record` is the variable that holds the record when it begins."""

    name: str
    record: Var
    statics: Block
    body: Block
    tables: tuple[Table, ...]
    timezone: str = "UTC"
    passes_over: bool = False
    #: The folder that files are loaded from, as text.
    folder: str | None = None
    digest: int = dataclasses.field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        sides = (self.name, self.record, self.tables, self.timezone, self.passes_over)
        object.__setattr__(self, "digest", hash((*sides, self.statics, self.body)))

    def __hash__(self) -> int:
        return self.digest

    def table_named(self, name: str) -> int | None:
        """The number of a table."""
        return next((n for n, table in enumerate(self.tables) if table.name == name), None)


# --- walks -----------------------------------------------------------------------------

Node = Any


def nodes_in(node: Node) -> Iterator[Node]:
    """A node and everything inside of it, outermost first; spans and types are no nodes."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple):
            stack.extend(reversed(one))
        elif type(one) in _NODES:
            yield one
            stack.extend(getattr(one, name) for name in reversed(_NODES[type(one)]))


_NODES: dict[type, tuple[str, ...]] = {
    kind: tuple(f.name for f in dataclasses.fields(kind) if f.name not in ("span", "type", "var"))
    for kind in (
        Const, Get, Operate, Logic, Intrinsic, Convert, New, Index, Slice, Length, Part, Make,
        Lambda, Apply, Inline, Defined, Present, Cut, Saw, Step, Place, Declare, Assign, Undefine,
        Do, Assert, If, Loop, Leave, Choose, Quantifier, When, Emit, Return, Result, Scope,
        Function,
    )
}  # fmt: skip
