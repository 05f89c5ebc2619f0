"""Our own source: all inputs of a job as one Spark streaming data source.

A batch is planned on the driver: which files of which input, written to the checkpoint
before Spark hears of it, so that a batch is the same however often it is run. A task per
input reads its files, tells late rows from others by the log before them, cuts the rest
by bucket and sends it to where it is needed, together with how far time is known. What it
must know of the log before is a small file of its own, one version per batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

from millstream.backends.spark.blobs import encode_batch
from millstream.backends.spark.buckets import parts
from millstream.backends.spark.wire import (
    DONE,
    LATE,
    REJECTED,
    SCHEMA,
    Wire,
    control,
    record_batches,
)
from millstream.calculus.graph import Input
from millstream.calculus.types import TYPES_BY_NAME, Field, QueueType, Schema
from millstream.connectors.chunks import Reader
from millstream.connectors.generate import GeneratorReader
from millstream.connectors.location import Format, Location, files_now, parse_location
from millstream.connectors.read import file_opener
from millstream.connectors.settings import settings_of
from millstream.plan.batch import Batch
from millstream.plan.lateness import without_late
from millstream.plan.ranks import first_rank
from millstream.state.codec import DamagedState
from millstream.state.files import LocalFiles
from millstream.state.records import read_record, write_record

NAME = "millstream"


@dataclass(frozen=True)
class InputSpec:
    """An input as a task sees it: plain data, because options of a source are texts."""

    input: Input
    location: Location
    declaration: int
    queue: int
    target: int
    key: tuple[str, ...] | None


@dataclass(frozen=True)
class SourceSpec:
    """All inputs of a job and where their rows go."""

    inputs: tuple[InputSpec, ...]
    checkpoint: Path
    partitions: int
    buckets: int
    stages: int
    batch_bytes: int
    has_ticks: bool
    is_following: bool


def spec_to_json(spec: SourceSpec) -> str:
    def one(i: InputSpec) -> dict[str, Any]:
        settings = i.location.generator
        return {
            "name": i.input.name, "is_relation": i.input.type.is_relation,
            "columns": [[f.name, str(f.type)] for f in i.input.type.schema],
            "time": i.input.time, "slack": i.input.slack, "once": i.input.is_read_once,
            "location": i.location.text, "base": str(i.location.base.resolve()),
            "generator": None if settings is None else {
                "rows": settings.rows, "seed": settings.seed, "start": settings.start,
                "interval": settings.interval, "columns": dict(settings.columns),
            },
            "declaration": i.declaration, "queue": i.queue, "target": i.target, "key": i.key,
        }  # fmt: skip

    return json.dumps(
        {
            "inputs": [one(i) for i in spec.inputs], "checkpoint": str(spec.checkpoint),
            "partitions": spec.partitions, "buckets": spec.buckets, "stages": spec.stages,
            "batch_bytes": spec.batch_bytes, "has_ticks": spec.has_ticks,
            "is_following": spec.is_following,
        }
    )  # fmt: skip


def spec_from_json(text: str) -> SourceSpec:
    given = json.loads(text)
    return SourceSpec(
        tuple(_input_spec(i) for i in given["inputs"]), Path(given["checkpoint"]),
        given["partitions"], given["buckets"], given["stages"], given["batch_bytes"],
        given["has_ticks"], given["is_following"],
    )  # fmt: skip


def _input_spec(given: dict[str, Any]) -> InputSpec:
    # A dimension is for the checker; a source reads plain numbers.
    fields = tuple(Field(n, TYPES_BY_NAME[t.partition("<")[0]]) for n, t in given["columns"])
    type_ = QueueType(Schema(fields), given["is_relation"])
    location = parse_location(given["location"], Path(given["base"]))
    if given["generator"] is not None:
        options = given["generator"]
        micros = {**options, "interval": f"{options['interval']} us"}
        location = replace(location, generator=settings_of(micros))
    key = None if given["key"] is None else tuple(given["key"])
    return InputSpec(
        Input(given["name"], type_, given["time"], given["slack"], None, given["once"]), location,
        given["declaration"], given["queue"], given["target"], key,
    )  # fmt: skip


class MillstreamSource(DataSource):
    """Registered with Spark under the name `millstream`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's word
        return BatchPlanner(self.options["spec"])


