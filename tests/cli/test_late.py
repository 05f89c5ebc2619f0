"""Late rows: told with the slack that would have kept them, written so that they can come again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import millstream
from millstream.calculus.graph import Input
from millstream.calculus.types import INTEGER, TEXT, TIME, QueueType, Schema
from millstream.cli.progress import remarks
from millstream.connectors.folder import FolderWriter
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.connectors.write import open_writer
from millstream.engine.job import InputCounts, Report
from millstream.plan.batch import batch_of
from tests.connectors.inputs import everything, plain, read_all

PROGRAM = "output out; input in(n integer) time at slack 2 us; (out) <- Filter[n >= 0](in);"
APART = Input("in", QueueType(Schema.of(k=TEXT, n=INTEGER)), "at")
DECLARED = Input("in", QueueType(Schema.of(at=TIME, n=INTEGER)), "at")
CHANGES = Input("in", QueueType(Schema.of(n=INTEGER), is_relation=True), "at")
LOG = replace(CHANGES, is_log=True)
PLAIN = Input("in", QueueType(Schema.of(n=INTEGER)))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "jsonl.gz"])
@pytest.mark.parametrize(
    "one", [APART, DECLARED, CHANGES, LOG, PLAIN, replace(APART, unit="s")],
    ids=["apart", "declared", "changes", "log", "plain", "seconds"],
)  # fmt: skip
def test_late_rows_have_the_columns_of_their_input(tmp_path: Path, one: Input, ending: str) -> None:
    times = [5, 3_000_000]
    values: dict[str, str | int] = {"k": "a", "n": 1}
    rows = [tuple(t if f.name == "at" else values[f.name] for f in one.type.schema) for t in times]
    weights = None if not one.type.is_relation else [1, 1] if one.is_log else [1, -1]
    batch = batch_of(one.type, times, rows, weights)
    location = parse_location(f"late.{ending}", tmp_path)
    writer = open_writer(location, one)
    writer.write(batch)
    writer.close()
    read, rejected = everything(read_all(open_reader(location, one)), one)
    assert (plain(batch), ()) == (read, rejected)


def test_late_rows_in_a_folder_have_them_too(tmp_path: Path) -> None:
    location = parse_location("csv:late/", tmp_path)
    writer = FolderWriter(location, APART)
    writer.write(batch_of(APART.type, [5], [("a", 1)]))
    writer.close()
    assert "at,k,n\n5,a,1\n" == (tmp_path / "late" / "part-000000000.csv").read_text()


def test_late_rows_of_a_run_that_follows_can_be_fed_in_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, rows in (("1.csv", "at,n\n10,1\n9,2\n"), ("2.csv", "at,n\n7,3\n11,4\n3,5\n")):
        (tmp_path / "in" / name).write_text(rows)
        os.utime(tmp_path / "in" / name, (int(name[0]), int(name[0])))
    looks = iter([False, True])
    job = millstream.compile(text=PROGRAM)
    finished = job.run(
        {"in": parse_location("in/", tmp_path)}, {"late": tmp_path / "late.csv"},
        follow=True, stopped=lambda: next(looks, True),
    )  # fmt: skip
    (late,) = tmp_path.glob("late*.csv")
    assert "at,n\n7,3\n3,5\n" == late.read_text()
    assert 8 == finished.report.inputs["in"].behind
    again = job.run({"in": late}).rows("out")
    assert [5, 3] == [row["n"] for row in again]


@pytest.mark.parametrize(
    ("behind", "slack"),
    [(8, "8 us"), (7_200_000_000, "2 h"), (7_201_000_000, "7201 s"), (90_000_000, "90 s")],
)
def test_the_slack_that_would_have_kept_late_rows_is_told(behind: int, slack: str) -> None:
    report = Report({"in": InputCounts(read=3, processed=1, late=2, behind=behind)}, {})
    (line,) = remarks(report)
    assert f"in: 2 late rows were left out; a slack of {slack} would have kept them" in line
    nothing = Report({"in": InputCounts(read=3, processed=1, late=2)}, {})
    assert "slack" not in remarks(nothing)[0]
