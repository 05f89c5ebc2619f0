"""Our side of the queries on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spark_ours
from millstream import api
from spark_batches import note

QUERIES = {
    "a": """
        CREATE STREAM s (a NUMBER, b NUMBER, c NUMBER, d NUMBER) TIME at;
        CREATE OUTPUT out AS
            SELECT a * b + c AS x, d - a * 0.5 AS y, c FROM s WHERE a > 0.25 AND b < 0.75;
        """,
    "b": """
        CREATE STREAM s (k TEXT, v INTEGER) TIME at;
        CREATE OUTPUT out AS
            SELECT Istream(k, SUM(v) AS total) FROM s [Range 5 Minutes] GROUP BY k;
        """,
    "c": """
        CREATE STREAM s (k INTEGER, v INTEGER) TIME at;
        CREATE RELATION r (k INTEGER, w INTEGER) ONCE;
        CREATE OUTPUT out AS SELECT Istream(s.k, s.v, r.w) FROM s [Now], r WHERE s.k = r.k;
        """,
    "d": """
        CREATE STREAM a (k INTEGER, v INTEGER) TIME at;
        CREATE STREAM b (k INTEGER, w INTEGER) TIME at;
        CREATE OUTPUT out AS
            SELECT Istream(a.k, v, w) FROM a [Range 5 Seconds], b [Range 5 Seconds]
            WHERE a.k = b.k;
        """,
    "e": """
        CREATE STREAM s (k TEXT, v INTEGER) TIME at;
        CREATE OUTPUT out AS
            SELECT Istream(k, AVG(v) AS mean) FROM s [Partition By k Rows 10] GROUP BY k;
        """,
}


session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run a query, one file of each input a batch, into a Parquet folder."""
    out = folder / "out"
    inputs = sorted(path for path in rows.iterdir() if path.is_dir())
    files = [path for one in inputs if one.name != "r" for path in one.glob("*.parquet")]
    api.compile(text=QUERIES[spec["job"]], language="cql").run(
        {one.name: f"{one}/*.parquet" for one in inputs},
        {"out": f"{out}/"},
        engine="spark",
        progress=note,
        session=session,
        checkpoint=folder / "checkpoint",
        # Files of an input are of about one size; two are never within it.
        batch_bytes=int(1.02 * max(path.stat().st_size for path in files)),
    )
    return out
