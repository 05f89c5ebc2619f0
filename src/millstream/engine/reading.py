"""Reading a share of a batch: late rows told from others, the rest cut by bucket and sent.

With them goes how far time is known, to every stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.connectors.chunks import Chunk
from millstream.connectors.pieces import Piece, open_piece
from millstream.engine.ahead import Reading, told_of
from millstream.engine.buckets import parts
from millstream.engine.clock import NO_INSTANTS, told_instants
from millstream.engine.messages import Message, Sent
from millstream.engine.parcels import LATE, Parcel, packed
from millstream.engine.planning import ReadingTask, file_of
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.storage.files import Files
from millstream.errors import MillstreamError
from millstream.plan.batch import Array, Batch, distinct_times
from millstream.plan.lateness import accepted_of, furthest_behind, happened
from millstream.plan.ranks import first_rank


class SegmentWriter:
    """Mutable: takes the rows of a segment of an input in and sends them on."""

    def __init__(
        self,
        spec: SourceSpec,
        input_spec: InputSpec,
        number: int,
        largest: int | None,
        floor: int | None,
        reading: Reading | None = None,
    ) -> None:
        self.spec = spec
        #: What is done with the rows here, if something is.
        self.reading = reading
        self.one = input_spec
        self.number = number
        self.largest = largest
        self.own_largest: int | None = None
        self.floor = floor
        #: What is to be sent: a bucket, the number of a queue, rows.
        self.accepted: list[tuple[int, int, Batch]] = []
        self.late: list[Batch] = []
        self.oldest_late: int | None = None
        #: Whether a stage looks at its instants; what was always there makes none.
        is_looked_at = any(input_spec.declaration in some for some in spec.instants)
        self.is_ticking = is_looked_at and not input_spec.input.is_read_once
        self.ticks: list[Array] = []
        self.counts = {"read": 0, "late": 0, "rejected": 0, "accepted": 0, "behind": 0}
        self.rejected: list[list[Any]] = []

    def take(self, chunk: Chunk, position: int, turn: int) -> None:
        """Rows from a position of the log on."""
        self.counts["read"] += chunk.read
        self.counts["rejected"] += len(chunk.rejected)
        self.rejected += [[r.source, r.position, r.reason, r.text] for r in chunk.rejected]
        batch = chunk.batch
        if not len(batch):
            return
        start = first_rank(self.one.declaration) + position
        batch = replace(batch, rank=np.arange(start, start + len(batch)))
        largest = int(batch.time.max())
        self.own_largest = largest if self.own_largest is None else max(self.own_largest, largest)
        before = self.largest
        accepted, late, self.largest = accepted_of(batch, before, self.one.input)
        if len(late):
            first = int(batch.time[0]) if before is None else before
            self.counts["behind"] = max(self.counts["behind"], furthest_behind(batch.time, first))
            oldest = int(late.time.min())
            known = self.oldest_late
            self.oldest_late = oldest if known is None else min(known, oldest)
        if self.floor is not None and len(accepted) and int(accepted.time.min()) <= self.floor:
            # Time has passed here already; what comes now for then is late.
            is_old = accepted.time <= self.floor
            old = accepted.take(np.flatnonzero(is_old))
            self._add_late(replace(old, time=happened(old, self.one.input)))
            accepted = accepted.take(np.flatnonzero(~is_old))
        self._add_late(late)
        self.counts["accepted"] += len(accepted)
        if self.is_ticking and len(accepted):
            self.ticks.append(distinct_times(accepted.time))
        if self.reading is not None and len(accepted):
            self.reading.take(accepted)
            return
        for bucket, part in parts(accepted, self.one.key, self.spec.buckets, turn):
            self.accepted.append((bucket, self.one.queue, part))

    def refuse(self, path: str, line: int, reason: str) -> None:
        """A file, or what is left of it, counts as one row that cannot be read."""
        self.counts["read"] += 1
        self.counts["rejected"] += 1
        file = file_of(self.spec, self.one, path)
        name = path if file is None else self.one.location.name_of(file)
        self.rejected.append([name, line, reason, ""])

    def _add_late(self, late: Batch) -> None:
        if len(late):
            self.counts["late"] += len(late)
            self.late.append(late)

    def told(self, parcels: list[Parcel]) -> dict[str, Any]:
        ticks = distinct_times(np.concatenate([NO_INSTANTS, *self.ticks]))
        return {
            "input": self.one.declaration, "number": self.number, "largest": self.own_largest,
            "ticks": told_instants(ticks), "oldest_late": self.oldest_late,
            "parcels": [p.written() for p in parcels],
        }  # fmt: skip


def sent(
    spec: SourceSpec,
    files: Files,
    segments: Sequence[SegmentWriter],
    silent: dict[int, bool],
    name: str,
    readings: Sequence[Reading] = (),
    turn: int = 0,
    **more: Any,
) -> list[Sent]:
    """What a reading task says: to every stage how far time is, and its rows to their stage."""
    origin = [0, name]
    made = (one for reading in readings for one in reading.sendable(spec.buckets, turn))
    parcels = packed(files, f"exchange/{name}", made)
    stages = {n: stage for reading in readings for n, stage in reading.stages.items()}
    late: list[tuple[int, int, Batch]] = []
    messages: list[Sent] = []
    records: list[dict[str, Any]] = []
    for n, segment in enumerate(segments):
        records.append(segment.told(packed(files, f"exchange/{name}-{n}", segment.accepted)))
        late += [(0, LATE - segment.one.declaration, batch) for batch in segment.late]
    for stage in range(spec.stages):
        mine = [
            _for_stage(spec, stage, segment.one, record)
            for segment, record in zip(segments, records, strict=True)
        ]
        message: Message = {"from": origin, "segments": mine, "silent": silent}
        if readings:
            message["parcels"] = [p.written() for p in parcels if stages[p.queue] == stage]
        messages.append((stage, message))
    done = {
        "from": origin,
        "results": [p.written() for p in packed(files, f"outputs/{name}", late)],
        "inputs": [
            {"input": s.one.name, "rejected_rows": s.rejected, **s.counts} for s in segments
        ],
        **told_of(readings),
        **more,
    }
    return [*messages, (spec.stages, done)]


def _for_stage(
    spec: SourceSpec, stage: int, of: InputSpec, record: dict[str, Any]
) -> dict[str, Any]:
    """What a stage is told of a segment: all of them how far time is."""
    unused: dict[str, Any] = {} if of.target == stage else {"parcels": []}
    if of.declaration not in spec.instants[stage]:
        unused["ticks"] = told_instants(NO_INSTANTS)
    return record | unused


class ShareTask:
    """Mutable: reads a share of a batch."""

    def __init__(
        self,
        spec: SourceSpec,
        files: Files,
        task: ReadingTask,
        readings: Mapping[str, Reading],
    ) -> None:
        self.spec = spec
        self.readings = readings
        self.files = files
        self.task = task

    def run(self) -> list[Sent]:
        for reading in self.readings.values():
            reading.begin()
        segments = [self._segment(*part) for part in self.task.share]
        segments += [self._refused(one) for one in self.spec.inputs if self._refusals(one)]
        silent = {one.declaration: self.task.silent[one.name] for one in self.spec.inputs}
        name = f"{self.task.seq:09}.in-{self.task.number}"
        readings = list(self.readings.values())
        turn = self.task.seq + self.task.number
        return sent(self.spec, self.files, segments, silent, name, readings, turn,
                    seq=self.task.seq)  # fmt: skip

    def _segment(self, number: int, segment: int, pieces: list[Any]) -> SegmentWriter:
        input_spec = self.spec.inputs[number]
        writer = self._writer(input_spec, segment)
        for path, first, last, line, next_line, size, start in pieces:
            try:
                self._read(writer, path, Piece(first, last, line, next_line, size), start)
            except MillstreamError as fault:
                # Nothing that comes may stop a run that follows.
                if not self.spec.is_following:
                    raise
                writer.refuse(path, line, fault.faults[0].message)
        return writer

    def _writer(self, input_spec: InputSpec, segment: int) -> SegmentWriter:
        largest = self.task.largest.get(input_spec.name)
        reading = self.readings.get(input_spec.name)
        return SegmentWriter(self.spec, input_spec, segment, largest, self.task.floor, reading)

    def _read(self, writer: SegmentWriter, path: str, piece: Piece, position: int) -> None:
        input_spec = writer.one
        file = file_of(self.spec, input_spec, path)
        location = input_spec.location if file is None else input_spec.location.of_file(file)
        opened = open_piece(location, input_spec.input, file, piece, number=position + 1)
        task = self.task
        with closing(opened) as reader:
            for turn, chunk in enumerate(reader.chunks()):
                # Tasks take turns, so that their rows go to different places whatever the size
                # of the chunks that they come in.
                writer.take(chunk, position, task.seq + task.number + turn * task.count)
                position += chunk.read

    def _refusals(self, input_spec: InputSpec) -> list[Any]:
        return self.task.refused.get(input_spec.name, [])

    def _refused(self, input_spec: InputSpec) -> SegmentWriter:
        """Files that could not even be planned, as a segment without rows before all others."""
        writer = self._writer(input_spec, -1)
        for path, line, reason in self._refusals(input_spec):
            writer.refuse(path, line, reason)
        return writer
