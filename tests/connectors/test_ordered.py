"""Inputs that are not in order are put in order before a run that ends sees them."""

from __future__ import annotations

import gzip
import io
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Input
from millstream.calculus.types import INT64_MAX, INT64_MIN, INTEGER, TEXT, QueueType, Schema
from millstream.connectors import ordered
from millstream.connectors.blocks import ROWS, Blocks, write_rows
from millstream.connectors.location import parse_location
from millstream.connectors.memory import MemoryReader
from millstream.connectors.ordered import FileRun, OrderedReader, stretches
from millstream.connectors.read import open_reader
from millstream.connectors.sorting import Sorter
from millstream.connectors.times import Spread, spread_of
from millstream.errors import RunError
from millstream.plan.batch import batch_of
from tests.connectors.inputs import everything, read_all

INPUT = Input("trades", QueueType(Schema.of(k=TEXT, n=INTEGER)), time="at")
CHANGES = Input("prices", QueueType(Schema.of(k=TEXT, n=INTEGER), is_relation=True), time="at")

Item = tuple[int, tuple[str | None, int]]
TIMES = st.lists(st.integers(0, 30), max_size=60)
BOTH_WAYS = pytest.mark.parametrize("small_bytes", [0, 1 << 30])


def items(times: list[int], first: int = 0) -> list[Item]:
    """Rows that tell where they stood; some texts are null."""
    return [(t, (None if n % 7 == 3 else f"k{n}", n)) for n, t in enumerate(times, first)]


def in_time(rows: list[Item]) -> list[tuple[str | None, int]]:
    return [row for _, row in sorted(rows, key=lambda item: item[0])]


def write(path: Path, rows: list[Item]) -> None:
    """A file of the format that its name tells."""
    if path.suffix == ".parquet":
        table = pa.table({"at": [t for t, _ in rows], "k": pa.array([k for _, (k, _) in rows],
                          pa.string()), "n": [n for _, (_, n) in rows]})  # fmt: skip
        pq.write_table(table.cast(pa.schema([("at", pa.int64()), ("k", pa.string()),
                                             ("n", pa.int64())])), path)  # fmt: skip
        return
    if ".jsonl" in path.name:
        text = "".join(json.dumps({"n": n, "at": t, "k": k}) + "\n" for t, (k, n) in rows)
    else:
        text = "k,at,n\n" + "".join(f"{k or ''},{t},{n}\n" for t, (k, n) in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def rows_in(folder: Path, where: str, input_: Input = INPUT) -> list[tuple[str | None, int]]:
    location = parse_location(where, folder)
    chunks = read_all(OrderedReader(open_reader(location, input_), input_, location))
    return everything(chunks, input_)[0][2]  # type: ignore[return-value]


@settings(max_examples=200, deadline=None)
@given(TIMES, st.integers(1, 20), st.integers(1, 3000))
def test_rows_are_sorted_and_those_of_one_time_keep_their_order(
    times: list[int], chunk_rows: int, held_bytes: int
) -> None:
    """With little memory they are sorted in parts, written out and merged."""
    sorter = Sorter(INPUT.type, 0, held_bytes)
    for chunk in MemoryReader(INPUT, items(times), chunk_rows).chunks():
        sorter.add(chunk.batch)
    assert in_time(items(times)) == [row for b in sorter.batches() for row in b.rows()]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "csv.gz", "jsonl.gz"])
@BOTH_WAYS
def test_a_file_in_falling_order_is_read_in_time_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, small_bytes: int
) -> None:
    monkeypatch.setattr(ordered, "SMALL_BYTES", small_bytes)
    rows = items([9, 7, 7, 8, 1])
    write(tmp_path / f"one.{ending}", rows)
    assert in_time(rows) == rows_in(tmp_path, f"one.{ending}")


def test_files_are_read_in_the_order_of_their_times_and_not_of_their_names(tmp_path: Path) -> None:
    """The last instant of the first goes on in the second."""
    march, april = items([1, 2, 5]), items([5, 6], first=10)
    write(tmp_path / "march.csv", march)
    write(tmp_path / "april.csv", april)
    assert in_time(march + april) == rows_in(tmp_path, "*.csv")


