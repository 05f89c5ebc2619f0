"""Programs A to D as a skilled user of PySpark writes them: tables in DataFrames, `foreachBatch`.

All inputs are one query, so that every batch sees them together. A table takes the latest row
of each key of a batch and keeps its other rows; its lineage is cut, else it would grow with
every batch. What is written are the answers that a batch has changed. That is less than ours
gives, which is every change at the instant at which it happens.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses

from cql_spark_hand import session_for, streamed
from rules_programs import KNOTS

__all__ = ["run", "session_for"]

#: The key of each table.
KEYS = {
    "vessels": "mmsi", "berths": "berth_id", "tides": "id", "winds": "id", "streams": "id",
}  # fmt: skip
#: The tables of each program in the order in which they are joined.
TABLES = {
    "A": ("vessels",),
    "B": ("vessels", "berths", "tides"),
    "C": ("vessels", "berths", "streams"),
    "D": ("vessels", "berths", "streams", "winds", "tides"),
}
#: The column that refers to the rows of a table.
REFERENCES = {
    "berths": "berth", "tides": "tide_sensor", "winds": "wind_sensor", "streams": "stream_sensor",
}  # fmt: skip


def is_allowed(job: str) -> Any:
    column = F.col
    match job:
        case "A":
            return column("length") <= 100.0
        case "B":
            return column("draught") - column("height") <= 10.0
        case "C":
            outgoing = column("stream_direction") >= 180.0
            deep = (column("draught") < 14.3) | ~outgoing | (column("rate") <= 1.0 * KNOTS)
            return ~column("is_inbound") | (deep & ((column("draught") < 19.0) | ~outgoing))
        case _:
            return (
                (column("rate") <= 1.0 * KNOTS)
                & (column("stream_direction") < 90.0)
                & (column("length") <= 100.0)
                & (column("beam") < 30.0)
                & (column("wind_direction") < 180.0)
                & (column("velocity") < 30.0 * KNOTS)
                & (column("height") < 3.0)
                & (column("low_water") > 0.0)
            )


def together(session: Any, rows: Path, job: str) -> Any:
    """All inputs as one stream; what one has not is null."""
    parts = [
        streamed(session, rows / table)
        .withColumnRenamed(KEYS[table], "key")
        .withColumnRenamed("_time", "at")
        .withColumn("kind", F.lit(table))
        for table in TABLES[job]
    ]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


class Tables:
    """Mutable: the tables as of the last batch, and the answers that were given."""

    def __init__(self, job: str, columns: Mapping[str, list[str]], out: Path) -> None:
        self.job = job
        self.columns = columns
        self.out = out
        self.tables: dict[str, Any] = {}
        self.answers: Any = None

    def take(self, batch: Any, number: int) -> None:
        batch = batch.persist()
        old = [*self.tables.values(), self.answers]
        for table, columns in self.columns.items():
            latest = (
                batch.where(F.col("kind") == table)
                .groupBy("key")
                .agg(F.max_by(F.struct(*columns), "at").alias("row"))
                .select("key", "row.*")
            )
            if table in self.tables:
                others = self.tables[table].join(latest, "key", "left_anti")
                latest = latest.unionByName(others)
            self.tables[table] = latest.localCheckpoint(eager=True)
        answers = self.answered().localCheckpoint(eager=True)
        self.changed(answers, number).write.mode("append").parquet(str(self.out))
        self.answers = answers
        for one in old:
            if one is not None:
                one.unpersist()
        batch.unpersist()

    def answered(self) -> Any:
        known = self.tables["vessels"].withColumnRenamed("key", "mmsi")
        for table in TABLES[self.job][1:]:
            other = self.tables[table].withColumnRenamed("key", REFERENCES[table])
            known = known.join(other, REFERENCES[table])
        return known.select("mmsi", is_allowed(self.job).alias("ok"))

    def changed(self, answers: Any, number: int) -> Any:
        if self.answers is None:
            found = answers
        else:
            before = self.answers.withColumnRenamed("ok", "was")
            found = answers.join(before, "mmsi", "left").where(
                ~F.col("ok").eqNullSafe(F.col("was"))
            )
        return found.select(F.lit(number).alias("batch"), "mmsi", "ok")


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run the job, one file of each input a batch, into a Parquet folder."""
    out, job = folder / "out", spec["job"]
    columns = {
        table: [
            name
            for name in session.read.parquet(str(rows / table)).columns
            if name not in ("_time", KEYS[table])
        ]
        for table in TABLES[job]
    }
    tables = Tables(job, columns, out)
    query = (
        together(session, rows, job)
        .writeStream.foreachBatch(tables.take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return out
