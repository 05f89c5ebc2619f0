"""Where the time of a batch goes within Spark's job, from Spark's event log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

Parts = dict[str, tuple[float, str]]


def in_job(log: Path, batches: int) -> Parts:
    """Medians in ms over the second half of the jobs."""
    jobs: dict[int, dict[str, Any]] = {}
    stages: dict[int, dict[str, float]] = {}
    for event in _events(log):
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            jobs[event["Job ID"]] = {
                "start": event["Submission Time"],
                "stages": event["Stage IDs"],
            }
        elif kind == "SparkListenerJobEnd":
            jobs[event["Job ID"]]["end"] = event["Completion Time"]
        elif kind == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            took = info["Completion Time"] - info["Submission Time"]
            stages.setdefault(info["Stage ID"], {"tasks": 0.0})["took"] = took
        elif kind == "SparkListenerTaskEnd":
            stage = stages.setdefault(event["Stage ID"], {"tasks": 0.0})
            run = event["Task Metrics"]["Executor Run Time"]
            stage["tasks"] = max(stage["tasks"], run)
    done = [job for job in jobs.values() if "end" in job][-(batches // 2) :]
    parts: Parts = {"Spark's job": (median(j["end"] - j["start"] for j in done), "")}
    for place in range(min(len(j["stages"]) for j in done)):
        ran = [stages[sorted(j["stages"])[place]] for j in done]
        tasks = median(s["tasks"] for s in ran)
        what = "reads, cuts by bucket" if place == 0 else "kernels, state made durable"
        parts[f"  stage {place}"] = (median(s["took"] for s in ran), f"{what}; task {tasks:.0f} ms")
    return parts


def _events(log: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(p for p in log.rglob("*") if p.is_file() and not p.name.startswith(".")):
        for line in path.read_text().splitlines():
            if line.startswith("{"):
                yield json.loads(line)
