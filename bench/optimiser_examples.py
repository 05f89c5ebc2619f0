"""Every example with all passes and with none: never 10 % slower than as it is written.

Examples are small, so the rows of their streams come again and again, each time later; the rows of
relations come once. What is measured is the processor time of one thread, the least of several
turns, in which the two take their turns so that both meet the same machine.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import millstream
from millstream.calculus.graph import Input, Program
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.engine.reference.feed import Event
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Batch, batch_of

Record = dict[str, Any]
ROWS = 20_000
CHUNK = 1 << 14
#: Turns of short runs are many, for what disturbs them is as long as they are.
FEWEST_TURNS, MOST_TURNS, SECONDS = 5, 40, 2.0
SLOWEST = 0.9
#: How often a program goes round that does so by itself.
ROUNDS = 200
EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass
class _Memory:
    """Mutable: rows that are there already, and what came out, counted."""

    batches: Sequence[Batch] = ()
    made: list[tuple[int, int]] = field(default_factory=list)

    def chunks(self) -> Iterator[Chunk]:
        return (Chunk(batch) for batch in self.batches)

    def write(self, batch: Batch) -> None:
        self.made.append((len(batch), int(batch.time.sum())))

    def result(self) -> tuple[int, int]:
        return sum(rows for rows, _ in self.made), sum(times for _, times in self.made)

    def close(self) -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is to be taken back."""


@dataclass(frozen=True)
class _Example:
    """An example, and the rows of its inputs."""

    name: str
    program: Program
    events: dict[str, list[Event]]

    def streams(self) -> list[list[Event]]:
        return [self.events[one.name] for one in self.program.inputs if not one.type.is_relation]

    def repeated(self, wanted: int) -> dict[str, list[Batch]]:
        """The rows of its inputs, those of streams so often that they are about so many."""
        rows = sum(map(len, self.streams()))
        instants = [e.time for events in self.streams() for e in events]
        span = max(instants) - min(instants) + 1_000_000 if instants else 0
        times = max(1, wanted // rows) if rows else 1
        inputs = self.program.inputs
        return {one.name: _again(one, self.events[one.name], times, span) for one in inputs}


def _examples() -> Iterator[_Example]:
    for folder in sorted(p.parent for p in EXAMPLES.glob("*/*/expected")):
        compiled = _compiled(folder)
        name = f"{folder.parent.name}/{folder.name}"
        yield _Example(name, compiled.program, compiled.read_inputs())


def _compiled(folder: Path) -> Any:
    if (folder / "millstream.toml").exists():
        return millstream.compile(folder)
    (file,) = (p for p in folder.iterdir() if p.stem == folder.name)
    if file.suffix == ".py":
        return runpy.run_path(str(file))["program"]().at(folder)
    compiled = millstream.compile(file)
    return compiled if compiled.rounds is None else compiled.with_rounds(ROUNDS)


def _again(one: Input, events: list[Event], times: int, span: int) -> list[Batch]:
    """The rows of an input, those of a stream so often and each time later."""
    rounds = 1 if one.type.is_relation else times
    later = [
        replace(e, time=e.time + n * span,
                row=tuple(v + n * span if v == e.time and isinstance(v, int) else v
                          for v in e.row))
        for n in range(rounds) for e in events
    ]  # fmt: skip
    weights = [e.weight for e in later] if one.type.is_relation else None
    whole = batch_of(one.type, [e.time for e in later], [e.row for e in later], weights)
    return [whole.slice(i, min(i + CHUNK, len(whole))) for i in range(0, len(whole), CHUNK)]


def _run(program: Program, batches: dict[str, list[Batch]]) -> dict[str, tuple[int, int]]:
    """What comes out of a program, counted."""
    writers = {q: _Memory() for q in program.outputs}
    readers = {one.name: _Memory(batches[one.name]) for one in program.inputs}
    run(Job(program, readers, writers), threads=1)
    return {q: w.result() for q, w in writers.items()}


def _least(sides: Sequence[Callable[[], object]]) -> list[float]:
    """The least processor time of each in so many turns as there is time for."""
    least = [float("inf")] * len(sides)
    start = time.process_time()
    for turn in range(MOST_TURNS):
        if turn >= FEWEST_TURNS and time.process_time() - start > SECONDS:
            break
        for side, work in enumerate(sides):
            before = time.process_time()
            work()
            least[side] = min(least[side], time.process_time() - before)
    return least


def _compared(name: str, rows: int, with_passes: float, without: float) -> Record:
    return {
        "example": name, "rows": rows, "optimised_ms": round(1e3 * with_passes, 1),
        "as_written_ms": round(1e3 * without, 1), "ratio": round(without / with_passes, 2),
        "bar": SLOWEST, "is_met": without >= SLOWEST * with_passes,
    }  # fmt: skip


def examples_as_written(scale: float) -> list[Record]:
    """All examples that passes change, their streams repeated."""
    records = []
    for example in _examples():
        program, optimised = example.program, optimise(example.program)
        if program is optimised:
            continue
        batches = example.repeated(max(1_000, int(ROWS * scale)))
        rows = sum(len(batch) for some in batches.values() for batch in some)
        is_equal = _run(optimised, batches) == _run(program, batches)  # this compiles
        with_passes, without = _least([
            lambda o=optimised, b=batches: _run(o, b),  # type: ignore[misc]
            lambda p=program, b=batches: _run(p, b),  # type: ignore[misc]
        ])  # fmt: skip
        record = _compared(example.name, rows, with_passes, without)
        records.append({**record, "is_equal": is_equal})
    return records


def examples_once(scale: float) -> list[Record]:
    """All examples with their own few rows, and the time that passes take with them."""
    records = []
    for example in _examples():
        program, batches = example.program, example.repeated(1)
        rows = sum(len(batch) for some in batches.values() for batch in some)
        _run(optimise(program), batches)
        _run(program, batches)
        with_passes, without = _least([
            lambda p=program, b=batches: _run(optimise(p), b),  # type: ignore[misc]
            lambda p=program, b=batches: _run(p, b),  # type: ignore[misc]
        ])  # fmt: skip
        records.append(_compared(example.name, rows, with_passes, without))
    return records


BENCHMARKS = {"examples_as_written": examples_as_written, "examples_once": examples_once}
