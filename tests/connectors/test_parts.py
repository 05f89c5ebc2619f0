"""Numbered files while following."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.connectors.location import parse_location
from millstream.connectors.parts import PartsWriter
from millstream.errors import UsageError
from millstream.plan.batch import Batch, batch_of, empty_batch

TYPE = QueueType(Schema.of(x=INTEGER))


def writer(folder: Path, name: str = "out.csv") -> PartsWriter:
    return PartsWriter(parse_location(name, folder), TYPE)


def rows(*values: int) -> Batch:
    return batch_of(TYPE, list(values), [(value,) for value in values])


def visible(folder: Path) -> dict[str, str]:
    """What is there, without the header."""
    paths = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    return {p.name: p.read_text().partition("\n")[2] for p in paths}


def test_each_batch_with_rows_is_a_complete_file(tmp_path: Path) -> None:
    one = writer(tmp_path)
    assert 0 == one.open("job", fresh=True)
    for number, batch in enumerate((rows(1), empty_batch(TYPE), rows(3, 4))):
        one.write_batch(number, batch)
        one.write_batch(number, batch)  # delivered again
    assert {"out-000001.csv": "1,1\n", "out-000003.csv": "3,3\n4,4\n"} == visible(tmp_path)


def test_a_job_that_is_taken_up_goes_on_after_what_is_there(tmp_path: Path) -> None:
    for number, batch in enumerate((rows(1), rows(2), empty_batch(TYPE), empty_batch(TYPE))):
        one = writer(tmp_path)
        assert number == one.open("job", fresh=False)
        one.write_batch(number, batch)
    assert {"out-000001.csv": "1,1\n", "out-000002.csv": "2,2\n"} == visible(tmp_path)


def test_a_new_job_replaces_what_an_earlier_one_wrote_with_its_first_batch(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.open("job", fresh=True)
    for number in range(5):
        one.write_batch(number, rows(number))
    other = writer(tmp_path)
    assert 0 == other.open("another", fresh=True)
    assert 5 == len(visible(tmp_path))
    other.write_batch(0, rows(7))
    assert {"out-000001.csv": "7,7\n"} == visible(tmp_path)


def test_outputs_of_one_folder_are_told_apart(tmp_path: Path) -> None:
    one, other = writer(tmp_path), writer(tmp_path, "out-late.csv")
    for number, each in enumerate((one, other)):
        each.open("job", fresh=True)
        each.write_batch(0, rows(number))
    again = writer(tmp_path)
    again.open("another", fresh=True)
    again.write_batch(0, rows(2))
    assert {"out-000001.csv": "2,2\n", "out-late-000001.csv": "1,1\n"} == visible(tmp_path)


def test_files_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out-000007.csv").write_text("mine")
    with pytest.raises(UsageError, match=r"no job is known to have written: out-000007\.csv"):
        writer(tmp_path)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="its folder does not exist"):
        writer(tmp_path, "nowhere/out.csv")


def test_numbered_files_are_compressed_too(tmp_path: Path) -> None:
    one = writer(tmp_path, "out.csv.gz")
    one.open("job", fresh=True)
    one.write_batch(0, rows(1))
    with gzip.open(tmp_path / "out-000001.csv.gz", "rt") as file:
        assert "_time,x\n1,1\n" == file.read()
