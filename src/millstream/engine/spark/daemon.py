"""Spark's Python daemon, with what our tasks need loaded before workers are forked.

Spark starts `python -m MODULE` once and forks a worker whenever it needs one; what has been
imported before the fork need not be imported by every worker again.
"""

from __future__ import annotations

import gc
import importlib
import os
from typing import Any

#: Set for tasks that compile nothing: what they need is loaded by themselves.
PLAIN = "MILLSTREAM_PLAIN_TASKS"

#: Of so many tasks of a worker.
_COLLECTED_EVERY = 20
#: Arrow loads pandas when it first makes an array.
_LOADED = (
    "pandas",
    "millstream.engine.spark.native",
    "millstream.engine.reading",
    "millstream.engine.spark.source",
    "millstream.engine.spark.worker",
    "millstream.connectors.csv_scan",
    "millstream.connectors.json_scan",
    "millstream.connectors.pieces",
    "millstream.connectors.read_parquet",
    "millstream.kernels.build",
    "pyspark.worker",
)


def load_before_forking() -> None:
    """Everything that tasks use, and what numba loads at the first call of compiled code."""
    for name in _LOADED:
        importlib.import_module(name)
    from numba.core.registry import cpu_target

    from millstream.kernels.table import KERNELS, kernel_for

    for function in KERNELS:
        kernel_for(function)
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    # A worker collects garbage after every task, and would look at all of this each time.
    gc.collect()
    gc.freeze()


class Sparing:
    """Mutable: collects garbage once in a while, for one who asks for it after every task.

    To look at all that kernels and plans are made of takes longer than many a task.
    """

    def __init__(self) -> None:
        self._asked = 0

    def collect(self) -> None:
        self._asked += 1
        if self._asked % _COLLECTED_EVERY == 0:
            gc.collect()


def main() -> None:
    daemon: Any = importlib.import_module("pyspark.daemon")
    if PLAIN not in os.environ:
        load_before_forking()
    daemon.gc = Sparing()
    daemon.manager()


if __name__ == "__main__":
    main()
