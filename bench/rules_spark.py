"""Programs A to D on Spark beside hand-written `foreachBatch` jobs, in one run.

See `spark_engine` for how it is measured: every side in a process of its own, warmed up on
small batches, then all batches but the first count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from rules_programs import PROGRAMS
from rules_spark_data import Updates
from spark_measure import measured

ROWS_PER_TABLE = 100_000
#: By hand the largest program takes some 10 s for each.
BATCHES = 8
BAR = 15.0

Answers = dict[int, bool]


def ours(place: Path) -> Answers:
    """What the changes of the relation add up to."""
    table = ds.dataset(place, format="parquet").to_table()
    found: Answers = {}
    changes = sorted(zip(*(table[n].to_pylist() for n in ("_time", "_weight", "mmsi", "ok")),
                         strict=True))  # fmt: skip
    for _, weight, mmsi, is_allowed in changes:
        if weight == 1:
            found[mmsi] = is_allowed
        elif found.get(mmsi) == is_allowed:
            del found[mmsi]
    return found


def theirs(place: Path) -> Answers:
    """The last answer of each vessel."""
    table = ds.dataset(place, format="parquet").to_table().sort_by("batch")
    return dict(zip(table["mmsi"].to_pylist(), table["ok"].to_pylist(), strict=True))


def compared(program: str, scale: float) -> dict[str, Any]:
    updates = Updates(program, ROWS_PER_TABLE, max(6, int(BATCHES * scale)))
    warm = Updates(program, 2_000, 12, 3_000)
    with measured("rules_spark_ours", program, updates, warm=warm) as figures:
        mine, our_answers = figures, ours(figures.out)
    with measured("rules_spark_hand", program, updates, warm=warm) as figures:
        hand, their_answers = figures, theirs(figures.out)
    ratio = mine.rows_per_s / hand.rows_per_s
    return {
        "program": program,
        "rows": ROWS_PER_TABLE,
        "events_per_s": round(mine.rows_per_s),
        "by_hand": round(hand.rows_per_s),
        "ours_is_faster": round(ratio, 2),
        "by_cpu": round(hand.cpu_us_per_row / mine.cpu_us_per_row, 2),
        "bar": BAR,
        "is_met": ratio >= BAR,
        "is_equal": our_answers == their_answers,
    }


def rules_spark(scale: float) -> list[dict[str, Any]]:
    """Batches of 100,000 events over tables of 100,000 rows, on Spark with two cores."""
    return [compared(program, scale) for program in PROGRAMS]


BENCHMARKS = {"rules_spark": rules_spark}
