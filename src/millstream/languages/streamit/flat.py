"""The graph without its nesting: actors, and channels between them.

An actor takes and gives fixed numbers of items. Filters are actors, and so are the splits and
joins of split-joins and feedback loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.languages.streamit.graph import (
    Feedback,
    Filter,
    Node,
    Pipeline,
    SplitJoin,
    Weights,
)
from millstream.source import Span


@dataclass(eq=False)
class Channel:
    """Mutable while the graph is connected: from an actor to another, with what is enqueued."""

    number: int
    source: Actor | None = None
    target: Actor | None = None
    enqueued: tuple[Any, ...] = ()


@dataclass(eq=False)
class Actor:
    """Mutable while the graph is connected.

    `pops` and `peeks` are per input channel, `pushes` per output; `first_*` are those of the
    first firing, where it has others.
    """

    number: int
    path: str
    work: Filter | Weights
    span: Span
    inputs: list[Channel] = field(default_factory=list)
    outputs: list[Channel] = field(default_factory=list)
    pops: list[int] = field(default_factory=list)
    pushes: list[int] = field(default_factory=list)

    @property
    def is_filter(self) -> bool:
        return isinstance(self.work, Filter)

    @property
    def is_source(self) -> bool:
        return not self.inputs

    @property
    def has_prework(self) -> bool:
        return isinstance(self.work, Filter) and self.work.first is not None

    @property
    def changes(self) -> bool:
        """Whether the number of its items is only known when it has fired."""
        rates = (self.work.rates, self.work.first) if isinstance(self.work, Filter) else ()
        return any(r is not None and r.most is not None for r in rates)

    def is_open(self, channel: Channel) -> bool:
        """Whether it takes from a channel, or gives to it, not always the same."""
        if not isinstance(self.work, Filter) or self.work.rates.most is None:
            return False
        rates = self.work.rates
        place = 0 if channel in self.inputs else 2
        return rates.limits[place] != (rates.pop, rates.peek, rates.push)[place]

    def pop(self, channel: Channel, *, is_first: bool) -> int:
        if is_first and isinstance(self.work, Filter) and self.work.first is not None:
            return self.work.first.pop
        return self.pops[self.inputs.index(channel)]

    def peek(self, channel: Channel, *, is_first: bool) -> int:
        """How many items must be there for a firing."""
        if isinstance(self.work, Filter):
            rates = self.work.first if is_first and self.work.first else self.work.rates
            return rates.peek
        return self.pops[self.inputs.index(channel)]

    def push(self, channel: Channel, *, is_first: bool) -> int:
        if is_first and isinstance(self.work, Filter) and self.work.first is not None:
            return self.work.first.push
        return self.pushes[self.outputs.index(channel)]


@dataclass
class Flat:
    """Mutable while it is connected: actors in the order in which data passes them."""

    actors: list[Actor] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    entry: Channel | None = None
    exit: Channel | None = None

    @property
    def changes(self) -> bool:
        return any(actor.changes for actor in self.actors)

    def channel(self) -> Channel:
        made = Channel(len(self.channels))
        self.channels.append(made)
        return made

    def actor(self, path: str, work: Filter | Weights, span: Span) -> Actor:
        made = Actor(len(self.actors), path, work, span)
        self.actors.append(made)
        return made

    def read(self, actor: Actor, channel: Channel, pop: int) -> None:
        actor.inputs.append(channel)
        actor.pops.append(pop)
        channel.target = actor

    def write(self, actor: Actor, channel: Channel, push: int) -> None:
        actor.outputs.append(channel)
        actor.pushes.append(push)
        channel.source = actor


def flattened(node: Node) -> Flat:
    """All actors of a graph, with a channel in and one out where it has these sides."""
    flat = Flat()
    flat.entry = flat.channel() if _takes(node) else None
    flat.exit = flat.channel() if _gives(node) else None
    _connect(flat, node, flat.entry, flat.exit)
    return flat


def _connect(flat: Flat, node: Node, entry: Channel | None, exit_: Channel | None) -> None:
    match node:
        case Filter(path, span=span):
            actor = flat.actor(path, node, span)
            if entry is not None:
                flat.read(actor, entry, node.rates.pop)
            if exit_ is not None:
                flat.write(actor, exit_, node.rates.push)
        case Pipeline(_, parts):
            for number, part in enumerate(parts):
                is_last = number == len(parts) - 1
                after = exit_ if is_last else (flat.channel() if _gives(part) else None)
                _connect(flat, part, entry, after)
                entry = after
        case SplitJoin():
            _connect_split_join(flat, node, entry, exit_)
        case Feedback():
            _connect_feedback(flat, node, entry, exit_)


def _connect_split_join(
    flat: Flat, node: SplitJoin, entry: Channel | None, exit_: Channel | None
) -> None:
    split = None
    if entry is not None:
        split = flat.actor(f"{node.path}.split", node.split, node.split.span)
        _read_split(flat, split, entry, node.split)
    ends: list[tuple[Channel, int]] = []
    for number, part in enumerate(node.parts):
        inside = _split_to(flat, split, node.split, number) if _takes(part) else None
        outside = flat.channel() if _gives(part) else None
        _connect(flat, part, inside, outside)
        if outside is not None:
            ends.append((outside, node.join.counts[number]))
    if exit_ is not None:
        join = flat.actor(f"{node.path}.join", node.join, node.join.span)
        for channel, count in ends:
            flat.read(join, channel, count)
        flat.write(join, exit_, sum(count for _, count in ends))


def _read_split(flat: Flat, split: Actor, entry: Channel, weights: Weights) -> None:
    is_copied = weights.kind == "duplicate"
    flat.read(split, entry, 1 if is_copied else sum(weights.counts))


def _split_to(flat: Flat, split: Actor | None, weights: Weights, number: int) -> Channel | None:
    if split is None:
        return None
    channel = flat.channel()
    flat.write(split, channel, 1 if weights.kind == "duplicate" else weights.counts[number])
    return channel


def _connect_feedback(
    flat: Flat, node: Feedback, entry: Channel | None, exit_: Channel | None
) -> None:
    back = flat.channel()
    back.enqueued = node.enqueued
    joined, done, ahead = flat.channel(), flat.channel(), flat.channel()
    join = flat.actor(f"{node.path}.join", node.join, node.join.span)
    outside, inside = node.join.counts
    if entry is not None:
        flat.read(join, entry, outside)
    flat.read(join, back, inside)
    flat.write(join, joined, inside + (outside if entry is not None else 0))
    _connect(flat, node.body, joined, done)
    split = flat.actor(f"{node.path}.split", node.split, node.split.span)
    _read_split(flat, split, done, node.split)
    is_copied = node.split.kind == "duplicate"
    if exit_ is not None:
        flat.write(split, exit_, 1 if is_copied else node.split.counts[0])
    flat.write(split, ahead, 1 if is_copied else node.split.counts[1])
    _connect(flat, node.loop, ahead, back)


def _takes(node: Node) -> bool:
    match node:
        case Filter(taken=taken):
            return taken is not None
        case Pipeline(_, parts):
            return _takes(parts[0])
        case SplitJoin(_, split, parts):
            gets = split.kind == "duplicate" or any(split.counts)
            return gets and any(map(_takes, parts))
        case Feedback(_, join):
            return join.counts[0] > 0


def _gives(node: Node) -> bool:
    match node:
        case Filter(given=given):
            return given is not None
        case Pipeline(_, parts):
            return _gives(parts[-1])
        case SplitJoin(_, _, parts, join):
            return any(join.counts) and any(map(_gives, parts))
        case Feedback(_, _, _, _, split):
            return split.kind == "duplicate" or split.counts[0] > 0
