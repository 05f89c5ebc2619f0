"""The hand-written side: the same jobs as a skilled user of PySpark writes them.

Within a key and a batch everything is vectorised, in the words of pandas and, faster, in those
of NumPy. Products and times are made in the JVM
before rows go to Python. The order of rows within a key is lost in Spark's shuffle, so they
are sorted. The state of a window is packed into one binary value, which Spark stores without
looking inside; arrays are converted element by element (and applyInPandasWithState of
Spark 4.3 fails on them).
"""

# ruff: noqa: TID251, N802, N803 - this is about pyspark, in its words

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

WINDOW = 300_000_000
VWAP = "at bigint, symbol string, vwap double"
TOTAL = "at bigint, symbol string, total double"

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
SETTINGS = {
    "spark.app.name": "by hand",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}


# --- sliding volume-weighted average price ------------------------------------------------


def whole(frames: Iterator[pd.DataFrame]) -> pd.DataFrame:
    pieces = list(frames)
    return pieces[0] if len(pieces) == 1 else pd.concat(pieces)


Window = tuple[Any, Any, Any]


def slide(window: Window | None, frame: pd.DataFrame) -> tuple[Any, Any, Window]:
    """Times and averages of new trades, and the window they leave behind."""
    time, value, volume = (frame[name].to_numpy() for name in ("at", "value", "volume"))
    order = np.argsort(time, kind="stable")
    time, value, volume = time[order], value[order], volume[order]
    first = 0
    if window is not None:
        first = len(window[0])
        time = np.concatenate([window[0], time])
        value = np.concatenate([window[1], value])
        volume = np.concatenate([window[2], volume])
    values = np.concatenate([[0.0], np.cumsum(value)])
    volumes = np.concatenate([[0.0], np.cumsum(volume)])
    start = np.searchsorted(time, time[first:] - WINDOW, side="right")
    average = (values[first + 1 :] - values[start]) / (volumes[first + 1 :] - volumes[start])
    kept = start[-1]
    return time[first:], average, (time[kept:], value[kept:], volume[kept:])


def pack(window: Window) -> tuple[bytes]:
    return (np.stack([window[0].view(np.float64), window[1], window[2]]).tobytes(),)


def unpack(state: Any) -> Window:
    time, value, volume = np.frombuffer(bytes(state[0])).reshape(3, -1)
    return time.view(np.int64), value, volume


def roll(old: pd.DataFrame | None, frame: pd.DataFrame) -> tuple[Any, Any, pd.DataFrame]:
    """The same in the words of pandas, as most people would write it."""
    new = frame.sort_values("at")
    trades = new if old is None else pd.concat([old, new])
    indexed = trades.set_index(pd.to_datetime(trades["at"], unit="us"))
    sums = indexed[["value", "volume"]].rolling("300s").sum().tail(len(new))
    kept = trades[trades["at"] > new["at"].iloc[-1] - WINDOW]
    average = (sums["value"] / sums["volume"]).to_numpy()
    return new["at"].to_numpy(), average, kept[["at", "value", "volume"]]


def pickled(window: pd.DataFrame) -> tuple[bytes]:
    return (pickle.dumps(window),)


def unpickled(state: Any) -> pd.DataFrame:
    found: pd.DataFrame = pickle.loads(bytes(state[0]))  # noqa: S301 - we have written it
    return found


