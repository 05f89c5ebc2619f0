"""Rule files, as a person writes them, on the local engine and by hand; and long forecasts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.graph import Program
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job
from millstream.engine.local.run import run
from millstream.plan.batch import Batch
from rule_files_data import EVENTS_PER_CHUNK, FORESEEN, JOINED, SIMPLE, Load, compiled
from rule_files_hand import Change, Hand, joined, simple

SIZES = (1_000, 100_000)
FILES = {"simple": (SIMPLE, simple, 1_000_000), "joined": (JOINED, joined, 300_000)}
CHUNKS = 16
#: The first chunks of events warm up; what was prefilled is dealt with by then.
WARM = 2
REPEATS = 3
GAUGES = 100
#: Predictions of a day and of a year, and how much more the latter may cost.
PREDICTIONS = (24, 8_760)
MOST = 1.5


@dataclass
class Given:
    """A reader of batches that starts a watch when the warm-up is over."""

    batches: list[Batch]
    watch: list[float]

    def chunks(self) -> Iterator[Chunk]:
        for number, batch in enumerate(self.batches):
            if number == 1 + WARM and not self.watch:
                self.watch.append(time.process_time())
            yield Chunk(batch)

    def close(self) -> None:
        pass


@dataclass
class Kept:
    """A writer that counts rows, and keeps them if it is told to."""

    is_keeping: bool = False
    count: int = 0
    batches: list[Batch] = field(default_factory=list)

    def write(self, batch: Batch) -> None:
        self.count += len(batch)
        if self.is_keeping:
            self.batches.append(batch)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def changes(self, since: int) -> list[Change]:
        return [
            (at, weight, row)
            for batch in self.batches
            for at, weight, row in zip(
                batch.time.tolist(), batch.weight.tolist(), batch.rows(), strict=True
            )
            if at >= since
        ]


def ours(program: Program, load: Load, chunks: int, size: int, status: Kept) -> float:
    """Events per second of processor time."""
    filled, events = load.prefill(), list(load.events(chunks + WARM, size))
    watch: list[float] = []
    readers = {
        name: Given([batch, *(one[name] for one in events)], watch)
        for name, batch in filled.items()
    }
    gc.collect()
    # With several threads batches are read ahead: the watch would start before the warm-up ends.
    run(Job(program, readers, {"status": status, "warnings": Kept()}), threads=1)
    return chunks * size / (time.process_time() - watch[0])


def by_hand(judge: Any, load: Load, chunks: int, size: int) -> tuple[float, float, list[Change]]:
    """Events per second of processor time, who is restricted, and all changes of the status."""
    hand = Hand(judge)
    for name, batch in load.prefill().items():
        hand.fill(name, _rows(batch))
    hand.begin()
    changes: list[Change] = []
    seconds = 0.0
    for number, drawn in enumerate(load.events(chunks + WARM, size)):
        events = sorted(
            (at, name, row)
            for name, batch in drawn.items()
            for at, row in zip(batch.time.tolist(), _rows(batch), strict=True)
        )
        start = time.process_time()
        for at, name, row in events:
            changes += hand.take(name, at, row)
        seconds += time.process_time() - start if number >= WARM else 0.0
    restricted = sum(status == "restricted" for status, _, _ in hand.verdicts.values())
    return chunks * size / seconds, restricted / len(hand.verdicts), changes


def _rows(batch: Batch) -> list[dict[str, Any]]:
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in batch.rows()]


def rule_files(scale: float) -> list[dict[str, Any]]:
    """Events per second of one core, by processor time; the best of three runs.

    `simple` has three requirements on one input, `joined` two on four inputs, half of whose
    vessels are restricted. By hand it is a program in plain Python for these rules only, on the
    same events; its answers, reasons included, are compared row for row.
    """
    size = max(int(EVENTS_PER_CHUNK * min(scale, 1.0)), 500)
    chunks = max(2, int(CHUNKS * scale))
    records = []
    for name, (text, judge, bar) in FILES.items():
        program = compiled(text)
        for rows in (max(int(most * min(scale, 1.0)), 50) for most in SIZES):
            speed, changes = max(
                (ours(program, Load(program, rows), chunks, size, kept := Kept()), kept.count)
                for _ in range(REPEATS)
            )
            few = min(size, 8_192)
            hand_speed, restricted, answers = by_hand(judge, Load(program, rows), 1, few)
            records.append({
                "rules": name, "rows": rows, "events_per_s": round(speed),
                "bar_events_per_s": bar, "is_met": bool(speed >= bar),
                "by_hand_events_per_s": round(hand_speed), "changes": changes,
                "restricted": round(restricted, 2),
                "is_equal": is_equal(program, rows, few, answers),
            })  # fmt: skip
    return records


def is_equal(program: Program, rows: int, size: int, expected: list[Change]) -> bool:
    """Whether our changes of the status are those that were found by hand."""
    load, status = Load(program, rows), Kept(is_keeping=True)
    ours(program, load, 1, size, status)
    return sorted(expected) == sorted(status.changes(load.first))


def rule_forecasts(scale: float) -> list[dict[str, Any]]:
    """A requirement on the prediction for the expected arrival: a day and a year of them.

    Vessels change when they arrive and gauges correct predictions. Events per second of one
    core, by processor time, the best of three runs; a year may cost half as much again.
    """
    program = compiled(FORESEEN)
    size = max(int(EVENTS_PER_CHUNK * min(scale, 1.0)), 500)
    chunks = max(2, int(CHUNKS * scale / 2))
    speeds = [
        max(
            ours(program, Load(program, GAUGES, predictions), chunks, size, Kept())
            for _ in range(REPEATS)
        )
        for predictions in PREDICTIONS
    ]
    return [
        {"predictions": p, "events_per_s": round(s), "times_a_day": round(speeds[0] / s, 2),
         "is_met": bool(speeds[0] / s <= MOST)}
        for p, s in zip(PREDICTIONS, speeds, strict=True)
    ]  # fmt: skip


BENCHMARKS: dict[str, Callable[[float], list[dict[str, Any]]]] = {
    "rule_files": rule_files,
    "rule_forecasts": rule_forecasts,
}
