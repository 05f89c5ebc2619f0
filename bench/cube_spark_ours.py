"""Our side of cubes on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spark_ours
from cube_spark_data import SIZES, VERTICES, WINDOW
from millstream import api
from spark_batches import note

_KEPT = " | ".join(", ".join(v) for v in VERTICES)
CONF = f"""
Dimensions = {" | ".join(SIZES)}
TimeGrain = Second
CWindow = {WINDOW}
MVertices = {_KEPT}
OutputVertices = {_KEPT}
Measures = total: sum(amount), n: count()
"""
QUERY = """
CREATE STREAM sales (customer TEXT, part TEXT, supplier TEXT, store TEXT, amount NUMBER) TIME at;
CREATE CUBE c FROM sales WITH 'cube.conf';
"""
session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """One file a batch, a Parquet folder for every vertex."""
    (folder / "out").mkdir()
    (folder / "cube.conf").write_text(CONF)
    (folder / "cube.cql").write_text(QUERY)
    compiled = api.compile(folder / "cube.cql")
    files = list((rows / "sales").glob("*.parquet"))
    compiled.run(
        {"sales": f"{rows / 'sales'}/*.parquet"},
        {name: f"{folder / 'out' / name}/" for name in compiled.program.outputs},
        engine="spark", progress=note, session=session, checkpoint=folder / "checkpoint",
        # Files are of about one size; two are never within it.
        batch_bytes=int(1.02 * max(path.stat().st_size for path in files)),
    )  # fmt: skip
    return folder / "out"
