"""What conditions keep of the first rows of the inputs of a program, and how many groups there are.

Copies of what comes to a selection are asked each of its conditions, those of what comes to a
total tell its groups, and nothing else is changed: so what is measured is what comes there, behind
windows and joins, in any language. The meanings work it out, and nothing is compiled for it. The
same rows give the same measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus.estimates import Measures
from millstream.calculus.functions import Aggregate, Assign, Duplicate, Filter, Map
from millstream.calculus.graph import Input, Operator, Program, rewritten
from millstream.calculus.terms import Column, Term, conjuncts
from millstream.calculus.types import Row
from millstream.connectors.chunks import Chunk, Reader
from millstream.connectors.location import Location
from millstream.engine.job import Job, Report
from millstream.engine.reference.feed import entries_of, read_events
from millstream.meaning.items import Entry, Item
from millstream.meaning.machine import Machine
from millstream.optimiser.optimise import Pass, optimise

#: Of fewer rows nothing can be told.
_FEWEST = 20


def measured_on(
    program: Program,
    passes: tuple[Pass, ...],
    measures: Measures,
    places: Mapping[str, Any],
    opened: Callable[[Input, Any], Reader],
    rows: int,
) -> Measures:
    """What else is known of inputs in some places after so many rows of each were looked at.

    Conditions are measured where they will be, under the names that they will have. What can be
    read but once is left alone.
    """
    readers = {
        input_.name: opened(input_, places[input_.name])
        if _can_be_sampled(places[input_.name])
        else None
        for input_ in program.inputs
    }
    return with_sample(measures, optimise(program, passes, measures=measures), readers, rows)


def _can_be_sampled(given: Any) -> bool:
    """Whether rows can be read once more afterwards: they are in files, made, or in memory."""
    if isinstance(given, Location):
        return given.is_at_hand or given.generator is not None
    return isinstance(given, Sized) and not isinstance(given, Iterator)


def with_sample(
    measures: Measures, program: Program, readers: Mapping[str, Reader | None], rows: int
) -> Measures:
    """What else is known after so many rows have been looked at."""
    asked = [*_asked(program)]
    if not asked:
        return measures
    probe = _probe(program, asked)
    first = {name: _First(reader, rows) for name, reader in readers.items()}
    report = Report.for_program(probe)
    events = read_events(Job(probe, first, {}), report)
    machine = Machine(probe)
    for queue, entries in entries_of(probe, events, end=report.mark).items():
        machine.push(queue, entries)
    machine.run()
    rows_of = {one.queue: _rows(machine.queues[one.queue]) for one in asked}
    return replace(
        measures,
        kept=_kept([(one, rows_of[one.queue]) for one in asked]),
        groups={
            one.total: len(set(rows_of[one.queue]))
            for one in asked
            if one.total is not None and len(rows_of[one.queue]) >= _FEWEST
        },
    )


def _rows(entries: Iterable[Entry]) -> list[Row]:
    """What came; what leaves a relation came to it once before."""
    return [e.row for e in entries if isinstance(e, Item) and e.weight > 0]


@dataclass(frozen=True)
class _Asked:
    """An operator, what copies of its rows are asked, and the queue of the answers."""

    operator: Operator
    terms: tuple[Term, ...]
    total: Aggregate | None

    @property
    def queue(self) -> str:
        return f"{self.operator.inputs[0]}/told"


def _asked(program: Program) -> Iterator[_Asked]:
    types = program.queue_types()
    for op in program.operators:
        match op.function:
            case Filter(condition):
                yield _Asked(op, tuple(conjuncts(condition)), None)
            case Aggregate(by) if by:
                schema = types[op.inputs[0]].schema
                yield _Asked(op, tuple(Column(n, schema[n]) for n in by), op.function)


def _probe(program: Program, asked: Iterable[_Asked]) -> Program:
    instead: dict[int, list[Operator]] = {}
    for one in asked:
        (queue,) = one.operator.inputs
        copies = (f"{queue}/to do", f"{queue}/to ask")
        answers = Map(tuple(Assign(f"is{n}", term) for n, term in enumerate(one.terms)))
        instead[id(one.operator)] = [
            Operator(Duplicate(), (queue,), copies), replace(one.operator, inputs=copies[:1]),
            Operator(answers, copies[1:], (one.queue,)),
        ]  # fmt: skip
    queues = tuple(one.queue for one in asked)
    return replace(rewritten(program, instead), outputs=(*program.outputs, *queues))


def _kept(sampled: Iterable[tuple[_Asked, list[Row]]]) -> dict[Term, float]:
    """Which part of what came to it each condition was true of."""
    counts: dict[Term, list[int]] = {}
    for one, rows in sampled:
        if one.total is None:
            for number, condition in enumerate(one.terms):
                counted = counts.setdefault(condition, [0, 0])
                counted[0] += len(rows)
                counted[1] += sum(row[number] is True for row in rows)
    return {one: kept / came for one, (came, kept) in counts.items() if came >= _FEWEST}


class _First:
    """Mutable: the first rows of a reader, or none if there is none."""

    def __init__(self, reader: Reader | None, rows: int) -> None:
        self._reader = reader
        self._left = rows

    def chunks(self) -> Iterator[Chunk]:
        if self._reader is None:
            return
        for chunk in self._reader.chunks():
            yield Chunk(chunk.batch.slice(0, min(self._left, len(chunk.batch))))
            self._left -= len(chunk.batch)
            if self._left <= 0:
                return

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
