"""Our side of the rules on Spark: program B in the algebra."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import millstream
import spark_ours
from millstream.algebra import table

vessels = table("vessels", key="mmsi", mmsi="integer", berth="integer", draught="number")
berths = table("berths", key="berth_id", berth_id="integer", tide_sensor="integer")
tides = table("tides", key="id", id="integer", height="number")

known = vessels.foreign_join(berths, on="berth").foreign_join(tides, on="tide_sensor")
allowed = known.map(lambda r: {"ok": r.draught - r.height <= 10.0})

session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run the program, one file of each input a batch, into a Parquet folder."""
    out = folder / "out"
    files = list(rows.glob("*/*.parquet"))
    millstream.compile_flow(allowed=allowed).run(
        {name: f"{rows / name}/*.parquet" for name in ("vessels", "berths", "tides")},
        {"allowed": f"{out}/"},
        engine="spark",
        session=session,
        checkpoint=folder / "checkpoint",
        # Files of an input are of about one size; two are never within it.
        batch_bytes=int(1.02 * max(path.stat().st_size for path in files)),
    )
    return out
