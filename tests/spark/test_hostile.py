"""Data that means harm: rows that cannot be read, giant values, skew, very many keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream
from millstream.api import Finished
from millstream.engine.job import InputCounts
from tests.spark.test_workers import own_workers

pytestmark = pytest.mark.spark

COUNTS = """
output counts;
input in(k text, x integer);
variable $n(n integer = 0, x integer = 0);
(counts, $n) <- Fold[by k; set $n.n = $n.n + 1; set $n.x = $n.x + x;
                     emit k, n = $n.n, x = $n.x](in, $n);
"""
LENGTHS = """
output lengths;
input in(k text, note text);
(lengths) <- Map[k, length = length(note)](in);
"""
MEGABYTE = 1 << 20
GIANT = 100 * MEGABYTE


def run(program: str, source: Path, session: Any, **options: Any) -> Finished:
    return millstream.compile(text=program).run(
        {"in": source}, engine="spark", session=session, partitions=2, **options
    )


def on_local(program: str, source: Path) -> list[Any]:
    compiled = millstream.compile(text=program)
    finished = compiled.run({"in": source}, engine="local")
    return finished.rows(*compiled.program.outputs)


#: Each on a line of its own, and none of them a row.
POISON = [
    b"7,k,not a number", b"no time,k,1", b"7", b"7,k,1,", b"\xff\xfe,k,1", b"7,\xc3\x28,1",
    b"7,k,99999999999999999999", b"1e400,k,1", b"7,k,1.5", b",k,1", b'7,k"k,1',
]  # fmt: skip


def test_poison_rows_are_rejected_and_all_others_are_right(spark: Any, tmp_path: Path) -> None:
    rows = [b"%d,k%d,%d" % (n, n % 7, n) for n in range(2_000)]
    write_lines(tmp_path / "good.csv", rows)
    for number, poison in enumerate(POISON):
        rows.insert(150 * (number + 1), poison)
    write_lines(tmp_path / "mixed.csv", rows)
    rejected = tmp_path / "rejected.csv"
    finished = run(
        COUNTS, tmp_path / "mixed.csv", spark, batch_bytes=1_000, outputs={"rejected": rejected}
    )
    bad = len(POISON)
    assert InputCounts(2_000 + bad, 2_000, rejected=bad) == finished.report.inputs["in"]
    assert on_local(COUNTS, tmp_path / "good.csv") == finished.rows("counts")
    lines = [150 * (n + 1) + 2 for n in range(bad)]  # after a header, counted from one
    assert lines == [int(one.split(",")[1]) for one in rejected.read_text().splitlines()[1:]]


def write_lines(path: Path, rows: list[bytes]) -> None:
    path.write_bytes(b"_time,k,x\n" + b"\n".join(rows) + b"\n")


@contextmanager
def most_memory() -> Iterator[dict[int, int]]:
    """The most bytes that each worker has held meanwhile, also those that end before."""
    peaks: dict[int, int] = {}
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            for worker in own_workers():
                peaks[worker.pid] = max(peaks.get(worker.pid, 0), resident(worker.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        is_over.set()
        thread.join()


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except (FileNotFoundError, ProcessLookupError):
        return 0


@pytest.mark.parametrize("ending", ["csv", pytest.param("jsonl", marks=pytest.mark.proof)])
def test_a_giant_line_is_rejected_without_being_held(
    ending: str, spark: Any, tmp_path: Path
) -> None:
    ordinary, giant = tmp_path / f"ordinary.{ending}", tmp_path / f"giant.{ending}"
    write_notes(ordinary, ending, [(1, 10), (3, 20)])
    write_notes(giant, ending, [(1, 10), (2, GIANT), (3, 20)])
    with most_memory() as usual:
        run(LENGTHS, ordinary, spark)
    with most_memory() as peaks:
        finished = run(LENGTHS, giant, spark)
    assert InputCounts(read=3, processed=2, rejected=1) == finished.report.inputs["in"]
    assert on_local(LENGTHS, ordinary) == finished.rows("lengths")
    assert "longer than 1 MiB" in finished.report.first_rejections[0]
    assert max(peaks.values()) < max(usual.values()) + 64 * MEGABYTE


def write_notes(path: Path, ending: str, notes: list[tuple[int, int]]) -> None:
    """Rows with a time and a note of so many characters."""
    with path.open("w") as file:
        file.write("_time,k,note\n" if ending == "csv" else "")
        for time_, size in notes:
            note = "x" * size
            if ending == "csv":
                file.write(f"{time_},k,{note}\n")
            else:
                file.write(f'{{"_time": {time_}, "k": "k", "note": "{note}"}}\n')


def test_a_giant_value_in_parquet_goes_through(spark: Any, tmp_path: Path) -> None:
    times = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
    notes = ["a", "x" * GIANT, "b"]
    pq.write_table(
        pa.table({"_time": times, "k": ["k"] * 3, "note": notes}), tmp_path / "in.parquet"
    )
    with most_memory() as peaks:
        finished = run(LENGTHS, tmp_path / "in.parquet", spark)
    assert [1, GIANT, 1] == [row["length"] for row in finished.rows("lengths")]
    print(f"workers held up to {max(peaks.values()) >> 20} MB")  # noqa: T201 - for the record


def write_keys(path: Path, keys: Any, start: int = 0) -> None:
    """A row per key, one microsecond after the other."""
    count = len(keys)
    table = {
        "_time": pa.array(np.arange(start, start + count), pa.timestamp("us", "UTC")),
        "k": pa.array(keys),
        "x": np.ones(count, np.int64),
    }
    pq.write_table(pa.table(table), path)


def test_almost_all_rows_on_one_key_are_as_right_as_any(spark: Any, tmp_path: Path) -> None:
    count = 400_000
    is_rare = np.arange(count) % 100 == 99
    keys = np.where(is_rare, np.char.add("k", (np.arange(count) % 1_000).astype(str)), "hot")
    write_keys(tmp_path / "in.parquet", keys)
    started = time.monotonic()
    finished = run(COUNTS, tmp_path / "in.parquet", spark)
    seconds = time.monotonic() - started
    found = finished.writers["counts"].batches
    numbers = np.concatenate([batch.column("n").values for batch in found])
    rows = [text for batch in found for text in batch.column("k").values.to_pylist()]
    hot = np.array([row == "hot" for row in rows])
    assert np.array_equal(~is_rare, hot)
    assert np.array_equal(np.arange(1, hot.sum() + 1), numbers[hot])
    assert keys.tolist() == rows
    assert InputCounts(count, count) == finished.report.inputs["in"]
    print(f"{count / seconds:,.0f} rows/s")  # noqa: T201 - for the record


#: A key of some nine characters, a number of times and a sum, with room for a table to grow.
MOST_BYTES_PER_KEY = 120


def test_a_million_keys_have_a_bounded_state(spark: Any, tmp_path: Path) -> None:
    count = 1_000_000
    keys = np.char.add("key", np.arange(count).astype(str))
    (tmp_path / "in").mkdir()
    write_keys(tmp_path / "in" / "1.parquet", keys)
    first = run(COUNTS, tmp_path / "in", spark, checkpoint=tmp_path / "checkpoint")
    assert first.report.state_bytes is not None
    per_key = first.report.state_bytes / count
    print(f"{per_key:.1f} bytes per key")  # noqa: T201 - for the record
    assert per_key < MOST_BYTES_PER_KEY
    assert (count, count) == counted(first)
    # Every key is still there: some come again, with workers that remember nothing.
    again = keys[:: count // 1_000]
    write_keys(tmp_path / "in" / "2.parquet", again, start=count)
    second = run(COUNTS, tmp_path / "in", spark, checkpoint=tmp_path / "checkpoint")
    assert (count + 1_000, count + 2 * 1_000) == counted(second)


def counted(finished: Finished) -> tuple[int, int]:
    """How many results there are, and the sum of their counts."""
    batches = finished.writers["counts"].batches
    return sum(map(len, batches)), sum(int(b.column("n").values.sum()) for b in batches)
