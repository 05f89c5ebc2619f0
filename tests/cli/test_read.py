"""`millstream read`: what was written, in the order of its times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.calculus.types import NUMBER, TEXT, QueueType, Schema
from millstream.cli import read
from millstream.cli.main import main
from millstream.connectors.folder import FolderWriter, record_in
from millstream.connectors.location import Location, parse_location
from millstream.connectors.results import FileResults
from millstream.connectors.write import open_writer
from millstream.plan.batch import Batch, batch_of
from tests.connectors.database import server

TYPE = QueueType(Schema.of(word=TEXT, n=NUMBER))
FORMATS = pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
START = 1_767_605_400_000_000


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def batch(number: int, word: str = "w") -> Batch:
    times = [START + 10 * number, START + 10 * number + 1]
    return batch_of(TYPE, times, [(f"{word}{number}", 0.5), (None, float("nan"))])


def write(text: str, *numbers: int, job: str = "job", fresh: bool = True) -> None:
    writer = FolderWriter(parse_location(text, Path()), TYPE)
    writer.open(job, fresh=fresh)
    for number in numbers:
        writer.write_batch(number, batch(number, job))
    writer.close()


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert 0 == main(["read", *arguments])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["read", *arguments])
    return status, capsys.readouterr().err


@FORMATS
def test_a_folder_of_results_as_csv(capsys: pytest.CaptureFixture[str], format_: str) -> None:
    write(f"{format_}:out/", 0, 1)
    assert (
        "_time,word,n\n"
        f"{START},job0,0.5\n"
        f"{START + 1},,nan\n"
        f"{START + 10},job1,0.5\n"
        f"{START + 11},,nan\n"
    ) == shown(capsys, "out/")


@FORMATS
def test_a_folder_of_results_as_json_lines(
    capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    write(f"{format_}:out/", 0)
    lines = shown(capsys, "out", "--format", "jsonl").splitlines()
    assert {"_time": START, "word": "job0", "n": 0.5} == json.loads(lines[0])
    assert 2 == len(lines)


@FORMATS
def test_times_are_readable_in_a_table(capsys: pytest.CaptureFixture[str], format_: str) -> None:
    write(f"{format_}:out/", 0)
    assert [
        "_time                        word    n",
        "2026-01-05T09:30:00Z         job0  0.5",
        "2026-01-05T09:30:00.000001Z        nan",
    ] == shown(capsys, "out/", "--format", "table").splitlines()


def test_a_table_shows_the_first_rows_and_tells_how_many_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("out/", *range(15))
    lines = shown(capsys, "out/", "--format", "table").splitlines()
    assert (22, "... 30 rows in all; --limit 30 shows them") == (len(lines), lines[-1])
    assert 31 == len(shown(capsys, "out/", "--format", "table", "--limit", "30").splitlines())
    assert 4 == len(shown(capsys, "out/", "--limit", "3").splitlines())


def test_a_folder_without_rows_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    write("out/")
    assert "out/: no rows\n" == shown(capsys, "out/", "--format", "table")
    assert "" == shown(capsys, "out/")


@FORMATS
def test_rows_out_of_order_are_sorted(capsys: pytest.CaptureFixture[str], format_: str) -> None:
    """As late rows are, in a file and between files."""
    writer = open_writer(parse_location(f"late.{format_}", Path()), TYPE)
    for number in (3, 1, 2):
        writer.write(batch(number))
    writer.close()
    lines = shown(capsys, f"late.{format_}").splitlines()
    assert ["w1", "", "w2", "", "w3", ""] == [line.split(",")[1] for line in lines[1:]]


def test_texts_stay_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = '_time,code,number,flag,name\n1,007,7,true,"a,""b\n"\n2,,,,""\n'
    Path("x.csv").write_text(text)
    assert text == shown(capsys, "x.csv")
    lines = shown(capsys, "x.csv", "--format", "jsonl").splitlines()
    assert {"_time": 1, "code": "007", "number": 7, "flag": True, "name": 'a,"b\n'} == json.loads(
        lines[0]
    )
    assert {"_time": 2, "code": None, "number": None, "flag": None, "name": ""} == json.loads(
        lines[1]
    )
    table = pa.table({"_time": [2, 1], "digits": ["02", "1"], "deep": [[1], None]})
    pq.write_table(table, "x.parquet")
    out = shown(capsys, "x.parquet", "--format", "jsonl")
    assert ('{"_time":1,"digits":"1","deep":null}\n{"_time":2,"digits":"02","deep":"[1]"}\n') == out


def test_times_of_text_files_can_be_iso(capsys: pytest.CaptureFixture[str]) -> None:
    text = "_time,x\n2026-01-01T00:00:00.000000Z,1\n2025-01-01T00:00:00.000000Z,2\n"
    Path("x.csv").write_text(text)
    head, one, two = text.splitlines()
    assert [head, two, one] == shown(capsys, "x.csv").splitlines()


def test_rows_without_times_come_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rejected.csv").write_text("_source,_reason\nb,x\na,y\n")
    assert "_source,_reason\nb,x\na,y\n" == shown(capsys, "rejected.csv")
    Path("x.jsonl").write_text('{"a": 1}\n{"a": "NaN"}\n{"a": null}\n')
    assert "a\n1\nnan\n\n" == shown(capsys, "x.jsonl")
    assert "3 rows" in shown(capsys, "x.jsonl", "--limit", "1", "--format", "table")


def test_files_of_other_dialects_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_bytes("a report\n Naam;Prijs\nCafé;2,5\n'x;y';007\n".encode("cp1252"))
    Path("b.tsv").write_bytes(b"\xef\xbb\xbfx\ty\n1\t007\n")
    assert main(["read", "a.csv?separator=;&quote='&encoding=cp1252&skip=1"]) == 0
    assert capsys.readouterr().out == ' Naam,Prijs\nCafé,"2,5"\nx;y,007\n'
    assert main(["read", "b.tsv"]) == 0
    assert capsys.readouterr().out == "x,y\n1,007\n"
    assert main(["read", "a.csv"]) == 1
    assert 'say its encoding: "a.csv?encoding=cp1252"' in capsys.readouterr().err


def test_what_cannot_be_read_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text("{\n")
    Path("bad.parquet").write_text("PAR1")
    Path("one.csv").write_text("_time\n1\n")
    Path("empty").mkdir()
    status, err = refused(capsys, "on.csv")
    assert (2, 'error: there is no file "on.csv"\n    Did you mean "one.csv"?\n') == (status, err)
    assert "error: bad.jsonl: cannot be read: " in refused(capsys, "bad.jsonl")[1]
    assert "error: bad.parquet: cannot be read: " in refused(capsys, "bad.parquet")[1]
    assert "holds no Parquet, CSV or JSON Lines file" in refused(capsys, "empty/")[1]
    assert "a single file cannot be followed" in refused(capsys, "one.csv", "--follow")[1]
    assert "expected a file, a folder or an address" in refused(capsys, "-")[1]
    assert "--limit must be 1 or more" in refused(capsys, "one.csv", "--limit", "0")[1]
    status, err = refused(capsys, "postgresql://u:s3cret@/db?host=/nowhere&table=t")
    assert (1, False) == (status, "s3cret" in err)


def test_results_that_are_replaced_while_they_are_read_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new part has the name of an old one: without a look at the record, a mixture."""
    write("csv:out/", 0, 1, job="old")
    original = read._TextShower.__call__

    def replace_then_show(self: Any, table: Any) -> None:
        write("csv:out/", 0, 1, job="new")
        original(self, table)

    monkeypatch.setattr(read._TextShower, "__call__", replace_then_show)
    status, err = refused(capsys, "out/")
    assert 1 == status
    assert "out/: a new run has replaced these results while they were read" in err


