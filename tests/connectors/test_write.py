from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.calculus.types import TEXT, QueueType, Schema
from millstream.connectors import sink
from millstream.connectors.chunks import Rejected
from millstream.connectors.location import Times, parse_location
from millstream.connectors.write import open_rejected_writer, open_writer
from millstream.errors import CheckError, MillstreamError, RunError, UsageError
from millstream.plan.batch import batch_of
from tests.connectors.inputs import EVERYTHING

STREAM = QueueType(EVERYTHING)
RELATION = QueueType(EVERYTHING, is_relation=True)
ROWS = [
    (0.1, 7, "a,b", True, 1_700_000_000_000_000, 5),
    (float("nan"), None, "", False, None, None),
    (float("-inf"), -1, None, None, -1, -1),
    (1e300, 2**53, 'q"\n', True, 2**62, 0),
]


def write(folder: Path, name: str, type_: QueueType = STREAM, times: Times = "micros") -> Path:
    location = replace(parse_location(name, folder), times=times)
    writer = open_writer(location, type_)
    weights = [1, -1, 1, -1] if type_.is_relation else None
    writer.write(batch_of(type_, [1, 2, 3, 4], ROWS, weights))
    writer.close()
    assert location.path is not None
    return location.path


def names_in(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir()]


def failure(name: str, folder: Path, type_: QueueType = STREAM) -> str:
    with pytest.raises(MillstreamError) as caught:
        open_writer(parse_location(name, folder), type_)
    return str(caught.value)


def test_a_stream_as_csv(tmp_path: Path) -> None:
    assert (
        "_time,n,i,t,b,at,d\n"
        '1,0.1,7,"a,b",true,1700000000000000,5\n'
        '2,nan,,"",false,,\n'
        "3,-inf,-1,,,-1,-1\n"
        '4,1e+300,9007199254740992,"q""\n",true,4611686018427387904,0\n'
    ) == write(tmp_path, "x.csv").read_text()


def test_a_relation_as_json_lines(tmp_path: Path) -> None:
    assert (
        '{"_time":1,"_weight":1,"n":0.1,"i":7,"t":"a,b","b":true,"at":1700000000000000,"d":5}\n'
        '{"_time":2,"_weight":-1,"n":"NaN","i":null,"t":"","b":false,"at":null,"d":null}\n'
        '{"_time":3,"_weight":1,"n":"-Infinity","i":-1,"t":null,"b":null,"at":-1,"d":-1}\n'
        '{"_time":4,"_weight":-1,"n":1e+300,"i":9007199254740992,"t":"q\\"\\n","b":true,'
        '"at":4611686018427387904,"d":0}\n'
    ) == write(tmp_path, "x.jsonl", RELATION).read_text()


def test_times_can_be_written_as_iso_text_where_the_calendar_has_them(tmp_path: Path) -> None:
    lines = write(tmp_path, "x.csv", times="iso").read_text().splitlines()
    assert '1970-01-01T00:00:00.000001Z,0.1,7,"a,b",true,2023-11-14T22:13:20.000000Z,5' == lines[1]
    assert "4611686018427387904" in lines[-1]


def test_a_relation_as_parquet(tmp_path: Path) -> None:
    table = pq.read_table(write(tmp_path, "x.parquet", RELATION))
    assert ["_time", "_weight", "n", "i", "t", "b", "at", "d"] == table.column_names
    assert pa.timestamp("us", tz="UTC") == table.schema.field("at").type
    assert pa.duration("us") == table.schema.field("d").type
    assert [1, -1, 1, -1] == table.column("_weight").to_pylist()


def test_small_batches_become_large_row_groups(tmp_path: Path) -> None:
    writer = open_writer(parse_location("x.parquet", tmp_path), STREAM)
    for time in range(100):
        writer.write(batch_of(STREAM, [time], [ROWS[0]]))
    writer.close()
    assert 1 == pq.read_metadata(tmp_path / "x.parquet").num_row_groups


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet", "x.csv.gz"])
def test_without_rows_there_is_still_a_file(name: str, tmp_path: Path) -> None:
    open_writer(parse_location(name, tmp_path), STREAM).close()
    assert [name] == names_in(tmp_path)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet", "x.csv.gz"])