def apply_pandas(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    time, average, window = roll(unpickled(state.get) if state.exists else None, whole(frames))
    state.update(pickled(window))
    yield pd.DataFrame({"at": time, "symbol": key[0], "vwap": average})


def apply_vwap(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    time, average, window = slide(unpack(state.get) if state.exists else None, whole(frames))
    state.update(pack(window))
    yield pd.DataFrame({"at": time, "symbol": key[0], "vwap": average})


class TransformVwap(StatefulProcessor):
    """With the window as arrays, packed or pickled, in a value."""

    def __init__(self, schema: str, encode: Any, decode: Any, slide: Any = slide) -> None:
        self.schema = schema
        self.slide = slide
        self.encode = encode
        self.decode = decode

    def init(self, handle: Any) -> None:
        self.window = handle.getValueState("window", self.schema)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        old = self.window.get()
        window = None if old is None else self.decode(old)
        time, average, window = self.slide(window, whole(rows))
        self.window.update(self.encode(window))
        yield pd.DataFrame({"at": time, "symbol": key[0], "vwap": average})

    def close(self) -> None:
        pass


def by_symbol(trades: Any) -> Any:
    return trades.select(
        "symbol",
        F.unix_micros("at").alias("at"),
        (F.col("price") * F.col("volume")).alias("value"),
        F.col("volume").cast("double").alias("volume"),
    ).groupBy("symbol")


ARRAYS = "times array<bigint>, prices array<double>, volumes array<double>"
PACKED = "window binary"


def lists(window: Window) -> tuple[list[int], list[float], list[float]]:
    return window[0].tolist(), window[1].tolist(), window[2].tolist()


def arrays(state: Any) -> Window:
    time, value, volume = state
    return np.array(time, np.int64), np.array(value), np.array(volume)


def vwap_apply(trades: Any) -> Any:
    return by_symbol(trades).applyInPandasWithState(
        apply_vwap, VWAP, PACKED, "append", GroupStateTimeout.NoTimeout
    )


def vwap_apply_pandas(trades: Any) -> Any:
    return by_symbol(trades).applyInPandasWithState(
        apply_pandas, VWAP, PACKED, "append", GroupStateTimeout.NoTimeout
    )


def vwap_transform_pandas(trades: Any) -> Any:
    processor = TransformVwap(PACKED, pickled, unpickled, roll)
    return by_symbol(trades).transformWithStateInPandas(processor, VWAP, "append", "none")


def vwap_transform_arrays(trades: Any) -> Any:
    processor = TransformVwap(ARRAYS, lists, arrays)
    return by_symbol(trades).transformWithStateInPandas(processor, VWAP, "append", "none")


def vwap_transform(trades: Any) -> Any:
    processor = TransformVwap(PACKED, pack, unpack)
    return by_symbol(trades).transformWithStateInPandas(processor, VWAP, "append", "none")


# --- running sum, one result per key and batch --------------------------------------------


def apply_sum(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    total, last = state.get[0] if state.exists else 0.0, 0
    for frame in frames:
        total += float(frame["price"].to_numpy().sum())
        last = max(last, int(frame["at"].to_numpy().max()))
    state.update((total,))
    yield pd.DataFrame({"at": [last], "symbol": [key[0]], "total": [total]})


class TransformSum(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.total = handle.getValueState("total", "total double")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        old = self.total.get()
        total, last = 0.0 if old is None else float(old[0]), 0
        for frame in rows:
            total += float(frame["price"].to_numpy().sum())
            last = max(last, int(frame["at"].to_numpy().max()))
        self.total.update((total,))
        yield pd.DataFrame({"at": [last], "symbol": [key[0]], "total": [total]})

    def close(self) -> None:
        pass


def prices(trades: Any) -> Any:
    return trades.select("symbol", F.unix_micros("at").alias("at"), "price").groupBy("symbol")


def sum_apply(trades: Any) -> Any:
    return prices(trades).applyInPandasWithState(
        apply_sum, TOTAL, "total double", "append", GroupStateTimeout.NoTimeout
    )


def sum_transform(trades: Any) -> Any:
    return prices(trades).transformWithStateInPandas(TransformSum(), TOTAL, "append", "none")


def sum_native(trades: Any) -> Any:
    """No Python at all: Spark's own streaming aggregation."""
    return prices(trades).agg(F.max("at").alias("at"), F.sum("price").alias("total"))


JOBS: dict[str, tuple[Callable[[Any], Any], dict[str, str]]] = {
    "vwap apply": (vwap_apply, ROCKSDB),
    "vwap apply, pandas": (vwap_apply_pandas, ROCKSDB),
    "vwap transform, pandas": (vwap_transform_pandas, ROCKSDB),
    "vwap transform": (vwap_transform, ROCKSDB),
    "vwap transform, arrays": (vwap_transform_arrays, ROCKSDB),
    "sum apply": (sum_apply, ROCKSDB),
    "sum apply, HDFS": (sum_apply, {}),
    "sum transform": (sum_transform, ROCKSDB),
    "sum native": (sum_native, {}),
    "sum native, RocksDB": (sum_native, ROCKSDB),
}


def session_for(spec: Mapping[str, Any], folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(spec["master"])
    for name, value in (SETTINGS | JOBS[spec["job"]][1]).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def run(session: Any, spec: Mapping[str, Any], trades: Path, folder: Path) -> Path:
    """Run a job, one file a batch, into a Parquet folder."""
    job, files = spec["job"], spec["files"]
    schema = session.read.parquet(str(trades)).schema
    if files < len(list(trades.glob("*.parquet"))):
        trades = linked(trades, files, folder / "input")
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    out = folder / "out"
    result = JOBS[job][0](stream.parquet(str(trades)))
    writer = result.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    if "native" in job:
        # Spark's file sink does not take updates.
        def write(frame: Any, number: int) -> None:
            frame.write.mode("append").parquet(str(out))

        writer = writer.outputMode("update").foreachBatch(write)
    else:
        writer = writer.outputMode("append").format("parquet").option("path", str(out))
    writer.trigger(availableNow=True).start().awaitTermination()
    return out


def linked(trades: Path, files: int, place: Path) -> Path:
    """The first files of a folder, as a folder."""
    place.mkdir()
    for path in sorted(trades.glob("*.parquet"))[:files]:
        (place / path.name).hardlink_to(path)
    return place
