"""Sources that Spark reads itself: by format and options, finite and without an end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.api import Compiled, Finished
from millstream.engine.job import InputCounts
from tests.engine.following import Following
from tests.laws.runs import Collector, Rows

pytestmark = pytest.mark.spark

NUMBERS = """
output numbers;
input Ticks(value integer);
variable $n(n integer = 0);
(numbers, $n) <- Fold[set $n.n = $n.n + 1; emit value, n = $n.n](Ticks, $n);
"""
RATE = """
[stream.Ticks]
source = "spark:rate"
options = { rowsPerSecond = 40, numPartitions = 1 }
columns = { timestamp = "time", value = "integer" }
time = "timestamp"

[node.numbers]
brook = "numbers.brook"
"""
SUMS = """
output sums;
input in(at time, k text, x integer) time at slack 2 us;
variable $s(x integer = 0);
(sums, $s) <- Fold[by k; set $s.x = $s.x + x; emit k, x = $s.x](in, $s);
"""
JSON = """
[stream.in]
source = "spark:json"
options = { path = "logs", maxFilesPerTrigger = 1 }
columns = { at = "time", k = "text", x = "integer" }
time = "at"
slack = "2 us"

[node.sums]
brook = "sums.brook"
"""


def rate_project(folder: Path) -> Compiled:
    (folder / "numbers.brook").write_text(NUMBERS)
    (folder / "millstream.toml").write_text(RATE)
    return millstream.compile(folder)


def json_project(folder: Path) -> Compiled:
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "sums.brook").write_text(SUMS)
    (folder / "millstream.toml").write_text(JSON)
    return millstream.compile(folder)


def at(micros: int) -> str:
    return f"1970-01-01T00:00:00.{micros:06}Z"


def row(micros: int) -> str:
    return json.dumps({"at": at(micros), "k": f"k{micros % 3}", "x": micros})


def write(folder: Path, number: int, rows: Iterable[str]) -> None:
    """Spark takes files in the order in which they were changed."""
    path = folder / "logs" / f"{number}.json"
    draft = folder / "draft"
    draft.write_text("".join(f"{one}\n" for one in rows))
    os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))
    draft.rename(path)


def run(compiled: Compiled, session: Any, checkpoint: Path, **outputs: Any) -> Finished:
    return compiled.run(
        outputs=outputs, engine="spark", session=session, checkpoint=checkpoint, partitions=2
    )


def numbers(rows: Rows) -> list[tuple[object, ...]]:
    return [values for _, _, values in rows]


def test_rate_is_followed_and_taken_up_without_a_gap(spark: Any, tmp_path: Path) -> None:
    compiled = rate_project(tmp_path)
    launched = {"engine": "spark", "session": spark, "partitions": 2}
    seen = 0
    for _ in range(2):
        with Following(compiled, launched, tmp_path / "checkpoint") as running:
            running.wait_beyond("processed", seen + 100)
            report = running.finish()
        rows = numbers(running.rows("numbers"))
        # Everything is given to a sink that does not know its batches, from the first row on.
        assert [(n, n + 1) for n in range(len(rows))] == rows
        assert len(rows) == report.inputs["Ticks"].processed > seen
        seen = len(rows)


def test_rate_without_an_end_needs_a_run_that_follows(spark: Any, tmp_path: Path) -> None:
    """A finite run takes what is there when it starts, which may be nothing at all."""
    finished = run(rate_project(tmp_path), spark, tmp_path / "checkpoint")
    counts = finished.report.inputs["Ticks"]
    assert counts.is_conserved
    assert counts.waiting == 0


def test_files_that_spark_reads_are_taken_up_again(spark: Any, tmp_path: Path) -> None:
    compiled = json_project(tmp_path)
    write(tmp_path, 0, map(row, range(10)))
    write(tmp_path, 1, map(row, range(10, 20)))
    first = run(compiled, spark, tmp_path / "checkpoint")
    assert InputCounts(read=20, processed=20) == first.report.inputs["in"]
    write(tmp_path, 2, map(row, range(20, 30)))
    second = run(compiled, spark, tmp_path / "checkpoint")
    assert InputCounts(read=30, processed=30) == second.report.inputs["in"]
    assert on_local(tmp_path) == second.rows("sums")
    # And once more, with nothing new.
    third = run(compiled, spark, tmp_path / "checkpoint")
    assert second.report.inputs == third.report.inputs
    assert second.rows("sums") == third.rows("sums")


def on_local(folder: Path) -> list[Any]:
    """The same files by our own reader."""
    compiled = millstream.compile(folder)
    finished = compiled.run({"in": f"jsonl:{folder}/logs/*.json"}, engine="local")
    return finished.rows("sums")


def test_rows_of_spark_can_be_late_or_rejected(spark: Any, tmp_path: Path) -> None:
    compiled = json_project(tmp_path)
    no_time = json.dumps({"k": "k0", "x": 1})
    write(tmp_path, 0, [*map(row, range(10)), no_time, "this is no JSON", row(8), row(3)])
    write(tmp_path, 1, [*map(row, [5, 20, 17, 18])])
    late = Collector()
    rejected = tmp_path / "rejected.csv"
    finished = run(compiled, spark, tmp_path / "checkpoint", late=late, rejected=str(rejected))
    counts = finished.report.inputs["in"]
    assert InputCounts(read=18, processed=13, late=3, rejected=2, behind=6) == counts
    assert [3, 5, 17] == [time for time, _, _ in late.rows]
    assert 3 == len(rejected.read_text().splitlines())  # with its header
    again = run(compiled, spark, tmp_path / "checkpoint")
    assert counts == again.report.inputs["in"]
    assert finished.rows("sums") == again.rows("sums")
    assert [*range(9), 8, 9, 18, 20] == [one["_time"] for one in finished.rows("sums")]
