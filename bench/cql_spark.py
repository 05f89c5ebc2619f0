"""Continuous queries on Spark beside hand-written PySpark, in one run.

See `spark_engine` for how it is measured: every side in a process of its own, warmed up on
small batches, then all batches but the first count; both write Parquet folders.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from cql_spark_data import Rows
from spark_engine import best

Record = dict[str, Any]

NAMES = {
    "a": "(a) filter and project",
    "b": "(b) grouped sum over [Range 5 Minutes]",
    "c": "(c) [Now] join with 100,000 rows",
    "d": "(d) join of two windows by key",
    "e": "(e) average of [Partition By k Rows 10]",
}
BARS = {"a": 2.0, "b": 5.0, "c": 2.0, "d": 5.0, "e": 5.0}
ROWS_PER_FILE = dict.fromkeys("abce", 1_000_000) | {"d": 100_000}


def answer(place: Path) -> Any:
    """What was written, in an order that only depends on it."""
    table = ds.dataset(place, format="parquet").to_table()
    time = "_time" if "_time" in table.column_names else "at"
    stamps = table.column(time)
    if pa.types.is_timestamp(stamps.type):  # Spark writes them in nanoseconds
        stamps = stamps.cast(pa.timestamp("us", tz="UTC"))
    columns = {"at": stamps.cast(pa.int64())}
    for name in sorted(set(table.column_names) - {time}):
        column = table.column(name)
        columns[name] = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    found = pa.table(columns)
    return found.sort_by([(name, "ascending") for name in found.column_names])


def is_equal(query: str, ours: Any, theirs: Any) -> bool:
    """In (b) we also tell when rows leave the window; that is never when others come."""
    if query == "b":
        ours = ours.filter(pc.is_in(ours["at"], pc.unique(theirs["at"])))
    return bool(ours.equals(theirs))


def compared(query: str, scale: float) -> list[Record]:
    """Four batches of a million rows; of 100,000 for the join of windows, slow by hand."""
    per_file = max(2, int(ROWS_PER_FILE[query] * scale))
    rows = Rows(query, 4 * per_file, per_file)
    warm = Rows(query, 8 * 50_000, 50_000)
    ours, our_answer = best("cql_spark_ours", query, rows, answer, warm=warm)
    theirs, their_answer = best("cql_spark_hand", query, rows, answer, warm=warm)
    ratio = ours.rows_per_s / theirs.rows_per_s
    return [
        {
            "benchmark": NAMES[query],
            "rows": ours.rows,
            "rows_per_s": round(ours.rows_per_s),
            "by_hand": round(theirs.rows_per_s),
            "ours_is_faster": round(ratio, 2),
            "by_cpu": round(theirs.cpu_us_per_row / ours.cpu_us_per_row, 2),
            "bar": BARS[query],
            "is_met": ratio >= BARS[query],
            "is_equal": is_equal(query, our_answer, their_answer),
        }
    ]


BENCHMARKS: dict[str, Callable[[float], list[Record]]] = {
    f"cql_spark_{query}": update_wrapper(partial(compared, query), compared) for query in NAMES
}
