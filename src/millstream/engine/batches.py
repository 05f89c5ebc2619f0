"""A job on its checkpoint, one batch after another, whoever runs the batches.

    plan --> tasks that read --> stages --> manifest --> sinks

A batch is over with its manifest; then it is handed over to the sinks, while the next one is
computed.
"""

from __future__ import annotations

import errno
import functools
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from millstream.calculus.text import render
from millstream.engine.aside import Aside
from millstream.engine.checkpoint import REBUILD, STATE, Checkpoint, Record
from millstream.engine.clock import SeenOfInput
from millstream.engine.delivery import Delivery
from millstream.engine.inputs import Inputs
from millstream.engine.job import BatchFigures, Job, Progress, Report
from millstream.engine.layout import (
    BUCKETS_OF_A_WORKER,
    Choice,
    Description,
    Layout,
    Target,
    layout_as,
    layout_for,
    with_ahead,
)
from millstream.engine.manifest import (
    Manifest,
    first_manifest,
    known_in,
    manifest_of,
    write_manifest,
)
from millstream.engine.messages import Message
from millstream.engine.planning import ReadingTask
from millstream.engine.points import reached
from millstream.engine.read_again import ReadAgain
from millstream.engine.settings import Settings
from millstream.engine.sizes import measured
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.stage import Turn
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import FULL
from millstream.errors import PlanError, RunError
from millstream.plan.figures import StepFigures, inputs_of_steps, together

#: Where the rows of an input go that are made into others where they are read.
NOWHERE = Target(-1, None)
#: A large state is written whole less often, but at least after so many times as long.
_PATIENCE = 10
#: How often inputs that are followed are looked at while they have nothing new.
POLL_SECONDS = 0.1
#: What is no longer needed is looked for after so many batches.
_TIDIED_EVERY = 8
#: Likewise of what was brought from elsewhere; more than Spark may run again.
_TRIMMED_EVERY = 32


