"""One run of a sheet on Spark, or of the same by hand, in a process with a fresh JVM.

    python bench/sheets_spark.py '{"side": "ours", "sheet": "vwap", "master": "local[2]", ...}'

prints how many seconds the second run took: the first, on the same data, warms up. Both sides
read Parquet, a file a batch, and write Parquet.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spark_hand
from millstream import api
from millstream.backends.spark.java import find_java, java_environment

ROOT = Path(__file__).parents[1] / "examples" / "sheets"
WINDOW = 300_000_000


def ours(session: Any, spec: dict[str, Any], folder: Path) -> None:
    compiled = api.compile(ROOT / spec["sheet"])
    inputs = {name: f"{path}/*.parquet" for name, path in spec["inputs"].items()}
    outputs = {compiled.program.outputs[0]: f"{folder}/out/"}
    compiled.run(inputs, outputs, engine="spark", session=session,
                 checkpoint=folder / "checkpoint")  # fmt: skip


# --- by hand ------------------------------------------------------------------------------


def vwap_by_hand(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """Trades and quotes of a symbol in order of time; the window is packed into one value."""
    frame = spark_hand.whole(frames)
    ts, kind = frame["ts"].to_numpy(), frame["kind"].to_numpy()
    order = np.lexsort((kind, ts))
    ts, kind = ts[order], kind[order]
    price, vol = frame["price"].to_numpy()[order], frame["vol"].to_numpy()[order]
    seller = frame["seller"].to_numpy()[order]
    old_ts, old_money, old_vol, asked, last = _unpack(state)
    is_trade = kind == 0
    times = np.concatenate([old_ts, ts[is_trade]])
    money = np.concatenate([[0.0], np.cumsum(np.concatenate([old_money, (price * vol)[is_trade]]))])
    volume = np.concatenate([[0.0], np.cumsum(np.concatenate([old_vol, vol[is_trade]]))])
    # The window is that of the last trade so far.
    end = len(old_ts) + np.cumsum(is_trade)
    newest = times[np.maximum(end - 1, 0)] if len(times) else np.zeros(len(ts), np.int64)
    start = np.searchsorted(times, newest - WINDOW, side="right")
    with np.errstate(invalid="ignore", divide="ignore"):
        vwap = (money[end] - money[start]) / (volume[end] - volume[start])
    quotes = np.where(is_trade, np.nan, price)
    quotes = pd.Series(quotes).ffill().fillna(np.nan if asked is None else asked).to_numpy()
    sellers = pd.Series(np.where(is_trade, None, seller)).ffill()
    sellers = sellers.where(sellers.notna(), last)
    kept = int(np.searchsorted(times, times[-1] - WINDOW, side="right")) if len(times) else 0
    values = np.diff(money)[kept:], np.diff(volume)[kept:]
    state.update((np.stack([times[kept:].view(np.float64), *values]).tobytes(),
                  float(quotes[-1]), sellers.iloc[-1]))  # fmt: skip
    yield pd.DataFrame({"ts": ts, "sym": key[0], "seller": sellers, "vwap": vwap,
                        "bargain": quotes < vwap})  # fmt: skip


def _unpack(state: Any) -> tuple[Any, Any, Any, Any, Any]:
    if not state.exists:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0), None, None
    packed, asked, last = state.get
    times, money, volume = np.frombuffer(bytes(packed)).reshape(3, -1)
    return times.view(np.int64), money, volume, asked, last


def colours(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """All points of a batch at once, 98 steps, those that have left stay where they are."""
    for frame in frames:
        re, im = frame["re"].to_numpy(), frame["im"].to_numpy()
        a, b, steps = re.copy(), im.copy(), np.zeros(len(re))
        size = a * a + b * b
        for _ in range(98):
            inside = size <= 4
            a, b = np.where(inside, a * a - b * b + re, a), np.where(inside, 2 * a * b + im, b)
            steps += inside
            size = np.where(inside, a * a + b * b, size)
        yield pd.DataFrame({"ts": frame["ts"], "red": steps * 5 % 256, "green": steps * 7 % 256,
                            "blue": np.where(size > 4, steps * 11 % 256, 0.0)})  # fmt: skip


def hand(session: Any, spec: dict[str, Any], folder: Path) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.streaming.state import GroupStateTimeout

    def stream(name: str) -> Any:
        path = spec["inputs"][name]
        schema = session.read.parquet(path).schema
        return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)

    if spec["sheet"] == "vwap":
        nothing = f.lit(None).cast("string")
        trades = stream("Trades").select(
            "ts", "sym", "price", "vol", nothing.alias("seller"), f.lit(0).alias("kind")
        )
        quotes = stream("Quotes").select(
            "ts", "sym", "price", f.lit(0.0).alias("vol"), "seller", f.lit(1).alias("kind")
        )
        found = trades.union(quotes).groupBy("sym").applyInPandasWithState(
            vwap_by_hand, "ts bigint, sym string, seller string, vwap double, bargain boolean",
            "packed binary, asked double, last string", "append", GroupStateTimeout.NoTimeout,
        )  # fmt: skip
    else:
        found = stream("Pixels").mapInPandas(
            colours, "ts bigint, red double, green double, blue double"
        )
    query = (
        found.writeStream.format("parquet").option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()


def session_for(spec: dict[str, Any], folder: Path) -> Any:
    if spec["side"] == "ours":
        from millstream.backends.spark.session import start_session

        return start_session(spec["master"], folder, 2)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(spec["master"])
    for name, value in {**spark_hand.SETTINGS, **spark_hand.ROCKSDB}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(spec: dict[str, Any]) -> None:
    os.environ.update(java_environment(find_java()))
    folder = Path(spec["folder"])
    session = session_for(spec, folder)
    side = ours if spec["side"] == "ours" else hand
    seconds = 0.0
    for _ in range(2):
        shutil.rmtree(folder / "run", ignore_errors=True)
        (folder / "run").mkdir(parents=True)
        start = time.perf_counter()
        side(session, spec, folder / "run")
        seconds = time.perf_counter() - start
    session.stop()
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
