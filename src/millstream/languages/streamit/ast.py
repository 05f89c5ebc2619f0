"""A StreamIt text as a tree, just as it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from millstream.source import Span

# --- types -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName:
    """`float[4][3]` is four of three; the sizes are worked out where the type stands.

    `argument` is what a generic stream or a portal is of, as in `portal<Receiver>`.
    """

    name: str
    sizes: tuple[Expression, ...] = ()
    span: Span | None = field(default=None, compare=False)
    argument: str | None = None


# --- expressions -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """`value` is an int or a float as written; `is_imaginary` if an `i` follows it."""

    value: int | float
    is_imaginary: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A text, which can only be printed or name a file."""

    value: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """`-`, `!` or `~` before an operand."""

    operator: str
    operand: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    type: TypeName
    operand: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a struct or of a complex number."""

    of: Expression
    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Item:
    """An element of an array."""

    of: Expression
    index: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Invoke:
    """A function or a helper's function, `pop()`, `peek(n)` and `iter()` among them."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """`{1, 2, 3}`: an array by its elements."""

    elements: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """`x++`, `x--`, `++x` or `--x`, inside an expression."""

    target: Expression
    operator: Literal["++", "--"]
    is_before: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Set:
    """`operator` is empty for `=`, else what is done before: `+` for `+=`.

    A statement, or an expression that has the value that was assigned.
    """

    target: Expression
    operator: str
    value: Expression
    span: Span = field(compare=False)


Expression = (
    Number | Truth | Quoted | Name | Unary | Binary | Choice | Cast | Member | Item | Invoke
    | Listed | Step | Set
)  # fmt: skip


# --- statements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declare:
    """`int i = 0`; without a value it is zero."""

    type: TypeName
    name: str
    value: Expression | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Do:
    """An expression for its effect."""

    expression: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Push:
    value: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Print:
    value: Expression | None
    ends_line: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    statements: tuple[Statement, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Statement
    otherwise: Statement | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """`for`, `while` and `do ... while`: the first of these two test before, the last after."""

    before: tuple[Statement, ...]
    condition: Expression | None
    after: tuple[Statement, ...]
    body: Statement
    tests_first: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Leave:
    """`break` and `continue`."""

    word: Literal["break", "continue"]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Send:
    """A message to a portal: `portal.handler(arguments) [from : to]`."""

    portal: str
    handler: str
    arguments: tuple[Expression, ...]
    latency: tuple[Expression | None, ...]
    span: Span = field(compare=False)


# --- what only the body of a composite has ---------------------------------------------


@dataclass(frozen=True, slots=True)
class AddStream:
    """`add`, `body` or `loop` with a stream; `portals` are those it listens to."""

    role: Literal["add", "body", "loop"]
    stream: Instance | Stream
    portals: tuple[Name, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Split:
    """`split` or `join`; no weights and no `duplicate` is one of each."""

    role: Literal["split", "join"]
    kind: Literal["duplicate", "roundrobin"]
    weights: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Enqueue:
    value: Expression
    span: Span = field(compare=False)


Statement = (
    Declare | Set | Do | Push | Print | Block | If | Loop | Leave | Return | Send | AddStream
    | Split | Enqueue
)  # fmt: skip


# --- streams ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instance:
    """A stream by name, with arguments: `LowPass(8, 1.5)`, `Identity<float>`."""

    name: str
    type: TypeName | None
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    type: TypeName
    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Routine:
    """A helper function, a handler of messages, or `init`."""

    type: TypeName | None
    name: str
    parameters: tuple[Parameter, ...]
    body: Block
    span: Span = field(compare=False)
    is_handler: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    """What is pushed, popped or peeked: a number, or anything between two (`least`, `most`)."""

    least: Expression | None
    most: Expression | None
    span: Span = field(compare=False)

    @property
    def is_fixed(self) -> bool:
        return self.least is not None and self.least is self.most


@dataclass(frozen=True, slots=True)
class Work:
    """`work` or `prework`, with its rates by name."""

    rates: dict[str, Rate] = field(hash=False)
    body: Block
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    fields: tuple[Declare, ...]
    init: Block | None
    prework: Work | None
    work: Work | None
    routines: tuple[Routine, ...]


@dataclass(frozen=True, slots=True)
class Composite:
    kind: Literal["pipeline", "splitjoin", "feedbackloop"]
    body: Block


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that is defined; one without a name stands where it is added."""

    name: str | None
    input: TypeName | None
    output: TypeName | None
    parameters: tuple[Parameter, ...]
    body: Filter | Composite
    span: Span = field(compare=False)

    @property
    def kind(self) -> str:
        return "filter" if isinstance(self.body, Filter) else self.body.kind


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    fields: tuple[Parameter, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Static:
    """Constants of the whole program."""

    fields: tuple[Declare, ...]
    init: Block | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Helper:
    """Functions of the whole program, called by `Name.function(...)`."""

    name: str
    routines: tuple[Routine, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A whole file."""

    streams: tuple[Stream, ...]
    structs: tuple[Struct, ...]
    statics: tuple[Static, ...]
    helpers: tuple[Helper, ...]
