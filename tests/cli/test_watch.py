"""`millstream run --watch`."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.cli.main import main
from tests.languages.sheets.books import save

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


def test_the_labels_of_the_worksheet_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = ("stream", "direction", "attribute", "cell", "type", "role")
    rows = [
        heads,
        ("Trades", "input", "price", "B3", "number", ""),
        ("Trades", "input", "ts", "", "", "time"),
        ("Out", "output", "mean", "C3", "", ""),
    ]
    cells = {"A1": "Mean price", "B2": "price", "C2": "mean", "A3": "live", "B3": "a sample",
             "C3": "=AVERAGE(WINDOW(B3,60))", "A90": "a remark far away"}  # fmt: skip
    cells |= {
        f"streams!{letter}{number}": word
        for number, row in enumerate(rows, 1)
        for letter, word in zip("ABCDEF", row, strict=True)
        if word
    }
    book = save(tmp_path / "means.xlsx", cells)
    (tmp_path / "trades.csv").write_text("ts,price\n1970-01-01T00:00:01Z,4\n")
    given = f"Trades={tmp_path / 'trades.csv'}"
    assert 0 == main(["run", str(book), "--watch", "--in", given])
    drawn = capsys.readouterr().out
    assert all(label in drawn for label in ("Mean price", "price", "mean", "live"))
    assert "remark" not in drawn
    assert "sample" not in drawn
