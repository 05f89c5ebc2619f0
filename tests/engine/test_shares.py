"""How a planned batch is cut into tasks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.graph import Input
from millstream.calculus.types import INTEGER, Field, QueueType, Schema
from millstream.connectors.location import parse_location
from millstream.connectors.settings import GeneratorSettings
from millstream.engine.parcels import parcels_in
from millstream.engine.planning import Planner, ReadingTask, plan_name, shares
from millstream.engine.reading import ShareTask
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.storage.files import LocalFiles
from millstream.engine.storage.records import read_record

PIECE = 1_000
TYPE = QueueType(Schema((Field("n", INTEGER),)), is_relation=False)


def spec_for(endings: list[str], partitions: int) -> SourceSpec:
    inputs = [
        InputSpec(Input(f"in{n}", TYPE), parse_location(f"{n}.{ending}", Path()), n, n, 0, None)
        for n, ending in enumerate(endings)
    ]
    return SourceSpec(
        tuple(inputs), Path(), partitions, 4, 1, 1 << 30,
        instants=(frozenset(),), is_following=False, piece_bytes=PIECE,
    )  # fmt: skip


def pieces_of(path: str, sizes: list[int]) -> list[Any]:
    """Pieces that follow one another, with ten rows or bytes for each of their size."""
    found, first = [], 0
    for size in sizes:
        last = first + 10 * size
        found.append([path, first, last, first + 1, last + 1, size, first])
        first = last
    return found


def rows_in(task: Any) -> int:
    return sum(p[2] - p[1] for _, _, run in task for p in run)


@given(
    st.lists(st.tuples(st.sampled_from(("parquet", "csv")), st.lists(st.integers(1, 400)))),
    st.integers(1, 5),
)
def test_every_row_is_read_once_and_in_order(
    inputs: list[tuple[str, list[int]]], partitions: int
) -> None:
    spec = spec_for([ending for ending, _ in inputs], partitions)
    plan = {"pieces": {f"in{n}": pieces_of(f"f{n}", sizes) for n, (_, sizes) in enumerate(inputs)}}
    tasks = shares(spec, plan)
    assert 1 <= len(tasks) <= max(1, partitions)
    for number, (_, sizes) in enumerate(inputs):
        runs = [(segment, run) for task in tasks for n, segment, run in task if n == number]
        assert [segment for segment, _ in runs] == list(range(len(runs)))
        pieces = [piece for _, run in runs for piece in run]
        assert 10 * sum(sizes) == sum(p[2] - p[1] for p in pieces)
        assert all(one[2] == other[1] for one, other in pairwise(pieces))
        assert all(p[1] < p[2] and p[6] == p[1] and p[3] == p[1] + 1 for p in pieces)


def test_a_file_counted_in_rows_is_shared_evenly() -> None:
    spec = spec_for(["parquet"], 2)
    tasks = shares(spec, {"pieces": {"in0": pieces_of("f", [1_000, 1_000, 1_000])}})
    assert [15_000, 15_000] == [rows_in(task) for task in tasks]
    assert [1, 1] == [len(run) for task in tasks for _, _, run in task]


def test_a_text_is_shared_by_whole_pieces() -> None:
    spec = spec_for(["csv"], 2)
    tasks = shares(spec, {"pieces": {"in0": pieces_of("f", [1_000, 1_000, 1_000, 1_000])}})
    assert [[[0, 10_000], [10_000, 20_000]], [[20_000, 30_000], [30_000, 40_000]]] == [
        [p[1:3] for _, _, run in task for p in run] for task in tasks
    ]


def test_what_a_generator_makes_while_a_batch_is_planned_is_left_for_the_next(
    tmp_path: Path,
) -> None:
    """Else a batch has thousands of pieces of a few rows, and has to be written down with them."""
    seconds = iter(range(100))
    (one,) = spec_for(["csv"], 1).inputs
    settings = GeneratorSettings(rows=10**9, rate=1000.0)
    location = replace(parse_location("generator", Path()), generator=settings)
    spec = replace(
        spec_for(["csv"], 1), inputs=(replace(one, location=location),), checkpoint=tmp_path,
        is_following=True, piece_bytes=1 << 30,
    )  # fmt: skip
    files = LocalFiles(tmp_path)
    planner = Planner(spec, files, lambda: float(next(seconds)))
    assert planner.next(0) == 0  # nothing has been made at the first moment
    taken = [(0, 0)]
    for seq in range(4):
        assert planner.next(seq) == seq + 1
        (piece,) = read_record(files, plan_name(seq))["pieces"]["in0"]
        taken.append((piece[1], piece[2]))
    assert all(end == start < more for (_, end), (start, more) in pairwise(taken))


def test_a_small_batch_is_one_task() -> None:
    spec = spec_for(["parquet", "csv"], 4)
    plan = {"pieces": {"in0": pieces_of("f", [300]), "in1": pieces_of("g", [600])}}
    assert 1 == len(shares(spec, plan))


def test_tasks_send_rows_without_a_key_to_different_places(tmp_path: Path) -> None:
    """However the rows of each come in chunks: a file's groups begin where they like."""
    rows = np.arange(600_000)
    table = pa.table({"_time": rows, "n": rows})
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=400_000)
    one = InputSpec(Input("in0", TYPE), parse_location("0.parquet", tmp_path), 0, 0, 0, None)
    spec = replace(spec_for([], 2), inputs=(one,))
    places = []
    for number, (first, last) in enumerate([(0, 300_000), (300_000, 600_000)]):
        share = [(0, number, [["0.parquet", first, last, first + 1, last + 1, 1_000, first]])]
        task = ReadingTask(0, number, 2, share, None, {"in0": None}, {"in0": False}, {})
        sent = ShareTask(spec, LocalFiles(tmp_path / f"files{number}"), task, {}).run()
        parcels = parcels_in(sent[0][1]["segments"][0]["parcels"])
        assert 300_000 == sum(parcel.rows for parcel in parcels)
        places.append({parcel.bucket % 2 for parcel in parcels})
    assert [{0}, {1}] == places
