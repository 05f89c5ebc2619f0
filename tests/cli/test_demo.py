"""The demonstration: the sheet of one symbol, then the bargains of all."""

from __future__ import annotations

import json

import pytest

from millstream.cli import demo
from millstream.cli.main import main


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_engine", lambda: "local")


def test_the_demonstration_shows_a_sheet_and_bargains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--rows", "2000"]) == 0
    shown = capsys.readouterr().out
    assert "Sheet1, ACME" in shown
    assert "The first bargains" in shown
    assert "4,000 trades and quotes" in shown


def test_bargains_are_quotes_below_the_average(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--rows", "2000", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == demo.SHOWN
    assert all(row["bargain"] and row["seller"] and row["sym"] in demo.SYMBOLS for row in rows)
