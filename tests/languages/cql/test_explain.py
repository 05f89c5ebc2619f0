"""What a user is told about a file before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.cli.main import main

TEXT = """\
CREATE STREAM trades (symbol TEXT, price NUMBER, volume INTEGER, venue TEXT);
CREATE OUTPUT volumes AS
  SELECT symbol, SUM(volume) AS total FROM trades [Range 5 Minutes]
  WHERE venue = 'X' GROUP BY symbol;
CREATE OUTPUT prices AS
  SELECT symbol, MAX(price) AS high FROM trades [Range 5 Minutes]
  WHERE venue = 'X' GROUP BY symbol;
CREATE OUTPUT pairs AS
  SELECT a.symbol FROM trades AS a, trades [Partition By venue Rows 2] AS b
  WHERE a.symbol = b.symbol;
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "three.cql").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return "three.cql"


def test_check_says_what_is_kept_and_how_it_is_bounded(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["check", file])
    said = capsys.readouterr().out
    assert "Range: the rows of the last 5 min of trades; bounded" in said
    assert "prices keeps\n  1 of what volumes keeps\n" in said
    assert "and the values of the rows of the last 5 min of trades; bounded" in said
    assert "Rows: the last 2 rows of trades for each venue; grows with the number of keys" in said
    assert "Join: all rows that ever came on trades;" in said
    assert "grows without end" in said


def test_explain_gives_the_reason_for_each_rewrite(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["explain", file, "--stage", "optimised"])
    said = capsys.readouterr().out
    for name in (
        "hoist_select (O-HoistSelect), because",
        "share_common, because",
        "narrow_columns, because",
    ):
        assert name in said


@pytest.mark.parametrize("stage", ["calculus", "plan"])
@pytest.mark.parametrize("format_", ["text", "json", "svg"])
def test_every_stage_can_be_shown(
    file: str, stage: str, format_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["explain", file, "--stage", stage, "--format", format_])
    assert "Range" in capsys.readouterr().out
