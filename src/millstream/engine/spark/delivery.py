"""Handing the results of batches over to the sinks, each batch once and in order.

A sink that knows which batches it has is given only those that it lacks. One that does
not (a single file, memory) is given everything from the first batch on, in every run, so
the checkpoint keeps all results for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.calculus.types import QueueType
from millstream.connectors.chunks import Rejected
from millstream.connectors.parts import PartsWriter
from millstream.engine.job import InputCounts, Job, Report
from millstream.engine.spark.layout import Layout
from millstream.engine.spark.manifest import FOLDER, Manifest, read_manifest
from millstream.engine.spark.order import finished
from millstream.engine.spark.parcels import LATE, opened, parcels_in
from millstream.engine.spark.points import reached
from millstream.engine.storage.files import LocalFiles
from millstream.errors import PlanError
from millstream.plan.batch import Batch, concat_batches, empty_batch


class Delivery:
    """Mutable: knows which batch each sink needs next."""

    def __init__(
        self,
        job: Job,
        layout: Layout,
        files: LocalFiles,
        report: Report,
        *,
        is_lasting: bool = True,
    ) -> None:
        self.job = job
        #: Whether a later run can go on; without that a result appears as a whole.
        self.is_lasting = is_lasting
        self.layout = layout
        self.files = files
        self.report = report
        self.types = layout.plan.program.queue_types()
        self.sinks: dict[str, Any] = {
            **job.writers, **{_late(name): w for name, w in job.late_writers.items()}
        }  # fmt: skip
        self.next: dict[str, int] = {}
        #: How many rows of each output there are up to the batch that was handed over last.
        self.written: dict[str, int] = dict.fromkeys(layout.plan.program.outputs, 0)

    @property
    def needs_all(self) -> bool:
        """Whether some sink must be given everything again in the next run."""
        plain = any(not self._takes_batches(sink) for sink in self.sinks.values())
        return self.is_lasting and (plain or self.job.on_rejected is not None)

    def _takes_batches(self, sink: object) -> bool:
        """Whether a sink remembers which batches it has, and shows each of them."""
        return (self.is_lasting or self.job.is_following) and hasattr(sink, "write_batch")

    def open(self, job: str, last: int) -> None:
        """Ask every sink where to go on; `last` is the newest batch that is over."""
        for name, sink in self.sinks.items():
            knows = self._takes_batches(sink)
            self.next[name] = sink.open(job, fresh=last < 0) if knows else 0
        first = min([*self.next.values(), 0 if self.needs_all else last + 1])
        there = self.files.names(FOLDER)
        if first <= last and (not there or int(there[0]) > first):
            raise PlanError(
                f"the results before batch {int(there[0]) if there else last} are not kept",
                hint="write to where they went before, or compute them again with --rebuild",
            )
        for version in range(first, last + 1):
            self.deliver(read_manifest(self.files, version))
        if first > last >= 0:
            manifest = read_manifest(self.files, last)
            self._count(manifest, self._merged(manifest["results"]))

    def _merged(self, results: Sequence[Any]) -> dict[str, Batch]:
        """The rows of every output of a batch, in their order; late rows by input."""
        batches: dict[str, list[Batch]] = {}
        names = self.layout.plan.program.input_names
        for parcel in parcels_in(results):
            if parcel.queue >= 0:
                name = self.layout.queues[parcel.queue]
                type_ = self.types[name]
            else:
                one = names[LATE - parcel.queue]
                name, type_ = _late(one), self.types[one]
            if name in self.sinks:
                batches.setdefault(name, []).append(opened(self.files, parcel, type_))
        return {name: replace(self._ordered(name, b), rank=None) for name, b in batches.items()}

    def _ordered(self, name: str, batches: list[Batch]) -> Batch:
        ordered = _in_log_order if name.startswith(_LATE_PREFIX) else finished
        return ordered(batches, self._type(name))

    def _type(self, name: str) -> QueueType:
        return self.types[name.removeprefix(_LATE_PREFIX)]

    def _count(self, manifest: Manifest, outputs: dict[str, Batch]) -> None:
        self.written = {
            name: before + len(outputs.get(name, ()))
            for name, before in manifest["written"].items()
        }

    def deliver(self, manifest: Manifest) -> None:
        """Hand a batch over to all sinks that do not have it yet."""
        outputs = self._merged(manifest["results"])
        self._count(manifest, outputs)
        version = manifest["version"]
        reached("before-sink", version)
        for name, sink in self.sinks.items():
            if version < self.next[name]:
                continue
            batch = outputs.get(name)
            if self._takes_batches(sink):
                sink.write_batch(version, empty_batch(self._type(name)) if batch is None else batch)
            elif batch is not None:
                if isinstance(sink, PartsWriter):
                    sink.begin(version + 1)  # written again, a batch is the same file again
                sink.write(batch)
            self.next[name] = version + 1
        reached("after-sink", version)
        self._tell(manifest)

    def _tell(self, manifest: Manifest) -> None:
        report = self.report
        for name, rows in manifest["rejected"].items():
            report.take_rejected(name, [Rejected(*row) for row in rows], self.job)
        for name, counts in manifest["counts"].items():
            report.inputs[name] = InputCounts(**counts)
        report.outputs.update(self.written)
        report.faults.clear()
        report.faults.update(manifest["faults"])
        report.mark = manifest["mark"]
        report.state_bytes = manifest["state"]


_LATE_PREFIX = "late of "


def _late(name: str) -> str:
    return f"{_LATE_PREFIX}{name}"


def _in_log_order(batches: list[Batch], type_: QueueType) -> Batch:
    """Late rows as they stand in their input."""
    whole = concat_batches(batches, type_)
    assert whole.rank is not None
    return whole.take(np.argsort(whole.rank, kind="stable"))
