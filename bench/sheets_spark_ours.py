"""Our side of the sheets on Spark: the workbooks of the examples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spark_ours
from millstream import api
from sheets_data import ROOT
from spark_batches import note

session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run a project, one file of each input a batch, into a Parquet folder."""
    out = folder / "out"
    compiled = api.compile(ROOT / spec["job"])
    inputs = sorted(rows.iterdir())
    files = [path for one in inputs for path in one.glob("*.parquet")]
    compiled.run(
        {one.name: f"{one}/*.parquet" for one in inputs},
        {compiled.program.outputs[0]: f"{out}/"},
        engine="spark",
        progress=note,
        session=session,
        checkpoint=folder / "checkpoint",
        # Files are of about one size; two are never within it.
        batch_bytes=int(1.02 * max(path.stat().st_size for path in files)),
        **spec["options"],
    )
    return out
