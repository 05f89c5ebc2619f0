"""What every engine is given and gives back: a job and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from millstream.calculus.graph import Program
from millstream.connectors.chunks import Reader, Rejected, Writer
from millstream.connectors.location import Location
from millstream.errors import AllRejected, Fault, Stopped
from millstream.meaning.items import Entry
from millstream.plan.batch import Batch
from millstream.plan.figures import StepFigures
from millstream.values.rejection import rejected_in

SHOWN_REJECTIONS = 5
#: Why a change of a relation may be rejected.
NOT_THERE = "this takes away a row that is not there"


def never() -> bool:
    """For jobs that nobody stops."""
    return False


@dataclass(frozen=True)
class Job:
    """A program with its inputs opened and its outputs ready to be written."""

    program: Program
    readers: Mapping[str, Reader]
    writers: Mapping[str, Writer]
    late_writers: Mapping[str, Writer] = field(default_factory=dict)
    on_rejected: Callable[[Sequence[Rejected]], None] | None = None
    #: Whether files are looked for, and looked into, until the job is stopped. Readers of
    #: files have no rows then.
    is_following: bool = False
    #: Asked between batches: whether to stop before the end.
    stopped: Callable[[], bool] = never
    #: Where inputs come from, for engines that read them elsewhere.
    locations: Mapping[str, Location] = field(default_factory=dict)
    #: The program before anything was made of it, by which a checkpoint is known.
    written: Program | None = None
    #: The program as it would be run if its checkpoint had not been begun with another.
    renewed: Program | None = None


@dataclass
class InputCounts:
    """Where the rows of an input have gone; mutable, kept by an engine as it runs."""

    read: int = 0
    processed: int = 0
    waiting: int = 0
    late: int = 0
    rejected: int = 0
    #: The slack that would have kept all late rows, but those of times that had been ended.
    behind: int = 0

    @property
    def is_conserved(self) -> bool:
        """Nothing disappears."""
        return self.read == self.processed + self.waiting + self.late + self.rejected


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """How the last batch went, for engines that run in batches."""

    number: int
    seconds: float
    read: int
    written: int


@dataclass
class Report:
    """What a run has done so far; engines update it, the command line shows it."""

    inputs: dict[str, InputCounts]
    outputs: dict[str, int]
    faults: Counter[str] = field(default_factory=Counter)
    #: The first reasons of each input; those that a program gives of its own rows have no input.
    rejections: dict[str, list[str]] = field(default_factory=dict)
    mark: int | None = None
    #: Whether it is what an earlier run has left, and this one has done nothing yet.
    is_taken_up: bool = False
    batch: BatchFigures | None = None
    #: How many records the program itself has rejected, by input, reason and text.
    by_program: dict[tuple[str, str, str], int] = field(default_factory=dict)
    #: The size of the state when it was last written as a whole.
    state_bytes: int | None = None
    #: What each step has done in this run, by its name.
    steps: dict[str, StepFigures] = field(default_factory=dict, compare=False)
    #: The inputs from which each step has its rows, and the newest time of each input.
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    newest: dict[str, int] = field(default_factory=dict, compare=False)
    #: What whoever has started the run should know.
    notes: list[str] = field(default_factory=list, compare=False)

    def take_figures(self, figures: Mapping[str, StepFigures]) -> None:
        """What steps have done since they told of it last, and all faults there were."""
        nothing = StepFigures()
        self.steps |= {n: more.after(self.steps.get(n, nothing)) for n, more in figures.items()}

    @staticmethod
    def for_program(program: Program) -> Report:
        return Report(
            {name: InputCounts() for name in program.input_names},
            dict.fromkeys(program.outputs, 0),
        )

    def take_faults(self, faults: Mapping[str, int], job: Job) -> None:
        """All faults so far; records that the program itself has rejected are counted as such."""
        self.faults.clear()
        for fault, count in faults.items():
            rejected = rejected_in(fault)
            if rejected is None:
                self.faults[fault] += count
            else:
                self._take_by_program(*rejected, count, job)

    def _take_by_program(self, name: str, reason: str, text: str, count: int, job: Job) -> None:
        known = self.by_program.get((name, reason, text), 0)
        more = count - known
        self.by_program[name, reason, text] = count
        if name in self.inputs:
            self.inputs[name].processed -= count
            self.inputs[name].rejected += count
        else:
            # Rows that the program has made itself are none that were read.
            self.faults[f'rejected, of "{name}"'] += count
        if not known and reason not in self.first_rejections:
            self._keep_reason(name, reason)
        if job.on_rejected is not None and more > 0:
            job.on_rejected([Rejected(name, 0, reason, text)] * more)

    @property
    def first_rejections(self) -> list[str]:
        """The first reasons of all inputs, as many as are shown."""
        return [reason for reasons in self.rejections.values() for reason in reasons][
            :SHOWN_REJECTIONS
        ]

    def _keep_reason(self, name: str, reason: str) -> None:
        reasons = self.rejections.setdefault(name, [])
        if len(reasons) < SHOWN_REJECTIONS:
            reasons.append(reason)

    def take_rejected(self, name: str, rejected: Sequence[Rejected], job: Job) -> None:
        """Count rejected rows, keep the first reasons, and hand them to the job."""
        if not rejected:
            return
        self.inputs[name].rejected += len(rejected)
        for row in rejected[:SHOWN_REJECTIONS]:
            place = f"{row.source}:{row.position}" if row.position else row.source
            self._keep_reason(name, f"{place}: {row.reason}")
        if job.on_rejected is not None:
            job.on_rejected(rejected)


@dataclass(frozen=True)
class Answer:
    """What has come out of a small job that was tried."""

    entries: Mapping[str, list[Entry]]
    faults: Mapping[str, int]


@dataclass(frozen=True)
class Trial:
    """A small job that has been read, as a question."""

    #: Can be sent to another process; answers nothing if it takes too long.
    ask: Callable[[], Answer | None]
    publish: Callable[[Answer], Report]


def rejected_changes(name: str, batch: Batch) -> list[Rejected]:
    """Changes of a relation that take away what is not there, as rejected rows."""
    return [
        Rejected(name, 0, f"{NOT_THERE}, at time {time}", repr(row))
        for time, row in zip(batch.time.tolist(), batch.rows(), strict=True)
    ]


#: Called by an engine now and then with the report so far.
Progress = Callable[[Report], None]


def no_progress(report: Report) -> None:
    """For callers who do not look."""


def refuse_no_result(report: Report, job: Job) -> None:
    """A run that ends has one only if it has come to its end, and could read its inputs."""
    if job.stopped():
        raise Stopped("stopped before the end of the inputs")
    faults = [
        Fault(
            f'not one of the {counts.read:,} rows of input "{name}" could be read'
            if counts.read > 1 else f'the only row of input "{name}" could not be read',
            None, "the first of them: " + "; ".join(report.rejections.get(name, ())[:3]),
            job.locations[name].text,
        )
        for name, counts in report.inputs.items()
        if name in job.locations and 0 < counts.read == counts.rejected
    ]  # fmt: skip
    if faults:
        raise AllRejected(faults)
