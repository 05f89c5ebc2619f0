"""The queries as a skilled user of PySpark writes them.

(a), (c) and (d) are Spark's own operators, which run in the JVM. It has none for (b) and (e),
a result for every row over a window that slides with it, so these keep a state per key in
Python, vectorised within a key and a batch. (b) does not tell when a row leaves the window
and none comes; that is the closest that does not need a timer per row.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses
from pyspark.sql.streaming.state import GroupStateTimeout

from spark_hand import ROCKSDB, SETTINGS, whole

WINDOW = 300_000_000
LAST = 10


def in_order(frame: pd.DataFrame) -> tuple[Any, Any]:
    time, value = frame["at"].to_numpy(), frame["v"].to_numpy()
    order = np.argsort(time, kind="stable")
    return time[order], value[order]


def range_sum(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The sum over five minutes after every row; the window is packed into one value."""
    time, value = in_order(whole(frames))
    first = 0
    if state.exists:
        old_time, old_value = np.frombuffer(bytes(state.get[0]), np.int64).reshape(2, -1)
        first = len(old_time)
        time, value = np.concatenate([old_time, time]), np.concatenate([old_value, value])
    sums = np.concatenate([[0], np.cumsum(value)])
    start = np.searchsorted(time, time[first:] - WINDOW)
    kept = start[-1]
    state.update((np.stack([time[kept:], value[kept:]]).tobytes(),))
    yield pd.DataFrame({"at": time[first:], "k": key[0], "total": sums[first + 1 :] - sums[start]})


def last_average(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The average of the last ten rows after every row that changes it."""
    time, value = in_order(whole(frames))
    old = np.frombuffer(bytes(state.get[0]), np.int64) if state.exists else np.zeros(0, np.int64)
    values = np.concatenate([old, value])
    sums = np.concatenate([[0], np.cumsum(values)])
    stop = np.arange(len(old), len(values) + 1)
    start = np.maximum(stop - LAST, 0)
    with np.errstate(invalid="ignore"):
        means = (sums[stop] - sums[start]) / (stop - start)
    is_new = means[1:] != means[:-1]
    state.update((values[-LAST:].tobytes(),))
    yield pd.DataFrame({"at": time[is_new], "k": key[0], "mean": means[1:][is_new]})


def a(session: Any, rows: Path) -> Any:
    stream = streamed(session, rows / "s")
    chosen = stream.where((F.col("a") > 0.25) & (F.col("b") < 0.75))
    x, y = F.col("a") * F.col("b") + F.col("c"), F.col("d") - F.col("a") * 0.5
    return chosen.select("at", x.alias("x"), y.alias("y"), "c")


def by_key(session: Any, rows: Path) -> Any:
    stream = streamed(session, rows / "s")
    return stream.select("k", F.unix_micros("at").alias("at"), "v").groupBy("k")


def b(session: Any, rows: Path) -> Any:
    return by_key(session, rows).applyInPandasWithState(
        range_sum, "at bigint, k string, total bigint", "window binary", "append",
        GroupStateTimeout.NoTimeout,
    )  # fmt: skip


def c(session: Any, rows: Path) -> Any:
    relation = session.read.parquet(str(rows / "r"))
    return (
        streamed(session, rows / "s").join(F.broadcast(relation), "k").select("at", "k", "v", "w")
    )


def d(session: Any, rows: Path) -> Any:
    left = streamed(session, rows / "a").withWatermark("at", "0 seconds").alias("a")
    right = streamed(session, rows / "b").withWatermark("at", "0 seconds").alias("b")
    near = F.expr(
        "a.k = b.k AND b.at >= a.at - INTERVAL 5 SECONDS AND b.at <= a.at + INTERVAL 5 SECONDS"
    )
    at = F.greatest("a.at", "b.at").alias("at")
    return left.join(right, near).select(at, F.col("a.k").alias("k"), "v", "w")


def e(session: Any, rows: Path) -> Any:
    return by_key(session, rows).applyInPandasWithState(
        last_average, "at bigint, k string, mean double", "last binary", "append",
        GroupStateTimeout.NoTimeout,
    )  # fmt: skip


JOBS = {"a": a, "b": b, "c": c, "d": d, "e": e}


def streamed(session: Any, place: Path) -> Any:
    schema = session.read.parquet(str(place)).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))


def session_for(spec: Mapping[str, Any], folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(spec["master"])
    for name, value in (SETTINGS | ROCKSDB).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run a query, one file of each input a batch, into a Parquet folder."""
    out = folder / "out"
    writer = JOBS[spec["job"]](session, rows).writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.format("parquet").option("path", str(out))
    writer.trigger(availableNow=True).start().awaitTermination()
    return out
