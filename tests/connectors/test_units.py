"""What numbers count in columns of times: told by a setting, questioned where it is plain."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream
from millstream.calculus.graph import Input
from millstream.calculus.types import INTEGER, TIME, QueueType, Schema
from millstream.cli.main import main
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.connectors.read_csv import csv_decoder
from millstream.connectors.read_jsonl import jsonl_decoder
from millstream.connectors.units import question_files
from millstream.connectors.window import FileWindow
from millstream.errors import CheckError, UsageError
from tests.connectors.inputs import everything, plain, read_all

SECONDS = 1_700_000_000
MICROS = SECONDS * 1_000_000
INPUT = Input("trades", QueueType(Schema.of(n=INTEGER, until=TIME)), time="at")
PROGRAM = "output out; input trades(n integer) time at; (out) <- Filter[n >= 0](trades);"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.brook").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("unit", "cell", "micros"),
    [
        ("s", f"{SECONDS}", MICROS), ("ms", f"{SECONDS}000", MICROS), ("us", f"{MICROS}", MICROS),
        ("ns", f"{MICROS}999", MICROS), ("s", f"{SECONDS}.25", MICROS + 250_000),
        ("s", "-1.5", -1_500_000), ("ms", "0.0019", 1), ("s", "1e3", 1_000_000_000),
        ("s", "2023-11-14T22:13:20Z", MICROS), ("s", "1e30", None), ("s", "9223372036855", None),
        ("s", "9223372036854", 9_223_372_036_854_000_000), (None, "1.5", None), ("s", "x", None),
    ],
)  # fmt: skip
def test_a_number_counts_its_unit_in_every_text_quickly_and_slowly(
    unit: str | None, cell: str, micros: int | None
) -> None:
    input_ = replace(INPUT, unit=unit)
    quoted = cell if cell[0] in "-0123456789" and ":" not in cell and cell != "x" else f'"{cell}"'
    for text, decoder_of in (
        (f"at,n,until\n{cell},1,{cell}\n", csv_decoder),
        (f'{{"at": {quoted}, "n": 1, "until": {quoted}}}\n', jsonl_decoder),
    ):
        window = FileWindow(io.BytesIO(text.encode()).read, "x")
        decoder = decoder_of(input_, 10)(window)
        steps = [
            way(window.data, window.start, window.line, final=True)
            for way in (decoder.slowly, decoder.quickly)
        ]
        expected = [] if micros is None else [micros]
        for step in steps:
            assert (expected, None, [(1, m) for m in expected]) == plain(step.batch)


@pytest.mark.parametrize(
    ("unit", "type_", "value", "micros"),
    [
        ("s", pa.int64(), SECONDS, [MICROS]), ("ms", pa.uint64(), SECONDS * 1000, [MICROS]),
        ("s", pa.float64(), SECONDS + 0.5, [MICROS + 500_000]), ("s", pa.float64(), 1e300, []),
        ("s", pa.timestamp("ms"), SECONDS * 1000, [MICROS]), ("s", pa.int64(), 2**62, []),
        ("s", pa.string(), f"{SECONDS}.5", [MICROS + 500_000]),
    ],
)  # fmt: skip
def test_a_number_counts_its_unit_in_parquet(
    tmp_path: Path, unit: str, type_: pa.DataType, value: object, micros: list[int]
) -> None:
    column = pa.array([value], type_)
    pq.write_table(pa.table({"at": column, "n": [1], "until": column}), tmp_path / "x.parquet")
    location = parse_location("x.parquet", tmp_path)
    chunks = read_all(open_reader(location, replace(INPUT, unit=unit)))
    assert (micros, None, [(1, m) for m in micros]) == everything(chunks, INPUT)[0]


def test_an_event_time_that_is_an_integer_stays_one_and_counts_its_unit(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"at\n{SECONDS}\n{2**62}\n")
    input_ = Input("trades", QueueType(Schema.of(at=INTEGER)), "at", unit="s")
    chunks = read_all(open_reader(parse_location("x.csv", tmp_path), input_))
    read, rejected = everything(chunks, input_)
    assert ([MICROS], None, [(SECONDS,)]) == read
    assert [3] == [r.position for r in rejected]


@pytest.mark.parametrize(("count", "unit"), [(SECONDS, "s"), (SECONDS * 1000, "ms"),
                                             (MICROS * 1000, "ns")])  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_times_that_evidently_count_another_unit_are_questioned(
    folder: Path, capsys: pytest.CaptureFixture[str], ending: str, count: int, unit: str
) -> None:
    path = folder / f"trades.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"at": [count, count + 5], "n": [1, 2]}), path)
    elif ending == "csv":
        path.write_text(f"at,n\n{count},1\n{count + 5},2\n")
    else:
        path.write_text(f'{{"at": {count}, "n": 1}}\n{{"at": {count + 5}, "n": 2}}\n')
    assert 2 == main(["run", "job.brook", "--engine", "local"])
    told = capsys.readouterr().err
    assert f"2023-11-14T22:13:20.000000Z if they count {unit}" in told
    assert f'--unit trades={unit} (or us), in a project time = {{ column = "at"' in told
    for given in (f"trades={unit}", unit):
        assert 0 == main(["run", "job.brook", "--engine", "local", "--unit", given])
        assert f"\n{MICROS},1\n" in capsys.readouterr().out
    assert 0 == main(["run", "job.brook", "--engine", "local", "--unit", "us"])
    assert f"\n{count},1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "times", [["1970-01-01T00:20:00Z"], [str(MICROS)], ["5", str(SECONDS)], ["1", "2"], []]
)
def test_other_times_are_not_questioned(tmp_path: Path, times: list[str]) -> None:
    (tmp_path / "x.csv").write_text("at,n,until\n" + "".join(f"{t},1,\n" for t in times))
    question_files(parse_location("x.csv", tmp_path), INPUT)


def test_rows_of_a_program_and_of_standard_input_are_questioned_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = millstream.compile("job.brook")
    rows = [{"at": SECONDS, "n": 1}]
    for engine in ("local", "reference"):
        with pytest.raises(CheckError, match=r'with_units\(\{"trades": "s"\}\)'):
            job.run({"trades": rows}, engine=engine)
        found = job.with_units({"trades": "s"}).run({"trades": rows}, engine=engine).rows("out")
        assert [{"_time": MICROS, "n": 1}] == found
    with pytest.raises(UsageError, match='unknown unit of times "sec"'):
        job.with_units("sec")

    class Standard:
        buffer = io.BytesIO(f"at,n\n{SECONDS},1\n".encode())

    monkeypatch.setattr("sys.stdin", Standard)
    with pytest.raises(CheckError, match="standard input: the times"):
        job.run({"trades": "-"})


def test_a_project_says_the_unit_of_a_stream(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "trades.csv").write_text(f"at,n\n{SECONDS}.5,1\n")
    text = """
        [stream.trades]
        source = "trades.csv"
        time = { column = "at", unit = "s" }
        [node.job]
        brook = "job.brook"
    """
    (folder / "millstream.toml").write_text(text)
    assert 0 == main(["run", ".", "--engine", "local"])
    assert f"{MICROS + 500_000},1" in capsys.readouterr().out
    (folder / "millstream.toml").write_text(text.replace('"s"', '"sec", colum = "at"'))
    assert 2 == main(["run", ".", "--engine", "local"])
    told = capsys.readouterr().err
    assert "unknown unit of times 'sec'" in told
    assert 'unknown key "colum" in "time"' in told
