"""Handing the results of batches over to the sinks, each batch once and in order.

A sink that knows which batches it has is given only those that it lacks. One that cannot say
(whoever is posted to) is given the last one again if it may not have had it, which the checkpoint
notes. One that is filled
anew (a single file, memory) is given everything from the first batch on, in every run, so the
checkpoint keeps all results for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.calculus.types import INT64_MAX, QueueType
from millstream.connectors.chunks import Rejected
from millstream.engine.job import InputCounts, Job, Report
from millstream.engine.layout import Layout
from millstream.engine.manifest import FOLDER, Manifest, read_manifest
from millstream.engine.order import finished
from millstream.engine.parcels import LATE, Parcel, in_turns, opened, parcels_in
from millstream.engine.points import reached
from millstream.engine.state import Waiting
from millstream.engine.storage.files import Files
from millstream.errors import PlanError
from millstream.plan.batch import Batch, concat_batches, empty_batch


class Delivery:
    """Mutable: knows which batch each sink needs next."""

    def __init__(
        self, job: Job, layout: Layout, files: Files, report: Report, *, is_lasting: bool = True
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

    def wanted_from(self, version: int) -> int:
        """The first batch whose results some sink may need again after this one is delivered."""
        if self.needs_all:
            return 0
        return min((version if _is_told_again(s) else getattr(s, "wanted_from", version + 1)
                    for s in self.sinks.values()), default=version + 1)  # fmt: skip

    def _takes_batches(self, sink: object) -> bool:
        """Whether a sink remembers which batches it has, and shows each of them."""
        return (self.is_lasting or self.job.is_following) and hasattr(sink, "write_batch")

    def open(self, job: str, last: int) -> None:
        """Ask every sink where to go on; `last` is the newest batch that is over."""
        for name, sink in self.sinks.items():
            knows = self._takes_batches(sink)
            known = sink.open(job, fresh=last < 0) if knows else 0
            self.next[name] = self._noted(last) if known is None else known
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
            results = self._by_output(manifest["results"])
            self.written = dict(manifest["written"])
            for name in results.keys() & self.written.keys():
                for _ in self._counted(name, results[name]):
                    pass  # they were handed over before
            self._report(manifest)

    def _noted(self, last: int) -> int:
        """The first batch that was perhaps not handed over to those who cannot say."""
        is_noted = bool(self.files.names(TOLD))
        noted = int(self.files.read(f"{TOLD}/last")) if is_noted else -1
        return last + 1 if 0 <= last == noted else max(last, 0)

    def _by_output(self, results: Sequence[Any]) -> dict[str, list[Parcel]]:
        """The parcels of every output of a batch; late rows by input."""
        parcels: dict[str, list[Parcel]] = {}
        names = self.layout.plan.program.input_names
        for parcel in parcels_in(results):
            is_late = parcel.queue < 0
            name = (
                _late(names[LATE - parcel.queue]) if is_late else self.layout.outputs[parcel.queue]
            )
            if name in self.sinks:
                parcels.setdefault(name, []).append(parcel)
        return parcels

    def _counted(self, name: str, parcels: list[Parcel]) -> Iterator[Batch]:
        """The rows of an output in their order, counted, not all at once if they are many."""
        for batch in self._ordered(name, parcels):
            if len(batch):
                if name in self.written:
                    self.written[name] += len(batch)
                yield replace(batch, rank=None)

    def _ordered(self, name: str, parcels: list[Parcel]) -> Iterator[Batch]:
        type_ = self._type(name)
        if name.startswith(_LATE_PREFIX):
            yield from self._in_log_order(parcels, type_) if parcels else ()
            return
        waiting = Waiting(type_)
        for numbers, until in in_turns(parcels, INT64_MAX):
            for number in numbers:
                waiting.add(opened(self.files, parcels[number], type_))
            yield finished(waiting.taken(until), type_)

    def _in_log_order(self, parcels: list[Parcel], type_: QueueType) -> Iterator[Batch]:
        """Late rows as they stand in their input."""
        waiting: list[Batch] = []
        for numbers, until in in_turns(parcels, INT64_MAX):
            came = (opened(self.files, parcels[number], type_) for number in numbers)
            some = concat_batches([*waiting, *came], type_)
            assert some.rank is not None
            cut = int((some.rank <= until).sum())
            some = some.take(np.argsort(some.rank, kind="stable"))
            yield some.slice(0, cut)
            waiting = [some.slice(cut, len(some))]

    def _type(self, name: str) -> QueueType:
        return self.types[name.removeprefix(_LATE_PREFIX)]

    def deliver(self, manifest: Manifest) -> None:
        """Hand a batch over to all sinks that do not have it yet."""
        results = self._by_output(manifest["results"])
        self.written = dict(manifest["written"])
        version = manifest["version"]
        reached("before-sink", version)
        for name, sink in self.sinks.items():
            batches = self._counted(name, results.get(name, []))
            if version < self.next[name]:
                pass
            elif self._takes_batches(sink):
                sink.write_batch(version, next(batches, empty_batch(self._type(name))), batches)
                if hasattr(sink, "advance"):  # it wants to know how far time has come
                    sink.advance(version, manifest["mark"])
            else:
                for batch in batches:
                    sink.write(batch)
            for _ in batches:
                pass  # what a sink has already is counted all the same
            self.next[name] = max(self.next[name], version + 1)
        reached("after-sink", version)
        if self.is_lasting and any(map(_is_told_again, self.sinks.values())):
            self.files.write(f"{TOLD}/last", str(version).encode())
        self._tell(manifest)

    def _tell(self, manifest: Manifest) -> None:
        for name, rows in manifest["rejected"].items():
            self.report.take_rejected(name, [Rejected(*row) for row in rows], self.job)
        self._report(manifest)

    def _report(self, manifest: Manifest) -> None:
        """All figures up to a batch."""
        report = self.report
        for name, counts in manifest["counts"].items():
            report.inputs[name] = InputCounts(**counts)
        report.outputs.update(self.written)
        report.take_faults(manifest["faults"], self.job)
        report.mark = manifest["mark"]
        largest = {name: log["largest"] for name, log in manifest["log"].items()}
        report.newest = {name: time for name, time in largest.items() if time is not None}
        report.state_bytes = manifest["state"]


_LATE_PREFIX = "late of "
#: The folder that notes which batch was handed over last to those who cannot say.
TOLD = "told"


def _is_told_again(sink: object) -> bool:
    """Whether it may not be able to say which batches it has."""
    return bool(getattr(sink, "is_told_again", False))


def _late(name: str) -> str:
    return f"{_LATE_PREFIX}{name}"
