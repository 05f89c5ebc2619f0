"""Projects that are shipped to begin with: each can be copied, and runs as it is told to."""

from __future__ import annotations

import runpy
import shlex
from pathlib import Path

import pytest

import millstream
from millstream.cli.main import main
from millstream.cli.shipped import STARTERS, described, shipped_examples
from millstream.errors import UsageError
from tests.examples.folders import ROUNDS, example_folders

KINDS = sorted(p.name for p in STARTERS.iterdir() if p.is_dir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_runs_as_it_is_told_to(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", kind]) == 0
    said = capsys.readouterr().out
    program, *command = shlex.split(said.splitlines()[-1].removeprefix("run it with: "))
    if program == "python":
        (path,) = command
        runpy.run_path(path, run_name="__main__")
    else:
        assert main([*command, "--engine", "reference"]) == 0
        assert main(["check", kind]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 4


def test_a_starter_overwrites_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "cql", "mine"]) == 0
    assert main(["init", "rules", "mine"]) == 2
    assert '"mine" is there already' in capsys.readouterr().err
    assert main(["init", "cqll"]) == 2
    assert 'Did you mean "cql"?' in capsys.readouterr().err


def test_every_example_is_listed_with_what_it_is() -> None:
    names = shipped_examples()
    assert sorted(names.values()) == example_folders()
    assert [name for name, folder in names.items() if not described(folder)] == []


def test_an_example_runs_as_it_is_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "cql/auction_site"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    command = shlex.split(said.removeprefix("run it with: millstream "))
    assert main([*command, "--engine", "reference"]) == 0
    assert list(Path("auction_site").glob("*.csv"))
    assert main(["examples", "auction_site"]) == 2
    assert 'Did you mean "cql/auction_site"?' in capsys.readouterr().err


def test_an_example_that_goes_round_by_itself_is_told_how_often(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "streamit/fibonacci"]) == 0
    assert capsys.readouterr().out.endswith(f"--iterations {ROUNDS}\n")


def test_without_spark_programs_run_locally(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.cli.run.has_spark", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main(["init", "brook"]) == 0
    assert main(["run", "brook"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("Spark is not installed, so this runs on --engine local")
    assert "ACME" in said.out


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_an_output_can_be_what_stands(
    engine: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "cql"]) == 0
    assert main(["run", "cql", "--engine", engine, "--out", "volumes=now.csv?state"]) == 0
    assert Path("now.csv").read_text() == "symbol,volume,trades\nBOLT,75,1\nACME,300,1\n"
    project = Path("cql/millstream.toml")
    project.write_text(project.read_text().replace('to = "-"', 'to = "now.csv"\nstate = true'))
    checkpoint = ["--checkpoint", "c"] if engine == "local" else []
    for _ in range(2):
        assert main(["run", "cql", "--engine", engine, *checkpoint]) == 0
        assert Path("cql/now.csv").read_text() == Path("now.csv").read_text()
    trades = Path("cql/trades.csv")
    trades.write_text(trades.read_text().splitlines()[0] + "\n")
    assert main(["run", "cql", "--engine", engine]) == 0
    assert Path("cql/now.csv").read_text() == "symbol,volume,trades\n"
    capsys.readouterr()
    Path("s.brook").write_text("output o; input i(x integer); (o) <- Filter[x > 0](i);")
    Path("i.csv").write_text("_time,x\n1,1\n")
    assert main(["run", "s.brook", "--engine", engine, "--out", "o=o.csv?state"]) == 2
    assert '"o" is a stream, which has no state' in capsys.readouterr().err


def test_a_relation_is_had_as_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "cql"]) == 0
    for place in ("v.csv", "v.parquet", "v.jsonl"):
        assert main(["run", "cql", "--engine", "local", "--out", f"volumes={place}"]) == 0
        capsys.readouterr()
        assert main(["read", place, "--state"]) == 0
        assert capsys.readouterr().out.split() == [
            "symbol,volume,trades",
            "BOLT,75,1",
            "ACME,300,1",
        ]
        assert main(["read", place, "--as-of", "2026-01-05T09:31:00Z"]) == 0
        assert capsys.readouterr().out.split()[1:] == ["BOLT,50,1", "ACME,300,2"]
    assert main(["read", "cql/trades.csv", "--state"]) == 2
    assert "which has no state" in capsys.readouterr().err
    finished = millstream.compile("cql/volumes.cql").run()
    assert finished.state("volumes") == [
        {"symbol": "BOLT", "volume": 75, "trades": 1},
        {"symbol": "ACME", "volume": 300, "trades": 1},
    ]
    with pytest.raises(UsageError, match='there is no output "nothing"'):
        finished.state("nothing")