@settings(max_examples=60, deadline=None)
@given(st.lists(TIMES, min_size=1, max_size=4), st.integers(0, 6))
def test_whatever_files_hold_nothing_is_late(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], slack: int
) -> None:
    """Within the slack rows may come as they stand, and the engine puts them in order."""
    folder = tmp_path_factory.mktemp("case")
    rows: list[Item] = []
    for number, times in enumerate(files):
        some = items(times, len(rows))
        write(folder / f"{number}.csv", some)
        rows += some
    input_ = Input("trades", INPUT.type, "at", slack)
    location = parse_location("*.csv", folder)
    chunks = read_all(OrderedReader(open_reader(location, input_), input_, location))
    (times, _, found), _ = everything(chunks, input_)
    assert sorted((row for _, row in rows), key=str) == sorted(found, key=str)
    largest = itertools.accumulate(times, max)
    assert all(time >= most - slack for time, most in zip(times, largest, strict=True))


def test_files_in_order_by_name_stay_so_and_only_what_overlaps_is_sorted() -> None:
    def spread(oldest: int, newest: int, behind: int = 0) -> Spread:
        return Spread(oldest, newest, behind)

    in_order = [spread(1, 5), None, spread(5, 9), spread(9, 9)]
    assert [FileRun((0, 1, 2, 3), is_in_order=True)] == stretches(in_order, 0)
    overlapping = [spread(20, 30), spread(1, 5), spread(4, 9), spread(10, 19), None]
    assert [
        FileRun((4,), is_in_order=True), FileRun((1, 2), is_in_order=False),
        FileRun((3,), is_in_order=True), FileRun((0,), is_in_order=True),
    ] == stretches(overlapping, 0)  # fmt: skip
    assert all(s.is_in_order for s in stretches(overlapping, 1))
    assert [FileRun((0,), is_in_order=False)] == stretches([spread(1, 5, 3)], 2)


def test_the_spread_of_times_is_exact_at_both_ends_of_time() -> None:
    arrays = [np.array(some, np.int64) for some in ([5, 5], [], [INT64_MAX, 7], [INT64_MIN])]
    assert Spread(INT64_MIN, INT64_MAX, 2**64 - 1) == spread_of(arrays)
    assert spread_of([np.array([], np.int64)]) is None


def test_rejected_rows_keep_their_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at,k,n\n9,a,1\nx,a,2\n3,a,3\n")
    (tmp_path / "b.csv").write_text("at,k,n\n1,a,4\n2,a,y\n")
    location = parse_location("*.csv", tmp_path)
    chunks = read_all(OrderedReader(open_reader(location, INPUT), INPUT, location))
    (times, _, _), rejected = everything(chunks, INPUT)
    assert [1, 3, 9] == times
    assert {("a.csv", 3), ("b.csv", 3)} == {(r.source, r.position) for r in rejected}


def test_standard_input_is_read_to_its_end_and_put_in_order() -> None:
    location = parse_location("-", Path())
    stdin = io.BytesIO(b"at,k,n\n3,a,1\n1,b,2\n")
    reader = OrderedReader(open_reader(location, INPUT, stdin=stdin), INPUT, location)
    assert [("b", 2), ("a", 1)] == everything(read_all(reader), INPUT)[0][2]


def test_changes_keep_their_weights() -> None:
    changes = [(5, ("a", 1), -1), (1, ("a", 1), 1), (5, ("a", 2), 1)]
    chunks = read_all(OrderedReader(MemoryReader(CHANGES, changes), CHANGES))
    assert ([1, 5, 5], [1, -1, 1]) == everything(chunks, CHANGES)[0][:2]


def test_a_damaged_file_of_rows_is_told(tmp_path: Path) -> None:
    path = tmp_path / f"x{ROWS}"
    batch = batch_of(INPUT.type, [1, 2], [("a", 1), ("b", 2)])
    assert 2 == write_rows(path, INPUT.type, [batch])
    assert [("b", 2)] == [r for b in Blocks(path).batches(INPUT.type, 1, 2) for r in b.rows()]
    for at in (10, path.stat().st_size - 1):
        raw = bytearray(path.read_bytes())
        raw[at] ^= 1
        (tmp_path / f"y{ROWS}").write_bytes(raw)
        with pytest.raises(RunError, match="damaged"):
            list(Blocks(tmp_path / f"y{ROWS}").batches(INPUT.type, 0, 2))
