"""Trade-Floor on Spark beside a job by hand with `foreachBatch`, in one run.

By hand the view is refreshed once a batch; we tell all of its changes at each event. Both write
Parquet, on sessions that are warm, and what the view has at the end must be equal.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from smile_floor import PRICES, events, lasting_events
from spark_data import OUTPUT
from spark_sides import best

Record = dict[str, Any]
KINDS = ("buys", "sells", "matches")


def refreshed(scale: float) -> list[Record]:
    """60,000 events; by hand a batch has 1,000 of them, as its view is then that old at most."""
    given = events(int(60_000 * scale))
    return [_compared("refreshed every 1,000 events", given, 1_000, 20.0, whole=True)]


def equal_batches(scale: float) -> list[Record]:
    """2 M events with 20,000 open bids, in batches of 20,000 events on both sides."""
    given = lasting_events(int(2_000_000 * scale), 20_000)
    return [_compared("equal batches of 20,000", given, 20_000, 5.0, whole=False)]


def _compared(name: str, given: Any, per_batch: int, bar: float, *, whole: bool) -> Record:
    log = _written(given, per_batch, whole=whole)
    warm = _written(given[: min(3 * per_batch, len(given))], per_batch, whole=whole)
    try:
        ours, hand = (
            best("smile_spark_sides", side, log, warm, 1) for side in ("Millstream", "foreachBatch")
        )
    finally:
        shutil.rmtree(log)
        shutil.rmtree(warm)
    ratio = hand.seconds / ours.seconds
    return {
        "benchmark": name, "events": len(given), "events/s": int(len(given) / ours.seconds),
        "by_hand": int(len(given) / hand.seconds), "ours_is_faster": round(ratio, 2),
        "by_cpu": round(hand.cpu / ours.cpu, 2), "bar": bar, "is_met": ratio >= bar,
        "rows at the end": len(ours.answer), "is_equal": ours.answer == hand.answer,
    }  # fmt: skip


def _written(given: Any, per_batch: int, *, whole: bool) -> Path:
    """Events in files of one batch each: all kinds together, and each kind apart."""
    folder = OUTPUT / "spark" / f"floor-{len(given)}-{os.getpid()}"
    for part in ("events", *KINDS):
        (folder / part).mkdir(parents=True)
    if whole:
        (folder / "whole").touch()
    for number, start in enumerate(range(0, len(given), per_batch)):
        rows = given[start : start + per_batch]
        _write(_all_of(rows), folder / "events", number)
        for kind, part in enumerate(KINDS):
            _write(_of_kind(rows[rows[:, 0] == kind], kind), folder / part, number)
    return folder


def _write(table: Any, folder: Path, number: int) -> None:
    path = folder / f"{number:06}.parquet"
    pq.write_table(table, path)
    os.utime(path, (number, number))


def _issues(buckets: Any) -> Any:
    return pa.array([f"I{n:02}" for n in (buckets // PRICES).tolist()])


def _all_of(rows: Any) -> Any:
    kind, tick, bucket, count, buy, sell = (np.ascontiguousarray(c) for c in rows.T)
    return pa.table({
        "kind": kind, "tick": tick, "issue": _issues(bucket), "price": bucket % PRICES,
        "count": count, "buyid": buy, "sellid": sell,
    })  # fmt: skip


def _of_kind(rows: Any, kind: int) -> Any:
    _, tick, bucket, count, buy, sell = (np.ascontiguousarray(c) for c in rows.T)
    if kind == 2:
        return pa.table({"t": tick, "buyid": buy, "sellid": sell, "#traded": count})
    return pa.table({
        ("buyid", "sellid")[kind]: tick, "issue": _issues(bucket), "price": bucket % PRICES,
        "#bid": count,
    })  # fmt: skip


BENCHMARKS = {"smile_spark_refreshed": refreshed, "smile_spark_equal_batches": equal_batches}
