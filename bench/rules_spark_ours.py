"""Our side of the rules on Spark: programs A to D in the algebra."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import millstream
import spark_ours
from rules_programs import PROGRAMS
from spark_batches import note

session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run a program, one file of each input a batch, into a Parquet folder."""
    out = folder / "out"
    files = list(rows.glob("*/*.parquet"))
    millstream.compile_flow(allowed=PROGRAMS[spec["job"]]()).run(
        {place.name: f"{place}/*.parquet" for place in rows.iterdir()},
        {"allowed": f"{out}/"},
        engine="spark",
        progress=note,
        session=session,
        checkpoint=folder / "checkpoint",
        # Files of an input are of about one size; two are never within it.
        batch_bytes=int(1.02 * max(path.stat().st_size for path in files)),
    )
    return out
