"""Rule files as a person writes them, their domain, and events for them.

A vessel is bound for a berth, and each berth has its gauges of tide and wind. Tables are
prefilled one-to-one. An event replaces a row, drawn uniformly, of an input that is drawn
uniformly among those that the rules read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from millstream.calculus.graph import Program
from millstream.languages.rules.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Array, Batch, Vector
from millstream.source import Source

HOUR = 3_600_000_000
EVENTS_PER_CHUNK = 1 << 16

DOMAIN = """
subject = "vessel"

[entity.vessel]
input = "vessels"
key = "mmsi"

[entity.vessel.columns]
mmsi = "integer"
berth = "integer"
length = "m"
beam = "m"
draught = "m"
eta = "time"

[entity.berth]
input = "berths"
key = "id"
of = "vessel.berth"
columns = { id = "integer", depth = "m", gauge = "integer", vane = "integer" }

[entity.tide]
input = "tides"
key = "gauge"
of = "berth.gauge"
columns = { gauge = "integer", height = "m" }

[entity.wind]
input = "winds"
key = "vane"
of = "berth.vane"
columns = { vane = "integer", velocity = "m/s" }

[entity.forecast]
input = "forecasts"
key = "gauge"
of = "berth.gauge"
forecast = { valid = "valid", at = "vessel.eta", lasts = "1 h" }
columns = { gauge = "integer", valid = "time", height = "m" }
"""

#: One input and no joins: about three of ten vessels are restricted.
SIMPLE = """
require vessel.length <= 350 m
require vessel.beam <= 55 m
when vessel.draught >= 15 m:
    require vessel.length <= 300 m
"""
#: Four inputs, and half of the events find or leave a vessel restricted.
JOINED = """
ukc = berth.depth + tide.height - vessel.draught

require ukc >= 0.5 m
when vessel.length >= 200 m:
    require wind.velocity <= 20 m/s
"""
#: The prediction for the expected arrival; as many for each gauge as are asked for.
FORESEEN = """
require berth.depth + forecast.height - vessel.draught >= 0.5 m
"""

RANGES = {
    "length": (20.0, 400.0), "beam": (5.0, 60.0), "draught": (3.0, 20.0), "depth": (8.0, 14.0),
    "height": (-2.0, 4.0), "velocity": (0.0, 25.0),
}  # fmt: skip


def compiled(rules: str) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bench.toml").write_text(DOMAIN)
        text = f'domain "bench.toml"\n{rules}'
        return optimise(load(Source(f"{folder}/bench.rules", text)).program)


@dataclass
class Load:
    """Mutable: draws the batches of one measurement, the same ones for the same seed."""

    program: Program
    rows: int
    predictions: int = 24
    seed: int = 8

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)
        self.sizes = {
            one.name: self.rows * (self.predictions if one.name == "forecasts" else 1)
            for one in self.program.inputs
        }

    def prefill(self) -> dict[str, Batch]:
        """Every row of every table, one input after the other."""
        filled, start = {}, 0
        for number, (name, size) in enumerate(self.sizes.items()):
            filled[name] = self._batch(number, np.arange(size), np.arange(start, start + size))
            start += size
        return filled

    @property
    def first(self) -> int:
        """The time of the first event."""
        return sum(self.sizes.values())

    def events(self, chunks: int, size: int = EVENTS_PER_CHUNK) -> Iterator[dict[str, Batch]]:
        """Chunks of updates for every input, at one microsecond each."""
        start = self.first
        for _ in range(chunks):
            which = self.generator.integers(0, len(self.sizes), size)
            times = np.arange(start, start + size)
            start += size
            drawn = {}
            for number, (name, rows) in enumerate(self.sizes.items()):
                mine = times[which == number]
                drawn[name] = self._batch(number, self.generator.integers(0, rows, len(mine)), mine)
            yield drawn

    def _batch(self, number: int, rows: Array, times: Array) -> Batch:
        one = self.program.inputs[number]
        columns = (Vector(f.type, self._column(one.name, f.name, rows)) for f in one.type.schema)
        return Batch(one.type, times.astype(np.int64), tuple(columns))

    def _column(self, name: str, column: str, rows: Array) -> Array:
        if column in RANGES:
            values: Array = self.generator.uniform(*RANGES[column], len(rows))
            return values
        if column == "eta":
            hours: Array = self.generator.integers(0, self.predictions * HOUR, len(rows))
            return hours
        if name == "forecasts":
            return rows // self.predictions if column == "gauge" else rows % self.predictions * HOUR
        return rows.astype(np.int64)  # keys, and references one-to-one
