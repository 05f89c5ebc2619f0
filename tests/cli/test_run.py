"""`millstream run` as a person sees it: good input, bad input, exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream.cli.main import main

PROGRAM = """
output out;
input trades(symbol text, price number, volume integer);
(kept) <- Filter[volume > 0](trades);
(out)  <- Map[symbol, value = price * number(volume), next = volume + 1](kept);
"""
TRADES = "_time,symbol,price,volume\n1,IBM,1.5,2\n2,XYZ,2,3\n"

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "prog.brook").write_text(PROGRAM)
    (tmp_path / "trades.csv").write_text(TRADES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    engine = () if "--engine" in arguments else ("--engine", "local")
    status = main(["run", "prog.brook", *arguments, *engine])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@ENGINES
def test_rows_go_to_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    expected = "_time,symbol,value,next\n1,IBM,3,3\n2,XYZ,6,4\n"
    assert (0, expected, "") == run(capsys, "--engine", engine)


@ENGINES
def test_json_is_a_list_of_flat_objects(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    status, out, _ = run(capsys, "--engine", engine, "--format", "json")
    assert 0 == status
    assert {"_time": 1, "symbol": "IBM", "value": 3.0, "next": 3} == json.loads(out)[0]


@ENGINES
def test_bad_rows_are_rejected_with_their_line_and_the_run_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    bad = "3,ABC,x,1\n4,ABC,1,2,3\n,ABC,1,1\n5,\xff,1,1\n6,OK,1,9223372036854775808\n7,OK,nan,1\n"
    (folder / "trades.csv").write_bytes(TRADES.encode() + bad.encode("latin-1"))
    status, out, err = run(capsys, "--engine", engine, "--out", "rejected=rejected.csv")
    assert 0 == status
    assert "7,OK,nan,2" in out
    assert "trades: 5 rows were rejected" in err
    kept = (folder / "rejected.csv").read_text().splitlines()
    assert ["_source,_position,_reason,_text", 6] == [kept[0], len(kept)]
    assert [4, 5, 6, 7, 8] == [int(line.split(",")[1]) for line in kept[1:]]


@ENGINES
def test_in_a_run_that_ends_nothing_is_late(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    """Neither rows of one file nor files whose names are not in the order of their times."""
    (folder / "trades").mkdir()
    (folder / "trades" / "april.csv").write_text("_time,symbol,price,volume\n9,NEW,1,1\n8,C,1,1\n")
    (folder / "trades" / "march.csv").write_text(TRADES + "1,OLD,1,1\n")
    status, out, err = run(capsys, "--engine", engine, "--in", "trades=trades/")
    assert (0, "") == (status, err)
    rows = ["1,IBM,3,3", "1,OLD,1,2", "2,XYZ,6,4", "8,C,1,2", "9,NEW,1,2"]
    assert ["_time,symbol,value,next", *rows] == out.splitlines()


@ENGINES
def test_an_overflow_is_null_and_told(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    (folder / "trades.csv").write_text(TRADES + "3,MAX,1,9223372036854775807\n")
    status, out, err = run(capsys, "--engine", engine)
    assert 0 == status
    assert "3,MAX,9.223372036854776e+18," in out
    assert "1 value became null: integer overflow in volume + 1" in err


@ENGINES
def test_an_empty_input_gives_an_empty_output(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    (folder / "trades.csv").write_text("_time,symbol,price,volume\n")
    assert (0, "_time,symbol,value,next\n", "") == run(capsys, "--engine", engine)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--in", "trades=trade.csv"], 2, 'there is no file "trade.csv"'),
        (["--in", "trade=trades.csv"], 2, 'this program has no input "trade"'),
        (["--out", "ot=x.csv"], 2, 'this program has no output "ot"'),
        (["--out", "out=x.xml"], 2, 'cannot tell the format of "x.xml"'),
        (["--in", "trades"], 2, 'expected --in NAME=PATH, got "trades"'),
        (["--engine", "sprak"], 2, 'unknown engine "sprak"'),
        (["--schedule", "random:1"], 2, "only the reference has schedules"),
        (["--engine", "reference", "--schedule", "rnd"], 2, 'unknown schedule "rnd"'),
        (["--out", "out=missing/x.csv"], 2, "missing"),
        (["--threads", "0"], 2, "there must be at least one thread, got 0"),
        (["--rebuild"], 2, "rebuild is about a checkpoint, and none is given"),
        (["--relayout"], 2, "relayout is about a checkpoint, and none is given"),
        (["--key", "IBM"], 2, "--key goes with --watch"),
        (["--checkpoint", "prog.brook"], 2, 'the checkpoint "prog.brook" cannot be a folder'),
        (["--checkpoint", "prog.brook/in"], 2, "prog.brook is a file"),
    ],
)
def test_wrong_commands_are_told_in_one_sentence(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    actual, out, err = run(capsys, *arguments)
    assert (status, "") == (actual, out)
    assert message in err
    assert "Traceback" not in err


def test_a_checkpoint_that_cannot_be_made_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, "--checkpoint", "/proc/none")
    assert 2 == status
    assert 'the checkpoint "/proc/none" cannot be made' in err


def test_a_missing_column_is_told_with_a_caret(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "trades.csv").write_text("_time,symbol,prize,volume\n1,IBM,1,1\n")
    status, _, err = run(capsys)
    assert 2 == status
    assert err.startswith("error: trades.csv:1:")
    assert "^" in err
    assert 'Did you mean "prize"?' in err


def test_a_broken_parquet_file_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    status, _, err = run(capsys, "--in", "trades=broken.parquet")
    assert 1 == status
    assert "broken.parquet" in err
    assert "Traceback" not in err


def test_nothing_is_left_behind_after_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    run(capsys, "--in", "trades=broken.parquet", "--out", "out=result.csv")
    assert {"prog.brook", "trades.csv", "broken.parquet"} == {p.name for p in folder.iterdir()}


def test_an_old_result_survives_a_failed_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "result.csv").write_text("old\n")
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    run(capsys, "--in", "trades=broken.parquet", "--out", "out=result.csv")
    assert "old\n" == (folder / "result.csv").read_text()


def test_random_schedules_are_repeatable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys, "--engine", "reference", "--schedule", "random:5")
    assert first == run(capsys, "--engine", "reference", "--schedule", "random:5")


def test_progress_as_json_conserves_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "--progress", "json")
    last = json.loads(err.splitlines()[-1])
    assert last["conserved"]
    assert (2, 2, 0) == (last["read"], last["processed"], last["waiting"])


def test_no_file_and_no_folder_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["run", str(tmp_path / "nothing.brook")])
    assert "there is no file" in capsys.readouterr().err
    assert 2 == main(["run", str(tmp_path)])
    assert "has no millstream.toml" in capsys.readouterr().err


def test_a_misspelt_output_is_told_before_places_of_others_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.brook").write_text(
        "output a, b;\ninput s(v integer), t(v integer);\n"
        "(a) <- Filter[v > 1](s);\n(b) <- Filter[v < 1](t);\n"
    )
    assert 2 == main(["run", "two.brook", "--engine", "local", "--out", "aa=a.csv"])
    assert 'this program has no output "aa"' in capsys.readouterr().err