class Task(InputPartition):
    """The part of a batch that one input brings."""

    def __init__(self, spec: str, seq: int, input_: int, plan: dict[str, Any]) -> None:
        self.spec = spec
        self.seq = seq
        self.input = input_
        self.plan = plan


class BatchPlanner(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Decides on the driver what a batch is, and on a worker reads its part."""

    def __init__(self, spec: str) -> None:
        self.text = spec
        self.spec = spec_from_json(spec)
        self.files = LocalFiles(self.spec.checkpoint)
        self.snapshot: dict[str, list[str]] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"seq": 0}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """A finite run takes what is there when it starts."""
        self.snapshot = self._now()

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        seq = int(start["seq"])
        if f"{seq:09}.plan" in self.files.names("sources"):
            return {"seq": seq + 1}
        if f"{seq:09}" in self.files.names("outputs"):
            # Spark has forgotten what it has done; a new plan would do it differently.
            raise DamagedState(f"the file sources/{seq:09}.plan of the checkpoint is missing")
        plan = plan_batch(self.spec, self.files, seq, self.snapshot or self._now())
        if plan is None:
            return {"seq": seq}
        write_record(self.files, f"sources/{seq:09}.plan", plan)
        return {"seq": seq + 1}

    def _now(self) -> dict[str, list[str]]:
        return {
            i.input.name: [_name(i, p) for p in files_now(i.location)] if i.location.path else []
            for i in self.spec.inputs
        }

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Task]:
        tasks = []
        for seq in range(int(start["seq"]), int(end["seq"])):
            plan = read_record(self.files, f"sources/{seq:09}.plan")
            tasks += [Task(self.text, seq, n, plan) for n in range(len(self.spec.inputs))]
        return tasks

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Task)
        spec = spec_from_json(partition.spec)
        return record_batches(
            InputTask(spec, partition.input, partition.seq, partition.plan).rows()
        )


#: After so many files a plan refers to a new list of all files taken before.
FILES_PER_LIST = 256


def plan_batch(
    spec: SourceSpec, files: LocalFiles, seq: int, there: dict[str, list[str]]
) -> dict[str, Any] | None:
    """What the next batch takes from each input; None if there is nothing to do.

    A plan says which files have been taken as a list written some batches ago and those
    since then, so that plans stay small however many files there have been.
    """
    before = read_record(files, f"sources/{seq - 1:09}.plan") if seq else None
    base: int | None = before["base"] if before else None
    since: dict[str, list[str]] = dict(before["since"]) if before else {}
    old = read_record(files, f"sources/{base:09}.taken") if base is not None else {}
    plan: dict[str, Any] = {"take": {}, "since": {}, "exhausted": {}, "base": base, "floor": None}
    for one in spec.inputs:
        name = one.input.name
        done = {*old.get(name, ()), *since.get(name, ())}
        left = _left(one, there[name], done)
        take = (
            left if one.location.path is None else _some(left, one.location.base, spec.batch_bytes)
        )
        plan["take"][name] = take
        plan["since"][name] = [*since.get(name, ()), *take]
        ends = not spec.is_following or one.input.is_read_once
        plan["exhausted"][name] = ends and len(take) == len(left)
    plan["is_last"] = all(plan["exhausted"].values())
    has_new = any(plan["take"].values())
    if not has_new and (spec.is_following or (before is not None and before["is_last"])):
        return None
    if before is not None and before["is_last"]:
        plan["floor"] = read_record(files, f"outputs/{seq - 1:09}")["mark"]
    if sum(map(len, plan["since"].values())) > FILES_PER_LIST:
        everything = {name: [*old.get(name, ()), *some] for name, some in plan["since"].items()}
        write_record(files, f"sources/{seq:09}.taken", everything)
        plan["base"], plan["since"] = seq, {}
    return plan


def _name(one: InputSpec, path: Path) -> str:
    """A file as the checkpoint knows it: a job may be moved together with its input."""
    base = one.location.base
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path)


def _left(one: InputSpec, there: list[str], done: set[str]) -> list[str]:
    if one.location.path is None:
        return [] if done else ["generator"]
    return [p for p in there if p not in done]


def _some(paths: list[str], base: Path, most: int) -> list[str]:
    """The first files up to some size, but at least one."""
    chosen: list[str] = []
    size = 0
    for path in paths:
        size += (base / path).stat().st_size
        if chosen and size > most:
            break
        chosen.append(path)
    return chosen


class InputTask:
    """Mutable: reads the files of one input in one batch."""

    def __init__(self, spec: SourceSpec, number: int, seq: int, plan: dict[str, Any]) -> None:
        self.spec = spec
        self.one = spec.inputs[number]
        self.number = number
        self.seq = seq
        self.plan = plan
        self.files = LocalFiles(spec.checkpoint)
        name = self.one.input.name
        self.log: dict[str, Any] = {"largest": None, "position": 0}
        if seq:
            self.log = read_record(self.files, f"sources/{seq:09}.{name}")
        self.counts = {"read": 0, "late": 0, "rejected": 0, "accepted": 0}
        self.ticks: list[Any] = []

    def rows(self) -> Iterator[Wire]:
        turn = self.seq
        for path in self.plan["take"][self.one.input.name]:
            reader = self._open(path)
            try:
                for chunk in reader.chunks():
                    self.counts["read"] += chunk.read
                    if chunk.rejected:
                        self.counts["rejected"] += len(chunk.rejected)
                        rows = [[r.source, r.position, r.reason, r.text] for r in chunk.rejected]
                        yield self.spec.stages, 0, REJECTED, json.dumps(rows).encode()
                    yield from self._sent(chunk.batch, turn)
                    turn += 1
            finally:
                reader.close()
        write_record(self.files, f"sources/{self.seq + 1:09}.{self.one.input.name}", self.log)
        yield from self._told()

    def _open(self, path: str) -> Reader:
        location = self.one.location
        if location.format is Format.GENERATOR:
            assert location.generator is not None
            return GeneratorReader(location.generator, self.one.input, 262_144)
        return file_opener(location, self.one.input)(location.base / path)

    def _sent(self, batch: Batch, turn: int) -> Iterator[Wire]:
        start = first_rank(self.one.declaration) + self.log["position"]
        ranks = np.arange(start, start + len(batch))
        self.log["position"] += len(batch)
        batch = replace(batch, rank=ranks)
        accepted, late, largest = without_late(batch, self.log["largest"], self.one.input.slack)
        floor = self.plan["floor"]
        if floor is not None and len(accepted) and int(accepted.time.min()) <= floor:
            # Time has ended here before; what comes now for then is late.
            is_old = accepted.time <= floor
            old = accepted.take(np.flatnonzero(is_old))
            accepted = accepted.take(np.flatnonzero(~is_old))
            yield from self._late(old)
        self.log["largest"] = largest
        yield from self._late(late)
        self.counts["accepted"] += len(accepted)
        if self.spec.has_ticks and len(accepted) and not self.one.input.is_read_once:
            self.ticks.append(np.unique(accepted.time))
        for bucket, part in parts(accepted, self.one.key, self.spec.buckets, turn):
            yield self.one.target, bucket, self.one.queue, encode_batch(part)

    def _late(self, late: Batch) -> Iterator[Wire]:
        if len(late):
            self.counts["late"] += len(late)
            yield self.spec.stages, 0, LATE - self.number, encode_batch(late)

    def _told(self) -> Iterator[Wire]:
        """How far time is known, to every partition of every stage."""
        ticks = np.unique(np.concatenate(self.ticks)).tolist() if self.ticks else []
        facts = {
            "input": self.number, "largest": self.log["largest"],
            "exhausted": self.plan["exhausted"][self.one.input.name], "ticks": ticks,
        }  # fmt: skip
        for stage in range(self.spec.stages + 1):
            for partition in range(self.spec.partitions):
                yield control(stage, partition, facts)
        done = {"input": self.one.input.name, **self.counts}
        yield self.spec.stages, 0, DONE, json.dumps(done).encode()
