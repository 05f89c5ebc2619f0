"""What runs in Spark's tasks: a stage on its buckets, and the sink.

A worker keeps the state of the buckets it has had, with its version. A task that finds
another version than it needs goes back to a snapshot and runs the batches since then
again from what was written down of them: a delta is what came in, and kernels are
deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.backends.job import rejected_changes
from millstream.backends.spark.blobs import decode_batch, encode_batch
from millstream.backends.spark.buckets import parts
from millstream.backends.spark.layout import Description, Layout, layout_of
from millstream.backends.spark.wire import (
    CONTROL,
    DONE,
    LATE,
    REJECTED,
    Wire,
    record_batches,
    rows_of,
)
from millstream.kernels.consolidate import consolidate
from millstream.kernels.presence import Presence
from millstream.kernels.rounds import StepRunner
from millstream.plan.batch import Batch, concat_batches, empty_batch
from millstream.state.codec import DamagedState
from millstream.state.files import LocalFiles
from millstream.state.records import read_record, write_record

Arrivals = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Clock:
    """What the inputs have told about time."""

    mark: int | None
    ticks: dict[str, list[int]]

    @staticmethod
    def of(layout: Layout, facts: list[dict[str, Any]]) -> Clock:
        inputs = layout.plan.program.inputs
        by_input = {f["input"]: f for f in facts}
        assert len(by_input) == len(inputs), "an input has not said how far it is"
        ticks = {inputs[n].name: f["ticks"] for n, f in by_input.items()}
        largest = [f["largest"] for f in by_input.values() if f["largest"] is not None]
        if all(f["exhausted"] for f in by_input.values()):
            return Clock(max(largest, default=None), ticks)
        bounds = []
        for number, fact in by_input.items():
            if fact["exhausted"]:
                continue
            if fact["largest"] is None:
                return Clock(None, ticks)
            bounds.append(fact["largest"] - inputs[number].slack)
        return Clock(min(bounds) - 1, ticks)


@dataclass
class Bucket:
    """Mutable: the state of one bucket of one stage."""

    runner: StepRunner
    version: int = 0
    mark: int | None = None
    pending: dict[str, list[bytes]] = field(default_factory=dict)
    #: Instants of the inputs that are not known to be complete yet.
    ticks: dict[str, list[int]] = field(default_factory=dict)
    #: The rows of relations that enter here.
    presence: dict[str, Presence] = field(default_factory=dict)

    def ticks_up_to(self, mark: int) -> dict[str, Any]:
        """The instants up to a mark, which are then forgotten."""
        due = {
            name: np.array([t for t in some if t <= mark], np.int64)
            for name, some in self.ticks.items()
        }
        self.ticks = {name: [t for t in some if t > mark] for name, some in self.ticks.items()}
        return due

    def snapshot(self) -> dict[str, Any]:
        return {"version": self.version, "mark": self.mark, "pending": self.pending,
                "presence": {q: p.snapshot() for q, p in self.presence.items()},
                "ticks": self.ticks, "kernels": self.runner.snapshot()}  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        self.version, self.mark = state["version"], state["mark"]
        self.pending, self.ticks = state["pending"], state["ticks"]
        for queue, rows in state["presence"].items():
            self.presence[queue].restore(rows)
        self.runner.restore(state["kernels"])


@dataclass
class Memory:
    """Mutable: what a worker process keeps between tasks, for one job."""

    description: Description
    layout: Layout
    files: LocalFiles
    buckets: dict[tuple[int, int], Bucket] = field(default_factory=dict)


_memory: dict[str, Memory] = {}


def memory_for(description: Description) -> Memory:
    """The memory of a job; only one job is kept per process."""
    name = f"{description.checkpoint}|{description.fingerprint}"
    if name not in _memory:
        _memory.clear()
        files = LocalFiles(Path(description.checkpoint))
        _memory[name] = Memory(description, layout_of(description.program), files)
    found = _memory[name]
    found.description = description
    return found


# --- stages -----------------------------------------------------------------------------


class StageTask:
    """Mutable: one stage on the buckets of one partition, in one batch."""

    def __init__(self, memory: Memory, stage: int, version: int, partition: int) -> None:
        self.memory = memory
        self.layout = memory.layout
        self.stage = stage
        self.version = version
        self.partition = partition
        self.types = self.layout.plan.program.queue_types()
        keys = [key for _, key in self.layout.stages[stage].keys]
        # A stage that must see all rows has one bucket.
        count = 1 if () in keys else memory.description.buckets
        step = memory.description.partitions
        self.buckets = range(partition, count, step)
        self.unsound: dict[str, int] = {}

    @property
    def folder(self) -> str:
        return f"state/stage-{self.stage}"

    def name(self, version: int, partition: int | None = None, of: int | None = None) -> str:
        part = self.partition if partition is None else partition
        return f"{version:09}.{part}of{of or self.memory.description.partitions}"

    def run(self, batches: Iterator[Any]) -> Iterator[Wire]:
        facts: list[dict[str, Any]] = []
        arrivals: dict[int, Arrivals] = {b: [] for b in self.buckets}
        for batch in batches:
            for target, bucket, queue, blob in rows_of(batch):
                if target != self.stage:
                    yield target, bucket, queue, bytes(blob)
                elif queue == CONTROL:
                    facts.append(json.loads(bytes(blob)))
                else:
                    arrivals[bucket].append((queue, bytes(blob)))
        clock = Clock.of(self.layout, facts)
        released: dict[str, int] = {}
        rejected: list[Any] = []
        self.unsound = {}
        for bucket, came in arrivals.items():
            state = self._state(bucket)
            for name, made in self._advance(state, came, clock, released, rejected).items():
                yield from self._sent(name, made, bucket)
        self._write(arrivals, clock)
        done = {
            "stage": self.stage, "released": released, "faults": self._faults(),
            "unsound": self.unsound, "rejected": rejected,
        }  # fmt: skip
        yield self.layout.sink, 0, DONE, json.dumps(done).encode()

    def _faults(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for bucket in self.buckets:
            found = self.memory.buckets[self.stage, bucket].runner.faults()
            for what, count in found.items():
                total[what] = total.get(what, 0) + count
        return total

    def _advance(
        self,
        state: Bucket,
        came: Arrivals,
        clock: Clock,
        released: dict[str, int],
        rejected: list[Any],
    ) -> dict[str, Batch]:
        """From one version to the next: take in what came, let go what is known."""
        for queue, blob in came:
            state.pending.setdefault(self.layout.queues[queue], []).append(blob)
        for name, some in clock.ticks.items():
            state.ticks[name] = [*state.ticks.get(name, ()), *some]
        state.version += 1
        if clock.mark is None or (state.mark is not None and clock.mark <= state.mark):
            return {}
        state.mark = clock.mark
        inputs = {q: self._released(state, q, clock.mark) for q, _ in self._keys()}
        for name in set(inputs) & set(self.layout.plan.program.input_names):
            if name in state.presence:
                inputs[name], unsound = state.presence[name].sound(inputs[name])
                rejected += [[name, 0, r.reason, r.text] for r in rejected_changes(name, unsound)]
                self.unsound[name] = self.unsound.get(name, 0) + len(unsound)
            released[name] = released.get(name, 0) + len(inputs[name])
        return state.runner.round(inputs, clock.mark, state.ticks_up_to(clock.mark))

    def _keys(self) -> tuple[tuple[str, Any], ...]:
        return self.layout.stages[self.stage].keys

    def _released(self, state: Bucket, queue: str, mark: int) -> Batch:
        """The items of a queue up to a mark in their order; the others wait on."""
        blobs = state.pending.pop(queue, [])
        if not blobs:
            return self._empty(queue)
        type_ = self.types[queue]
        batch = in_order([decode_batch(b, type_) for b in blobs], type_)
        cut = int(np.searchsorted(batch.time, mark, side="right"))
        if cut < len(batch):
            state.pending[queue] = [encode_batch(batch.slice(cut, len(batch)))]
        return batch.slice(0, cut)

    def _empty(self, queue: str) -> Batch:
        nothing = empty_batch(self.types[queue])
        return Batch(nothing.type, nothing.time, nothing.columns, nothing.weight,
                     np.zeros(0, np.int64))  # fmt: skip

    def _sent(self, queue: str, batch: Batch, bucket: int) -> Iterator[Wire]:
        target = self.layout.target(queue)
        number = self.layout.number(queue)
        # What goes to the sink, or to a stage that does not care, stays together.
        for place, part in parts(batch, target.key, self.memory.description.buckets, bucket):
            yield target.stage, place, number, encode_batch(part)

    # --- versions ---

    def _state(self, bucket: int) -> Bucket:
        """The state of a bucket at the version that this batch starts from."""
        hot = self.memory.buckets.get((self.stage, bucket))
        if hot is None or hot.version > self.version:
            hot = self._from_snapshot(bucket)
        while hot.version < self.version:
            self._replay(hot, bucket)
        self.memory.buckets[self.stage, bucket] = hot
        return hot

    def _from_snapshot(self, bucket: int) -> Bucket:
        steps = self.layout.stages[self.stage].steps
        state = Bucket(StepRunner(self.layout.plan, steps))
        inputs = set(self.layout.plan.program.input_names)
        for queue, _ in self._keys():
            if queue in inputs and self.types[queue].is_relation:
                state.presence[queue] = Presence(self.types[queue])
        for name in reversed(self.memory.files.names(self.folder)):
            version, partition, of, kind = parsed(name)
            if kind == "snapshot" and version <= self.version and bucket % of == partition:
                stored = read_record(self.memory.files, f"{self.folder}/{name}")
                state.restore(stored[bucket])
                return state
        return state

    def _replay(self, state: Bucket, bucket: int) -> None:
        version = state.version
        for name in self.memory.files.names(self.folder):
            found, partition, of, kind = parsed(name)
            if kind == "delta" and found == version and bucket % of == partition:
                stored = read_record(self.memory.files, f"{self.folder}/{name}")
                clock = Clock(stored["mark"], stored["ticks"])
                self._advance(state, stored["buckets"][bucket], clock, {}, [])
                return
        raise DamagedState(
            f"the file {self.folder}/{self.name(version)}.delta of the checkpoint is missing"
        )

    def _write(self, arrivals: dict[int, Arrivals], clock: Clock) -> None:
        """One file for all buckets: what came; now and then also what it has led to."""
        delta = {"mark": clock.mark, "ticks": clock.ticks, "buckets": arrivals}
        write_record(self.memory.files, f"{self.folder}/{self.name(self.version)}.delta", delta)
        if (self.version + 1) % self.memory.description.snapshot_every == 0:
            states = {b: self.memory.buckets[self.stage, b].snapshot() for b in self.buckets}
            name = f"{self.folder}/{self.name(self.version + 1)}.snapshot"
            write_record(self.memory.files, name, states)


def parsed(name: str) -> tuple[int, int, int, str]:
    """Version, partition, number of partitions and kind of a state file."""
    version, place, kind = name.split(".")
    partition, _, of = place.partition("of")
    return int(version), int(partition), int(of), kind


def in_order(batches: list[Batch], type_: Any) -> Batch:
    """Items from several places, by time and rank; equal ranks are told apart by values.

    Items of one rank come from one row, whose order the place they come from has kept,
    or were set free by one mark, and then the order of values is their order.
    """
    whole = concat_batches(batches, type_)
    if not len(whole) or whole.rank is None:
        return whole
    if not _is_in_order(whole.time, whole.rank):
        has_one_rank = bool((whole.rank == whole.rank[0]).all())
        order = (
            np.argsort(whole.time, kind="stable")
            if has_one_rank
            else np.lexsort((whole.rank, whole.time))
        )
        whole = whole.take(order)
    return _tied_by_values(whole) if len(batches) > 1 and not type_.is_relation else whole


def _is_in_order(time: Any, rank: Any) -> bool:
    later = time[1:] > time[:-1]
    return bool((later | ((time[1:] == time[:-1]) & (rank[1:] >= rank[:-1]))).all())


_MARK = 1 << 62


def _tied_by_values(batch: Batch) -> Batch:
    """What one mark has set free, in the order of values within each instant."""
    assert batch.rank is not None
    is_free = batch.rank >= _MARK
    if not is_free.any():
        return batch
    if is_free.all():
        return _in_order_of_values(batch)
    free, rest = batch.take(np.flatnonzero(is_free)), batch.take(np.flatnonzero(~is_free))
    both = concat_batches([rest, _in_order_of_values(free)], batch.type)
    assert both.rank is not None
    return both.take(np.lexsort((both.rank, both.time)))


def _in_order_of_values(batch: Batch) -> Batch:
    """As insertions into a relation, the rows of an instant are put into canonical order."""
    assert batch.rank is not None
    insertions = Batch(batch.type, batch.time, batch.columns, np.ones(len(batch), np.int64))
    ordered = consolidate(insertions)
    return Batch(batch.type, ordered.time, ordered.columns, None, batch.rank)


def run_stage(description: Description, stage: int, version: int) -> Any:
    """What Spark's `mapInArrow` calls for a stage."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = StageTask(memory_for(description), stage, version, context.partitionId())
        return record_batches(task.run(batches))

    return run


