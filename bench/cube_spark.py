"""A cube on Spark beside hand-written PySpark, in batches of ten seconds of sales.

See `spark_engine` for how it is measured. All sides tell of five vertices with the sums and
counts of the last minute; what they say of one second is compared.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from cube_spark_data import SECOND, VERTICES, Sales
from spark_engine import best

Record = dict[str, Any]
#: By vertex and key: the sum and the count of a minute.
Answer = dict[tuple[int, str], tuple[float, int]]
BARS = {"windows": 10.0, "sets": 1.5}


def ours(place: Path, second: int) -> Answer:
    """The rows that are there at a second, from their changes, summed over the minute."""
    made: Answer = {}
    for number, vertex in enumerate(VERTICES):
        table = ds.dataset(place / f"c_{'_'.join(vertex)}", format="parquet").to_table()
        times = table["_time"]
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("us", tz="UTC"))
        columns = [times.cast(pa.int64()), table["_weight"], table["total"], table["n"]]
        columns += [table[name] for name in vertex]
        for time, weight, total, n, *members in zip(*(c.to_pylist() for c in columns), strict=True):
            if time <= second * SECOND:
                key = number, "|".join(members)
                before = made.get(key, (0.0, 0))
                made[key] = before[0] + weight * total, before[1] + weight * n
    return {key: value for key, value in made.items() if value[1]}


def theirs(place: Path, second: int) -> Answer:
    table = ds.dataset(place, format="parquet").to_table()
    rows = table.filter(ds.field("second") == second).to_pylist()
    return {_key(row): (row["total"], row["n"]) for row in rows}


def _key(row: dict[str, Any]) -> tuple[int, str]:
    if "vertex" in row:
        return row["vertex"], row["key"]
    names = tuple(n for n in ("customer", "part", "supplier", "store") if row[n] is not None)
    return VERTICES.index(names), "|".join(row[n] for n in names)


#: Batches that a side is given. A row is in 60 sliding windows of 5 vertices, so that one run of
#: that side takes more than a minute on a quiet machine.
GIVEN = {"windows": 9, "sets": 12}
#: Of each batch, as of a million sales in 600 seconds.
ROWS = 16_666


def compared(scale: float) -> list[Record]:
    """In batches of ten seconds: each way of PySpark beside ours on the same sales.

    Then ours alone: a million sales in 600 seconds, 60 batches.
    """
    warm = Sales(8, 1_000)
    records = []
    for job, files in GIVEN.items():
        sales = Sales(files, max(200, int(ROWS * scale)))
        figures, answer = best(
            "cube_spark_ours", "cube", sales, partial(ours, second=sales.asked_at), warm=warm
        )
        made, other = best(
            "cube_spark_hand", job, sales, partial(theirs, second=sales.asked_at), warm=warm
        )
        records.append(_record(f"Millstream ({job})", figures, None, None))
        records.append(_record(job, made, figures, BARS[job]) | {"is_equal": other == answer})
    whole = Sales(max(10, int(60 * scale)), ROWS)
    figures, _ = best("cube_spark_ours", "cube", whole, warm=warm)
    return [*records, _record("Millstream (all)", figures, None, None)]


def _record(name: str, made: Any, beside: Any, bar: float | None) -> Record:
    ratio = None if beside is None else beside.rows_per_s / made.rows_per_s
    cpu = None if beside is None else made.cpu_us_per_row / beside.cpu_us_per_row
    return {
        "side": name, "rows": made.rows, "rows_per_s": round(made.rows_per_s),
        "cpu_us_per_row": round(made.cpu_us_per_row, 2),
        "ours_is_faster": None if ratio is None else round(ratio, 2),
        "by_cpu": None if cpu is None else round(cpu, 2), "bar": bar,
        "is_met": None if ratio is None or bar is None else ratio >= bar, "is_equal": None,
    }  # fmt: skip


BENCHMARKS = {"cube_spark": compared}
