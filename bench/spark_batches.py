"""When our batches ended: they are jobs of Spark, and Spark tells of batches of queries only."""

from __future__ import annotations

import time
from typing import Any

#: As `spark_child` tells the batches of a query.
ENDED: list[dict[str, Any]] = []


def note(report: Any) -> None:
    """For `run(progress=note)`."""
    if report.batch is not None and report.batch.read:
        ENDED.append({"end": time.time(), "ms": {"a whole batch": 1e3 * report.batch.seconds}})