def test_results_that_are_replaced_before_any_is_shown_are_read_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("csv:out/", 0, 1, job="old")
    original = FileResults._are_sorted
    jobs = ["new"]

    def replace_first(self: Any) -> bool:
        if jobs:
            write("csv:out/", 0, job=jobs.pop())
        return original(self)

    monkeypatch.setattr(FileResults, "_are_sorted", replace_first)
    assert "new0" in shown(capsys, "out/")


def followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str, *steps: Any
) -> tuple[str, str]:
    """What is shown when something happens at each look, until Ctrl-C."""
    left: list[Callable[[], object]] = list(steps)

    def happen(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr("time.sleep", happen)
    assert 0 == main(["read", place, "--follow", "--format", "csv"])
    captured = capsys.readouterr()
    return ",".join(line.split(",")[1] for line in captured.out.splitlines()), captured.err


def test_a_folder_is_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("out/", 0)
    words, err = followed(
        monkeypatch, capsys, "out/",
        lambda: write("out/", 1, fresh=False),
        lambda: None,
        lambda: write("csv:out/", job="new"),  # has begun, and written nothing yet
        lambda: write("csv:out/", 0, 1, job="new", fresh=False),
        lambda: write("csv:out/", 2, job="new", fresh=False),
    )  # fmt: skip
    assert "word,job0,,job1,,new0,,new1,,new2," == words
    assert "a new run has replaced these results\n" == err
    assert record_in(Path("out")) is not None


def test_a_table_of_a_database_is_read_and_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    postgres = pytest.importorskip("millstream.connectors.postgres")
    address = f"{server()}&table=read_me"
    location: Location = parse_location(address, Path())

    def put(*numbers: int, job: str, fresh: bool = False) -> None:
        writer = postgres.PostgresWriter(location, "out", TYPE)
        writer.open(job, fresh=fresh)
        for number in numbers:
            writer.write_batch(number, batch(number, job))
        writer.close()

    put(0, job="old", fresh=True)
    expected = f"_time,word,n\n{START},old0,0.5\n{START + 1},,nan\n"
    assert expected == shown(capsys, address)
    assert "2026-01-05T09:30:00Z  old0  0.5" in shown(
        capsys, address, "--format", "table", "--limit", "1"
    )
    words, err = followed(
        monkeypatch, capsys, address,
        lambda: put(1, job="old"),
        lambda: None,
        lambda: put(job="new"),
        lambda: put(0, 1, job="new"),
        lambda: put(2, job="new"),
    )  # fmt: skip
    assert "word,old0,,old1,,new0,,new1,,new2," == words
    assert "a new run has replaced these results\n" == err
    status, err = refused(capsys, address.replace("read_me", "read_mee"))
    assert 2 == status
    assert 'there is no table "read_mee"\n    Did you mean "read_me"?' in err
    assert "secret" not in err
    assert "which table?" in refused(capsys, server())[1]


def test_a_job_writes_to_a_folder_and_a_database_from_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("psycopg")
    Path("p.brook").write_text(
        "output large; output all;\ninput trades(symbol text, volume integer);\n"
        "(one, all) <- Duplicate(trades);\n(large) <- Filter[volume > 1](one);\n"
    )
    Path("trades.csv").write_text("_time,symbol,volume\n1,IBM,2\n2,XYZ,1\n")
    outputs = ["--out", "large=results/", "--out", f"all={server()}"]
    status = main(["run", "p.brook", "--engine", "local", *outputs])
    assert (0, "") == (status, capsys.readouterr().err)
    assert "_time,symbol,volume\n1,IBM,2\n" == shown(capsys, "results/")
    assert "_time,symbol,volume\n1,IBM,2\n2,XYZ,1\n" == shown(capsys, f"{server()}&table=all")


def test_a_password_is_not_shown_when_the_name_of_an_output_is_forgotten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("p.brook").write_text(
        "output out;\ninput trades(x integer);\n(out) <- Filter[x > 1](trades);\n"
    )
    Path("trades.csv").write_text("_time,x\n1,2\n")
    for address in ("postgresql://u:s3cret@h/db", "postgresql://u:s3cret@h/db?table=x"):
        assert 2 == main(["run", "p.brook", "--out", address])
        err = capsys.readouterr().err
        assert 'expected --out NAME=PATH, got "postgresql://u:***@h/db' in err
        assert "s3cret" not in err


def test_a_password_is_not_shown_where_a_project_file_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "millstream.toml").write_text(
        '[sink.Out]\ntoo = "postgresql://u:s3cr:et/@h/db?table=x"\n'
    )
    assert 2 == main(["check", str(tmp_path)])
    err = capsys.readouterr().err
    assert "unknown key" in err
    assert "s3cr" not in err
