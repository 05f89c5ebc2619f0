"""Trade-Floor on Spark: as a program of SMILE, and as a skilled user of PySpark writes it.

By hand each batch refreshes who could trade with whom: the bids that are open are kept as files
of Parquet, a version a batch, so that what a batch costs follows the open bids and not history.

    python bench/smile_spark_sides.py '{"side": "foreachBatch", ...}'
"""

# ruff: noqa: TID251 - this is about pyspark

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody uses

from millstream import api
from smile_served import TRADE_FLOOR
from spark_sides import main

#: What the rows of the view are compared by.
COLUMNS = ["buyid", "sellid", "buyremaining", "sellremaining"]
STREAMS = {"BuyBids": "buys", "SellBids": "sells", "Matches": "matches"}


def ours(session: Any, log: Path, folder: Path) -> Any:
    """All changes of the view at each event, as files of Parquet; a file of each stream a batch."""
    text = TRADE_FLOOR.read_text()
    text = text[: text.index("subscriptions")] + "subscriptions Matchable;\n"
    sizes = [path.stat().st_size for path in log.glob("*/*.parquet")]
    whole = (log / "whole").exists()
    api.compile(text=text, language="smile").run(
        {name: f"{log}/{part}/*.parquet" for name, part in STREAMS.items()},
        {"Matchable": f"{folder}/out/"},
        engine="spark", session=session, checkpoint=folder / "checkpoint",
        **({} if whole else {"batch_bytes": int(1.02 * max(sizes))}),
    )  # fmt: skip
    return folder / "out"


def for_each_batch(session: Any, log: Path, folder: Path) -> Any:
    """The view after each batch, as files of Parquet that take the place of those before."""
    kept, view = folder / "kept", folder / "view"

    def open_bids(batch: Any, number: int, key: str, kind: int, left: str) -> Any:
        """Bids of one side that are open after a batch, of those before it and what it brings."""
        bids = batch.where(F.col("kind") == kind)
        bids = bids.select(F.col("tick").alias(key), "issue", "price", F.col("count").alias(left))
        old = kept / key / str(number - 1)
        if old.exists():
            bids = bids.unionByName(session.read.parquet(str(old)))
        done = batch.where(F.col("kind") == 2).groupBy(key).agg(F.sum("count").alias("done"))
        rest = F.col(left) - F.coalesce("done", F.lit(0))
        bids = bids.join(F.broadcast(done), key, "left").select(
            key, "issue", "price", rest.alias(left)
        )
        place = str(kept / key / str(number))
        bids.where(F.col(left) > 0).write.mode("overwrite").parquet(place)
        shutil.rmtree(kept / key / str(number - 2), ignore_errors=True)
        return session.read.parquet(place)

    def refresh(batch: Any, number: int) -> None:
        batch.persist()
        buys = open_bids(batch, number, "buyid", 0, "buyremaining")
        sells = open_bids(batch, number, "sellid", 1, "sellremaining")
        place = str(view / str(number))
        buys.join(sells, ["issue", "price"]).write.mode("overwrite").parquet(place)
        shutil.rmtree(view / str(number - 2), ignore_errors=True)
        batch.unpersist()

    schema = session.read.parquet(str(log / "events")).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    writer = stream.parquet(str(log / "events")).writeStream.foreachBatch(refresh)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return max((place for place in view.iterdir()), key=lambda place: int(place.name))


def answered(place: Path) -> Any:
    """The rows that are in the view at the end, in order."""
    table = ds.dataset(place, format="parquet").to_table()
    columns = {name: table.column(name).cast(pa.int64()) for name in COLUMNS}
    weights = pa.array([1] * len(table), pa.int64())
    if "_weight" in table.column_names:
        weights = table.column("_weight").cast(pa.int64())
    rows = pa.table(columns | {"weight": weights}).group_by(COLUMNS).aggregate([("weight", "sum")])
    rows = rows.filter(pc.not_equal(rows["weight_sum"], 0))
    rows = rows.sort_by([(name, "ascending") for name in COLUMNS])
    return [list(row.values()) for row in rows.to_pylist()]


SIDES = {"Millstream": ours, "foreachBatch": for_each_batch}

if __name__ == "__main__":
    main(SIDES, answered)
