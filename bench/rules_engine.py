"""The throughput of programs A to D of the thesis, at growing sizes of their tables."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.calculus.graph import Program
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.plan.batch import Batch
from rules_figure import drawn
from rules_programs import EVENTS_PER_CHUNK, PROGRAMS, Load, compiled

SIZES = (10, 100, 1_000, 10_000, 100_000)
BARS = {"A": 3e6, "B": 1e6, "C": 5e5, "D": 5e5}
REPEATS = 3
CHUNKS = 32
#: The first chunks of events warm up; what was prefilled is dealt with by then.
WARM = 4
FIGURE = Path(__file__).parent / "output" / "rules.svg"


@dataclass
class Watch:
    """Mutable: starts when the first chunk after the warm-up is asked for."""

    started: float | None = None

    def start(self) -> None:
        if self.started is None:
            self.started = time.process_time()

    def seconds(self) -> float:
        assert self.started is not None
        return time.process_time() - self.started


@dataclass
class Reader:
    batches: list[Batch]
    watch: Watch

    def chunks(self) -> Iterator[Chunk]:
        for number, batch in enumerate(self.batches):
            if number == 1 + WARM:
                self.watch.start()
            yield Chunk(batch)

    def close(self) -> None:
        pass


@dataclass
class Counted:
    """A writer that counts rows."""

    rows: int = 0
    times: list[float] = field(default_factory=list)

    def write(self, batch: Batch) -> None:
        self.rows += len(batch)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def measured(program: Program, rows: int, chunks: int) -> tuple[float, int]:
    """Events per second of processor time, and the changes that came out."""
    load = Load(program, rows)
    prefill = load.prefill()
    events = list(load.events(chunks + WARM))
    watch, writer = Watch(), Counted()
    readers = {
        name: Reader([batch, *(one[name] for one in events)], watch)
        for name, batch in prefill.items()
    }
    gc.collect()
    # With several threads batches are read ahead: the watch would start before the warm-up ends.
    run(Job(program, readers, {"ok": writer}), threads=1)
    return chunks * EVENTS_PER_CHUNK / watch.seconds(), writer.rows


def rules(scale: float) -> list[dict[str, Any]]:
    """Events per second of one core, by processor time; the best of three runs.

    Updates are drawn uniformly among the streams that a program reads, and among rows.
    """
    chunks = max(2, int(CHUNKS * scale))
    records = []
    for name in PROGRAMS:
        program = compiled(name)
        measured(program, 10, 1)
        for rows in SIZES:
            speed = max(measured(program, rows, chunks)[0] for _ in range(REPEATS))
            records.append({
                "program": name,
                "rows": rows,
                "events_per_s": round(speed),
                "bar_events_per_s": round(BARS[name]),
                "is_met": bool(speed >= BARS[name]),
            })  # fmt: skip
    FIGURE.parent.mkdir(exist_ok=True)
    FIGURE.write_text(drawn(records))
    return records


BENCHMARKS = {"rules": rules}
