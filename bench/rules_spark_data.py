"""Updates for the rules on Spark: one Parquet file per input and batch, kept between runs.

The first batches fill the tables one-to-one, the others update rows that are drawn uniformly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rules_programs import compiled, drawn_column
from spark_data import kept


@dataclass(frozen=True)
class Updates:
    """A folder for each input of a program, with a file for every batch."""

    program: str
    rows_per_table: int
    files: int
    rows_per_file: int = 100_000

    @property
    def folder(self) -> Path:
        """The files, which are written if they are not there yet."""
        name = f"rules-{self.program}-{self.rows_per_table}-{self.files}-{self.rows_per_file}"
        return kept(name, (self.tables(number) for number in range(self.files)))

    def tables(self, number: int) -> dict[str, Any]:
        inputs = compiled(self.program).inputs
        return {
            one.name: pa.table(self.batch(number, place, one.type.schema, len(inputs)))
            for place, one in enumerate(inputs)
        }

    def batch(self, number: int, place: int, schema: Any, inputs: int) -> dict[str, Any]:
        generator = np.random.default_rng([number, place])
        count = self.rows_per_file // inputs
        first = number * count
        is_filling = first < self.rows_per_table
        if is_filling:
            rows = np.arange(first, first + count) % self.rows_per_table
        else:
            rows = generator.integers(0, self.rows_per_table, count)
        # One microsecond each; the inputs take turns.
        times = (first + np.arange(count)) * inputs + place
        found: dict[str, Any] = {"_time": pa.array(times, pa.timestamp("us", tz="UTC"))}
        for field in schema:
            found[field.name] = drawn_column(field.name, rows, generator, is_moving=not is_filling)
        return found
