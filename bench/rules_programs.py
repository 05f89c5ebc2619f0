"""Programs A to D of the thesis' figure 8.1, in the algebra, and events for them.

A vessel is bound for a berth, and each berth has its sensors of tide, wind and tidal stream.
All tables are prefilled one-to-one: every row has exactly one partner in every other table.
An event replaces a row, drawn uniformly, of a stream that is drawn uniformly among those that
the program reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.algebra import Table, if_, program_of, table
from millstream.calculus.graph import Program
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Array, Batch, Vector

EVENTS_PER_CHUNK = 1 << 16
KNOTS = 1852 / 3600

vessels = table(
    "vessels", key="mmsi", mmsi="integer", berth="integer", is_inbound="boolean",
    length="number", beam="number", draught="number",
)  # fmt: skip
berths = table(
    "berths", key="berth_id", berth_id="integer", tide_sensor="integer", wind_sensor="integer",
    stream_sensor="integer",
)  # fmt: skip
tides = table("tides", key="id", id="integer", height="number", low_water="number")
winds = table("winds", key="id", id="integer", wind_direction="number", velocity="number")
streams = table("streams", key="id", id="integer", stream_direction="number", rate="number")


def program_a() -> Table:
    return vessels.map(lambda v: {"ok": v.length <= 100.0})


def program_b() -> Table:
    at_berth = vessels.foreign_join(berths, on="berth")
    known = at_berth.foreign_join(tides, on="tide_sensor")
    return known.map(lambda r: {"ok": r.draught - r.height <= 10.0})


def _implies(condition: Any, then: Any) -> Any:
    return if_(condition, then, True)


def program_c() -> Table:
    at_berth = vessels.foreign_join(berths, on="berth")
    known = at_berth.foreign_join(streams, on="stream_sensor")
    return known.map(
        lambda r: {
            "ok": _implies(
                r.is_inbound,
                _implies(
                    r.draught >= 14.3,
                    _implies(r.stream_direction >= 180.0, r.rate <= 1.0 * KNOTS),
                )
                & _implies(r.draught >= 19.0, r.stream_direction < 180.0),
            )
        }
    )


def program_d() -> Table:
    at_berth = vessels.foreign_join(berths, on="berth")
    known = at_berth.foreign_join(streams, on="stream_sensor").foreign_join(winds, on="wind_sensor")
    known = known.foreign_join(tides, on="tide_sensor")
    return known.map(
        lambda r: {
            "ok": (r.rate <= 1.0 * KNOTS)
            & (r.stream_direction < 90.0)
            & (r.length <= 100.0)
            & (r.beam < 30.0)
            & (r.wind_direction < 180.0)
            & (r.velocity < 30.0 * KNOTS)
            & (r.height < 3.0)
            & (r.low_water > 0.0)
        }
    )


PROGRAMS: dict[str, Callable[[], Table]] = {
    "A": program_a,
    "B": program_b,
    "C": program_c,
    "D": program_d,
}


def compiled(name: str) -> Program:
    return optimise(program_of(ok=PROGRAMS[name]()))


#: What a column of numbers is drawn from.
RANGES = {
    "length": (20.0, 400.0), "beam": (5.0, 60.0), "draught": (3.0, 24.0), "height": (-2.0, 4.0),
    "low_water": (-1.0, 1.0), "wind_direction": (0.0, 360.0), "velocity": (0.0, 25.0),
    "stream_direction": (0.0, 360.0), "rate": (0.0, 2.0),
}  # fmt: skip


def drawn_column(name: str, rows: Array, generator: Any, *, is_moving: bool) -> Array:
    """A column of updates of some rows."""
    if name in RANGES:
        values: Array = generator.uniform(*RANGES[name], len(rows))
        return values
    if name.endswith("_sensor"):
        # A berth moves between two sensors, so that its updates change something.
        return rows ^ generator.integers(0, 2 if is_moving else 1, len(rows))
    if name == "is_inbound":
        chosen: Array = generator.random(len(rows)) < 0.5
        return chosen
    return rows.astype(np.int64)  # keys, and references one-to-one


@dataclass
class Load:
    """Mutable: draws the batches of one measurement, the same ones for the same seed."""

    program: Program
    rows: int
    seed: int = 8

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def prefill(self) -> dict[str, Batch]:
        """Every row of every table, one input after the other."""
        return {
            one.name: self._batch(
                n, np.arange(self.rows), np.arange(self.rows) + n * self.rows, is_moving=False
            )
            for n, one in enumerate(self.program.inputs)
        }

    def events(self, chunks: int, size: int = EVENTS_PER_CHUNK) -> Iterator[dict[str, Batch]]:
        """Chunks of updates for every input, at one microsecond each."""
        inputs = self.program.inputs
        start = self.rows * len(inputs)
        for _ in range(chunks):
            which = self.generator.integers(0, len(inputs), size)
            rows = self.generator.integers(0, self.rows, size)
            times = np.arange(start, start + size)
            start += size
            yield {
                one.name: self._batch(n, rows[which == n], times[which == n], is_moving=True)
                for n, one in enumerate(inputs)
            }

    def _batch(self, number: int, rows: Array, times: Array, *, is_moving: bool) -> Batch:
        type_ = self.program.inputs[number].type
        columns = []
        for field in type_.schema:
            values = drawn_column(field.name, rows, self.generator, is_moving=is_moving)
            columns.append(Vector(field.type, values))
        return Batch(type_, times.astype(np.int64), tuple(columns))