# --- the sink ---------------------------------------------------------------------------


def run_sink(description: Description, version: int) -> Any:
    """What Spark calls at the end of a batch: one task that writes all its results.

    Rows and the number of the batch are one file, so that they appear together; a batch
    that is run again writes the same file again.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        memory = memory_for(description)
        write_record(memory.files, f"outputs/{version:09}", _results(memory.layout, batches))
        return iter(())

    return run


def _results(layout: Layout, batches: Iterator[Any]) -> dict[str, Any]:
    types = layout.plan.program.queue_types()
    inputs = layout.plan.program.inputs
    outputs: dict[str, list[Batch]] = {q: [] for q in layout.plan.program.outputs}
    late: dict[str, list[bytes]] = {}
    rejected: list[Any] = []
    done: list[Any] = []
    facts: list[dict[str, Any]] = []
    for batch in batches:
        for _, _, queue, blob in rows_of(batch):
            if queue == CONTROL:
                facts.append(json.loads(bytes(blob)))
            elif queue == REJECTED:
                rejected += json.loads(bytes(blob))
            elif queue == DONE:
                done.append(json.loads(bytes(blob)))
            elif queue <= LATE:
                late.setdefault(inputs[LATE - queue].name, []).append(bytes(blob))
            else:
                name = layout.queues[queue]
                outputs[name].append(decode_batch(bytes(blob), types[name]))
    return {
        "outputs": {
            q: encode_batch(replace(_finished(b, types[q]), rank=None)) for q, b in outputs.items()
        },
        "late": late, "rejected": rejected, "done": done,
        "mark": Clock.of(layout, facts).mark,
    }  # fmt: skip


def _finished(batches: list[Batch], type_: Any) -> Batch:
    if type_.is_relation:
        whole = concat_batches(batches, type_)
        order = np.argsort(whole.time, kind="stable")
        return consolidate(whole.take(order)) if len(whole) else whole
    return in_order(batches, type_)
