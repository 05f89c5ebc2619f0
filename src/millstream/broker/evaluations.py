"""Both programs of a file, given the records of the log one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millstream.broker.evaluate import Arrival, Changes, Evaluation
from millstream.broker.journal import Journal
from millstream.broker.knowledge import Knowledge
from millstream.broker.log import Record
from millstream.broker.records import RowsRecord, decoded
from millstream.calculus.graph import Program
from millstream.calculus.types import START_OF_TIME, Row, Schema
from millstream.engine.storage.codec import decode, encode
from millstream.languages.served import Served

#: How a program is run.
Maker = Callable[[Program], Evaluation]


class Evaluations:
    """Mutable: the views as of a record of the log."""

    def __init__(self, served: Served, make: Maker) -> None:
        self.served = served
        self.make = make
        self.live = None if served.live is None else make(served.live)
        self.settled = None if served.settled is None else make(served.settled)
        self.knowledge = Knowledge(served.streams)
        self.schemas = schemas_of(served)
        self.position, self.checksum = 0, 0
        #: How far the live program was told that each stream is known.
        self.told: dict[str, int] = {}
        #: Rows that wait until all ticks before them are known.
        self.waiting: dict[str, list[tuple[int, Row]]] = {name: [] for name in served.streams}
        self.mark = START_OF_TIME

    def advance(self, records: Sequence[Record]) -> dict[str, Changes]:
        """Take in the next records, all at once; what has changed, by view."""
        journal = Journal()
        arrived: dict[str, list[Row]] = {}
        for record in records:
            content = decoded(record.data, self.schemas)
            self.knowledge.take(record.number, content, journal)
            journal.commit()
            self.knowledge.forget(content)
            self.position, self.checksum = record.number, record.checksum
            if isinstance(content, RowsRecord):
                arrived.setdefault(content.stream, []).extend(content.rows)
        return self._live(arrived) | self._settled(arrived)

    def snapshot(self) -> dict[str, Any]:
        """All but the knowledge; kernels are written down at once, as they go on changing."""
        return {
            "position": self.position, "checksum": self.checksum, "mark": self.mark,
            "told": dict(self.told), "waiting": {n: list(w) for n, w in self.waiting.items()},
            "live": None if self.live is None else encode(self.live.snapshot()),
            "settled": None if self.settled is None else encode(self.settled.snapshot()),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        self.position, self.checksum = state["position"], state["checksum"]
        self.mark, self.told = state["mark"], dict(state["told"])
        self.waiting |= {name: list(some) for name, some in state["waiting"].items()}
        if self.live is not None:
            self.live.restore(decode(state["live"]))
        if self.settled is not None:
            self.settled.restore(decode(state["settled"]))

    def _live(self, arrived: dict[str, list[Row]]) -> dict[str, Changes]:
        if self.live is None or self.served.live is None:
            return {}
        at = self.position
        inputs = set(self.served.live.input_names)
        arrivals: dict[str, list[Arrival]] = {
            name: [(at, row, 1) for row in rows] for name, rows in arrived.items() if name in inputs
        }
        for name, stream in self.served.streams.items():
            if stream.horizon in inputs:
                arrivals[stream.horizon] = self._known(name, at)
        return self.live.advance(at, arrivals)

    def _known(self, name: str, at: int) -> list[Arrival]:
        """The change of how far a stream is known."""
        known = self.knowledge.ticks[name].horizon
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
    return {name: stream.input.type.schema for name, stream in served.streams.items()}
