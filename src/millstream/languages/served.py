"""What a language gives a broker: streams, and two programs that between them have all views.

The *live* program is given rows when they arrive: their ticks are columns, and how far the ticks
of each stream are known is an input. So a straggler counts at once. What has an answer only as of
the horizon is in the *settled* program, whose time is that of the ticks: it is given rows once
every tick before them is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.types import Schema
from millstream.calculus.wiring import Queue

#: Columns of a view beside those of its query; a mask is asked for, so are bounds.
STEPS_COLUMN, FINAL_COLUMN, ASOF_COLUMN, MASK_COLUMN = "_steps", "_final", "_asof", "_sure"


@dataclass(frozen=True)
class ServedStream:
    """A stream that is published to."""

    name: str
    #: What a row is, with the bounds of its values; its time is the tick.
    input: Input
    key: str
    slack: int
    until: int | None
    heartbeat: int | None
    shifts_ties: bool
    #: The input of a live program that says how far this stream is known.
    horizon: str


@dataclass(frozen=True, slots=True)
class Always:
    """Rows of a stream are needed for ever; says by what."""

    reason: str


@dataclass(frozen=True, slots=True)
class WhileOpen:
    """A row is needed until all ticks are known that lie so far behind its own."""

    length: int


@dataclass(frozen=True, slots=True)
class WhileIn:
    """A row is needed while a row of a view has in `column` what it has itself in `by`.

    That is a tick of `stream`: as long as it is not known, such a row may still come.
    """

    view: str
    column: str
    by: str
    stream: str


Need = Always | WhileOpen | WhileIn


@dataclass(frozen=True, slots=True)
class CountedBound:
    """A bound that is null while ticks are open: a value, and so much more for each of them.

    `per_tick` has for each stream the column that says how much.
    """

    bound: str
    value: str
    per_tick: Mapping[str, str]


@dataclass(frozen=True)
class ServedView:
    """A view that is subscribed to; its rows have the columns of `schema`, in this order."""

    name: str
    schema: Schema
    is_live: bool
    #: Why it is as of the horizon, if it is.
    as_of: str | None
    #: Columns that are told only to those who ask for bounds.
    bounds: frozenset[str]
    can_be_final: bool
    #: A digest of the program that makes it: positions mean nothing to another.
    edition: str
    #: The streams that it is made of.
    streams: frozenset[str] = frozenset()
    #: The texts that say what it is, as a digest: the same whoever translates them.
    definition: str = ""
    counted: tuple[CountedBound, ...] = ()


@dataclass(frozen=True)
class Wired:
    """A program before its queues are copied for several readers, so that it can be cut.

    `made` has the queues in which the rows of each stream and of each view are found.
    """

    inputs: Mapping[str, Input]
    operators: tuple[Operator, ...]
    variables: tuple[Variable, ...]
    outputs: Mapping[str, Queue]
    made: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Imported:
    """A relation that another broker sends: a stream, or a queue of its live program."""

    name: str
    sender: str
    schema: Schema
    is_stream: bool
    #: The streams whose rows it is made of.
    streams: frozenset[str]
    #: Rows come only while somebody wants them.
    is_lazy: bool = False


@dataclass(frozen=True)
class Exported:
    """A relation that other brokers are sent.

    `needs` are the inputs here that it is made of, and `known` has for each stream those of them
    that bring its rows: it is known as far as all of these are.
    """

    name: str
    #: What it is called among the relations of the broker that makes it.
    output: str
    schema: Schema
    is_stream: bool
    needs: frozenset[str]
    known: Mapping[str, tuple[str, ...]]
    receivers: frozenset[str]
    #: Another broker makes it; here it only passes.
    is_passed_on: bool = False


@dataclass(frozen=True)
class BrokerPart:
    """What one of several brokers has of a file."""

    broker: str
    #: A digest of the file and of what is where: numbers mean nothing to brokers of another.
    edition: str
    #: The streams that are published here; the others, and views, are elsewhere, at these brokers.
    hosted: frozenset[str]
    elsewhere: Mapping[str, str]
    imports: Mapping[str, Imported]
    exports: Mapping[str, Exported]
    #: For each input of the live program that says how far a stream is known: which stream, and
    #: which inputs must all be known so far.
    horizons: Mapping[str, tuple[str, tuple[str, ...]]]
    #: The imports that each view here is made of.
    needs: Mapping[str, frozenset[str]]
    #: The last tick of each stream that has one, wherever it is.
    until: Mapping[str, int]
    #: Where brokers can be reached.
    addresses: Mapping[str, str]

    def place_of(self, name: str) -> str | None:
        """The broker that has a stream or a view, and its address, if it is another one."""
        broker = self.elsewhere.get(name)
        return None if broker is None else f"{broker}, {self.addresses[broker]}"


@dataclass(frozen=True)
class Served:
    """All that a broker has to know of a file, and of the views that were added to it.

    `loader` reads a text together with added views, by name, as `module:function`. One of several
    brokers has a `part` of it: then `streams` are also those of others that it is sent.
    """

    text: str
    loader: str
    streams: Mapping[str, ServedStream]
    views: Mapping[str, ServedView]
    live: Program | None
    settled: Program | None
    added: Mapping[str, str] = field(default_factory=dict)
    #: Both programs as they can be cut.
    wired: tuple[Wired, Wired] | None = field(default=None, compare=False)
    part: BrokerPart | None = None
    #: What the rows of each stream are needed for; what is needed for nothing need not be kept.
    needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    #: Views that came when rows were gone already, with a program of their own: to these, streams
    #: are known nowhere.
    later: frozenset[str] = frozenset()
    later_live: Program | None = None

    def made_of(self, name: str) -> frozenset[str]:
        """The views that name another one."""
        word = re.compile(rf"(?<![\w#]){re.escape(name)}(?![\w#])", re.IGNORECASE)
        return frozenset(n for n, text in self.added.items() if n != name and word.search(text))

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(p for p in (self.live, self.settled, self.later_live) if p is not None)

    @property
    def relations(self) -> Mapping[str, ServedView]:
        """The views, and what other brokers are sent."""
        if self.part is None:
            return self.views
        return {**self.views, **{e.output: _exported(e) for e in self.part.exports.values()}}

    @property
    def hosted(self) -> Mapping[str, ServedStream]:
        """The streams that are published here."""
        if self.part is None:
            return self.streams
        return {name: s for name, s in self.streams.items() if name in self.part.hosted}


def _exported(exported: Exported) -> ServedView:
    return ServedView(exported.output, exported.schema, True, None, frozenset(), False, "")
