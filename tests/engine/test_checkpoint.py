"""What is kept, what is deleted and what is computed again, mostly without starting Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.connectors.location import parse_location
from millstream.engine.checkpoint import KEPT_PLANS, Checkpoint
from millstream.engine.history import HISTORY, PIECES_PER_FILE
from millstream.engine.planning import FILES_PER_LIST, plan_name
from millstream.engine.spark.claims import Claims
from millstream.engine.spark.wire import Wire, record_batch, rows_of
from millstream.engine.storage.codec import decode
from millstream.engine.storage.records import read_record, write_record
from millstream.errors import PlanError
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.engine.bench import Bench

PROGRAM = """
output out;
input in(k text, x integer);
variable $s(x integer = 0);
(out, $s) <- Fold[by k; set $s.x = $s.x + x; emit k, x = $s.x](in, $s);
"""

LAYOUT = {"program": "output o;", "shape": "[]", "buckets": 4, "layout": {}}


def bench(folder: Path, **options: Any) -> Bench:
    (folder / "in").mkdir(exist_ok=True, parents=True)
    program = load(Source("test.brook", PROGRAM))
    locations = {"in": parse_location("csv:in/*.csv", folder)}
    return Bench(program, locations, folder / "checkpoint", **options)


def arrive(folder: Path, number: int) -> Path:
    path = folder / "in" / f"{number:06}.csv"
    path.write_text(f"_time,k,x\n{number},k{number % 3},{number}\n")
    return path


def run(job: Bench, folder: Path, count: int) -> list[object]:
    for number in range(count):
        arrive(folder, number)
        assert job.batch()
    return sums(job)


def sums(job: Bench) -> list[object]:
    """Every row with its time and weight."""
    return job.sinks["out"].items()


def expected(count: int) -> list[object]:
    totals = [0, 0, 0]
    found: list[object] = []
    for n in range(count):
        totals[n % 3] += n
        found.append((n, 1, (f"k{n % 3}", totals[n % 3])))
    return found


def test_a_worker_that_remembers_and_one_that_forgets_agree(tmp_path: Path) -> None:
    # The row of an instant is let go by the next one, so the last one waits.
    assert expected(49) == run(bench(tmp_path / "a"), tmp_path / "a", 50)
    assert expected(49) == run(bench(tmp_path / "b", forgets=True), tmp_path / "b", 50)


def test_the_number_of_partitions_may_change_between_batches(tmp_path: Path) -> None:
    found: list[object] = []
    (tmp_path / "in").mkdir()
    for number in range(45):
        arrive(tmp_path, number)
        job = bench(tmp_path, partitions=(1, 2, 3, 4)[number % 4])
        assert job.batch()
        found += sums(job)
    assert expected(44) == found


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1_000, pytest.param(10_000, marks=pytest.mark.proof)])
def test_files_and_state_stay_bounded_over_thousands_of_batches(
    batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it is the count that matters here
    job = bench(tmp_path)
    sizes: list[int] = []
    for number in range(batches):
        path = arrive(tmp_path, number)
        assert job.batch()
        path.unlink()
        if number % (batches // 10) == batches // 10 - 1:
            sizes.append(size_of(tmp_path / "checkpoint"))
            names = job.files.names("state/stage-0")
            # Two snapshots and the deltas since the older of them, each from two tasks.
            assert len(names) <= 2 * (20 + 20 + 2)
            sources = job.files.names("sources")
            kept = [name for name in sources if name.endswith(HISTORY)]
            assert len(kept) <= number // PIECES_PER_FILE + 2
            assert len(sources) - len(kept) <= 2 * (KEPT_PLANS + 2)
            assert len(job.files.names("batches")) <= 45
            assert len(job.files.names("claims")) <= 4
            newest = decode(job.files.read(plan_name(number)))
            assert len(json.loads(newest["since"]).get("in", [])) <= FILES_PER_LIST + 1
    assert expected(batches - 1) == sums(job)
    # Only the lists of files that have been taken grow.
    taken = size_of(tmp_path / "checkpoint" / "sources")
    assert size_of(tmp_path / "checkpoint") - taken < 2 * sizes[0]


def size_of(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def test_a_batch_that_is_run_again_writes_the_same_bytes(tmp_path: Path) -> None:
    job = bench(tmp_path)
    for number in range(5):
        arrive(tmp_path, number)
        before = (job.last, job.known)
        assert job.batch()
    names = [f"state/stage-0/{n}" for n in job.files.names("state/stage-0")]
    contents = {n: job.files.read(n) for n in names}
    again = bench(tmp_path)
    again.last, again.known = before
    again.delivery.next["out"] = 4
    again.run(4)
    assert contents == {n: job.files.read(n) for n in names}
    assert list(job.sinks["out"].batches[4].rows()) == again.sinks["out"].rows()


def test_a_large_file_is_taken_in_pieces_by_several_tasks(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    count = 3_000
    rows = "".join(f"{n},k{n % 3},{n}\n" for n in range(count))
    (tmp_path / "in" / "all.csv").write_text("_time,k,x\n" + rows)
    job = bench(tmp_path, batch_bytes=2_000, piece_bytes=300, is_following=False)
    job.planner.freeze()
    batches = 0
    while job.batch():
        batches += 1
    assert batches > 10
    assert expected(count) == sums(job)


def test_a_file_that_grows_is_followed_line_by_line(tmp_path: Path) -> None:
    job = bench(tmp_path)
    path = tmp_path / "in" / "log.csv"
    path.write_text("_time,k,x\n0,k0,0\n1,k")
    assert job.batch()
    assert not job.batch()
    with path.open("a") as file:
        file.write("1,1\n2,k2,2\n")
    assert job.batch()
    assert expected(2) == sums(job)


def test_a_task_takes_what_its_worker_has_at_hand(tmp_path: Path) -> None:
    claims = Claims(tmp_path, 7, 0, 3)
    assert 2 == claims.take(0, lambda group: group == 2)
    assert 1 == claims.take(1, lambda group: group == 2)  # taken: its own number instead
    assert 0 == claims.take(2, lambda _: False)
    assert [2, 1, 0] == [claims.take(task, lambda _: True) for task in range(3)]  # again


def test_rows_survive_the_wire() -> None:
    rows: list[Wire] = [(0, 1, b"abc"), (3, 4, b"")]
    assert rows == list(rows_of(record_batch(rows)))
    assert [] == list(rows_of(record_batch([])))


def test_a_checkpoint_of_another_version_is_told(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path)
    first.open(LAYOUT, rebuild=False)
    first.close()
    write_record(first.files, "job", read_record(first.files, "job") | {"format": 1})
    with pytest.raises(PlanError, match="another version of Millstream"):
        Checkpoint(tmp_path).open(LAYOUT, rebuild=False)
    again = Checkpoint(tmp_path)
    again.open(LAYOUT, rebuild=True)
    again.close()


def test_what_a_killed_task_has_left_half_written_goes(tmp_path: Path) -> None:
    job = bench(tmp_path)
    run(job, tmp_path, 2)
    left = tmp_path / "checkpoint" / "outputs" / ".000000002.0-0.abc.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    Checkpoint(tmp_path / "checkpoint").take_up(len(job.layout.stages), job.last)
    assert not left.exists()


REJECTED = """
output all;
input lots relation(name text);
(all, $r) <- Rstream(lots, $r);
"""


def test_an_instant_of_nothing_but_rejected_changes_is_an_instant_everywhere(
    launched: dict[str, Any], tmp_path: Path
) -> None:
    """`Rstream` speaks at each instant of which an input has told, in batches and in one go."""
    (tmp_path / "lots.csv").write_text("_time,_weight,name\n1,1,a\n2,-1,b\n3,1,c\n4,-1,d\n")
    compiled = millstream.compile(text=REJECTED, language="brook")
    runs: list[dict[str, Any]] = [
        {"engine": "reference"}, {"engine": "local"}, {"engine": "actors"},
        {"checkpoint": tmp_path / "state", "batch_bytes": 1, **launched},
    ]  # fmt: skip
    for options in runs:
        finished = compiled.run({"lots": tmp_path / "lots.csv"}, **options)
        told = [(row["_time"], row["name"]) for row in finished.rows("all")]
        assert [(1, "a"), (2, "a"), (3, "a"), (3, "c"), (4, "a"), (4, "c")] == told
        assert 2 == finished.report.inputs["lots"].rejected


NARROWED = """
output totals;
input trades(symbol text, venue text, volume integer);
(large)       <- Filter[volume > 1 and symbol != "x"](trades);
(recent, $w)  <- Range[5 us](large, $w);
(totals, $a)  <- Aggregate[by symbol; volume = sum(volume)](recent, $a);
"""


def test_a_checkpoint_is_gone_on_with_whatever_is_made_of_its_program_now(
    launched: dict[str, Any], tmp_path: Path
) -> None:
    """By other passes, or by none; it is known by what was written."""
    compiled = millstream.compile(text=NARROWED, language="brook")
    (tmp_path / "trades").mkdir()
    passes: list[dict[str, Any]] = [{}, {"optimise": False}, {"only": ["narrow_columns"]}]
    rows: list[Any] = []
    for number, some in enumerate(passes):
        lines = "".join(f"{9 * number + n},{'abx'[n % 3]},v,{n}\n" for n in range(9))
        (tmp_path / "trades" / f"{number}.csv").write_text(f"_time,symbol,venue,volume\n{lines}")
        finished = compiled.run(
            {"trades": parse_location("trades/", tmp_path)}, checkpoint=tmp_path / "checkpoint",
            **some, **launched,
        )  # fmt: skip
        rows = finished.rows("totals")  # with those of the runs before it
    whole = compiled.run({"trades": parse_location("trades/", tmp_path)}, engine="reference")
    assert whole.rows("totals") == rows


def test_a_checkpoint_of_another_text_is_refused(launched: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_text("_time,symbol,venue,volume\n1,a,v,2\n")
    for text in (NARROWED, NARROWED.replace("5 us", "6 us")):
        compiled = millstream.compile(text=text, language="brook")
        inputs = {"trades": tmp_path / "trades.csv"}
        if text == NARROWED:
            compiled.run(inputs, checkpoint=tmp_path / "state", **launched)
            continue
        with pytest.raises(PlanError, match="6 us"):
            compiled.run(inputs, checkpoint=tmp_path / "state", **launched)
