"""A project of many programs is one job of Spark for each batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.engine.spark.jobs import Jobs
from tests.laws.runs import Collector

pytestmark = pytest.mark.spark

#: Each node takes what the one before it gives: keyed, unkeyed, windows, folds.
PROGRAMS = {
    "clean": """
        output good; input raw(k text, x integer);
        (good) <- Filter[x >= 0](raw);""",
    "split": """
        output low, high; input good(k text, x integer);
        (a, b) <- Duplicate(good);
        (low)  <- Filter[x < 50](a);
        (high) <- Filter[x >= 50](b);""",
    "sums": """
        output sums; input low(k text, x integer);
        variable $s(x integer = 0);
        (sums, $s) <- Fold[by k; set $s.x = $s.x + x; emit k, x = $s.x](low, $s);""",
    "recent": """
        output recent; input high(k text, x integer);
        (window, $w) <- Range[20 us](high, $w);
        (groups, $g) <- Aggregate[by k; n = count(), most = max(x)](window, $g);
        (recent, $i) <- Istream(groups, $i);""",
    "count": """
        output counted; input sums(k text, x integer);
        variable $n(n integer = 0);
        (counted, $n) <- Fold[set $n.n = $n.n + 1; emit k, x, n = $n.n](sums, $n);""",
    "even": """
        output even; input counted(k text, x integer, n integer);
        (even) <- Filter[n % 2 == 0](counted);""",
    "copy": """
        output one, two; input even(k text, x integer, n integer);
        (one, two) <- Duplicate(even);""",
    "latest": """
        output latest; input one(k text, x integer, n integer);
        (latest, $l) <- Latest[by k](one, $l);""",
    "total": """
        output total; input two(k text, x integer, n integer);
        (all, $w)   <- Range[unbounded](two, $w);
        (total, $t) <- Aggregate[rows = count(), x = sum(x)](all, $t);""",
    "alarm": """
        output alarm; input recent(k text, n integer, most integer);
        (alarm) <- Filter[most > 95](recent);""",
}
OUTPUTS = {"latest", "total", "alarm"}


def make_project(folder: Path) -> None:
    text = '[stream.raw]\nsource = "raw/*.csv"\n'
    text += 'columns = { k = "text", x = "integer" }\n'
    for name, program in PROGRAMS.items():
        (folder / f"{name}.brook").write_text(program)
        text += f'[node.{name}]\nbrook = "{name}.brook"\n'
    (folder / "millstream.toml").write_text(text)
    (folder / "raw").mkdir()
    for number in range(5):
        rows = (f"{number * 40 + n},k{n % 4},{(number * 31 + n * 17) % 104 - 4}" for n in range(40))
        (folder / "raw" / f"{number}.csv").write_text("\n".join(["_time,k,x", *rows, ""]))


def test_ten_nodes_are_one_job_a_batch_and_give_the_rows_of_the_local_engine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    compiled = millstream.compile(tmp_path)
    assert len(PROGRAMS) == 10
    assert set(compiled.program.outputs) == OUTPUTS
    local = {name: Collector() for name in OUTPUTS}
    compiled.run(outputs=local, engine="local")
    found = {name: Collector() for name in OUTPUTS}
    batches: list[str] = []
    done = Jobs.done

    def noted(jobs: Jobs, work: Any, name: str) -> list[Any]:
        batches.append(name)
        return done(jobs, work, name)

    monkeypatch.setattr(Jobs, "done", noted)
    compiled.run(outputs=found, engine="spark", session=spark, partitions=2, batch_bytes=300)
    assert {name: one.rows for name, one in local.items()} == {
        name: one.rows for name, one in found.items()
    }
    assert all(one.rows for one in found.values())
    assert len(batches) >= 5
    (group,) = set(batches)
    assert len(batches) == len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
