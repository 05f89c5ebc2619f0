"""`millstream run --watch`."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.cli.main import main

VWAP = Path(__file__).parents[2] / "examples" / "sheets" / "vwap"


def test_the_sheet_of_one_key_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["run", str(VWAP), "--watch", "--key", "ACME"])
    drawn = capsys.readouterr().out
    assert "ACME" in drawn
    assert "#" in drawn
    assert "IBM" not in drawn


def test_a_key_without_rows_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["run", str(VWAP), "--watch", "--key", "NONE"])
    assert 'there are no rows of the key "NONE" to watch' in capsys.readouterr().err
