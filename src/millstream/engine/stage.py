"""A stage on one group of its buckets, in one batch: what a task does.

The state after a batch follows from the state before and from what came in, because
kernels are deterministic. So a delta is a list of what came in, and a worker that has
missed versions runs them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from millstream.calculus.ending import OVER
from millstream.calculus.tables import END_OF_TIME
from millstream.calculus.types import INT64_MIN
from millstream.engine.aside import Aside
from millstream.engine.buckets import EVERY, parts
from millstream.engine.clock import Clock, SeenOfInput, segment_of
from millstream.engine.job import rejected_changes
from millstream.engine.messages import Message, Sent
from millstream.engine.parcels import LATE, Packer, Parcel, in_turns, opened, parcels_in
from millstream.engine.points import reached
from millstream.engine.state import Bucket, WorkerMemory
from millstream.engine.storage.codec import DamagedState, encode
from millstream.engine.storage.records import missing, read_record
from millstream.kernels.scripts.combining import combined
from millstream.plan.batch import Batch
from millstream.plan.figures import StepFigures, bytes_of, name_of, together
from millstream.plan.lateness import happened, moved

#: What came to a bucket: a parcel, and the time before which its rows are late.
Arrival = tuple[Parcel, int | None]


@dataclass(frozen=True)
class Turn:
    """One batch: the version it starts from and what is known before it."""

    version: int
    known: tuple[SeenOfInput, ...]
    is_kept: bool  # whether the state after it is written whole


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
    """Mutable: one task of a stage, on one group of its buckets."""

    def __init__(self, memory: WorkerMemory, stage: int, turn: Turn, group: int) -> None:
        self.memory = memory
        self.layout = memory.layout
        self.stage = stage
        self.turn = turn
        self.group = group
        self.names = self.layout.plan.program.input_names
        self.done = Done()
        #: How much each step keeps, where the state is written as a whole.
        self.sizes: dict[str, int] = {}
        name = f"{turn.version:09}.{stage}-{group}"
        self.later = Packer(memory.files, f"exchange/{name}")
        self.results = Packer(memory.files, f"outputs/{name}")

    @property
    def folder(self) -> str:
        return f"{self.memory.description.state}/stage-{self.stage}"

    def run(self, messages: Sequence[Message]) -> list[Sent]:
        """From all that was sent to this stage to what it has to say."""
        with self.later, self.results:
            return self._run(messages)

    def _run(self, messages: Sequence[Message]) -> list[Sent]:
        clock = self._clock(messages)
        for name, furthest in clock.behind.items():
            self.done.further_behind(name, furthest)
        arrivals = self._arrivals(messages, clock)
        buckets = list(self.memory.of_group(self.stage, self.group))
        for bucket in buckets:
            state = self._state(bucket)
            for queues in self._advance(state, arrivals.get(bucket, []), clock):
                for name, made in queues.items():
                    self._send(name, made, bucket)
        reached("mid-task", self.turn.version)
        # To make a file durable is to wait: the delta is written beside the results.
        writing = Aside()
        delta = self._write_delta({b: arrivals.get(b, []) for b in buckets}, clock, writing)
        snapshot = self._write_snapshot(buckets) if self.turn.is_kept else None
        sent = self._sent(clock, delta, snapshot)
        writing.wait()
        reached("after-state", self.turn.version)
        return sent

    def _clock(self, messages: Sequence[Message]) -> Clock:
        segments = [s for m in messages for s in m.get("segments", ())]
        silent = {n: flag for m in messages for n, flag in m.get("silent", {}).items()}
        inputs = self.layout.plan.program.inputs
        return Clock.of(inputs, self.turn.known, [segment_of(s) for s in segments], silent)

    def _arrivals(self, messages: Sequence[Message], clock: Clock) -> dict[int, list[Arrival]]:
        """What came to each bucket, in an order that does not depend on who was first."""
        arrivals: dict[int, list[Arrival]] = {}
        buckets = list(self.memory.of_group(self.stage, self.group))

        def add(parcel: Parcel, bound: int | None) -> None:
            for bucket in buckets if parcel.bucket == EVERY else (parcel.bucket,):
                arrivals.setdefault(bucket, []).append((parcel, bound))

        for message in sorted(messages, key=lambda m: m["from"]):
            for parcel in parcels_in(message.get("parcels", ())):
                add(parcel, None)
            for segment in message.get("segments", ()):
                bound = clock.bounds.get((segment["input"], segment["number"]))
                input_ = self.layout.plan.program.inputs[segment["input"]]
                # What is early and came before the largest time so far is moved there.
                moves = input_.slack - input_.waits
                for parcel in parcels_in(segment["parcels"]):
                    is_needed = bound is not None and parcel.oldest < bound + moves
                    add(parcel, bound if is_needed else None)
        return arrivals

    # --- one bucket ---

    def _advance(
        self, state: Bucket, came: list[Arrival], clock: Clock
    ) -> Iterator[dict[str, Batch]]:
        """From one version to the next: take in what came, let go what is known."""
        for name, some in clock.ticks.items():
            before = state.ticks.get(name)
            state.ticks[name] = some if before is None else np.concatenate([before, some])
        state.version += 1
        known = INT64_MIN - 1 if clock.mark is None else clock.mark
        for numbers, until in in_turns([parcel for parcel, _ in came], known):
            for number in numbers:
                self._take_in(state, *came[number])
            if clock.mark is not None and (state.mark is None or until > state.mark):
                state.mark = until
                yield from self._released(state, until)
        if clock.is_over:
            # Time itself stays where it is: later rows may be taken in by another run.
            yield from state.runner.round(self._waiting(state, END_OF_TIME), OVER, {})

    def _released(self, state: Bucket, mark: int) -> Iterator[dict[str, Batch]]:
        """What comes of everything up to a mark."""
        inputs = self._waiting(state, mark)
        for name in inputs.keys() & set(self.names):
            if name in state.presence:
                inputs[name], unsound = state.presence[name].sound(inputs[name])
                if not self._speaks(state.number, name):
                    continue
                rejected = rejected_changes(name, unsound)
                self.done.rejected += [[name, 0, r.reason, r.text] for r in rejected]
                self.done.count(self.done.unsound, name, len(unsound))
            if self._speaks(state.number, name):
                self.done.count(self.done.released, name, len(inputs[name]))
        yield from state.runner.round(inputs, mark, state.ticks_up_to(mark))

    def _waiting(self, state: Bucket, mark: int) -> dict[str, Batch]:
        return {q: w.up_to(mark) for q, w in state.waiting.items()}

    def _take_in(self, state: Bucket, parcel: Parcel, bound: int | None) -> None:
        name = self.layout.queues[parcel.queue]
        batch = opened(self.memory.files, parcel, self.memory.types[name])
        if bound is not None:
            input_ = self.layout.plan.program.inputs[self.names.index(name)]
            times = happened(batch, input_)
            is_late = times < bound
            late = replace(batch, time=times).take(np.flatnonzero(is_late))
            batch = batch.take(np.flatnonzero(~is_late))
            batch = moved(batch, bound + input_.slack) if input_.is_early else batch
            late = late if self._speaks(state.number, name) else late.slice(0, 0)
            self.done.count(self.done.late, name, len(late))
            if len(late):
                self.done.further_behind(name, bound + input_.slack - int(late.time.min()))
            self.results.add(0, LATE - self.names.index(name), late)
        state.waiting[name].add(batch)

    def _speaks(self, bucket: int, queue: str) -> bool:
        """Whether a bucket is to tell of a queue: of copies only the first one does."""
        return bucket == 0 or queue not in self.layout.everywhere

    def _send(self, queue: str, batch: Batch, bucket: int) -> None:
        if not self._speaks(bucket, queue):
            return
        target = self.layout.target(queue)
        if target.stage == self.layout.driver:
            self.results.add(0, self.layout.outputs.index(queue), batch)
            return
        number = self.layout.number(queue)
        table = self.layout.table_of(queue)
        if table is not None and not self.layout.is_together:
            batch = combined(table, batch)
        # What goes to a stage that does not care stays where it is.
        for place, part in parts(batch, target.key, self.memory.description.buckets, bucket):
            self.later.add(place, number, part)

    def _sent(self, clock: Clock, delta: int, snapshot: int | None) -> list[Sent]:
        """To later stages what they need, to the driver the results and what was done."""
        origin = [1, self.stage, self.group]
        sent: list[Sent] = []
        parcels = self.later.seal()
        for stage in range(self.stage + 1, self.layout.driver):
            mine = [p.written() for p in parcels
                    if self.layout.targets[self.layout.queues[p.queue]].stage == stage]  # fmt: skip
            if mine:
                sent.append((stage, {"from": origin, "parcels": mine}))
        results = self.results.seal()
        done = {
            "from": origin, "results": [p.written() for p in results],
            "released": self.done.released, "late": self.done.late, "behind": self.done.behind,
            "unsound": self.done.unsound, "rejected": self.done.rejected,
            "faults": self._faults(), "mark": clock.mark,
            "known": [[k.largest, k.is_silent] for k in clock.known],
            "delta": delta, "snapshot": snapshot,
            "steps": {name: one.written() for name, one in self._figures().items()},
        }  # fmt: skip
        return [*sent, (self.layout.driver, done)]

    def _faults(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for bucket in self.memory.of_group(self.stage, self.group):
            runner = self.memory.buckets[self.stage, bucket].runner
            counted = [bucket == 0 or not self.layout.is_everywhere(s) for s in runner.steps]
            for what, count in runner.faults(counted).items():
                total[what] = total.get(what, 0) + count
        return total

    def _figures(self) -> dict[str, StepFigures]:
        """What the steps of this group of buckets have done in this batch."""
        figures: list[dict[str, StepFigures]] = []
        for bucket in self.memory.of_group(self.stage, self.group):
            runner = self.memory.buckets[self.stage, bucket].runner
            counted = [bucket == 0 or not self.layout.is_everywhere(s) for s in runner.steps]
            figures.append(runner.taken_figures(counted))
        kept = {name: StepFigures(state=size) for name, size in self.sizes.items()}
        return together([*figures, kept])

    # --- versions ---

    def _state(self, bucket: int) -> Bucket:
        """The state of a bucket at the version that this batch starts from."""
        version = self.turn.version
        hot = self.memory.buckets.pop((self.stage, bucket), None)
        if hot is None or hot.version > version:
            hot = self._from_snapshot(bucket)
        while hot.version < version:
            self._replay(hot, bucket)
            hot.runner.taken_figures()  # it was told before
        self.memory.buckets[self.stage, bucket] = hot
        return hot

    def _from_snapshot(self, bucket: int) -> Bucket:
        state = self.memory.new_bucket(self.stage, bucket)
        for name in reversed(self.memory.files.names(self.folder)):
            version, partition, of, kind = parsed(name)
            if kind == "snapshot" and version <= self.turn.version and bucket % of == partition:
                stored = read_record(self.memory.files, f"{self.folder}/{name}")
                state.restore(stored[bucket])
                # One that was made when the work was laid out anew has counted its own batches.
                state.version = version
                return state
        return state

    def _replay(self, state: Bucket, bucket: int) -> None:
        version = state.version
        for name in self.memory.files.names(self.folder):
            written, partition, of, kind = parsed(name)
            if kind == "delta" and written == version and bucket % of == partition:
                stored = read_record(self.memory.files, f"{self.folder}/{name}")
                came = [(Parcel(*parcel), bound) for parcel, bound in stored["buckets"][bucket]]
                again = StageTask(self.memory, self.stage, self.turn, self.group)
                is_over = stored.get("over", False)
                clock = Clock(stored["mark"], stored["ticks"], is_over=is_over)
                for _ in again._advance(state, came, clock):
                    pass  # it has been sent before
                return
        raise DamagedState(missing(f"{self.folder}/{version:09}.*.delta"))

    def _name(self, version: int, kind: str) -> str:
        of = self.memory.description.partitions
        return f"{self.folder}/{version:09}.{self.group}of{of}.{kind}"

    def _write_delta(self, arrivals: dict[int, list[Arrival]], clock: Clock, writing: Aside) -> int:
        """One file for all buckets: what came. Answers the bytes behind it."""
        buckets = {
            bucket: [[parcel.written(), bound] for parcel, bound in came]
            for bucket, came in arrivals.items()
        }
        data = encode({"mark": clock.mark, "ticks": clock.ticks, "over": clock.is_over,
                       "buckets": buckets})  # fmt: skip
        name = self._name(self.turn.version, "delta")
        writing.start(partial(self.memory.files.note, name, data))
        apart = (p.size for came in arrivals.values() for p, _ in came)
        return len(data) + sum(apart)

    def _write_snapshot(self, buckets: list[int]) -> int:
        states = {b: self.memory.buckets[self.stage, b].snapshot() for b in buckets}
        for bucket, state in states.items():
            steps = self.memory.buckets[self.stage, bucket].runner.steps
            for step, kept in zip(steps, state["kernels"], strict=True):
                name = name_of(step)
                self.sizes[name] = self.sizes.get(name, 0) + bytes_of(kept)
        data = encode(states)
        self.memory.files.write(self._name(self.turn.version + 1, "snapshot"), data)
        return len(data)


def parsed(name: str) -> tuple[int, int, int, str]:
    """Version, partition, number of partitions and kind of a state file."""
    version, place, kind = name.split(".")
    partition, _, of = place.partition("of")
    return int(version), int(partition), int(of), kind