def test_a_file_is_seen_only_when_it_is_whole(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old")
    writer = open_writer(parse_location(name, tmp_path), STREAM)
    writer.write(batch_of(STREAM, [1], ROWS[:1]))
    assert "old" == (tmp_path / name).read_text()
    writer.close()
    assert b"old" != (tmp_path / name).read_bytes()
    assert [name] == names_in(tmp_path)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet", "x.csv.gz"])
def test_after_abort_nothing_has_changed(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old")
    writer = open_writer(parse_location(name, tmp_path), STREAM)
    writer.write(batch_of(STREAM, [1], ROWS[:1]))
    writer.abort()
    writer.abort()
    assert [name] == names_in(tmp_path)
    assert "old" == (tmp_path / name).read_text()


def test_abort_after_close_does_nothing(tmp_path: Path) -> None:
    for name in ("x.csv", "x.parquet"):
        writer = open_writer(parse_location(name, tmp_path), STREAM)
        writer.close()
        writer.close()
        writer.abort()
        assert (tmp_path / name).exists()


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "x.csv").symlink_to(tmp_path / "real" / "y.csv")
    write(tmp_path, "x.csv")
    assert (tmp_path / "x.csv").is_symlink()
    assert ["y.csv"] == names_in(tmp_path / "real")


@pytest.mark.parametrize("name", ["csv:/dev/full", "jsonl:/dev/full", "parquet:/dev/full"])
def test_a_full_disk_is_told_in_one_sentence(name: str, tmp_path: Path) -> None:
    """A device is written to directly: a rename would put a file in its place."""
    writer = open_writer(parse_location(name, tmp_path), STREAM)
    with pytest.raises(RunError) as caught:  # noqa: PT012 - which call fails depends on buffers
        for _ in range(300):
            writer.write(batch_of(STREAM, [1] * 1000, ROWS[:1] * 1000))
        writer.close()
    writer.abort()
    assert "/dev/full: cannot be written: No space left on device" == str(caught.value)
    assert not Path("/dev/full").is_file()


def test_a_failed_rename_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    writer = open_writer(parse_location("x.csv", tmp_path), STREAM)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(RunError) as caught:
        writer.close()
    assert "x.csv: cannot be written: Permission denied" == str(caught.value)
    assert [] == names_in(tmp_path)


def test_a_folder_that_must_not_be_written_to_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "x.csv: cannot be written: Permission denied" == failure("x.csv", tmp_path)


def test_a_missing_folder_is_told_with_the_command_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = "a/b/x.csv: its folder does not exist\n    mkdir -p a/b"
    assert expected == failure("a/b/x.csv", tmp_path)


def test_outputs_that_make_no_sense_are_told(tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    assert "*.csv: an output must be one file" == failure("*.csv", tmp_path)
    assert "csv:d.csv: an output must be one file" == failure("csv:d.csv", tmp_path)
    assert "generator: a generator cannot be written to" == failure("generator", tmp_path)
    assert [] == [p for p in tmp_path.iterdir() if p.is_file()]


def test_a_column_with_the_name_of_the_time_is_told(tmp_path: Path) -> None:
    type_ = QueueType(Schema.of(_time=TEXT))
    with pytest.raises(CheckError) as caught:
        open_writer(parse_location("x.csv", tmp_path), type_)
    assert (
        'column "_time" cannot be written: the output has one of its own\n'
        "    give it another name in the program"
    ) == str(caught.value)


def test_standard_output_is_csv_unless_told_otherwise(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    type_ = QueueType(Schema.of(x=TEXT))
    for name in ("-", "jsonl:-"):
        writer = open_writer(parse_location(name, tmp_path), type_)
        writer.write(batch_of(type_, [1], [("é",)]))
        writer.close()
    assert '_time,x\n1,é\n{"_time":1,"x":"é"}\n'.encode() == capfdbinary.readouterr().out


def test_a_pipe_that_nobody_reads_is_left_to_the_command_line() -> None:
    with pytest.raises(BrokenPipeError), sink.told("x"):
        raise BrokenPipeError


def test_rejected_rows_are_written_with_place_and_reason(tmp_path: Path) -> None:
    writer = open_rejected_writer(parse_location("r.csv", tmp_path))
    writer.write([Rejected("x.csv", 2, 'price: got "a"', "1,a"), Rejected("y", 3, "bad", "")])
    writer.write([])
    writer.close()
    assert (
        "_source,_position,_reason,_text\n"
        'x.csv,2,"price: got ""a""","1,a"\n'
        'y,3,bad,""\n'
    ) == (tmp_path / "r.csv").read_text()  # fmt: skip


def test_usage_errors_leave_no_file_behind(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        open_writer(parse_location("x/y.csv", tmp_path), STREAM)
    assert [] == names_in(tmp_path)
