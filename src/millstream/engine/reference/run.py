"""Running a job on the machine, by a schedule."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from millstream.calculus.types import QueueType
from millstream.engine.job import Job, Progress, Report, no_progress
from millstream.engine.reference.feed import entries_of, read_events
from millstream.errors import UsageError
from millstream.meaning.items import Entry, Item, consolidated
from millstream.meaning.machine import Machine
from millstream.plan.batch import Batch, batch_of

#: Chooses one of the queues that may fire.
Schedule = Callable[[Machine, list[str]], str]


def default_schedule(machine: Machine, enabled: list[str]) -> str:
    """The item with the smallest (time, declaration order, position)."""
    return min(enabled, key=machine.schedule_key)


def random_schedule(seed: int) -> Schedule:
    """Any queue, by a seeded choice."""
    generator = random.Random(seed)
    return lambda _, enabled: generator.choice(enabled)


def parse_schedule(text: str) -> Schedule:
    """`default` or `random:SEED`."""
    if text == "default":
        return default_schedule
    kind, _, seed = text.partition(":")
    if kind == "random" and seed.lstrip("-").isdigit():
        return random_schedule(int(seed))
    raise UsageError(f'unknown schedule "{text}"', hint="write default or random:SEED")


def run(
    job: Job, *, schedule: Schedule = default_schedule, progress: Progress = no_progress
) -> Report:
    """Read all inputs, fire until nothing can fire, write the outputs."""
    report = Report.for_program(job.program)
    machine = Machine(job.program)
    events = read_events(job, report)
    for queue, entries in entries_of(job.program, events, end=report.mark).items():
        machine.push(queue, entries)
    _fire_all(machine, schedule)
    if report.mark is not None:
        machine.end()
        _fire_all(machine, schedule)
    write_outputs(job, report, {name: list(machine.queues[name]) for name in job.program.outputs})
    report.take_faults(machine.faults, job)
    progress(report)
    return report


def _fire_all(machine: Machine, schedule: Schedule) -> None:
    if schedule is default_schedule:
        machine.run()
    while enabled := machine.enabled():
        machine.step(schedule(machine, enabled))


def write_outputs(job: Job, report: Report, entries: Mapping[str, list[Entry]]) -> None:
    types = job.program.queue_types()
    for name in job.program.outputs:
        batch = output_batch(entries[name], types[name])
        report.outputs[name] = len(batch)
        job.writers[name].write(batch)


def output_items(entries: list[Entry], type_: QueueType) -> list[Item]:
    """The items on an output queue; the changes of a relation are consolidated."""
    items = [e for e in entries if isinstance(e, Item)]
    return consolidated(items) if type_.is_relation else items


def output_batch(entries: list[Entry], type_: QueueType) -> Batch:
    items = output_items(entries, type_)
    weights = [i.weight for i in items] if type_.is_relation else None
    return batch_of(type_, [i.time for i in items], [i.row for i in items], weights)
