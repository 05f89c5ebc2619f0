"""A file for several brokers: its live program is cut where what one makes is read by another.

An operator belongs to the broker of the first view that needs it, views that others are made of
before these. What is made of streams as they are, and what only says how far streams are known,
belongs to nobody: each broker that reads it has its own. A view as of the horizon is made where it
lives, of the streams that it needs.

How far a stream is known must not be believed before its rows are there by all ways that they
take. So what asks for it is told the least that any of these ways has brought.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import orjson

from millstream.broker.placement import Placement
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.types import QueueType
from millstream.calculus.wiring import Queue, Wiring, needed_for
from millstream.errors import CheckError
from millstream.languages.served import (
    Always,
    BrokerPart,
    Exported,
    Imported,
    Need,
    Served,
    WhileIn,
    Wired,
)

_LOADER = "millstream.broker.loading:load_part"


def part_of(served: Served, placement: Placement, broker: str) -> Served:
    """What one broker has of a file."""
    assert served.wired is not None
    placed = Placed(served, _only_needed(served.wired[0]), _only_needed(served.wired[1]), placement)
    part, live, settled = placed.part(broker)
    record = {"loader": served.loader, "file": served.text, "brokers": placement.source.text,
              "of": broker}  # fmt: skip
    streams = {n: s for n, s in served.streams.items() if n in part.hosted or n in part.imports}
    views = {n: v for n, v in served.views.items() if placed.homes[n] == broker}
    needs = {name: _needs_at(placed, part, name) for name in part.hosted}
    return Served(orjson.dumps(record).decode(), _LOADER, streams, views, live, settled, part=part,
                  needs=needs)  # fmt: skip


def _needs_at(placed: Placed, part: BrokerPart, stream: str) -> tuple[Need, ...]:
    """What the rows of a stream are needed for, as far as its broker can know that."""
    if stream in part.exports:
        return (Always("other brokers are sent it as it is"),)
    needs = placed.served.needs.get(stream, (Always("nobody says how long"),))
    return tuple(dict.fromkeys(_seen_at(placed, part.broker, need) for need in needs))


def _seen_at(placed: Placed, broker: str, need: Need) -> Need:
    """What needs a row, if a broker can see when it does not any more."""
    if not isinstance(need, WhileIn):
        return need
    home, host = placed.homes[need.view], placed.hosts[need.stream]
    if home != broker:
        return Always(f"{need.view} lives at the broker {home}")
    return need if host == broker else Always(f"{need.stream} is published at the broker {host}")


class Graph:
    """The operators of a program, and what they are made of."""

    def __init__(self, wired: Wired) -> None:
        self.wired = wired
        self.makers = {q: op for op in wired.operators for q in op.outputs}
        self._inputs: dict[str, frozenset[str]] = {}

    def above(self, queues: Iterable[str], stops: frozenset[str] = frozenset()) -> list[str]:
        """All queues that some are made of, with them; what stops is there, and all behind it not.

        Those that are read first come first.
        """
        reached: dict[str, None] = {}
        waiting = list(queues)
        while waiting:
            queue = waiting.pop(0)
            if queue in reached:
                continue
            reached[queue] = None
            if queue not in stops and queue in self.makers:
                waiting += self.makers[queue].inputs
        return list(reached)

    def inputs(self, queue: str) -> frozenset[str]:
        """The inputs of the program that a queue is made of."""
        if queue not in self._inputs:
            above = self.above([queue])
            self._inputs[queue] = frozenset(q for q in above if q in self.wired.inputs)
        return self._inputs[queue]

    @cached_property
    def types(self) -> dict[str, QueueType]:
        types = {name: one.type for name, one in self.wired.inputs.items()}
        for op in self.wired.operators:
            given = tuple(types[q] for q in op.inputs)
            made = op.function.output_types(given, len(op.outputs))
            types.update(zip(op.outputs, made, strict=True))
        return types


@dataclass
class Placed:
    """A file and where each view of it lives."""

    served: Served
    wired: Wired
    settled: Wired
    placement: Placement

    def __post_init__(self) -> None:
        self.graph = Graph(self.wired)
        self.horizons = {s.horizon: name for name, s in self.served.streams.items()}
        self.hosts = self.placement.hosts(self.served.streams)
        self.homes = self._homes()
        self.owners = self._owners()

    # --- where everything is ---

    def _homes(self) -> dict[str, str]:
        """The broker of each view; by default that of its largest input."""
        given = self.placement.views
        homes, sizes = dict(self.hosts), dict(self.placement.sizes(self.served.streams))
        for wired in (self.wired, self.settled):
            graph = Graph(wired)
            for name in _in_order(graph):
                if name in homes:
                    continue
                others = [o for o in _made_of(graph, name) if o in homes]
                largest = max(others, key=lambda o: sizes[o], default=None)
                sizes[name] = 1 if largest is None else sizes[largest]
                first = self.placement.first if largest is None else homes[largest]
                homes[name] = given.get(name, first)
        self._check_names(homes)
        return homes

    def _check_names(self, homes: Mapping[str, str]) -> None:
        for name in self.placement.views:
            if name not in homes or name in self.hosts:
                self.placement.unknown_view(name, [n for n in homes if n not in self.hosts])
        if self.placement.faults:
            raise CheckError(self.placement.faults)

    def _owners(self) -> dict[int, str]:
        """The broker of each operator, by its identity; some belong to nobody."""
        graph, owners = self.graph, dict[int, str]()
        bases = [q for n in self.served.streams for q in self.wired.made.get(n, ())]
        common = {id(graph.makers[q]) for q in graph.above(bases) if q in graph.makers}
        for op in self.wired.operators:
            if all(self._is_clock(graph, q) for q in op.inputs):
                common.add(id(op))
        # What was added takes nothing from others.
        names = sorted(_in_order(graph), key=lambda name: name in self.served.added)
        wanted = [(name, self.wired.made[name]) for name in names]
        wanted += [(name, (queue.name,)) for name, queue in self.wired.outputs.items()]
        for name, queues in wanted:
            for queue in graph.above(queues):
                maker = graph.makers.get(queue)
                if maker is not None and id(maker) not in common:
                    owners.setdefault(id(maker), self.homes[name])
        return owners

    def _is_clock(self, graph: Graph, queue: str) -> bool:
        """Whether it only says how far streams are known, or what was always so."""
        inputs = graph.wired.inputs
        return all(i in self.horizons or inputs[i].values is not None for i in graph.inputs(queue))

    def owner(self, queue: str) -> str | None:
        maker = self.graph.makers.get(queue)
        return None if maker is None else self.owners.get(id(maker))

    @cached_property
    def edition(self) -> str:
        said = repr((self.served.text, sorted(self.homes.items()), sorted(self.hosts.items())))
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    # --- what crosses ---

    def outputs_at(self, broker: str) -> dict[str, str]:
        """The queues of views that live at a broker, by view."""
        outputs = self.wired.outputs.items()
        return {name: queue.name for name, queue in outputs if self.homes[name] == broker}

    def read_at(self, broker: str) -> list[str]:
        """The queues of others that a broker reads, and the streams, wherever they are."""
        return list(dict.fromkeys(self._read_at(broker)))

    def _read_at(self, broker: str) -> Iterator[str]:
        own = [op for op in self.wired.operators if self.owners.get(id(op)) == broker]
        for queue in (*(q for op in own for q in op.inputs), *self.outputs_at(broker).values()):
            owner = self.owner(queue)
            if owner is not None and owner != broker:
                yield queue
            elif owner is None:  # made here too, of streams
                yield from (i for i in self.graph.inputs(queue) if i in self.served.streams)
        for output in self.settled_at(broker).values():
            inputs = Graph(self.settled).inputs(output.name)
            yield from (i for i in inputs if i in self.served.streams)

    def settled_at(self, broker: str) -> dict[str, Queue]:
        outputs = self.settled.outputs.items()
        return {name: queue for name, queue in outputs if self.homes[name] == broker}

    def sender(self, name: str) -> str:
        return self.hosts[name] if name in self.hosts else self.owner(name) or ""

    def streams_of(self, queue: str) -> frozenset[str]:
        """The streams whose rows a queue is made of."""
        return frozenset(i for i in self.graph.inputs(queue) if i in self.served.streams)

    @cached_property
    def senders(self) -> dict[str, dict[str, str]]:
        """For each broker, who sends it what: what passes it on its way to others, too.

        The ways of a relation are one tree, so that each broker hears of it from one other, and
        whoever is asked by several asks once.
        """
        made: dict[str, dict[str, str]] = {broker: {} for broker in self.placement.brokers}
        for broker in self.placement.brokers:
            for name in (*self.read_at(broker), *_Cut(self, broker).streams_asked_for()):
                maker = self.sender(name)
                if maker != broker:
                    way = self.placement.way(maker, broker, name)
                    for sender, receiver in pairwise(way):
                        made[receiver].setdefault(name, sender)
        return made

    def imports(self, broker: str) -> dict[str, Imported]:
        return {
            name: Imported(
                name, sender, self.graph.types[name].schema, name in self.hosts,
                self.streams_of(name), self.placement.is_lazy(sender, broker),
            )
            for name, sender in self.senders[broker].items()
        }  # fmt: skip

    def part(self, broker: str) -> tuple[BrokerPart, Program | None, Program | None]:
        """What a broker has, with its live and its settled program."""
        imports = {other: self.imports(other) for other in self.placement.brokers}
        receivers: dict[str, set[str]] = {}
        for other, some in imports.items():
            for one in some.values():
                if one.sender == broker:
                    receivers.setdefault(one.name, set()).add(other)
        cut = _Cut(self, broker)
        exports = {name: cut.exported(name, frozenset(some)) for name, some in receivers.items()}
        live, horizons = cut.program(imports[broker], exports)
        settled = None
        if outputs := self.settled_at(broker):
            settled = wiring_of(self.settled).program(outputs)
        needs = {name: cut.needs(queue) for name, queue in self.outputs_at(broker).items()}
        of_settled = Graph(self.settled)
        for name, queue in self.settled_at(broker).items():
            needs[name] = of_settled.inputs(queue.name) & imports[broker].keys()
        hosted = frozenset(n for n, host in self.hosts.items() if host == broker)
        views = {*self.wired.outputs, *self.settled.outputs}
        elsewhere = {n: home for n, home in self.homes.items()
                     if home != broker and (n in views or n in self.hosts)}  # fmt: skip
        needs = {name: some & imports[broker].keys() for name, some in needs.items()}
        until = {n: s.until for n, s in self.served.streams.items() if s.until is not None}
        part = BrokerPart(
            broker,
            self.edition,
            hosted,
            elsewhere,
            imports[broker],
            exports,
            horizons,
            needs,
            until,
            self.placement.brokers,
        )
        return part, live, settled


class _Cut:
    """Mutable: the live program of one broker in the making."""

    def __init__(self, placed: Placed, broker: str) -> None:
        self.placed = placed
        self.graph = placed.graph
        self.broker = broker
        read = placed.read_at(broker)
        self.foreign = frozenset(q for q in read if q not in placed.hosts)
        self.own = [op for op in placed.wired.operators if placed.owners.get(id(op)) == broker]
        self.ends = [*placed.outputs_at(broker).values(), *self._sent()]

    def _sent(self) -> list[str]:
        others = [b for b in self.placed.placement.brokers if b != self.broker]
        read = {q for b in others for q in self.placed.read_at(b)}
        return sorted(q for q in read if self.placed.owner(q) == self.broker)

    def needs(self, queue: str) -> frozenset[str]:
        """The inputs of this broker that a queue here is made of: streams, and what is sent."""
        above = self.graph.above([queue], self.foreign)
        return frozenset(q for q in above if q in self.foreign or q in self.placed.hosts)

    def sources(self, needs: Iterable[str], stream: str) -> tuple[str, ...]:
        return tuple(sorted(n for n in needs if stream in self.placed.streams_of(n)))

    def exported(self, name: str, receivers: frozenset[str]) -> Exported:
        is_stream = name in self.placed.hosts
        is_passed = self.placed.sender(name) != self.broker
        needs = frozenset((name,)) if is_stream or is_passed else self.needs(name)
        known = {s: self.sources(needs, s) for s in sorted(self.placed.streams_of(name))}
        schema = self.graph.types[name].schema
        return Exported(name, f"-> {name}", schema, is_stream, needs, known, receivers, is_passed)

    # --- clocks ---

    def _asked(self) -> Iterator[tuple[Operator, str, str, tuple[str, ...]]]:
        """Operators that read clocks: which queue, of which stream, and what must be known."""
        for op in self.own:
            for queue in op.inputs:
                if self.placed.owner(queue) is not None:
                    continue
                clocks = [i for i in self.graph.inputs(queue) if i in self.placed.horizons]
                assert len(clocks) < 2, "a clock is of one stream"
                for clock in clocks:
                    stream = self.placed.horizons[clock]
                    yield op, queue, stream, self.sources(self._beside(op), stream)

    def _beside(self, op: Operator) -> frozenset[str]:
        """The inputs of all that an operator helps to make here."""
        ends = [e for e in self.ends if set(op.outputs) & set(self.graph.above([e], self.foreign))]
        return frozenset().union(*(self.needs(e) for e in ends))

    def streams_asked_for(self) -> list[str]:
        """Streams whose rows do not come here by any way, though it is asked how far they are."""
        return list(dict.fromkeys(s for _, _, s, sources in self._asked() if not sources))

    def program(
        self, imports: Mapping[str, Imported], exports: Mapping[str, Exported]
    ) -> tuple[Program | None, dict[str, tuple[str, tuple[str, ...]]]]:
        wired = self.placed.wired
        inputs = dict(wired.inputs)
        common = [op for op in wired.operators if id(op) not in self.placed.owners]
        for name in imports:
            if name in self.foreign:
                inputs[name] = Input(name, self.graph.types[name])
        copies = _Clocks(self.graph, self.placed.horizons, inputs)
        own = {id(op): op for op in self.own}
        for op, queue, stream, sources in self._asked():
            copy = copies.of(queue, stream, sources or (stream,))
            read = tuple(copy if q == queue else q for q in own[id(op)].inputs)
            own[id(op)] = replace(own[id(op)], inputs=read)
        outputs = {n: q for n, q in wired.outputs.items() if self.placed.homes[n] == self.broker}
        for one in exports.values():
            if not one.is_stream and not one.is_passed_on:
                outputs[one.output] = Queue(one.name, self.graph.types[one.name])
        if not outputs:
            return None, {}
        operators = (*common, *copies.operators, *own.values())
        part = replace(wired, inputs=inputs, operators=operators)
        made = wiring_of(part).program(outputs)
        horizons = {n: h for n, h in copies.horizons.items() if n in made.input_names}
        return made, horizons


class _Clocks:
    """Mutable: clocks as often as they must wait for different inputs."""

    def __init__(
        self, graph: Graph, names: Mapping[str, str], inputs: dict[str, Input]
    ) -> None:  # fmt: skip
        self.graph = graph
        self.names = names
        self.inputs = inputs
        self.operators: list[Operator] = []
        self.horizons: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._made: set[str] = set()

    def of(self, queue: str, stream: str, sources: tuple[str, ...]) -> str:
        """What a queue of a clock is called that waits for these."""
        ending = f" by {', '.join(sources)}"
        if queue in self.names:
            self.inputs[queue + ending] = replace(self.inputs[queue], name=queue + ending)
            self.horizons[queue + ending] = stream, sources
            return queue + ending
        if queue + ending not in self._made:
            op = self.graph.makers[queue]
            self._made.update(q + ending for q in op.outputs)
            self.operators.append(replace(
                op, inputs=tuple(self.of(q, stream, sources) for q in op.inputs),
                outputs=tuple(q + ending for q in op.outputs),
                reads=tuple(v + ending for v in op.reads),
                writes=tuple(v + ending for v in op.writes),
            ))  # fmt: skip
        return queue + ending


def wiring_of(wired: Wired) -> Wiring:
    """A wiring that goes on where this one ended."""
    made = Wiring()
    for one in wired.inputs.values():
        made.input(one)
    made.operators = list(wired.operators)
    made.variables = list(wired.variables)
    made.names.update(q for op in wired.operators for q in op.outputs)
    made.names.update(wired.outputs)
    return made


def _only_needed(wired: Wired) -> Wired:
    """Without what nobody reads."""
    operators = needed_for(list(wired.operators), {q.name for q in wired.outputs.values()})
    there = {q for op in operators for q in (*op.inputs, *op.outputs)}
    made = {name: tuple(q for q in queues if q in there) for name, queues in wired.made.items()}
    return replace(wired, operators=tuple(operators), made={n: q for n, q in made.items() if q})


def _in_order(graph: Graph) -> list[str]:
    """The views, those that others are made of before these."""
    made = graph.wired.made
    return sorted(made, key=lambda name: (len(graph.above(made[name])), name))


def _made_of(graph: Graph, name: str) -> list[str]:
    """The streams and views that a view reads itself, in the order in which it does."""
    made = graph.wired.made
    of = {q: other for other, queues in made.items() for q in queues if other != name}
    stops = frozenset(of) - frozenset(made[name])
    read = [of[q] for q in graph.above(made[name], stops) if q in of]
    return list(dict.fromkeys(read))
