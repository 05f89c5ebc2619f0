"""What is kept and what is deleted, without starting Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from millstream.backends.spark.checkpoint import KEPT_PLANS, Checkpoint
from millstream.backends.spark.layout import Description, layout_of
from millstream.backends.spark.source import (
    FILES_PER_LIST,
    InputSpec,
    InputTask,
    SourceSpec,
    plan_batch,
)
from millstream.backends.spark.wire import Wire, record_batches, rows_of
from millstream.backends.spark.worker import Memory, StageTask, _results
from millstream.calculus.graph import Input, Program
from millstream.calculus.text import load
from millstream.connectors.location import parse_location
from millstream.source import Source
from millstream.state.codec import decode, encode
from millstream.state.files import LocalFiles

PROGRAM = """
output out;
input in(k text, x integer);
variable $s(x integer = 0);
(out, $s) <- Fold[by k; set $s.x = $s.x + x; emit k, x = $s.x](in, $s);
"""


class Bench:
    """Batches run by hand, task after task, as Spark would."""

    def __init__(self, folder: Path, partitions: int = 2) -> None:
        self.folder = folder
        self.program: Program = load(Source("test.brook", PROGRAM))
        self.layout = layout_of(self.program)
        self.files = LocalFiles(folder / "checkpoint")
        self.checkpoint = Checkpoint(folder / "checkpoint")
        (folder / "in").mkdir(exist_ok=True)
        self.partitions = partitions

    def spec(self) -> SourceSpec:
        one: Input = self.program.inputs[0]
        target = self.layout.targets["in"]
        location = parse_location("csv:in/*.csv", self.folder)
        spec = InputSpec(one, location, 0, self.layout.number("in"), target.stage, target.key)
        return SourceSpec(
            (spec,), self.folder / "checkpoint", self.partitions, 4, len(self.layout.stages), 1,
            has_ticks=False, is_following=True,
        )  # fmt: skip

    def batch(self, seq: int, memory: Memory | None = None) -> list[tuple[int, object]]:
        """One row arrives, and the batch that takes it is run."""
        path = self.folder / "in" / f"{seq:06}.csv"
        path.write_text(f"_time,k,x\n{seq},k{seq % 3},{seq}\n")
        there = {"in": sorted(f"in/{p.name}" for p in (self.folder / "in").iterdir())}
        plan = plan_batch(self.spec(), self.files, seq, there)
        assert plan is not None
        self.files.write(f"sources/{seq:09}.plan", encode(plan))
        rows: list[Wire] = list(InputTask(self.spec(), 0, seq, plan).rows())
        description = Description(
            self.program, str(self.folder / "checkpoint"), 4, self.partitions, 20
        )
        memory = memory or Memory(description, self.layout, self.files)
        memory.description = description
        for stage in range(len(self.layout.stages)):
            rows = [
                row
                for p in range(self.partitions)
                for row in self.stage(memory, stage, seq, p, rows)
            ]
        results = _results(self.layout, record_batches(rows))
        self.files.write(f"outputs/{seq:09}", encode(results))
        self.checkpoint.tidy(len(self.layout.stages), seq)
        path.unlink()
        with pa.ipc.open_stream(results["outputs"]["out"]) as reader:
            table = reader.read_all()
        return list(zip(table["time"].to_pylist(), table["c1"].to_pylist(), strict=True))

    def stage(
        self, memory: Memory, stage: int, seq: int, partition: int, rows: list[Wire]
    ) -> list[Wire]:
        mine = [r for r in rows if r[1] % self.partitions == partition]
        return list(StageTask(memory, stage, seq, partition).run(record_batches(mine)))


def sums(rows: list[tuple[int, object]]) -> list[object]:
    return [value for _, value in rows]


def expected(count: int) -> list[int]:
    totals = [0, 0, 0]
    found = []
    for n in range(count):
        totals[n % 3] += n
        found.append(totals[n % 3])
    return found


def run(bench: Bench, count: int, memory: Memory | None) -> list[object]:
    return [value for seq in range(count) for value in sums(bench.batch(seq, memory))]


def test_a_worker_that_remembers_and_one_that_forgets_agree(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    hot = Bench(tmp_path / "a")
    description = Description(hot.program, str(tmp_path / "a" / "checkpoint"), 4, 2, 20)
    memory = Memory(description, hot.layout, hot.files)
    # The row of an instant is let go by the next one, so the last one waits.
    assert expected(49) == run(hot, 50, memory)
    assert expected(49) == run(Bench(tmp_path / "b"), 50, None)


def test_the_number_of_partitions_may_change_between_batches(tmp_path: Path) -> None:
    found: list[object] = []
    for seq in range(45):
        bench = Bench(tmp_path, partitions=(1, 2, 3, 4)[seq % 4])
        found += sums(bench.batch(seq))
    assert expected(44) == found


def test_files_stay_bounded_over_many_batches(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    description = Description(bench.program, str(tmp_path / "checkpoint"), 4, 2, 20)
    memory = Memory(description, bench.layout, bench.files)
    count = 600
    run(bench, count, memory)
    state = bench.files.names("state/stage-0")
    # Two snapshots and the deltas since the older of them, each from two tasks.
    assert len(state) <= 2 * (20 + 20 + 2)
    assert len(bench.files.names("sources")) <= 2 * (KEPT_PLANS + 2)
    newest = decode(bench.files.read(f"sources/{count - 1:09}.plan"))
    assert len(newest["since"].get("in", [])) <= FILES_PER_LIST


def test_a_batch_that_is_run_again_writes_the_same_bytes(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for seq in range(5):
        bench.batch(seq)
    names = [f"state/stage-0/000000004.{p}of2.delta" for p in range(2)]
    before = [bench.files.read(n) for n in names]
    bench.batch(4)
    assert before == [bench.files.read(n) for n in names]


def test_rows_survive_the_wire() -> None:
    rows: list[Wire] = [(0, 1, 2, b"abc"), (3, 4, -1, b"")]
    back = [
        (t, b, q, bytes(blob)) for batch in record_batches(rows) for t, b, q, blob in rows_of(batch)
    ]
    assert rows == back


def test_another_number_of_buckets_is_another_job() -> None:
    program = load(Source("test.brook", PROGRAM))
    one = Description(program, "x", 4, 2, 20)
    assert one.fingerprint != replace(one, buckets=8).fingerprint
    assert one.fingerprint == replace(one, partitions=8).fingerprint
