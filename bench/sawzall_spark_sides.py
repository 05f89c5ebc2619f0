"""The query log on Spark: as a Sawzall program, and as skilled users of PySpark write it.

    python bench/sawzall_spark_sides.py '{"side": "batch", ...}'

writes `figures.json` into the folder that it is given: seconds, processor time, and the answer.
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses

from millstream import api
from sawzall_engine import QUERIES
from spark_sides import main

TABLES = ("origins", "targets", "queries", "users")


def ours(session: Any, log: Path, folder: Path) -> dict[str, Any]:
    """The tables are files of Parquet, which are read again."""
    files = list(log.glob("*.parquet"))
    api.compile(text=QUERIES, language="sawzall").run(
        {"input": f"{log}/*.parquet"},
        {name: str(folder / f"{name}.parquet") for name in TABLES},
        engine="spark", session=session, checkpoint=folder / "checkpoint",
        batch_bytes=int(1.02 * max(path.stat().st_size for path in files)),
    )  # fmt: skip
    tables = {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in TABLES}
    places = {
        name: sorted([row["lat"], row["lon"], row["value"]] for row in tables[name])
        for name in ("origins", "targets")
    }
    queries = [[row["value"], row["weight"]] for row in tables["queries"]]
    return places | {"queries": queries, "users": tables["users"][0]["value"]}


def counted(rows: Any) -> dict[str, Any]:
    """What has to be kept of some rows: counts, and the users that there are."""

    def places(lat: str, lon: str) -> Any:
        whole = (F.floor(one).alias(name) for one, name in ((lat, "lat"), (lon, "lon")))
        return rows.select(*whole).groupBy("lat", "lon").count()

    return {
        "origins": places("lat", "lon"), "targets": places("host_lat", "host_lon"),
        "queries": rows.groupBy("query").count(), "users": rows.select("user").distinct(),
    }  # fmt: skip


def answered(kept: dict[str, Any]) -> dict[str, Any]:
    best = kept["queries"].orderBy(F.desc("count"), "query").limit(10)
    return {
        **{name: sorted([r.lat, r.lon, r["count"]] for r in kept[name].collect())
           for name in ("origins", "targets")},
        "queries": [[r.query, r["count"]] for r in best.collect()],
        "users": kept["users"].count(),
    }  # fmt: skip


def in_one_batch(session: Any, log: Path, folder: Path) -> dict[str, Any]:
    del folder
    return answered(counted(session.read.parquet(str(log)).cache()))


def for_each_batch(session: Any, log: Path, folder: Path) -> dict[str, Any]:
    """Every batch adds its counts to folders of Parquet; they are put together at the end."""
    kept = folder / "kept"

    def add(batch: Any, number: int) -> None:
        batch.persist()
        for name, table in counted(batch).items():
            table.write.mode("overwrite").parquet(str(kept / name / f"batch={number}"))
        batch.unpersist()

    schema = session.read.parquet(str(log)).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(log))
    writer = stream.writeStream.foreachBatch(add)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    tables = {name: session.read.parquet(str(kept / name)) for name in TABLES}
    keys = {"origins": ["lat", "lon"], "targets": ["lat", "lon"], "queries": ["query"]}
    added = {name: tables[name].groupBy(*by).agg(F.sum("count").alias("count"))
             for name, by in keys.items()}  # fmt: skip
    return answered(added | {"users": tables["users"].select("user").distinct()})


SIDES = {"Millstream": ours, "foreachBatch": for_each_batch, "batch": in_one_batch}


if __name__ == "__main__":
    main(SIDES)
