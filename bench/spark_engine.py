"""The Spark engine beside hand-written PySpark, in one run.

Every measurement is a process of its own with a fresh JVM, one file a batch. Rates are
steady ones. Beside hand-written jobs, each side first runs the same job on eight small
batches to warm up, then all batches but the first count, and `in_all` is from the start of
the query to its end; alone, the second half of the batches counts. Processor time is that
of all processes of a side, and says more than the clock if others use the machine. Both
sides write Parquet folders. The best of several runs of each side counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from spark_data import Trades, answer
from spark_events import in_job
from spark_measure import Figures, measured

REPEATS = int(os.environ.get("MILLSTREAM_BENCH_REPEATS", "2"))
LARGE, SMALL = 1_000_000, 100_000

Record = dict[str, Any]


def best(
    side: str, job: str, trades: Any, answer: Callable[[Path], Any] | None = None, **options: Any
) -> tuple[Figures, Any]:
    """The fastest of several runs, and what it has written."""
    found: list[Figures] = []
    table = None
    for _ in range(REPEATS):
        with measured(side, job, trades, **options) as figures:
            found.append(figures)
            if answer is not None and table is None:
                table = answer(figures.out)
        told = f"{side} {job}, {trades.rows_per_file:,} rows a batch: "
        print(f"  {told}{figures.rows_per_s:,.0f} rows/s", file=sys.stderr, flush=True)
    return max(found, key=lambda one: one.rows_per_s), table


# --- beside hand-written jobs -------------------------------------------------------------


def compared(
    job: str, value: str, trades: Trades, bars: Mapping[str, float | None], files: int
) -> list[Record]:
    """Our side first, then the hand-written ones, on so many of the files, each with its bar."""
    read = partial(answer, value=value)
    warm = Trades(8 * 50_000, 50_000, step=trades.step)
    ours, table = best("spark_ours", job, trades, read, warm=warm)
    records = [_record("Millstream", ours, None, None)]
    for name, bar in bars.items():
        theirs, other = best("spark_hand", f"{job} {name}", trades, read, files=files, warm=warm)
        same = table.filter(pc.less_equal(table["at"], other["at"][-1]))
        records.append(_record(name, theirs, ours, bar) | {"is_equal": other.equals(same)})
    return records


def _record(name: str, figures: Figures, ours: Figures | None, bar: float | None) -> Record:
    ratio = None if ours is None else ours.rows_per_s / figures.rows_per_s
    cpu = None if ours is None else figures.cpu_us_per_row / ours.cpu_us_per_row
    return {
        "side": name,
        "rows_per_batch": figures.rows_per_batch,
        "rows": figures.rows,
        "rows_per_s": round(figures.rows_per_s),
        "in_all": round(figures.rows_per_s_in_all),
        "cpu_us_per_row": round(figures.cpu_us_per_row, 3),
        "ours_is_faster": None if ratio is None else round(ratio, 2),
        "by_cpu": None if cpu is None else round(cpu, 2),
        "bar": bar,
        "is_met": None if ratio is None or bar is None else ratio >= bar,
        "is_equal": None,
    }


def batches(scale: float, step: int) -> Iterator[tuple[Trades, int]]:
    """4 M rows in large and in small batches, and how many of them are enough by hand."""
    large, small = max(1, int(LARGE * scale)), max(1, int(SMALL * scale))
    yield Trades(4 * large, large, step=step), 4
    count = 40 if scale >= 1 else 8
    yield Trades(count * small, small, step=step), count // 2


def vwap(scale: float) -> list[Record]:
    """Five-minute VWAP per symbol, a result for every trade: 1,000 symbols, 4 M trades.

    300 trades of a symbol are in its window. The hand-written jobs are given all batches of
    1 M rows and the first half of those of 100,000. They are written with `rolling` of pandas,
    and in NumPy with the window packed into bytes by hand.
    """
    records = []
    for trades, files in batches(scale, step=1_000):
        bars = {
            "apply, pandas": 10.0,
            "transform, pandas": 20.0,
            "apply": 10.0,
            "transform": 20.0,
            "transform, arrays": 20.0,
        }
        found = compared("vwap", "vwap", trades, bars, files)
        if trades.rows_per_file == LARGE:
            found[0] |= {"bar": 1e6, "is_met": found[0]["rows_per_s"] >= 1e6}
        records += found
    return records


def running_sum(scale: float) -> list[Record]:
    """A running sum per key, one result per key and batch: 1,000 keys, 4 M rows.

    The rows of a batch have one time stamp, so our answer at every instant is one row per
    key and batch; all sides write (time, key, sum), and the rows are compared. Spark's own
    aggregation runs without any Python and without a bar.
    """
    bars = {"apply": 2.0, "transform": 2.0, "native": None, "native, RocksDB": None}
    return [
        record
        for trades, files in batches(scale, step=0)
        for record in compared("sum", "total", trades, bars, files)
    ]


# --- our engine alone ---------------------------------------------------------------------


def flat(label: str, inputs: dict[int, Trades]) -> list[Record]:
    found = {size: best("spark_ours", "vwap", trades)[0] for size, trades in inputs.items()}
    cheapest = max(figures.rows_per_s for figures in found.values())
    least_cpu = min(figures.cpu_us_per_row for figures in found.values())
    return [
        {
            label: size,
            "rows": figures.rows,
            "rows_per_s": round(figures.rows_per_s),
            "us_per_row": round(1e6 / figures.rows_per_s, 3),
            "times_the_least": round(cheapest / figures.rows_per_s, 2),
            "cpu_us_per_row": round(figures.cpu_us_per_row, 3),
            "times_the_least_cpu": round(figures.cpu_us_per_row / least_cpu, 2),
            "bar": 1.3,
            "is_met": cheapest / figures.rows_per_s <= 1.3,
        }
        for size, figures in found.items()
    ]


def flat_keys(scale: float) -> list[Record]:
    """Cost per row of the five-minute VWAP by number of keys; 300,000 rows in all windows."""
    per_file = int(500_000 * scale) or 1
    return flat("keys", {n: Trades(8 * per_file, per_file, n) for n in (10, 1_000, 100_000)})


def flat_windows(scale: float) -> list[Record]:
    """Cost per row of the five-minute VWAP by rows in the window of a key; 4 keys."""
    per_file = int(500_000 * scale) or 1
    return flat(
        "rows_per_window",
        {
            n: Trades(16 * per_file, per_file, 4, 300_000_000 // (4 * n))
            for n in (100, 10_000, 1_000_000)
        },
    )


def latency(scale: float) -> list[Record]:
    """A batch of 1,000 rows through one stage: the medians of the second half of the batches.

    What happens within Spark's job is taken from its event log, in a run of its own.
    """
    count = max(8, int(80 * scale))
    trades = Trades(count * 1_000, 1_000, 100)
    figures, _ = best("spark_ours", "vwap", trades)
    whole = figures.median_ms("a whole batch")
    with measured("spark_ours", "vwap", trades, events=True) as logged:
        job = in_job(logged.out.parent / "events", len(logged.batches))
    parts = {
        "a whole batch": (whole, "bar: 400 ms"),
        **{f"- {name}": (ms, what) for name, (ms, what) in job.items()},
        "- the driver": (
            whole - job["Spark's job"][0], "plans the batch; manifest and sink, made durable",
        ),
    }  # fmt: skip
    return [
        {
            "part": name,
            "median_ms": round(ms, 1),
            "what": what,
            "is_met": whole < 400 if name == "a whole batch" else None,
        }
        for name, (ms, what) in parts.items()
    ]


def cores(scale: float) -> list[Record]:
    """A keyed fold that computes some 2 microseconds a row, on one core and on two."""
    per_file = int(400_000 * scale) or 1
    trades = Trades(8 * per_file, per_file)
    figures = {
        n: best("spark_ours", "costly", trades, master=f"local[{n}]", partitions=2)[0]
        for n in (1, 2)
    }
    ratio = figures[2].rows_per_s / figures[1].rows_per_s
    return [
        {
            "master": f"local[{n}]",
            "rows": one.rows,
            "rows_per_s": round(one.rows_per_s),
            "cpu_us_per_row": round(one.cpu_us_per_row, 3),
            "ratio": round(ratio, 2) if n == 2 else None,
            "bar": 1.7 if n == 2 else None,
            "is_met": ratio >= 1.7 if n == 2 else None,
        }
        for n, one in figures.items()
    ]


BENCHMARKS: dict[str, Callable[[float], list[Record]]] = {
    "spark_vwap": vwap,
    "spark_sum": running_sum,
    "spark_keys": flat_keys,
    "spark_windows": flat_windows,
    "spark_latency": latency,
    "spark_cores": cores,
}
