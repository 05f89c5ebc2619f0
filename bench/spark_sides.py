"""Sides of a benchmark on Spark: each in a process of its own, on a session that is warm.

A module with `SIDES`, functions of a session, of a folder with the input and of an empty one that
give an answer as JSON, runs `main` when it is started. What is measured is their time by the clock
and that of the processor: of the driver, the JVM and the workers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from spark_data import fresh

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Side:
    name: str
    seconds: float
    cpu: float
    answer: Any


def best(module: str, side: str, log: Path, warm: Path, repeats: int) -> Side:
    """The quickest of several runs of a side, which are in a module of this folder."""
    runs = (_measured(module, side, log, warm) for _ in range(repeats))
    return min(runs, key=lambda run: run.seconds)


def _measured(module: str, side: str, log: Path, warm: Path) -> Side:
    folder = fresh(f"{module}-{side}".replace(" ", "-"))
    spec = {"side": side, "log": str(log), "warm": str(warm), "folder": str(folder)}
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(HERE / f"{module}.py"), json.dumps(spec)]
    try:
        with (folder / "log").open("w") as told:
            done = subprocess.run(command, env=environment, stdout=told, stderr=told, check=False)  # noqa: S603
        if done.returncode:
            tail = (folder / "log").read_text().splitlines()[-30:]
            raise RuntimeError("\n".join([f"{side}: status {done.returncode}", *tail]))
        figures = json.loads((folder / "figures.json").read_text())
        return Side(side, figures["seconds"], figures["cpu"], figures["answer"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def session_for(side: str, folder: Path) -> Any:
    """A session as Millstream makes it, and else one as for jobs by hand."""
    import spark_ours
    from spark_hand import SETTINGS

    if side == "Millstream":
        return spark_ours.session_for({"master": "local[2]", "options": {}}, folder)
    from pyspark.sql import SparkSession  # noqa: TID251 - this is about pyspark

    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def processor_time() -> float:
    """Of this process, the JVM, and the workers, those that have ended too."""
    root = psutil.Process()
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


def main(
    sides: Mapping[str, Callable[[Any, Path, Path], Any]],
    answered: Callable[[Any], Any] = lambda answer: answer,
) -> None:
    """Run the side that the command line asks for; `answered` is not measured."""
    from millstream.engine.spark.java import find_java, java_environment

    spec = json.loads(sys.argv[1])
    os.environ.update(java_environment(find_java()))
    folder, run = Path(spec["folder"]), sides[spec["side"]]
    session = session_for(spec["side"], folder)
    (folder / "warm").mkdir()
    run(session, Path(spec["warm"]), folder / "warm")
    used, begun = processor_time(), time.time()
    answer = run(session, Path(spec["log"]), folder)
    figures = {"seconds": time.time() - begun, "cpu": processor_time() - used}
    (folder / "figures.json").write_text(json.dumps(figures | {"answer": answered(answer)}))
    session.stop()
