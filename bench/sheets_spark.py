"""Sheets on Spark beside hand-written PySpark, in one run.

See `spark_engine` for how it is measured: every side in a process of its own, warmed up on
small batches, then all batches but the first count; both write Parquet folders.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import cores_spark
from sheets_data import Rows
from spark_engine import best

Record = dict[str, Any]

NAMES = ("vwap", "twitter", "linearroad", "average", "kalman", "tax", "pong", "forecast",
         "mandelbrot")  # fmt: skip
BARS = dict.fromkeys(NAMES, 1.0) | dict.fromkeys(("vwap", "twitter", "linearroad"), 5.0)
ROWS_PER_FILE = 500_000
FILES = 8
#: By hand, a state per key takes seconds a batch, so that fewer batches are enough.
FILES_BY_HAND = dict.fromkeys(("vwap", "linearroad", "kalman", "pong", "forecast"), 3)


def generated(sheet: str, scale: float) -> tuple[Rows, Rows]:
    """Its rows, and small batches to warm up."""
    per_file = max(20, int(ROWS_PER_FILE * scale))
    few = min(per_file, 50_000)
    return Rows(sheet, FILES * per_file, per_file), Rows(sheet, 2 * few, few)


def answer(place: Path) -> Any:
    """What was written, in the order of time, as plain texts, numbers and booleans."""
    table = ds.dataset(place, format="parquet").to_table()
    columns: dict[str, Any] = {}
    for name in table.column_names:
        found = table.column(name)
        if pa.types.is_dictionary(found.type):
            found = found.cast(pa.string())
        if pa.types.is_timestamp(found.type):  # Spark writes them in nanoseconds
            found = found.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        columns["ts" if name == "_time" else name] = found
    return pa.table(columns).sort_by("ts")


def is_equal(ours: Any, theirs: Any) -> bool:
    """Times, texts and booleans are the same, numbers to nine digits: nobody rounds alike."""
    if ours.num_rows != theirs.num_rows or set(ours.column_names) != set(theirs.column_names):
        return False
    return all(_is_equal(ours[name], theirs[name]) for name in ours.column_names)


def _is_equal(ours: Any, theirs: Any) -> bool:
    if pa.types.is_floating(ours.type) or pa.types.is_floating(theirs.type):
        ours, theirs = (pc.fill_null(one.cast(pa.float64()), np.nan) for one in (ours, theirs))
        close = np.isclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-9, atol=0, equal_nan=True)
        return bool(close.all())
    return bool(ours.equals(theirs))


def compared(sheet: str, scale: float) -> Record:
    rows, warm = generated(sheet, scale)
    ours, our_answer = best("sheets_spark_ours", sheet, rows, answer, warm=warm)
    files = FILES_BY_HAND.get(sheet, FILES)
    theirs, their_answer = best("sheets_spark_hand", sheet, rows, answer, warm=warm, files=files)
    same = our_answer.filter(pc.less_equal(our_answer["ts"], their_answer["ts"][-1]))
    ratio = ours.rows_per_s / theirs.rows_per_s
    return {
        "sheet": sheet,
        "rows": ours.rows,
        "rows_per_s": round(ours.rows_per_s),
        "pyspark_rows_per_s": round(theirs.rows_per_s),
        "ratio": round(ratio, 2),
        "by_cpu": round(theirs.cpu_us_per_row / ours.cpu_us_per_row, 2),
        "bar": BARS[sheet],
        "is_met": ratio >= BARS[sheet],
        "is_equal": is_equal(same, their_answer),
    }


def spark(scale: float) -> list[Record]:
    """Sheets on Spark (local[2]) beside the same written by hand in PySpark.

    Eight batches of 500,000 rows, of which three are given to the jobs by hand that keep a
    state per key; 300,000 rows are in a window of five minutes, of 1,000 keys (50 languages).
    `MILLSTREAM_BENCH_SHEETS` chooses some sheets by their names, with commas between them.
    """
    chosen = os.environ.get("MILLSTREAM_BENCH_SHEETS", ",".join(NAMES)).split(",")
    return [compared(sheet, scale) for sheet in NAMES if sheet in chosen]


#: Sheets that keep nothing, so that all cores can share the rows of each key.
ON_CORES = ("tax", "mandelbrot")


def cores(scale: float) -> list[Record]:
    """Sheets that compute much for each row, on one core and on two; see `cores_spark`."""
    return [on_cores(sheet, scale) for sheet in ON_CORES]


def on_cores(sheet: str, scale: float) -> Record:
    rows, warm = generated(sheet, scale)
    sides = cores_spark.on_cores("sheets_spark_ours", sheet, rows, warm)
    (alone, _), (one, first), (two, second) = sides
    ratio = two.rows_per_s / one.rows_per_s
    return {"sheet": sheet, "rows": one.rows, "one_core": round(alone.rows_per_s),
            "local[1]": round(one.rows_per_s), "local[2]": round(two.rows_per_s),
            "ratio": round(ratio, 2), "to_one_core": round(two.rows_per_s / alone.rows_per_s, 2),
            "bar": 1.6, "is_met": ratio >= 1.6, "is_equal": first == second}  # fmt: skip
