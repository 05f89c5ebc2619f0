"""The graph of filters that a program builds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from millstream.calculus.procedures import Code, Shape
from millstream.calculus.work import Rates
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Message:
    """What a filter pushes to an output of its own, for those who hear a portal.

    No latency is any.
    """

    output: int
    portal: str
    handler: str
    latency: int | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """An instance of a filter: its code, the arguments, and what each firing takes and gives.

    `path` names the instance: the streams it stands in, from the outermost on.
    """

    path: str
    code: Code
    arguments: tuple[Any, ...]
    taken: Shape | None
    given: Shape | None
    rates: Rates
    first: Rates | None
    span: Span = field(compare=False)
    #: The file that it only reads or writes.
    file: str | None = None
    #: What it says, and the portals by which it hears what others say.
    messages: tuple[Message, ...] = ()
    portals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Weights:
    """How a split or a join deals items: to all (`duplicate`), or so many to each in turn."""

    kind: Literal["duplicate", "roundrobin"]
    counts: tuple[int, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Pipeline:
    path: str
    parts: tuple[Node, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class SplitJoin:
    path: str
    split: Weights
    parts: tuple[Node, ...]
    join: Weights
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Feedback:
    """Outside comes first in `join` and `split`, the loop second."""

    path: str
    join: Weights
    body: Node
    loop: Node
    split: Weights
    enqueued: tuple[Any, ...]
    span: Span = field(compare=False)


Node = Filter | Pipeline | SplitJoin | Feedback


def filters_of(node: Node) -> Iterator[Filter]:
    """All filters, in the order of the text."""
    match node:
        case Filter():
            yield node
        case Pipeline(_, parts) | SplitJoin(_, _, parts):
            for part in parts:
                yield from filters_of(part)
        case Feedback(_, _, body, loop):
            yield from filters_of(body)
            yield from filters_of(loop)
