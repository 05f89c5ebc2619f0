"""What a language gives a broker: streams, and two programs that between them have all views.

The *live* program is given rows when they arrive: their ticks are columns, and how far the ticks
of each stream are known is an input. So a straggler counts at once. What has an answer only as of
the horizon is in the *settled* program, whose time is that of the ticks: it is given rows once
every tick before them is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.calculus.graph import Input, Program
from millstream.calculus.types import Schema

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


@dataclass(frozen=True)
class Served:
    """All that a broker has to know of a file, and of the views that were added to it.

    `loader` reads a text together with added views, by name, as `module:function`.
    """

    text: str
    loader: str
    streams: Mapping[str, ServedStream]
    views: Mapping[str, ServedView]
    live: Program | None
    settled: Program | None
    added: Mapping[str, str] = field(default_factory=dict)
