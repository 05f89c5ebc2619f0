"""Program B as a skilled user of PySpark writes it: tables in DataFrames, kept by `foreachBatch`.

The three inputs are one query, so that every batch sees them together. A table takes the latest
row of each key of a batch and keeps its other rows; its lineage is cut, else it would grow with
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

__all__ = ["run", "session_for"]

#: The key and the value of each input, as one schema: a kind, a key, a reference, a number.
COLUMNS = {
    "vessels": ("mmsi", "berth", "draught"),
    "berths": ("berth_id", "tide_sensor", None),
    "tides": ("id", None, "height"),
}


def together(session: Any, rows: Path) -> Any:
    """All inputs as one stream."""
    parts = []
    for kind, (key, reference, number) in COLUMNS.items():
        parts.append(
            streamed(session, rows / kind).select(
                F.lit(kind).alias("kind"),
                F.col("_time").alias("at"),
                F.col(key).alias("key"),
                (F.col(reference) if reference else F.lit(None).cast("long")).alias("reference"),
                (F.col(number) if number else F.lit(None).cast("double")).alias("number"),
            )
        )
    return reduce(lambda a, b: a.unionByName(b), parts)


class Tables:
    """Mutable: the tables as of the last batch, and the answers that were given."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.tables: dict[str, Any] = {}
        self.answers: Any = None

    def take(self, batch: Any, number: int) -> None:
        batch = batch.persist()
        old = [*self.tables.values(), self.answers]
        for kind in COLUMNS:
            latest = (
                batch.where(F.col("kind") == kind)
                .groupBy("key")
                .agg(F.max_by(F.struct("reference", "number"), "at").alias("row"))
                .select("key", "row.reference", "row.number")
            )
            if kind in self.tables:
                others = self.tables[kind].join(latest, "key", "left_anti")
                latest = latest.unionByName(others)
            self.tables[kind] = latest.localCheckpoint(eager=True)
        answers = self.answered().localCheckpoint(eager=True)
        self.changed(answers, number).write.mode("append").parquet(str(self.out))
        self.answers = answers
        for one in old:
            if one is not None:
                one.unpersist()
        batch.unpersist()

    def answered(self) -> Any:
        v, b, t = (self.tables[kind].alias(kind[0]) for kind in COLUMNS)
        at_berth = v.join(b, F.col("v.reference") == F.col("b.key"))
        known = at_berth.join(t, F.col("b.reference") == F.col("t.key"))
        is_allowed = F.col("v.number") - F.col("t.number") <= 10.0
        return known.select(F.col("v.key").alias("mmsi"), is_allowed.alias("ok"))

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
    out = folder / "out"
    tables = Tables(out)
    query = (
        together(session, rows)
        .writeStream.foreachBatch(tables.take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return out
