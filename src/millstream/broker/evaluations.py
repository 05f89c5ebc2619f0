"""Both programs of a file, given the records of the log one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millstream.broker.evaluate import Arrival, Changes, Evaluation, difference, net
from millstream.broker.journal import Journal
from millstream.broker.knowledge import Knowledge
from millstream.broker.log import Record
from millstream.broker.records import KnownRecord, RowsRecord, decoded
from millstream.calculus.graph import Program
from millstream.calculus.types import START_OF_TIME, QueueType, Row, Schema
from millstream.engine.storage.codec import decode, encode
from millstream.languages.served import Served
from millstream.plan.batch import batch_of
from millstream.plan.blobs import decode_batch, encode_batch

#: How a program is run.
Maker = Callable[[Program], Evaluation]


class Evaluations:
    """Mutable: the views as of a record of the log."""

    def __init__(self, served: Served, make: Maker) -> None:
        self.served = served
        self.make = make
        self.live = None if served.live is None else make(served.live)
        self.settled = None if served.settled is None else make(served.settled)
        self.later = None if served.later_live is None else make(served.later_live)
        self.knowledge = Knowledge(served.streams, served.part)
        self.schemas = schemas_of(served)
        self.position, self.checksum = 0, 0
        #: How far the live program was told that each stream is known.
        self.told: dict[str, int] = {}
        #: Rows that wait until all ticks before them are known.
        self.waiting: dict[str, list[tuple[int, Row]]] = {name: [] for name in served.streams}
        self.mark = START_OF_TIME
        part = served.part
        #: The relations that other brokers have sent, as they are here.
        self.held: dict[str, Changes] = {name: {} for name in part.imports} if part else {}
        horizons = {s.horizon: (name, (name,)) for name, s in served.streams.items()}
        self.horizons = part.horizons if part else horizons

    def advance(self, records: Sequence[Record]) -> dict[str, Changes]:
        """Take in the next records, all at once; what has changed, by view."""
        journal = Journal()
        arrived: dict[str, list[Row]] = {}
        sent: dict[str, list[tuple[Row, int]]] = {}
        for record in records:
            content = decoded(record.data, self.schemas)
            self.knowledge.take(record.number, content, journal)
            journal.commit()
            self.knowledge.forget(content)
            self.position, self.checksum = record.number, record.checksum
            if isinstance(content, RowsRecord):
                arrived.setdefault(content.stream, []).extend(content.rows)
            elif isinstance(content, KnownRecord) and self.knowledge.is_held(content):
                sent.setdefault(content.relation, []).extend(self._changed(content).items())
        return self._taken_in(arrived, {name: net(some) for name, some in sent.items()})

    def begin(
        self, position: int, checksum: int, knowledge: Mapping[str, Any],
        rows: dict[str, list[Row]], held: dict[str, Changes],
    ) -> dict[str, Changes]:  # fmt: skip
        """Take in what is left of a log up to a record; what the views have then."""
        self.knowledge.restore(knowledge)
        self.position, self.checksum = position, checksum
        self.held |= {name: dict(changes) for name, changes in held.items()}
        return self._taken_in(rows, {name: dict(changes) for name, changes in held.items()})

    def _taken_in(
        self, arrived: dict[str, list[Row]], changes: dict[str, Changes]
    ) -> dict[str, Changes]:
        """Rows of streams here, and changes of what other brokers send."""
        for name in changes.keys() & self.served.streams.keys():
            arrived[name] = [
                row for row, weight in changes.pop(name).items() for _ in range(weight)
            ]
        passed = self._passed_on(arrived, changes)
        return self._advanced(arrived, changes) | passed

    def _advanced(
        self, arrived: dict[str, list[Row]], sent: Mapping[str, Changes]
    ) -> dict[str, Changes]:
        return self._live(arrived, sent) | self._later(arrived) | self._settled(arrived)

    def _later(self, arrived: Mapping[str, list[Row]]) -> dict[str, Changes]:
        """Views that came later do not know what was before, so no tick is the last for them."""
        if self.later is None or self.served.later_live is None:
            return {}
        inputs, at = self.served.later_live.input_names, self.position
        arrivals = {name: [(at, row, 1) for row in arrived.get(name, ())] for name in inputs}
        for name in inputs:
            if name in self.horizons:
                arrivals[name] = self._known(f"later {name}", START_OF_TIME, at)
        return self.later.advance(at, arrivals)

    def _changed(self, known: KnownRecord) -> Changes:
        """What is new in a relation that another broker has sent, which is kept."""
        rows = self.held[known.relation]
        told = net(known.changes)
        changes = told if known.after else difference(rows, told)
        for row, weight in changes.items():
            rows[row] = rows.get(row, 0) + weight
            if not rows[row]:
                del rows[row]
        return changes

    def _passed_on(
        self, arrived: Mapping[str, list[Row]], sent: Mapping[str, Changes]
    ) -> dict[str, Changes]:
        """What other brokers are sent as it came here: streams, and what others make."""
        exports = self.served.part.exports if self.served.part else {}
        made = {e.output: net((row, 1) for row in arrived.get(name, ()))
                for name, e in exports.items() if e.is_stream}  # fmt: skip
        passed = {n: e.output for n, e in exports.items() if e.is_passed_on and not e.is_stream}
        return made | {output: dict(sent.get(name, {})) for name, output in passed.items()}

    def snapshot(self) -> dict[str, Any]:
        """All but the knowledge; kernels are written down at once, as they go on changing."""
        return {
            "position": self.position, "checksum": self.checksum, "mark": self.mark,
            "told": dict(self.told), "waiting": {n: list(w) for n, w in self.waiting.items()},
            "live": None if self.live is None else encode(self.live.snapshot()),
            "settled": None if self.settled is None else encode(self.settled.snapshot()),
            "later": None if self.later is None else encode(self.later.snapshot()),
            "held": {name: blob_of(self._schema(name), rows) for name, rows in self.held.items()},
        }  # fmt: skip

    def _schema(self, relation: str) -> Schema:
        assert self.served.part is not None
        return self.served.part.imports[relation].schema

    def restore(self, state: Mapping[str, Any]) -> None:
        self.position, self.checksum = state["position"], state["checksum"]
        self.mark, self.told = state["mark"], dict(state["told"])
        self.waiting |= {name: list(some) for name, some in state["waiting"].items()}
        self.held |= held_of(self.served, state["held"])
        if self.live is not None:
            self.live.restore(decode(state["live"]))
        if self.settled is not None:
            self.settled.restore(decode(state["settled"]))
        if self.later is not None:
            self.later.restore(decode(state["later"]))

    def _live(
        self, arrived: Mapping[str, list[Row]], sent: Mapping[str, Changes]
    ) -> dict[str, Changes]:
        if self.live is None or self.served.live is None:
            return {}
        at = self.position
        inputs = set(self.served.live.input_names)
        arrivals: dict[str, list[Arrival]] = {
            name: [(at, row, 1) for row in rows] for name, rows in arrived.items() if name in inputs
        }
        for name, changes in sent.items():
            if name in inputs:
                arrivals[name] = [(at, row, weight) for row, weight in changes.items()]
        for name, (stream, sources) in self.horizons.items():
            if name in inputs:
                known = min(self.knowledge.known_through(one, stream) for one in sources)
                arrivals[name] = self._known(name, known, at)
        return self.live.advance(at, arrivals)

    def _known(self, name: str, known: int, at: int) -> list[Arrival]:
        """The change of how far a stream is known, as an input says it."""
        before = self.told.get(name)
        if before == known:
            return []
        self.told[name] = known
        gone = [] if before is None else [(at, (before,), -1)]
        return [*gone, (at, (known,), 1)]

    def _settled(self, arrived: dict[str, list[Row]]) -> dict[str, Changes]:
        program = self.served.settled
        if self.settled is None or program is None:
            return {}
        names = tuple(n for n in program.input_names if n in self.served.streams)
        for name in names:
            stream = self.served.streams[name]
            key = stream.input.type.schema.index(stream.key)
            for row in arrived.get(name, ()):
                tick = row[key]
                assert isinstance(tick, int)
                heapq.heappush(self.waiting[name], (tick, row))
        mark = self.knowledge.settled_through(names)
        if mark is None or mark <= self.mark:
            return {}
        self.mark = mark
        return self.settled.advance(mark, {name: self._released(name) for name in names})

    def _released(self, name: str) -> list[Arrival]:
        waiting = self.waiting[name]
        released: list[Arrival] = []
        while waiting and waiting[0][0] <= self.mark:
            tick, row = heapq.heappop(waiting)
            released.append((tick, row, 1))
        return released


def schemas_of(served: Served) -> dict[str, Schema]:
    """The columns of all rows that can stand in the log."""
    made = {name: stream.input.type.schema for name, stream in served.streams.items()}
    if served.part is not None:
        made |= {name: one.schema for name, one in served.part.imports.items()}
    return made


def held_of(served: Served, blobs: Mapping[str, bytes]) -> dict[str, Changes]:
    """The relations of other brokers, as they were written down."""
    if served.part is None:
        return {}
    imports = served.part.imports
    return {name: rows_of_blob(imports[name].schema, blob) for name, blob in blobs.items()}


def blob_of(schema: Schema, rows: Changes) -> bytes:
    """The rows of a relation, ready to be written down."""
    type_ = QueueType(schema, is_relation=True)
    batch = batch_of(type_, [0] * len(rows), list(rows), list(rows.values()))
    made: bytes = encode_batch(batch).to_pybytes()
    return made


def rows_of_blob(schema: Schema, blob: bytes) -> Changes:
    batch = decode_batch(blob, QueueType(schema, is_relation=True))
    assert batch.weight is not None
    return dict(zip(batch.rows(), batch.weight.tolist(), strict=True))
