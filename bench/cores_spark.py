"""Examples with a million events on Spark, on one core and on two.

`local[1]` runs one task at a time, but Java, and the driver, which writes results while the next
batch is worked on, have the other core; so a third side has one core for everything.

See `spark_engine` for how it is measured: every side in a process of its own, warmed up on small
batches, then all batches but the first count. Both sides write Parquet folders, whose rows are
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from cores_spark_data import Events
from spark_engine import best
from spark_measure import Figures

Record = dict[str, Any]

EVENTS = 1_000_000
FILES = 8
BARS = {"linear_road": 1.5, "auction_site": 1.5, "port": 1.5}


def answer(place: Path) -> dict[str, Any]:
    """What was written to each output, in the order in which it was."""
    folders = sorted(path for path in place.iterdir() if path.is_dir())
    return {one.name: ds.dataset(one, format="parquet").to_table() for one in folders}


def on_cores(side: str, job: str, rows: Any, warm: Any) -> Iterator[tuple[Figures, Any]]:
    """The best run on one core for everything, with one task at a time, and with two."""
    for tasks, is_pinned in ((1, True), (1, False), (2, False)):
        yield best(side, job, rows, answer, warm=warm, master=f"local[{tasks}]", partitions=2,
                   is_pinned=is_pinned)  # fmt: skip


def compared(example: str, scale: float) -> list[Record]:
    """So many events on one core, `local[1]` and `local[2]`, in two partitions, eight batches."""
    per_file = max(100, int(EVENTS * scale) // FILES)
    events = Events(example, FILES * per_file, per_file)
    few = min(per_file, 10_000)
    warm = Events(example, 2 * few, few)
    (alone, _), (one, first), (two, second) = on_cores("cores_spark_ours", example, events, warm)
    ratio = two.rows_per_s / one.rows_per_s
    same = first.keys() == second.keys() and all(first[q].equals(second[q]) for q in first)
    return [{
        "example": example, "events": events.rows, "one_core": round(alone.rows_per_s),
        "local[1]": round(one.rows_per_s), "local[2]": round(two.rows_per_s),
        "ratio": round(ratio, 2), "to_one_core": round(two.rows_per_s / alone.rows_per_s, 2),
        "in_all": round(two.rows_per_s_in_all / one.rows_per_s_in_all, 2), "bar": BARS[example],
        "is_met": ratio >= BARS[example], "is_equal": same,
        "results": sum(table.num_rows for table in first.values()),
    }]  # fmt: skip


BENCHMARKS: dict[str, Callable[[float], list[Record]]] = {
    f"cores_{one}": update_wrapper(partial(compared, one), compared) for one in BARS
}
