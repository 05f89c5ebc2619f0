"""What lowering makes of a stream: its code, its rates, and where it adds and sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millstream.calculus.procedures import (
    Body,
    Code,
)
from millstream.calculus.terms import Term
from millstream.languages.streamit import ast
from millstream.languages.streamit.scope import (
    Variable,
)
from millstream.source import Span

#: The number of the output that prints, and in composites that of the first place.
PRINTED, FIRST_SITE = 1, 2

#: Names and the variables they stand for.
Captured = tuple[tuple[str, Variable], ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the body of a composite where something is added to the graph."""

    statement: ast.AddStream | ast.Split | ast.Enqueue
    #: What an anonymous stream sees of the variables around it, by the names it knows them by.
    captured: Captured = ()


@dataclass(frozen=True, slots=True)
class Calculated:
    """A value, and what must be done before it is one."""

    before: Body
    term: Term


#: What begins the text by which a portal is known, before the name of its variable.
PORTAL = "portal:"


@dataclass(frozen=True, slots=True)
class Sent:
    """A place in a filter that sends messages: the output it pushes them to, and what they are.

    The latency is worked out as rates are; none is any.
    """

    output: int
    portal: str
    listener: str
    handler: str
    latency: Calculated | None
    span: Span


@dataclass(frozen=True, slots=True)
class Said:
    """The rates that are said, by name; of those that change, the fewest and the most."""

    least: Mapping[str, Calculated] = field(default_factory=dict)
    #: Only of those that change; None is as many as it likes.
    most: Mapping[str, Calculated | None] = field(default_factory=dict)

    def calculated(self) -> Iterator[Calculated]:
        yield from self.least.values()
        yield from (most for most in self.most.values() if most is not None)


@dataclass(frozen=True, slots=True)
class Lowering:
    """A stream as code, with its rates over its parameters and fields."""

    code: Code
    rates: Said = Said()
    first_rates: Said | None = None
    sites: tuple[Site, ...] = ()
    sent: tuple[Sent, ...] = ()
    #: `init` as it is written, if it prints: that is done while the graph is built.
    spoken_init: Body | None = None
    has_faults: bool = False
