"""Generated items for nets of filters on Spark: `_time` is the number of an item, `value` is it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_data import kept


@dataclass(frozen=True)
class Items:
    """Single precision, several files; each has a whole number of the blocks of all programs."""

    files: int
    rows_per_file: int

    @property
    def rows(self) -> int:
        return self.files * self.rows_per_file

    @property
    def folder(self) -> Path:
        name = f"items-{self.files}-{self.rows_per_file}"
        return kept(name, ({"": self.table(number)} for number in range(self.files)))

    def table(self, number: int) -> pa.Table:
        count = self.rows_per_file
        values = np.random.default_rng([7, number]).standard_normal(count).astype(np.float32)
        times = np.arange(number * count, (number + 1) * count)
        return pa.table({"_time": times, "value": values.astype(np.float64)})
