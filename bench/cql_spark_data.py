"""Inputs for the queries on Spark: one Parquet file per input and batch, kept between runs.

All values are integers, so that sums are exact and answers can be compared for equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_data import kept

STEP = 1_000  # microseconds between rows
RELATION_ROWS = 100_000
Columns = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """The inputs of a query: folders `s`, or `a` and `b`, and a relation `r`, by query."""

    query: str
    rows: int
    rows_per_file: int

    @property
    def files(self) -> int:
        return self.rows // self.rows_per_file

    @property
    def folder(self) -> Path:
        """The files, which are written if they are not there yet."""
        name = f"cql-{self.query}-{self.rows}-{self.rows_per_file}"
        return kept(name, (self.tables(number) for number in range(self.files)))

    def tables(self, number: int) -> dict[str, Any]:
        found = {one: pa.table(columns) for one, columns in self.batch(number).items()}
        if self.query == "c" and number == 0:
            found["r"] = pa.table(relation())
        return found

    def batch(self, number: int) -> dict[str, Columns]:
        generator = np.random.default_rng([ord(self.query), number])
        if self.query == "d":
            half = self.rows_per_file // 2
            first = number * half
            return {
                "a": _stamped(first, half, 0) | _pair(generator, first, half, "v"),
                "b": _stamped(first, half, 1) | _pair(generator, first, half, "w"),
            }
        count = self.rows_per_file
        first = number * count
        return {"s": _stamped(first, count, 0) | self._columns(generator, first, count)}

    def _columns(self, generator: Any, first: int, count: int) -> Columns:
        match self.query:
            case "a":
                return {name: generator.integers(0, 1 << 40, count) / 2.0**40 for name in "abcd"}
            case "c":
                keys = generator.integers(0, RELATION_ROWS, count)
                return {"k": keys, "v": np.arange(first, first + count)}
            case _:
                names = pa.array([f"P{n:06}" for n in range(1_000)])
                return {
                    "k": names.take(pa.array(generator.integers(0, 1_000, count))),
                    "v": generator.integers(1, 1_000, count),
                }


def _pair(generator: Any, first: int, count: int, value: str) -> Columns:
    return {"k": generator.integers(0, 10_000, count), value: np.arange(first, first + count)}


def _stamped(first: int, count: int, shift: int) -> Columns:
    times = (first + np.arange(count)) * STEP + shift
    return {"at": pa.array(times, pa.timestamp("us", tz="UTC"))}


def relation() -> Columns:
    generator = np.random.default_rng(7)
    return {
        "k": np.arange(RELATION_ROWS),
        "w": generator.integers(0, 1_000, RELATION_ROWS),
    }
