"""The sheets as jobs that a skilled user of PySpark writes.

Taxes are column expressions, which run in the JVM; the Mandelbrot set is computed on Arrow
batches. All others keep a state per key in Python, vectorised within a key and a batch, or,
where a sheet has no key, a single one. What can be done in the JVM before rows go to Python
is done there (the length of a tweet; the text itself stays behind). The two sheets of twitter
are one function: the second needs all languages together, so that all rows meet in one task
anyway, and a chain of two would carry every row twice to Python and back.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses
from pyspark.sql.streaming.state import GroupStateTimeout

import sheets_steps as steps
from cql_spark_hand import session_for, streamed
from spark_hand import linked, whole

__all__ = ["run", "session_for"]

WINDOW = "window binary"


def stateful(step: steps.Step) -> Callable[..., Iterator[pd.DataFrame]]:
    """A step as Spark calls it; the order of rows was lost in the shuffle."""

    def apply(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        frame = whole(frames)
        order = np.argsort(frame["ts"].to_numpy(), kind="stable")
        rows = {name: frame[name].to_numpy()[order] for name in frame.columns}
        found, new = step(key[0], state.get if state.exists else None, rows)
        state.update(new)
        yield pd.DataFrame(found)

    return apply


def keyed(rows: Any, key: str, step: steps.Step, result: str, state: str = WINDOW) -> Any:
    return rows.groupBy(key).applyInPandasWithState(
        stateful(step), f"ts bigint, {result}", state, "append", GroupStateTimeout.NoTimeout
    )


# --- the jobs ---------------------------------------------------------------------------


def vwap(session: Any, rows: Path) -> Any:
    nothing = F.lit(None)
    trades = streamed(session, rows / "Trades").withColumn("seller", nothing.cast("string"))
    quotes = streamed(session, rows / "Quotes").withColumn("vol", nothing.cast("double"))
    return keyed(
        trades.unionByName(quotes), "sym", steps.vwap,
        "sym string, seller string, vwap double, bargain boolean",
        "window binary, asked double, seller string",
    )  # fmt: skip


def twitter(session: Any, rows: Path) -> Any:
    tweets = streamed(session, rows / "Tweets").select(
        F.lit(0).alias("all"), "ts", "lang", F.length("text").cast("double").alias("length")
    )
    places = (f"{name} string, {name}_average double" for name in ("first", "second", "third"))
    state = "window binary, names string"
    return keyed(tweets, "all", steps.twitter, ", ".join(places), state)


def linearroad(session: Any, rows: Path) -> Any:
    cars = streamed(session, rows / "Cars").select("ts", "segment", "speed")
    return keyed(cars, "segment", steps.linearroad, "segment double, mean double, toll double")


def average(session: Any, rows: Path) -> Any:
    readings = streamed(session, rows / "Readings").withColumn("all", F.lit(0))
    result = "weighted double, trend double, plain double"
    return keyed(readings, "all", steps.average, result)


def kalman(session: Any, rows: Path) -> Any:
    measurements = streamed(session, rows / "Measurements")
    result = "target double, estimate double, uncertainty double"
    state = "estimate double, uncertainty double"
    return keyed(measurements, "target", steps.kalman, result, state)


def pong(session: Any, rows: Path) -> Any:
    result = "game double, paddle double, caught boolean, score double"
    state = "paddle double, score double"
    return keyed(streamed(session, rows / "Balls"), "game", steps.pong, result, state)


def forecast(session: Any, rows: Path) -> Any:
    weather = streamed(session, rows / "Weather")
    result = "location string, next double, later double"
    return keyed(weather, "location", steps.forecast, result)


BRACKETS = (
    (0, 0.0, 0.1), (9525, 952.5, 0.12), (38700, 4453.5, 0.22), (82500, 14089.5, 0.24),
    (157500, 32089.5, 0.32), (200000, 45689.5, 0.35), (500000, 150689.5, 0.37),
)  # fmt: skip


def tax(session: Any, rows: Path) -> Any:
    income = F.col("income")
    taxable = F.greatest(F.lit(0.0), income - 12000)
    owed = F.lit(0.0)
    for above, base, rate in BRACKETS:
        owed = F.when(taxable >= above, base + (taxable - above) * rate).otherwise(owed)
    people = streamed(session, rows / "People").withColumn("tax", F.round(owed, 2))
    rate = F.when(income > 0, F.round(F.col("tax") / income, 4)).otherwise(0.0)
    net = income - F.col("tax")
    return people.select("ts", "name", "tax", rate.alias("rate"), net.alias("net"))


def colours(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        found = steps.mandelbrot(batch["re"].to_numpy(), batch["im"].to_numpy())
        yield pa.RecordBatch.from_pydict({"ts": batch["ts"], **found})


def mandelbrot(session: Any, rows: Path) -> Any:
    pixels = streamed(session, rows / "Pixels")
    return pixels.mapInArrow(colours, "ts bigint, red double, green double, blue double")


JOBS: dict[str, Callable[[Any, Path], Any]] = {
    "vwap": vwap,
    "twitter": twitter,
    "linearroad": linearroad,
    "average": average,
    "kalman": kalman,
    "tax": tax,
    "pong": pong,
    "forecast": forecast,
    "mandelbrot": mandelbrot,
}


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run a job, one file of each input a batch, into a Parquet folder."""
    out = folder / "out"
    inputs = sorted(rows.iterdir())
    if spec["files"] < len(list(inputs[0].iterdir())):
        (folder / "input").mkdir()
        for one in inputs:
            linked(one, spec["files"], folder / "input" / one.name)
        rows = folder / "input"
    writer = JOBS[spec["job"]](session, rows).writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.format("parquet").option("path", str(out))
    writer.trigger(availableNow=True).start().awaitTermination()
    return out
