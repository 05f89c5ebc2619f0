"""What enters the machine: the accepted items of every input, in order, and the marks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from millstream.calculus.graph import Program
from millstream.calculus.types import Row
from millstream.engine.job import Job, Report, rejected_changes
from millstream.meaning.items import Entry, Item, Mark
from millstream.plan.batch import Batch, batch_of


@dataclass(frozen=True, slots=True)
class Event:
    """A row of an input as its source has it; one of weight 0 only makes an instant."""

    time: int
    row: Row
    weight: int = 1


def read_events(job: Job, report: Report) -> dict[str, list[Event]]:
    """All accepted events of every input, by (time, position).

    The report learns the time at which a finite run ends: the largest of all rows that
    could be read, whether they make sense or not.
    """
    events: dict[str, list[Event]] = {}
    for input_ in job.program.inputs:
        accepted: list[Event] = []
        late: list[Event] = []
        largest: int | None = None
        behind = 0
        reader = job.readers[input_.name]
        for chunk in reader.chunks():
            report.inputs[input_.name].read += chunk.read
            report.take_rejected(input_.name, chunk.rejected, job)
            for event in _events(chunk.batch):
                # Late: more than the slack behind the largest time at an earlier position.
                is_late = largest is not None and event.time < largest - input_.slack
                if largest is not None and is_late:
                    behind = max(behind, largest - event.time)
                largest = event.time if largest is None else max(largest, event.time)
                came = replace(event, time=largest) if input_.is_early else event
                (late if is_late else accepted).append(event if is_late else came)
        reader.close()
        report.inputs[input_.name].late = len(late)
        report.inputs[input_.name].behind = behind
        report.inputs[input_.name].processed = len(accepted)
        if input_.name in job.late_writers:
            job.late_writers[input_.name].write(
                batch_of(input_.type, [e.time for e in late], [e.row for e in late],
                         [e.weight for e in late] if input_.type.is_relation else None)
            )  # fmt: skip
        times = [t for t in (report.mark, largest, input_.ends) if t is not None]
        report.mark = max(times, default=None)
        in_time = sorted(accepted, key=lambda e: e.time)  # stable: by position
        if input_.type.is_relation:
            in_time, unsound = _sound(in_time)
            report.inputs[input_.name].processed -= len(unsound)
            batch = batch_of(input_.type, [e.time for e in unsound], [e.row for e in unsound],
                             [e.weight for e in unsound])  # fmt: skip
            report.take_rejected(input_.name, rejected_changes(input_.name, batch), job)
        events[input_.name] = in_time
    return events


def _sound(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """All events, those that do not find the row they delete with no weight, and those alone.

    Insertions of an instant come first.
    """
    present: Counter[Row] = Counter()
    unsound: set[int] = set()
    by_time = sorted(range(len(events)), key=lambda n: (events[n].time, events[n].weight < 0))
    for number in by_time:
        event = events[number]
        if event.weight < 0 and present[event.row] <= 0:
            unsound.add(number)
        else:
            present[event.row] += event.weight
    return (
        [replace(e, weight=0) if n in unsound else e for n, e in enumerate(events)],
        [e for n, e in enumerate(events) if n in unsound],
    )


def _events(batch: Batch) -> list[Event]:
    weights = [1] * len(batch) if batch.weight is None else batch.weight.tolist()
    return [
        Event(time, row, weight)
        for time, row, weight in zip(batch.time.tolist(), batch.rows(), weights, strict=True)
    ]


def needs_marks(program: Program) -> bool:
    """Whether any function waits for time to pass; without one, marks say nothing."""
    return any(not op.function.acts_at_once for op in program.operators)


def entries_of(
    program: Program,
    events: dict[str, list[Event]],
    *,
    is_dense: bool = True,
    end: int | None = None,
) -> dict[str, list[Entry]]:
    """Items and marks for every input queue, with where they come from.

    Dense marks stand before and after every instant at which any input has an event, so
    that what expires between two events is seen between them. Sparse ones stand at the
    end only; by law 2 they give the same answer, but shared variables may notice.
    """
    times = {e.time for some in events.values() for e in some}
    instants = sorted(times if end is None else times | {end})
    fed: dict[str, list[Entry]] = {}
    for declaration, one in enumerate(program.inputs):
        name = one.name
        items = [
            Item(e.time, e.row, e.weight, (e.time, 0, declaration, position))
            for position, e in enumerate(events[name])
            if e.weight
        ]
        ticks = () if one.is_read_once else tuple(sorted({e.time for e in events[name]}))
        if not needs_marks(program) or not instants:
            fed[name] = list(items)
        elif is_dense:
            fed[name] = _with_marks(items, instants, declaration, frozenset(ticks))
        else:
            last = Mark(instants[-1], ticks, (instants[-1], 1, declaration, 0))
            fed[name] = [*items, last]
    return fed


def _with_marks(
    items: list[Item], instants: list[int], declaration: int, ticks: frozenset[int]
) -> list[Entry]:
    entries: list[Entry] = []
    position = 0
    for instant in instants:
        entries.append(Mark(instant - 1, (), (instant - 1, 1, declaration, 0)))
        while position < len(items) and items[position].time == instant:
            entries.append(items[position])
            position += 1
        spoken = (instant,) if instant in ticks else ()
        entries.append(Mark(instant, spoken, (instant, 1, declaration, 0)))
    return entries
