"""One measurement in a process of its own, so that every side has a fresh JVM.

    python bench/spark_child.py '{"side": "spark_ours", "job": "vwap", ...}'

writes `figures.json` into the folder that it is given. What Spark says about its batches is
asked for at the end: a listener in Python takes longer than a small batch.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from millstream.engine.spark.java import find_java, java_environment
from spark_batches import ENDED


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(java_environment(find_java()))
    folder = Path(spec["folder"])
    side = importlib.import_module(spec["side"])
    session = side.session_for(spec, folder)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    if spec["warm"]:
        (folder / "warm").mkdir()
        side.run(session, spec, Path(spec["warm"]), folder / "warm")
    ENDED.clear()
    queries: list[Any] = []
    threading.Thread(target=find_query, args=(session, queries), daemon=True).start()
    start = time.time()
    out = side.run(session, spec, Path(spec["trades"]), folder)
    end = time.time()
    # A finite job has no query, and ours are none.
    batches = batches_of(queries[0]) if queries else ENDED
    figures = {"start": start, "end": end, "out": str(out), "batches": batches}
    session.stop()
    return figures


def find_query(session: Any, found: list[Any]) -> None:
    """The query of a run, whoever has started it."""
    while not found:
        time.sleep(0.02)
        found += session.streams.active


def batches_of(query: Any) -> list[dict[str, Any]]:
    """When every batch ended, and where its time went."""
    batches = []
    for one in query._jsq.recentProgress():  # noqa: SLF001 - in Python it takes 0.1 s a batch
        progress = json.loads(one.json())
        took = progress["durationMs"]
        if "addBatch" in took:
            start = datetime.fromisoformat(progress["timestamp"]).timestamp()
            batches.append({"end": start + took["triggerExecution"] / 1000, "ms": took})
    return batches


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    figures = measure(given)
    (Path(given["folder"]) / "figures.json").write_text(json.dumps(figures))
