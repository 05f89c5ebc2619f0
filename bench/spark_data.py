"""Generated trades for the Spark benchmarks, one Parquet file per batch, kept between runs.

Prices are multiples of 1/64 and volumes are integers, so that all sums are exact and answers
can be compared for equality.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

OUTPUT = Path(__file__).parent / "output"
#: Small enough for Spark to read one file with two tasks.
ROW_GROUP_ROWS = 1 << 17


def kept(name: str, batches: Iterable[dict[str, Any]]) -> Path:
    """A folder of inputs, each with a file per batch, which is written if it is not there yet.

    A batch is a table for each input. Spark takes files by their age.
    """
    folder = OUTPUT / "spark" / name
    if not folder.exists():
        unfinished = folder.with_name(f"{name}.{os.getpid()}")
        for number, tables in enumerate(batches):
            for one, table in tables.items():
                path = unfinished / one / f"{number:06}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS)
                os.utime(path, (number, number))
        unfinished.rename(folder)
    return folder


@dataclass(frozen=True)
class Trades:
    """Trades in the order of time: `at`, `symbol`, `price`, `volume`.

    A row comes `step` microseconds after the one before it; with a step of 0 the rows of a
    file have one time stamp, a second after that of the file before.
    """

    rows: int
    rows_per_file: int
    symbols: int = 1_000
    step: int = 1_000

    @property
    def files(self) -> int:
        return self.rows // self.rows_per_file

    @property
    def folder(self) -> Path:
        """The files, which are written if they are not there yet."""
        name = f"trades-{self.rows}-{self.rows_per_file}-{self.symbols}-{self.step}"
        return kept(name, ({"": self.table(number)} for number in range(self.files)))

    def table(self, number: int) -> Any:
        count = self.rows_per_file
        generator = np.random.default_rng([self.symbols, number])
        # Even 4 and 10 of these names fall evenly on two partitions of our hash.
        names = pa.array([f"P{n:06}" for n in range(self.symbols)])
        first = number * count * self.step if self.step else number * 1_000_000
        times = first + np.arange(count) * self.step
        return pa.table(
            {
                "at": pa.array(times, pa.timestamp("us", tz="UTC")),
                "symbol": names.take(pa.array(generator.integers(0, self.symbols, count))),
                "price": generator.integers(10 * 64, 200 * 64, count) / 64.0,
                "volume": generator.integers(1, 500, count),
            }
        )


def fresh(name: str) -> Path:
    """An empty folder for one measurement."""
    folder = OUTPUT / "spark" / "runs" / f"{name}.{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def answer(place: Path, value: str, until: int | None = None) -> Any:
    """What a job has written, by time and symbol: three columns of plain numbers and texts.

    `until` leaves out what is later, for jobs that were given less.
    """
    table = ds.dataset(place, format="parquet").to_table()
    time = "_time" if "_time" in table.column_names else "at"
    plain = pa.table(
        {
            "at": table.column(time).cast(pa.int64()),
            "symbol": table.column("symbol").cast(pa.string()),
            value: table.column(value).cast(pa.float64()),
        }
    )
    if until is not None:
        plain = plain.filter(ds.field("at") <= until)
    return plain.sort_by([("at", "ascending"), ("symbol", "ascending"), (value, "ascending")])


def last_time(place: Path) -> int:
    """The largest time of the files in a folder."""
    newest = max(place.glob("*.parquet"))
    statistics = pq.read_table(newest, columns=["at"]).column("at").cast(pa.int64())
    return int(statistics[-1].as_py())
