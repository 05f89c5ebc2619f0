"""Outputs that would spoil one another or the inputs are refused before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.cli.main import main
from millstream.connectors.location import parse_location
from millstream.connectors.overlap import refuse_overlaps
from millstream.errors import UsageError

PROGRAM = """
output out, more; input in(n integer);
(a, b) <- Duplicate(in);
(out) <- Filter[n >= 0](a);
(more) <- Filter[n >= 1](b);
"""
ROWS = "_time,n\n1,1\n2,2\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.brook").write_text(PROGRAM)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.csv").write_text(ROWS)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("data")
    os.link(tmp_path / "data" / "in.csv", tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refuses(where: str, outputs: dict[str, str], *, is_following: bool = False) -> int:
    """How many faults are told."""
    try:
        refuse_overlaps(
            {"in": parse_location(where, Path())},
            {name: parse_location(place, Path()) for name, place in outputs.items()},
            is_following=is_following,
        )
    except UsageError as error:
        return len(error.faults)
    return 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.csv", "x.csv"), ("x.csv", "./data/../x.csv"), ("data/x.csv", "link/x.csv"),
        ("csv:x", "jsonl:x"), ("results/", "results/"), ("results/", "./results/"), ("-", "csv:-"),
        ("postgresql://me@h/d?table=t", "postgresql://you:secret@h/d?table=t"),
        ("elsewhere/", "elsewhere/x.csv"),
    ],
)  # fmt: skip
def test_two_outputs_have_two_places(folder: Path, one: str, other: str) -> None:
    assert refuses("data/in.csv", {"a": one, "b": other})
    assert refuses("data/in.csv", {"a": other, "rejected": one})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.csv", "y.csv"), ("/dev/null", "/dev/null"), ("csv:/dev/null", "jsonl:/dev/null"),
        ("results/", "more/"), ("postgresql://h/d", "postgresql://h/d"),
        ("postgresql://h/d?table=t", "postgresql://h/d?table=s.t"),
    ],
)  # fmt: skip
def test_other_outputs_are_fine(folder: Path, one: str, other: str) -> None:
    one, other = (p.replace("/dev/", "csv:/dev/") if p[0] == "/" else p for p in (one, other))
    assert not refuses("data/in.csv", {"a": one, "b": other})


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("data/in.csv", "data/in.csv"), ("data/in.csv", "link/in.csv"),
        ("data/in.csv", "hard.csv"), ("data/", "data/new.csv"), ("data", "link/new.csv"),
        ("data/*.csv", "data/new.csv"), ("link/*.csv", "data/new.csv"),
        ("**/*.csv", "elsewhere/new.csv"), ("d?ta/i[mn]*.csv", "data/inside.csv"),
        ("csv:data/", "csv:data/"), ("*/*.csv", "csv:elsewhere/"),
    ],
)  # fmt: skip
def test_an_output_is_not_written_to_what_an_input_reads(
    folder: Path, source: str, output: str
) -> None:
    assert 1 == refuses(source, {"out": output})


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("data/in.csv", "data/out.csv"), ("data/", "data/out.jsonl"), ("data/", "out.csv"),
        ("data/i*.csv", "data/out.csv"), ("*/*.csv", "out.csv"), ("data/*.csv", "data/.out.csv"),
        ("generator:rows=3", "out.csv"), ("-", "-"),
    ],
)  # fmt: skip
def test_an_output_beside_an_input_is_fine(folder: Path, source: str, output: str) -> None:
    assert not refuses(source, {"out": output})


def test_numbered_files_of_a_run_that_follows_count(folder: Path) -> None:
    assert refuses("data/*-*.csv", {"out": "data/out.csv"}, is_following=True)
    assert not refuses("data/*-*.csv", {"out": "data/out.csv"})


@pytest.mark.parametrize("place", ["data/in.csv", "hard.csv", "x.csv", "data/../x.csv"])
def test_a_checkpoint_has_a_place_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    given = ["--in", "in=data/in.csv", "--out", "out=x.csv", "--checkpoint", place]
    assert 2 == main(["run", "job.brook", "--engine", "local", *given])
    assert f"{place}: the checkpoint has the place of" in capsys.readouterr().err
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize("engine", ["reference", "local", "spark"])
def test_all_faults_are_told_before_anything_starts(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    outputs = {"out": "x.csv", "more": "x.csv", "late": "data/in.csv", "rejected": "data/in.csv"}
    given = [word for name, place in outputs.items() for word in ("--out", f"{name}={place}")]
    assert 2 == main(["run", "job.brook", "--engine", engine, "--in", "in=data/in.csv", *given])
    told = capsys.readouterr().err
    assert 'x.csv: output "more" goes to the same place as output "out" does' in told
    assert 'output "late" would be written to what input "in" is read from' in told
    assert "3 errors" in told
    assert ROWS == (folder / "data" / "in.csv").read_text()
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_run_that_can_read_no_row_fails_and_tells_why(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    (folder / "x.csv").write_text("old\n")
    (folder / "data" / "in.csv").write_text("_time,n\n1,a\n2,b\n")
    status = main(
        ["run", "job.brook", "--engine", engine, "--in", "in=data/in.csv", "--out", "out=x.csv",
         "--out", "more=y.csv", "--out", "rejected=r.csv"]
    )  # fmt: skip
    told = capsys.readouterr().err
    assert 1 == status
    assert 'not one of the 2 rows of input "in" could be read' in told
    assert 'data/in.csv:2: n: expected an integer, got "a"' in told
    assert "old\n" == (folder / "x.csv").read_text()
    assert not (folder / "y.csv").exists()
    assert 3 == len((folder / "r.csv").read_text().splitlines())


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_each_input_of_which_no_row_can_be_read_tells_its_own_reason(
    folder: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    (folder / "two.brook").write_text(
        "output a, b;\ninput left(n integer), right(n integer);\n"
        "(a) <- Filter[n > 0](left);\n(b) <- Filter[n > 0](right);\n"
    )
    (folder / "left.csv").write_text("_time,n\n" + "1,x\n" * 7)
    (folder / "right.csv").write_text("_time,n\n1,y\n")
    given = ["--in", "left=left.csv", "--in", "right=right.csv"]
    assert 1 == main(
        ["run", "two.brook", "--engine", engine, *given, "--out", "a=a.csv", "--out", "b=b.csv"]
    )
    told = capsys.readouterr().err
    assert 'the first of them: left.csv:2: n: expected an integer, got "x"' in told
    assert 'the first of them: right.csv:2: n: expected an integer, got "y"' in told
