"""Runs that are stopped or fail leave what was there, and say it by their exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream import api
from millstream.backends.spark import session
from millstream.cli.main import main
from millstream.engine.job import Report
from millstream.errors import Stopped

PROGRAM = "output out; input in(n integer); (out) <- Filter[n >= 0](in);"
ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.brook").write_text(PROGRAM)
    (tmp_path / "in.csv").write_text("_time,n\n1,1\n2,2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@ENGINES
@pytest.mark.parametrize("place", ["out.csv", "out.parquet", "results/", "jsonl:results/"])
def test_a_run_that_is_stopped_publishes_nothing(folder: Path, engine: str, place: str) -> None:
    def interrupted(_: Report) -> None:
        raise KeyboardInterrupt

    job = millstream.compile("job.brook")
    job.run(outputs={"out": place}, engine=engine)
    before = contents(folder)
    (folder / "in.csv").write_text("_time,n\n7,7\n")
    with pytest.raises(KeyboardInterrupt):
        job.run(outputs={"out": place}, engine=engine, progress=interrupted)
    with pytest.raises(Stopped):
        job.run(outputs={"out": place}, engine=engine, stopped=lambda: True)
    assert before == {**contents(folder), "in.csv": before["in.csv"]}


def test_the_exit_status_of_a_stopped_run_is_130(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stop in (KeyboardInterrupt, Stopped("why")):

        def stopped(*_: Any, by: Any = stop, **__: Any) -> None:
            raise by

        monkeypatch.setattr(api.Compiled, "run", stopped)
        assert 130 == main(["run", "job.brook"])
        assert "stopped\n" == capsys.readouterr().err


def test_without_spark_the_extra_to_install_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    assert 1 == main(["run", "job.brook"])
    told = capsys.readouterr().err
    assert "Spark is not installed" in told
    assert "pip install 'millstream[spark]'" in told
    assert "--engine local" in told
