"""Sales for cubes on Spark: a Parquet file for every ten seconds, kept between runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_data import kept

SIZES = {"customer": 3000, "part": 2000, "supplier": 200, "store": 50}
#: What all sides tell of.
VERTICES = (("supplier", "store"), ("customer",), ("part",), ("supplier",), ("store",))
SECOND, SECONDS_PER_FILE, WINDOW = 1_000_000, 10, 60


@dataclass(frozen=True)
class Sales:
    """Skewed sales with amounts in dyadic steps, so that sums are exact in any order."""

    files: int
    rows_per_file: int

    @property
    def folder(self) -> Path:
        return kept(f"sales-{self.files}-{self.rows_per_file}", self.batches())

    def batches(self) -> Iterator[dict[str, Any]]:
        for number in range(self.files):
            chance = np.random.default_rng([3, number])
            columns: dict[str, Any] = {}
            for name, size in SIZES.items():
                share = 1 / np.arange(1, size + 1)
                codes = chance.choice(size, self.rows_per_file, p=share / share.sum())
                names = pa.array([f"{name}#{n:06d}" for n in range(size)])
                columns[name] = names.take(pa.array(codes))
            columns["amount"] = chance.integers(1, 4000, self.rows_per_file) / 4
            times = chance.integers(0, SECONDS_PER_FILE * SECOND, self.rows_per_file)
            times = np.sort(times) + number * SECONDS_PER_FILE * SECOND
            columns["at"] = pa.array(times, pa.timestamp("us", tz="UTC"))
            yield {"sales": pa.table(columns)}

    @property
    def asked_at(self) -> int:
        """A second of which all sides have told: where the last batch but one begins."""
        return (self.files - 2) * SECONDS_PER_FILE
