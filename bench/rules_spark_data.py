"""Updates for the rules on Spark: one Parquet file per input and batch, kept between runs.

The first batches fill the tables one-to-one, the others update rows that are drawn uniformly.
Numbers are quarters, so that both sides compute exactly the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_data import OUTPUT

INPUTS = ("vessels", "berths", "tides")


@dataclass(frozen=True)
class Updates:
    """Folders `vessels`, `berths` and `tides`, each with a file for every batch."""

    rows_per_table: int
    files: int
    rows_per_file: int = 100_000

    @property
    def folder(self) -> Path:
        """The files, which are written if they are not there yet."""
        name = f"rules-{self.rows_per_table}-{self.files}-{self.rows_per_file}"
        folder = OUTPUT / "spark" / name
        if not folder.exists():
            unfinished = folder.with_name(f"{name}.{os.getpid()}")
            for number in range(self.files):
                for place, one in enumerate(INPUTS):
                    path = unfinished / one / f"{number:06}.parquet"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    pq.write_table(pa.table(self.batch(number, place)), path)
                    os.utime(path, (number, number))  # Spark takes files by their age
            unfinished.rename(folder)
        return folder

    def batch(self, number: int, place: int) -> dict[str, Any]:
        generator = np.random.default_rng([number, place])
        count = self.rows_per_file // len(INPUTS)
        first = number * count
        if first < self.rows_per_table:
            rows = np.arange(first, first + count) % self.rows_per_table
        else:
            rows = generator.integers(0, self.rows_per_table, count)
        # One microsecond each; the inputs take turns.
        times = (first + np.arange(count)) * len(INPUTS) + place
        found: dict[str, Any] = {"_time": pa.array(times, pa.timestamp("us", tz="UTC"))}
        quarters = generator.integers(0, 80, count) / 4
        match INPUTS[place]:
            case "vessels":
                return found | {"mmsi": rows, "berth": rows, "draught": quarters}
            case "berths":
                moved = rows ^ generator.integers(0, 2, count)
                return found | {"berth_id": rows, "tide_sensor": moved}
            case _:
                return found | {"id": rows, "height": quarters - 4}
