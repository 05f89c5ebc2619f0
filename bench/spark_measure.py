"""Starting a measurement and reading its figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from spark_data import fresh

HERE = Path(__file__).parent
MASTER = "local[2]"
SAMPLE_SECONDS = 0.2

#: A moment, and the processor time until then of the driver, the JVM and the workers.
Sample = tuple[float, float, float, float]
ROLES = ("driver", "jvm", "workers")


@dataclass(frozen=True)
class Figures:
    """What one run of one side has taken.

    Steady means: without the first batch if the session was warm, else without the first half.
    """

    rows_per_batch: int
    start: float
    end: float
    out: Path
    batches: list[dict[str, Any]]
    samples: list[Sample]
    is_warm: bool

    @property
    def rows(self) -> int:
        return self.rows_per_batch * len(self.batches)

    @property
    def skipped(self) -> int:
        return 1 if self.is_warm else len(self.batches) // 2

    @property
    def steady(self) -> tuple[float, float]:
        """From the end of the last batch that is left out to the end of the last batch."""
        return self.batches[self.skipped - 1]["end"], self.batches[-1]["end"]

    @property
    def rows_per_s(self) -> float:
        start, end = self.steady
        return self.rows_per_batch * (len(self.batches) - self.skipped) / (end - start)

    @property
    def rows_per_s_in_all(self) -> float:
        """From the start of the query to its end, without the start of the session."""
        return self.rows / self.seconds

    @property
    def seconds(self) -> float:
        """All of it, without the start of the session."""
        return self.end - self.start

    @property
    def cpu_seconds(self) -> float:
        """Of the processor, in the same time."""
        times, *roles = zip(*self.samples, strict=True)
        return float(sum(np.ptp(np.interp((self.start, self.end), times, one)) for one in roles))

    @property
    def cpu_us_per_row(self) -> float:
        return 1e3 * sum(self.cpu_ms_per_batch.values()) / self.rows_per_batch

    @property
    def cpu_ms_per_batch(self) -> dict[str, float]:
        """Of the driver, the JVM and the workers, between two samples as if it were even."""
        times, *roles = zip(*self.samples, strict=True)
        used = {}
        for name, seconds in zip(ROLES, roles, strict=True):
            before, after = np.interp(self.steady, times, seconds)
            used[name] = 1e3 * float(after - before) / (len(self.batches) - self.skipped)
        return used

    def median_ms(self, name: str) -> float:
        return float(median(b["ms"].get(name, 0) for b in self.batches[self.skipped :]))


@contextmanager
def measured(
    side: str, job: str, trades: Any, *, files: int | None = None, master: str = MASTER,
    warm: Any = None, events: bool = False, is_pinned: bool = False, **options: Any,
) -> Iterator[Figures]:  # fmt: skip
    """Run a side in a process of its own; what it has written is there for a while.

    A job that is no streaming query has no batches: `files` is 0. What is pinned has one core for
    all that it does: `local[1]` limits tasks only, and leaves the others to Java and to the driver.
    """
    folder = fresh(f"{side}-{job}".replace(" ", "-"))
    files = trades.files if files is None else files
    spec = {
        "side": side, "job": job, "trades": str(trades.folder), "folder": str(folder),
        "files": files, "master": master, "options": options,
        "warm": str(warm.folder) if warm else None,
    }  # fmt: skip
    # Spark's workers need it too. What was there before says which sources are measured.
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    if events:
        (folder / "events").mkdir()
        environment["PYSPARK_SUBMIT_ARGS"] = (
            "--conf spark.eventLog.enabled=true --conf spark.eventLog.compress=false "
            f"--conf spark.eventLog.dir=file:{folder}/events pyspark-shell"
        )
    command = [sys.executable, str(HERE / "spark_child.py"), json.dumps(spec)]
    try:
        with (folder / "log").open("w") as log:
            child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)  # noqa: S603
            if is_pinned:  # what it starts is too
                psutil.Process(child.pid).cpu_affinity([0])
            samples = list(sampled(child))
        if child.returncode:
            tail = (folder / "log").read_text().splitlines()[-30:]
            raise RuntimeError("\n".join([f"{side} {job}: status {child.returncode}", *tail]))
        found = json.loads((folder / "figures.json").read_text())
        if len(found["batches"]) < files:
            raise RuntimeError(f"{files} files were {len(found['batches'])} batches")
        yield Figures(
            trades.rows_per_file, found["start"], found["end"], Path(found["out"]),
            found["batches"][:files],  # Spark may end with one that has no rows
            samples, warm is not None,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sampled(child: subprocess.Popen[bytes]) -> Iterator[Sample]:
    """The processor time of a process and its descendants now and then, until it ends."""
    root = psutil.Process(child.pid)
    try:
        while child.poll() is None:
            used = dict.fromkeys(ROLES, 0.0)
            for process in [root, *root.children(recursive=True)]:
                role, seconds = _used(process, root)
                used[role] += seconds
            yield time.time(), used["driver"], used["jvm"], used["workers"]
            time.sleep(SAMPLE_SECONDS)
    except psutil.NoSuchProcess:
        child.wait()
    finally:
        if child.poll() is None:
            child.kill()


def _used(process: psutil.Process, root: psutil.Process) -> tuple[str, float]:
    try:
        role = "driver" if process == root else "jvm" if process.name() == "java" else "workers"
        # With the processes that it had started and that are gone.
        return role, sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return "workers", 0.0
