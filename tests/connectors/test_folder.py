"""Folders of results: one file per batch, whatever happens between."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.connectors import folder as folder_module
from millstream.connectors.chunks import BatchWriter, numbered
from millstream.connectors.folder import RECORD, FolderWriter, parts_in
from millstream.connectors.location import Format, parse_location
from millstream.connectors.memory import MemoryWriter
from millstream.connectors.write import open_rejected_writer, open_writer
from millstream.engine.given import writer_given
from millstream.errors import MillstreamError, RunError
from millstream.plan.batch import Batch, batch_of, empty_batch
from tests.connectors.killed import NEW, TYPE, deliver, expected_rows

ONE = QueueType(Schema.of(x=INTEGER))


def rows(*values: int) -> Batch:
    return batch_of(ONE, list(values), [(v,) for v in values])


def writer(folder: Path, text: str = "csv:out/") -> FolderWriter:
    return FolderWriter(parse_location(text, folder), ONE)


def values_in(folder: Path) -> list[int]:
    found = []
    for part in parts_in(folder):
        with part.path.open() as file:
            found += [int(row["x"]) for row in csv.DictReader(file)]
    return found


def names_in(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def failure(folder: Path, text: str = "csv:out/") -> str:
    with pytest.raises(MillstreamError) as caught:
        writer(folder, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("out/", Format.PARQUET),
        ("parquet:out/", Format.PARQUET),
        ("csv:out/", Format.CSV),
        ("jsonl:out/", Format.JSONL),
        ("out.csv/", Format.CSV),
    ],
)
def test_the_format_of_a_folder_is_told_by_prefix_or_name(
    text: str, format_: Format, tmp_path: Path
) -> None:
    location = parse_location(text, tmp_path)
    assert (True, format_) == (location.is_folder, location.format_of_parts)


def test_what_a_folder_holds_does_not_tell_the_format_of_an_output(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.write(rows(1))
    one.close()
    assert Format.CSV is parse_location("out", tmp_path).format
    assert Format.PARQUET is parse_location("out", tmp_path).format_of_parts


def test_each_batch_with_rows_is_one_file(tmp_path: Path) -> None:
    one = writer(tmp_path, "out/")
    assert 0 == one.open("job", fresh=True)
    for number, batch in enumerate([rows(1, 2), empty_batch(ONE), rows(3)]):
        one.write_batch(number, batch)
    assert [RECORD, "part-000000000.parquet", "part-000000002.parquet"] == names_in(
        tmp_path / "out"
    )
    one.close()
    assert [1, 2, 3] == pq.read_table(tmp_path / "out").column("x").to_pylist()


def test_a_batch_that_is_there_changes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        one = writer(tmp_path)
        first = one.open("job", fresh=False)
        for number in range(3):
            one.write_batch(number, rows(number))
            one.write_batch(number, rows(number))
        one.close()
    assert (3, [0, 1, 2]) == (first, values_in(tmp_path / "out"))


def test_the_result_of_an_earlier_job_goes_when_the_first_new_batch_comes(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.open("old", fresh=True)
    for number in range(3):
        one.write_batch(number, rows(number))
    one.close()
    two = writer(tmp_path)
    assert 0 == two.open("new", fresh=False)
    assert [0, 1, 2] == values_in(tmp_path / "out")
    two.write_batch(0, rows(7))
    assert [7] == values_in(tmp_path / "out")
    two.close()


def test_a_job_that_starts_afresh_forgets_what_it_had_even_after_a_crash(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.open("job", fresh=True)
    one.write_batch(0, rows(1))
    one.close()
    two = writer(tmp_path)
    two.open("job", fresh=True)
    two.abort()  # the run has gone before its first batch
    three = writer(tmp_path)
    assert 0 == three.open("job", fresh=False)
    three.write_batch(0, empty_batch(ONE))
    three.close()
    assert [] == values_in(tmp_path / "out")


def test_as_a_plain_writer_all_appears_on_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "ROWS_OF_A_PART", 2)
    for start in (0, 10):
        before = values_in(tmp_path / "out") if start else []
        one = writer(tmp_path)
        for value in range(start, start + 5):
            one.write(rows(value))
            assert before == values_in(tmp_path / "out")
            assert len(before) == 2 * len([*(tmp_path / "out").glob("*.csv")]) - bool(before)
        one.close()
        assert list(range(start, start + 5)) == values_in(tmp_path / "out")
    assert [RECORD, *(f"part-00000000{n}.csv" for n in range(3))] == names_in(tmp_path / "out")


def test_a_plain_run_without_rows_leaves_an_empty_result(tmp_path: Path) -> None:
    for batches in ([rows(1)], []):
        one = writer(tmp_path)
        for batch in batches:
            one.write(batch)
        one.close()
    assert [RECORD] == names_in(tmp_path / "out")


def test_a_failed_plain_run_changes_nothing(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.write(rows(1))
    one.abort()
    assert [] == names_in(tmp_path)
    two = writer(tmp_path)
    two.write(rows(2))
    two.close()
    three = writer(tmp_path)
    three.write(rows(3))
    three.abort()
    three.abort()
    assert [2] == values_in(tmp_path / "out")


def test_once_it_is_opened_each_batch_appears_at_once(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.open("job", fresh=True)
    for value in (1, 2):
        one.write(rows(value))
        assert list(range(1, value + 1)) == values_in(tmp_path / "out")
    one.write(empty_batch(ONE))
    one.abort()
    assert [1, 2] == values_in(tmp_path / "out")


def test_folders_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.csv").touch()
    (tmp_path / "file").touch()
    assert (
        "csv:out/: this folder holds files that are not results of Millstream: mine.csv\n"
        "    choose a folder that is empty or not there yet"
    ) == failure(tmp_path)
    assert "csv:file/: expected a folder, this is a file" == failure(tmp_path, "csv:file/")
    expected = f"csv:a/b/: its folder does not exist\n    mkdir -p {tmp_path}/a"
    assert expected == failure(tmp_path, "csv:a/b/")
    assert ["mine.csv"] == names_in(tmp_path / "out")


def test_a_foreign_file_among_results_is_told(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.write(rows(1))
    one.close()
    (tmp_path / "out" / "part-1.csv").touch()
    assert "not results of Millstream: part-1.csv" in failure(tmp_path)


def test_two_outputs_cannot_share_a_folder(tmp_path: Path) -> None:
    one = writer(tmp_path)
    expected = "csv:out/: another run, or another output of this one, writes to this folder"
    assert expected == failure(tmp_path)
    one.close()
    writer(tmp_path).abort()


def test_a_job_keeps_its_format(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.open("job", fresh=True)
    one.write_batch(0, rows(1))
    one.close()
    two = writer(tmp_path, "jsonl:out/")
    with pytest.raises(MillstreamError) as caught:
        two.open("job", fresh=False)
    assert ("jsonl:out/: this job has written csv here, not jsonl\n    go on with csv:out/") == str(
        caught.value
    )
    two.open("job", fresh=True)
    two.write_batch(0, rows(2))
    two.close()
    assert ["part-000000000.jsonl"] == [p.path.name for p in parts_in(tmp_path / "out")]


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / RECORD).write_text("{")
    assert "this record of a folder of results is damaged" in failure(tmp_path)


def test_a_full_disk_leaves_the_earlier_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    one = writer(tmp_path)
    one.write(rows(1))
    one.close()
    two = writer(tmp_path)
    two.open("job", fresh=True)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        two.write_batch(0, rows(2))
    two.abort()
    assert [RECORD, "part-000000000.csv"] == names_in(tmp_path / "out")
    assert [1] == values_in(tmp_path / "out")


@pytest.mark.slow
def test_after_kill_9_at_any_step_no_row_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "tests.connectors.killed", "folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ("", 0) == (done.stderr, done.returncode)
    folders = sorted(tmp_path.iterdir())
    assert 20 < len(folders)
    monkeypatch.setattr("os.fsync", lambda _: None)  # the second run is not killed
    for folder in folders:
        left = values_in(folder)  # whatever has appeared is complete
        words = {row for part in parts_in(folder) for row in words_in(part.path)}
        assert len(words) <= 1, f"a mixture after {folder.name} steps"
        assert left == expected_rows(words.pop() if words else NEW)[: len(left)]
        location = parse_location(f"csv:{folder}/", Path())
        deliver(FolderWriter(location, TYPE), NEW, fresh=False)
        assert expected_rows(NEW) == values_in(folder), folder.name
        assert all(p.name == RECORD or not p.name.startswith(".") for p in folder.iterdir())


def words_in(path: Path) -> set[str]:
    with path.open() as file:
        return {row["word"] for row in csv.DictReader(file)}


# --- the same protocol for all that can be written to ---


def test_memory_takes_each_batch_once() -> None:
    kept = MemoryWriter()
    one = numbered(kept)
    assert 0 == one.open("job", fresh=True)
    for number in (0, 1, 1, 0):
        one.write_batch(number, rows(number))
    assert 2 == one.open("job", fresh=False)
    one.write(rows(2))
    assert [(0, (0,)), (1, (1,)), (2, (2,))] == kept.items()
    one.abort()
    assert [] == kept.items()


def test_standard_output_prints_each_batch_once(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    one = numbered(open_writer(parse_location("-", tmp_path), ONE))
    assert 0 == one.open("job", fresh=False)
    for number in (0, 1, 0, 1):
        one.write_batch(number, rows(number))
    one.close()
    assert b"_time,x\n0,0\n1,1\n" == capfdbinary.readouterr().out


def test_only_what_remembers_its_batches_says_so(tmp_path: Path) -> None:
    """An engine keeps all results for outputs that every run fills anew."""
    for name, when_following, else_ in (
        ("x.csv", True, False), ("-", False, False), ("out/", True, True)
    ):  # fmt: skip
        for is_following, remembers in ((False, else_), (True, when_following)):
            text = name if name == "-" else f"{tmp_path}/{name}"
            one = writer_given("x", text, ONE, is_following=is_following)
            assert remembers is isinstance(one, BatchWriter) is hasattr(one, "write_batch")
            assert isinstance(numbered(one), BatchWriter)
            one.abort()
    assert not isinstance(MemoryWriter(), BatchWriter)


def test_rejected_rows_need_a_file(tmp_path: Path) -> None:
    with pytest.raises(MillstreamError, match="an output must be one file"):
        open_rejected_writer(parse_location("rejected/", tmp_path))
