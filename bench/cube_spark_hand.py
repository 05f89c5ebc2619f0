"""A cube as a skilled user of PySpark writes it, in two ways.

`windows` is recoverable: sliding windows in Spark's own state, with a row for each vertex, since
a stream has no GROUPING SETS. `sets` is not: the driver holds the batches of the last minute and
groups them anew, by GROUPING SETS, whenever a batch comes.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses

from cube_spark_data import SECONDS_PER_FILE, SIZES, VERTICES, WINDOW
from spark_hand import ROCKSDB, SETTINGS


def session_for(spec: Mapping[str, Any], folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(spec["master"])
    for name, value in (SETTINGS | ROCKSDB).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def windows(stream: Any, folder: Path) -> Any:
    """Sums of the last minute after every second, by vertex and key."""
    keys = [
        F.struct(F.lit(n).alias("vertex"), F.concat_ws("|", *vertex).alias("key"))
        for n, vertex in enumerate(VERTICES)
    ]
    rows = stream.withWatermark("at", "0 seconds").select(
        "at", "amount", F.explode(F.array(*keys)).alias("of")
    )
    sliding = F.window("at", f"{WINDOW} seconds", "1 second")
    grouped = rows.groupBy(sliding, "of.vertex", "of.key").agg(
        F.sum("amount").alias("total"), F.count("*").alias("n")
    )
    second = F.unix_seconds("window.end").alias("second")
    writer = grouped.select(second, "vertex", "key", "total", "n").writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.format("parquet").option("path", str(folder / "out"))


def sets(stream: Any, folder: Path) -> Any:
    """Sums of the last minute after every batch."""
    held: list[Any] = []

    def regroup(frame: Any, number: int) -> None:
        held.append(frame.persist())
        held[-1].count()
        if len(held) > WINDOW // SECONDS_PER_FILE:
            held.pop(0).unpersist()
        whole = held[0]
        for one in held[1:]:
            whole = whole.unionAll(one)
        whole.createOrReplaceTempView("sales")
        by = ", ".join(f"({', '.join(vertex)})" for vertex in VERTICES)
        names = ", ".join(SIZES)
        second = (number + 1) * SECONDS_PER_FILE
        query = f"""
            SELECT {second} AS second, {names}, sum(amount) AS total, count(*) AS n
            FROM sales GROUP BY GROUPING SETS ({by})
        """  # noqa: S608 - of our own names
        told = whole.sparkSession.sql(query)
        told.write.parquet(str(folder / "out" / f"{number:06}"))

    writer = stream.writeStream.foreachBatch(regroup)
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


JOBS = {"windows": windows, "sets": sets}


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    place = str(rows / "sales")
    schema = session.read.parquet(place).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(place)
    writer = JOBS[spec["job"]](stream, folder)
    writer.trigger(availableNow=True).start().awaitTermination()
    return folder / "out"
