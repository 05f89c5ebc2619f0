"""The query log on Spark beside jobs by hand: with `foreachBatch`, and in one batch.

Every side runs in a process of its own, on a session that is warm; its processor time is that of
the driver, the JVM and the workers. A side in micro-batches takes one file in each.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sawzall_engine import write_queries
from spark_data import OUTPUT
from spark_sides import Side, best

SIDES = "sawzall_spark_sides"
REPEATS = 2
FILES = 4
BARS = {"foreachBatch": 5.0, "batch": 1.0}
Record = dict[str, Any]


def query_log(scale: float) -> list[Record]:
    """2 M queries in four files: by whole degree, top 10 queries, distinct users."""
    per_file = max(1000, int(500_000 * scale))
    log, warm = written(per_file), written(20_000)
    ours, *others = (best(SIDES, name, log, warm, REPEATS) for name in ("Millstream", *BARS))
    rows = FILES * per_file
    # What is told of the others has columns only if it is told of the first.
    unasked = dict.fromkeys(("ours_is_faster", "by_cpu", "bar", "is_met", "is_equal"), "")
    records: list[Record] = [_record(ours, rows) | unasked]
    for one in others:
        ratio = one.seconds / ours.seconds
        records.append(_record(one, rows) | {
            "ours_is_faster": round(ratio, 2), "by_cpu": round(one.cpu / ours.cpu, 2),
            "bar": BARS[one.name], "is_met": ratio >= BARS[one.name],
            "is_equal": one.answer == ours.answer,
        })  # fmt: skip
    return records


def _record(side: Side, rows: int) -> Record:
    return {
        "side": side.name, "rows": rows, "rows_per_s": round(rows / side.seconds),
        "seconds": round(side.seconds, 2), "cpu_s": round(side.cpu, 2),
    }  # fmt: skip


def written(per_file: int) -> Path:
    folder = OUTPUT / "spark" / f"queries-{per_file}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        write_queries(unfinished / "whole", FILES * per_file)
        whole = pq.read_table(unfinished / "whole")
        (unfinished / "whole").unlink()
        for number in range(FILES):
            path = unfinished / f"{number:06}.parquet"
            pq.write_table(whole.slice(number * per_file, per_file), path)
            os.utime(path, (number, number))
        unfinished.rename(folder)
    return folder


BENCHMARKS = {"sawzall_spark queries": query_log}
