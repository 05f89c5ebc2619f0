"""Generated inputs for the sheets: in memory, or as one Parquet file per input and batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import millstream
from millstream.calculus.types import Kind, QueueType
from millstream.plan.batch import Batch, Vector
from sheets_loops import KEYS
from spark_data import kept

ROOT = Path(__file__).parents[1] / "examples" / "sheets"
STEP = 1_000  # microseconds between rows
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz    ", np.uint8)

#: Where a sheet wants more than numbers between 1/16 and 256.
VALUES: dict[tuple[str, str], Callable[[Any, int], Any]] = {
    ("mandelbrot", "re"): lambda random, rows: random.uniform(-2.25, 0.75, rows),
    ("mandelbrot", "im"): lambda random, rows: random.uniform(-1.25, 1.25, rows),
    ("tax", "income"): lambda random, rows: random.integers(0, 600_000, rows).astype(float),
    ("pong", "vx"): lambda random, rows: random.choice([-4.0, -2.0, 1.0, 3.0], rows),
    ("pong", "vy"): lambda random, rows: random.choice([-3.0, -1.0, 0.0, 2.0], rows),
    ("pong", "x"): lambda random, rows: random.integers(0, 101, rows).astype(float),
    # Not whole: what lies on a border but for its last digit is on it for Excel, not by hand.
    ("pong", "y"): lambda random, rows: random.uniform(0, 60, rows),
    ("linearroad", "speed"): lambda random, rows: random.choice([0.0, 20.0, 45.0, 60.0], rows),
}


# --- in memory --------------------------------------------------------------------------


def column(sheet: str, type_: Any, random: Any, rows: int, name: str) -> Vector:
    if type_.kind is Kind.TEXT:
        words = pa.array([f"{name}{n}" for n in range(KEYS)])
        codes = pa.array(random.integers(0, KEYS, rows).astype(np.int32))
        return Vector(type_, pa.DictionaryArray.from_arrays(codes, words))
    if type_.kind is Kind.INTEGER:
        return Vector(type_, random.integers(0, KEYS, rows))
    make = VALUES.get((sheet, name))
    values = random.integers(1, 4096, rows) / 16 if make is None else make(random, rows)
    return Vector(type_, values)


def batch(sheet: str, type_: QueueType, rows: int, seed: int) -> Batch:
    """An event a millisecond on average."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, rows * STEP, rows))
    columns = tuple(column(sheet, f.type, random, rows, f.name) for f in type_.schema)
    return Batch(type_, times, columns)


# --- as files ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """The inputs of a sheet as folders of files, in the order of time, kept between runs.

    No two rows have the same time, because the order of those is lost in Spark's shuffle.
    """

    sheet: str
    rows: int
    rows_per_file: int
    step: int = STEP

    @property
    def files(self) -> int:
        return self.rows // self.rows_per_file

    @property
    def folder(self) -> Path:
        """A folder per input, which is written if it is not there yet."""
        name = f"sheets-{self.sheet}-{self.rows}-{self.rows_per_file}-{self.step}"
        return kept(name, (self.tables(number) for number in range(self.files)))

    def tables(self, number: int) -> dict[str, Any]:
        """One file of each input; together they have the rows of a batch."""
        inputs = millstream.compile(ROOT / self.sheet).program.inputs
        count = self.rows_per_file // len(inputs)
        found = {}
        for place, one in enumerate(inputs):
            random = np.random.default_rng([place, number])
            times = (number * count + np.arange(count)) * self.step + place * self.step // len(
                inputs
            )
            columns = {"ts": times}
            for field in one.type.schema:
                if (self.sheet, field.name) in TEXTS:
                    columns[field.name] = TEXTS[self.sheet, field.name](random, count)
                else:
                    vector = column(self.sheet, field.type, random, count, field.name)
                    columns[field.name] = vector.to_arrow()
            found[one.name] = pa.table(columns)
        return found


def tweets(random: Any, rows: int) -> Any:
    """Texts of up to 140 characters, hardly ever the same."""
    ends = np.concatenate([[0], np.cumsum(random.integers(10, 141, rows))]).astype(np.int32)
    letters = LETTERS[random.integers(0, len(LETTERS), ends[-1])]
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(letters))


def languages(random: Any, rows: int) -> Any:
    """Fifty of them, the first far more often than the last."""
    names = pa.array([f"language{n}" for n in range(50)])
    codes = np.minimum(random.geometric(0.1, rows) - 1, 49).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), names)


#: Texts that are no keys like others.
TEXTS: dict[tuple[str, str], Callable[[Any, int], Any]] = {
    ("twitter", "lang"): languages,
    ("twitter", "text"): tweets,
}
