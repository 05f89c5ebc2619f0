"""A stage on one group of its buckets, in one batch: what runs in Spark's tasks.

The state after a batch follows from the state before and from what came in, because
kernels are deterministic. So a delta is a list of what came in, and a worker that has
missed versions runs them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from millstream.engine.job import rejected_changes
from millstream.engine.spark.aside import Aside
from millstream.engine.spark.buckets import parts
from millstream.engine.spark.claims import Claims
from millstream.engine.spark.clock import Clock, Known, segment_of
from millstream.engine.spark.memory import Bucket, Memory, memory_for
from millstream.engine.spark.parcels import LATE, Packer, Parcel, opened, parcels_in
from millstream.engine.spark.points import reached
from millstream.engine.spark.wire import Message, Wire, message_of, record_batch, rows_of, to_all
from millstream.engine.storage.codec import DamagedState, encode
from millstream.engine.storage.records import read_record
from millstream.plan.batch import Batch

#: The property of a Spark job that tells its turn.
TURN = "millstream.turn"
#: What came to a bucket: a parcel, and the time before which its rows are late.
Arrival = tuple[Parcel, int | None]


@dataclass(frozen=True)
class Turn:
    """One batch: the version it starts from and what is known before it."""

    version: int
    known: tuple[Known, ...]
    is_kept: bool  # whether the state after it is written whole

    def written(self) -> str:
        return json.dumps([self.version, [astuple(one) for one in self.known], self.is_kept])

    @staticmethod
    def read(text: str) -> Turn:
        version, known, is_kept = json.loads(text)
        return Turn(version, tuple(Known(*one) for one in known), is_kept)


@dataclass
class Done:
    """Mutable: what a task has done, for the report."""

    released: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    unsound: dict[str, int] = field(default_factory=dict)
    rejected: list[list[Any]] = field(default_factory=list)

    def further_behind(self, name: str, furthest: int) -> None:
        self.behind[name] = max(self.behind.get(name, 0), furthest)

    def count(self, what: dict[str, int], name: str, number: int) -> None:
        if number:
            what[name] = what.get(name, 0) + number


class StageTask:
    """Mutable: one task of a stage."""

    def __init__(self, memory: Memory, stage: int, turn: Turn, partition: int) -> None:
        self.memory = memory
        self.layout = memory.layout
        self.stage = stage
        self.turn = turn
        self.partition = partition
        self.names = self.layout.plan.program.input_names
        self.done = Done()
        self.later = Packer()
        self.results = Packer()

    @property
    def folder(self) -> str:
        return f"state/stage-{self.stage}"

    def run(self, rows: Iterable[Wire]) -> Iterator[Wire]:
        messages: list[Message] = []
        for row in rows:
            if row[0] == self.stage:
                messages.append(message_of(row[2]))
            else:
                yield row
        clock = self._clock(messages)
        for name, furthest in clock.behind.items():
            self.done.further_behind(name, furthest)
        arrivals = self._arrivals(messages, clock)
        group = self._group()
        buckets = list(self.memory.of_group(self.stage, group))
        for bucket in buckets:
            state = self._state(bucket)
            for queues in self._advance(state, arrivals.get(bucket, []), clock):
                for name, made in queues.items():
                    self._send(name, made, bucket)
        reached("mid-task", self.turn.version)
        # To make a file durable is to wait: the delta is written beside the results.
        writing = Aside()
        delta = self._write_delta(group, {b: arrivals.get(b, []) for b in buckets}, clock, writing)
        snapshot = self._write_snapshot(group, buckets) if self.turn.is_kept else None
        sent = list(self._sent(group, clock, delta, snapshot))
        writing.wait()
        reached("after-state", self.turn.version)
        yield from sent

    def _clock(self, messages: list[Message]) -> Clock:
        segments = [s for m in messages for s in m.get("segments", ())]
        silent = {n: flag for m in messages for n, flag in m.get("silent", {}).items()}
        inputs = self.layout.plan.program.inputs
        return Clock.of(inputs, self.turn.known, [segment_of(s) for s in segments], silent)

    def _arrivals(self, messages: list[Message], clock: Clock) -> dict[int, list[Arrival]]:
        """What came to each bucket, in an order that does not depend on who was first."""
        arrivals: dict[int, list[Arrival]] = {}
        for message in sorted(messages, key=lambda m: m["from"]):
            for parcel in parcels_in(message.get("parcels", ())):
                arrivals.setdefault(parcel.bucket, []).append((parcel, None))
            for segment in message.get("segments", ()):
                bound = clock.bounds.get((segment["input"], segment["number"]))
                for parcel in parcels_in(segment["parcels"]):
                    is_needed = bound is not None and parcel.oldest < bound
                    arrival = (parcel, bound if is_needed else None)
                    arrivals.setdefault(parcel.bucket, []).append(arrival)
        return arrivals

    def _group(self) -> int:
        """A group that this worker has at hand, if no other task has taken it."""
        description = self.memory.description
        version = self.turn.version

        def is_at_hand(group: int) -> bool:
            some = (self.memory.buckets.get((self.stage, b))
                    for b in self.memory.of_group(self.stage, group))  # fmt: skip
            return any(state is not None and state.version == version for state in some)

        claims = Claims(
            self.memory.files.root / "claims", version, self.stage, description.partitions
        )
        return claims.take(self.partition, is_at_hand)

    # --- one bucket ---

    def _advance(
        self, state: Bucket, came: list[Arrival], clock: Clock
    ) -> Iterator[dict[str, Batch]]:
        """From one version to the next: take in what came, let go what is known."""
        for parcel, bound in came:
            self._take_in(state, parcel, bound)
        for name, some in clock.ticks.items():
            before = state.ticks.get(name)
            state.ticks[name] = some if before is None else np.concatenate([before, some])
        state.version += 1
        if clock.mark is None or (state.mark is not None and clock.mark <= state.mark):
            return iter(())
        state.mark = clock.mark
        inputs = {q: w.up_to(clock.mark) for q, w in state.waiting.items()}
        for name in inputs.keys() & set(self.names):
            if name in state.presence:
                inputs[name], unsound = state.presence[name].sound(inputs[name])
                rejected = rejected_changes(name, unsound)
                self.done.rejected += [[name, 0, r.reason, r.text] for r in rejected]
                self.done.count(self.done.unsound, name, len(unsound))
            self.done.count(self.done.released, name, len(inputs[name]))
        return state.runner.round(inputs, clock.mark, state.ticks_up_to(clock.mark))

    def _take_in(self, state: Bucket, parcel: Parcel, bound: int | None) -> None:
        name = self.layout.queues[parcel.queue]
        batch = opened(self.memory.files, parcel, self.memory.types[name])
        if bound is not None:
            is_late = batch.time < bound
            late = batch.take(np.flatnonzero(is_late))
            batch = batch.take(np.flatnonzero(~is_late))
            self.done.count(self.done.late, name, len(late))
            if len(late):
                slack = self.layout.plan.program.inputs[self.names.index(name)].slack
                furthest = bound + slack - int(late.time.min())
                self.done.further_behind(name, furthest)
            self.results.add(0, LATE - self.names.index(name), late)
        state.waiting[name].add(batch)

    def _send(self, queue: str, batch: Batch, bucket: int) -> None:
        target = self.layout.target(queue)
        number = self.layout.number(queue)
        if target.stage == self.layout.driver:
            self.results.add(0, number, batch)
            return
        # What goes to a stage that does not care stays where it is.
        for place, part in parts(batch, target.key, self.memory.description.buckets, bucket):
            self.later.add(place, number, part)

    def _sent(self, group: int, clock: Clock, delta: int, snapshot: int | None) -> Iterator[Wire]:
        """To later stages what they need, to the driver the results and what was done."""
        files, name = self.memory.files, f"{self.turn.version:09}.{self.stage}-{group}"
        parcels = self.later.seal(files, f"exchange/{name}")
        for stage in range(self.stage + 1, self.layout.driver):
            mine = [p.written() for p in parcels
                    if self.layout.targets[self.layout.queues[p.queue]].stage == stage]  # fmt: skip
            if mine:
                message = {"from": [1, self.stage, group], "parcels": mine}
                yield from to_all(stage, self.memory.description.partitions, message)
        results = self.results.seal(files, f"outputs/{name}")
        done = {
            "from": [1, self.stage, group], "results": [p.written() for p in results],
            "released": self.done.released, "late": self.done.late, "behind": self.done.behind,
            "unsound": self.done.unsound, "rejected": self.done.rejected,
            "faults": self._faults(group), "mark": clock.mark,
            "known": [[k.largest, k.is_silent] for k in clock.known],
            "delta": delta, "snapshot": snapshot,
        }  # fmt: skip
        yield self.layout.driver, 0, encode(done)

    def _faults(self, group: int) -> dict[str, int]:
        total: dict[str, int] = {}
        for bucket in self.memory.of_group(self.stage, group):
            faults = self.memory.buckets[self.stage, bucket].runner.faults()
            for what, count in faults.items():
                total[what] = total.get(what, 0) + count
        return total

    # --- versions ---

    def _state(self, bucket: int) -> Bucket:
        """The state of a bucket at the version that this batch starts from."""
        version = self.turn.version
        hot = self.memory.buckets.pop((self.stage, bucket), None)
        if hot is None or hot.version > version:
            hot = self._from_snapshot(bucket)
        while hot.version < version:
            self._replay(hot, bucket)
        self.memory.buckets[self.stage, bucket] = hot
        return hot

    def _from_snapshot(self, bucket: int) -> Bucket:
        state = self.memory.new_bucket(self.stage)
        for name in reversed(self.memory.files.names(self.folder)):
            version, partition, of, kind = parsed(name)
            if kind == "snapshot" and version <= self.turn.version and bucket % of == partition:
                stored = read_record(self.memory.files, f"{self.folder}/{name}")
                state.restore(stored[bucket])
                return state
        return state

    def _replay(self, state: Bucket, bucket: int) -> None:
        version = state.version
        for name in self.memory.files.names(self.folder):
            number, partition, of, kind = parsed(name)
            if kind == "delta" and number == version and bucket % of == partition:
                stored = read_record(self.memory.files, f"{self.folder}/{name}")
                came = [(Parcel(*parcel), bound) for parcel, bound in stored["buckets"][bucket]]
                again = StageTask(self.memory, self.stage, self.turn, self.partition)
                for _ in again._advance(state, came, Clock(stored["mark"], stored["ticks"])):
                    pass  # it has been sent before
                return
        raise DamagedState(
            f"the file {self.folder}/{version:09}.*.delta of the checkpoint is missing"
        )

    def _name(self, version: int, group: int, kind: str) -> str:
        of = self.memory.description.partitions
        return f"{self.folder}/{version:09}.{group}of{of}.{kind}"

    def _write_delta(
        self, group: int, arrivals: dict[int, list[Arrival]], clock: Clock, writing: Aside
    ) -> int:
        """One file for all buckets: what came. Answers the bytes behind it."""
        buckets = {
            bucket: [[parcel.written(), bound] for parcel, bound in came]
            for bucket, came in arrivals.items()
        }
        data = encode({"mark": clock.mark, "ticks": clock.ticks, "buckets": buckets})
        name = self._name(self.turn.version, group, "delta")
        writing.start(partial(self.memory.files.write, name, data))
        apart = (p.size for came in arrivals.values() for p, _ in came)
        return len(data) + sum(apart)

    def _write_snapshot(self, group: int, buckets: list[int]) -> int:
        states = {b: self.memory.buckets[self.stage, b].snapshot() for b in buckets}
        data = encode(states)
        self.memory.files.write(self._name(self.turn.version + 1, group, "snapshot"), data)
        return len(data)


def parsed(name: str) -> tuple[int, int, int, str]:
    """Version, partition, number of partitions and kind of a state file."""
    version, place, kind = name.split(".")
    partition, _, of = place.partition("of")
    return int(version), int(partition), int(of), kind


def run_stage(description: Any, stage: int) -> Any:
    """What Spark's `mapInArrow` calls for a stage; the description is a broadcast.

    Which batch it is, is a property of the job, so that the plan is the same for all batches.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        text = context.getLocalProperty(TURN)
        assert text is not None
        turn = Turn.read(text)
        reached("before-tasks", turn.version)
        task = StageTask(memory_for(description.value), stage, turn, context.partitionId())
        yield record_batch(task.run(row for batch in batches for row in rows_of(batch)))

    return run