class Batches:
    """Mutable: how far a job is."""

    def __init__(
        self,
        job: Job,
        progress: Progress,
        folder: Path,
        settings: Settings,
        log: Inputs | ReadAgain | None = None,
    ) -> None:
        self.job = job
        self.progress = progress
        self.settings = settings
        self.checkpoint = Checkpoint(folder, is_durable=not settings.is_scratch)
        made = None if settings.rebuild else self.checkpoint.made()
        self.layout: Layout = (
            layout_as(job.program, Choice.read(made["layout"])) if made else self._new_layout()
        )
        if self.layout.ahead and _has_native(job):
            raise PlanError(
                f'the checkpoint "{folder}" was begun with inputs that Spark does not read',
                hint=REBUILD,
            )
        self.description = Description(
            job.program, str(folder), made["buckets"] if made else self._new_buckets(),
            settings.partitions, uuid.uuid4().hex, self.layout.choice,
            is_lasting=not settings.is_scratch, state=made.get("state", STATE) if made else STATE,
        )  # fmt: skip
        self.report = Report.for_program(job.program)
        self.report.behind = inputs_of_steps(self.layout.plan)
        self.inputs = log or Inputs(job, self.checkpoint.files, is_kept=not settings.is_scratch)
        self.delivery = Delivery(
            job, self.layout, self.checkpoint.files, self.report,
            is_lasting=not settings.is_scratch,
        )  # fmt: skip
        self.last: Manifest = first_manifest(job.program)
        self.known: tuple[SeenOfInput, ...] = ()
        self.handing_over = Aside()
        #: Whether there is a state that can be written whole.
        self.has_state: Callable[[], bool] = lambda: True
        self._ended = time.perf_counter()

    def _new_layout(self) -> Layout:
        job = self.job
        sizes = measured(job.program.inputs, job.locations, is_following=job.is_following)
        layout = layout_for(job.program, sizes, is_together=self.settings.is_together)
        return layout if _has_native(job) else with_ahead(layout)

    def layout_record(self) -> Record:
        """What a checkpoint keeps of the program as it is run, and of how it is laid out."""
        return {
            "program": render(self.job.program), "shape": self.layout.shape,
            "buckets": self.description.buckets, "layout": self.layout.choice.written(),
        }  # fmt: skip

    def _new_buckets(self) -> int:
        """As many as asked for; copies are kept once by each worker."""
        if self.settings.buckets is not None:
            return self.settings.buckets
        of_a_worker = 1 if self.layout.choice.copied else BUCKETS_OF_A_WORKER
        return of_a_worker * self.settings.partitions

    @contextmanager
    def running(self) -> Iterator[SourceSpec]:
        """The job from where its checkpoint is; at the end all sinks have all batches."""
        self.checkpoint.open(
            self.layout_record(), rebuild=self.settings.rebuild,
            written=None if self.job.written is None else render(self.job.written),
        )  # fmt: skip
        try:
            self._take_up()
            yield self._spec()
            self.wait_for_sinks()
            if not self.job.is_following and not self.job.stopped():
                self.inputs.forget_copies()
        except KeyboardInterrupt:
            self.handing_over.end()  # a sink must not be closed while it is written to
            raise
        except Exception as fault:
            self.handing_over.end()
            if (ours := self.told(fault)) is not None:
                raise ours from None
            raise
        finally:
            self.checkpoint.close()

    def told(self, fault: Exception) -> RunError | None:
        """What is wrong with the checkpoint, in our words; None if that is not it."""
        folder = self.checkpoint.folder
        if isinstance(fault, DamagedState):
            return RunError(str(fault), hint=REBUILD, place=str(folder))
        if isinstance(fault, OSError) and fault.errno == errno.ENOSPC:
            hint = f"with space freed on the disk of {folder}, the next run goes on"
            return RunError(f"the disk is full: {FULL}", hint=hint)
        return None

    def _take_up(self) -> None:
        """Go on after the last batch that is over."""
        self.last = self.checkpoint.last() or self.last
        self.checkpoint.take_up(len(self.layout.stages), self.last)
        self.known = known_in(self.last)
        self.delivery.open(self.checkpoint.identity, self.last["version"])
        if self.last["version"] >= 0:
            # Who watches knows how far it was before.
            self.report.is_taken_up = True
            self.progress(self.report)
            self.report.is_taken_up = False
        self._ended = time.perf_counter()

    def _spec(self) -> SourceSpec:
        specs = []
        inputs = self.job.program.inputs
        locations = self.inputs.locations(can_read_natives=self.settings.can_read_natives)
        for number, (one, location) in enumerate(zip(inputs, locations, strict=True)):
            target = self.layout.targets.get(one.name, NOWHERE)
            queue = self.layout.number(one.name)
            specs.append(InputSpec(one, location, number, queue, target.stage, target.key))
        return SourceSpec(
            tuple(specs), self.inputs.root, self.description.partitions,
            self.description.buckets, len(self.layout.stages), self.settings.batch_bytes,
            self.layout.instants(), self.job.is_following,
        )  # fmt: skip

    def due(self, spec: SourceSpec) -> Iterator[list[ReadingTask]]:
        """The tasks of one batch after another, until nothing can come or a stop is asked for."""
        planner = self.inputs.planner(spec, self.checkpoint.files, self.last_over)
        while not self.job.stopped():
            is_piped_out = self.inputs.is_piped_out.is_set()
            seq = self.last["sources"]
            if planner.next(seq) > seq:
                yield planner.tasks(seq)
            elif not self.job.is_following or planner.is_over(is_piped_out=is_piped_out):
                return
            elif self.handing_over.has_failed:
                self.wait_for_sinks()  # raises what went wrong
            else:
                time.sleep(POLL_SECONDS)

    # --- one batch ---

    def last_over(self) -> Manifest | None:
        """The manifest of the last batch that is over."""
        return self.last if self.last["version"] >= 0 else None

    def turn(self) -> Turn:
        """What the tasks of the next batch must know."""
        return Turn(self.last["version"] + 1, self.known, self._is_kept())

    def _is_kept(self) -> bool:
        """Whether the state after the next batch is written whole.

        The first time soon, so that its size is known; then when enough has changed.
        """
        last, every = self.last, self.settings.snapshot_every
        if not self.has_state():
            return False
        if self.inputs.ends_here:
            return True
        if last["version"] < 0 or last["since"] + 1 >= _PATIENCE * every:
            return True
        return bool(last["since"] + 1 >= every and 4 * last["deltas"] >= last["state"])

    def end_time(self) -> None:
        """For those that cannot tell their end, it is that of the run."""
        self.known = tuple(replace(one, is_silent=True) for one in self.known)

    def finish(self, number: int, messages: Sequence[Message]) -> None:
        """A batch is over: write down what its tasks have told, and hand it over.

        `number` is what Spark calls it, if it is a batch of Spark's.
        """
        self.wait_for_sinks()
        manifest = manifest_of(
            self.last, number, messages, self.delivery.written, self.checkpoint.files.taken_notes()
        )
        write_manifest(self.checkpoint.files, manifest)
        figures = ({name: StepFigures(*one) for name, one in m.get("steps", {}).items()}
                for m in messages)  # fmt: skip
        self.report.take_figures(together(figures))
        version = manifest["version"]
        reached("after-manifest", version)
        self.handing_over.start(functools.partial(self._hand_over, self.last, manifest))
        self.known = tuple(
            replace(k, is_silent=silent)
            for k, silent in zip(known_in(manifest), manifest["silent"], strict=True)
        )
        self.last = manifest
        if version % _TRIMMED_EVERY == 0:
            self.inputs.trim()
        reached("before-commit", version)

    def _hand_over(self, before: Manifest, manifest: Manifest) -> None:
        """Killed in here, the next run does this again."""
        self.delivery.deliver(manifest)
        self._tell(before, manifest)
        if manifest["version"] % _TIDIED_EVERY == 0:
            wanted_from = self.delivery.wanted_from(manifest["version"])
            self.checkpoint.tidy(len(self.layout.stages), manifest, wanted_from)

    def wait_for_sinks(self) -> None:
        self.handing_over.wait()

    def _tell(self, before: Manifest, after: Manifest) -> None:
        """The figures of a batch, for the progress report."""
        now = time.perf_counter()

        def read(manifest: Manifest) -> int:
            return sum(counts["read"] for counts in manifest["counts"].values())

        written = sum(self.delivery.written.values()) - sum(after["written"].values())
        self.report.batch = BatchFigures(
            after["version"], now - self._ended, read(after) - read(before), written
        )
        self._ended = now
        self.progress(self.report)


def _has_native(job: Job) -> bool:
    """Whether Spark reads an input: its rows do not pass our tasks that read."""
    return any(one.native is not None for one in job.locations.values())
