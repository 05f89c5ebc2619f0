"""The examples of `cores_spark`, each on the files that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import millstream
import spark_ours
from spark_batches import note

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = {
    "linear_road": "cql/linear_road/linear_road.cql",
    "auction_site": "cql/auction_site/auction_site.cql",
    "port": "rules/port/port.rules",
}

session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """Run an example, one file of each input a batch, into Parquet folders."""
    out = folder / "out"
    out.mkdir()
    compiled = millstream.compile(EXAMPLES / FILES[spec["job"]])
    largest = max(path.stat().st_size for path in rows.glob("*/*.parquet"))
    compiled.run(
        {place.name: f"{place}/*.parquet" for place in rows.iterdir()},
        {name: f"{out}/{name}/" for name in compiled.program.outputs},
        engine="spark", progress=note, session=session, checkpoint=folder / "checkpoint",
        batch_bytes=int(1.02 * largest), **spec["options"],
    )  # fmt: skip
    return out
