"""The local engine on a checkpoint, batch by batch.

Everything is made durable as in a run that must survive `kill -9`: the plan of a batch, what
came, its manifest and its part of the result.
"""

from __future__ import annotations

import itertools
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from spark_data import Trades, fresh
from spark_ours import vwap

BAR_MS = 15.0
ROWS = 1_000


def csv_files(trades: Path, folder: Path) -> Path:
    """The same files as text."""
    folder.mkdir()
    for path in trades.glob("*.parquet"):
        table = pq.read_table(path)
        times = table["at"].cast(pa.int64())
        plain = pc.WriteOptions(quoting_style="none")
        pc.write_csv(table.set_column(0, "at", times), folder / f"{path.stem}.csv", plain)
    return folder


@dataclass(frozen=True)
class Batches:
    """The later half of the batches of a run: how long each took, and what processors did."""

    ms: list[float]
    cpu_ms: float


def followed(compiled: Any, inputs: Path, out: str, checkpoint: Path) -> Batches:
    """A run that follows a folder, a file a batch, until all files are taken."""
    count = len(list(inputs.iterdir()))
    largest = max(path.stat().st_size for path in inputs.iterdir())
    ends: list[tuple[float, float]] = []
    compiled.run(
        {"trades": f"{inputs}/"},
        {"out": out},
        engine="local",
        follow=True,
        stopped=lambda: len(ends) >= count,
        progress=lambda _: ends.append((time.perf_counter(), time.process_time())),
        checkpoint=checkpoint,
        batch_bytes=int(1.02 * largest),
    )
    steady = ends[len(ends) // 2 :]
    ms = [1e3 * (after - before) for (before, _), (after, _) in itertools.pairwise(steady)]
    return Batches(ms, 1e3 * (steady[-1][1] - steady[0][1]) / len(ms))


def latency(scale: float) -> list[dict[str, Any]]:
    """A followed batch of 1,000 rows, five-minute VWAP of 100 symbols: median, best of three.

    Others that use the machine make it longer, but hardly change the processor time.
    """
    trades = Trades(max(8, int(160 * scale)) * ROWS, ROWS, 100)
    records = []
    for kind in ("parquet", "csv"):
        folder = fresh(f"local-latency-{kind}")
        inputs = trades.folder if kind == "parquet" else csv_files(trades.folder, folder / "in")
        compiled = vwap(folder)
        runs = [
            followed(compiled, inputs, f"{folder}/out-{n}/", folder / f"checkpoint-{n}")
            for n in range(3)
        ]
        best = min(runs, key=lambda one: median(one.ms))
        records.append(
            {
                "benchmark": f"a batch of {ROWS:,} rows, {kind}",
                "batches": len(best.ms),
                "median_ms": round(median(best.ms), 1),
                "least_ms": round(min(best.ms), 1),
                "cpu_ms": round(min(one.cpu_ms for one in runs), 1),
                "bar_ms": BAR_MS,
                "is_met": median(best.ms) <= BAR_MS,
            }
        )
        shutil.rmtree(folder)
    return records


BENCHMARKS = {"local_latency": latency}
