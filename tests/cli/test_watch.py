"""`millstream run --watch`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import millstream
from millstream.cli.main import main
from millstream.languages.sheets.watch import replay
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


def test_it_fits_the_terminal_and_says_what_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert 0 == main(["run", str(VWAP), "--watch"])
    drawn = capsys.readouterr().out
    assert max(map(len, drawn.splitlines())) <= 60
    assert "4 more columns in a larger terminal" in drawn
    assert "13425" in drawn


def test_dates_and_all_worksheets_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["run", str(VWAP.parent / "billing"), "--watch"])
    drawn = capsys.readouterr().out
    assert "2026-02-05 20:30:00" in drawn, "what a stream brings"
    assert "2026-03-14" in drawn, "what a formula makes"
    assert "Calculation" in drawn, "another worksheet"


def test_what_comes_later_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "sums.xlsx", {"C1": "=SUM(WINDOW(B1,60))", "D1": 17})
    (tmp_path / "millstream.toml").write_text("""
[stream.In]
source = "in/*.csv"
columns = { x = "number" }
time = "ts"
[node.n]
sheet = "sums.xlsx"
inputs.In = { B1 = "x" }
outputs.Out = { sum = "C1" }
""")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("ts,x\n1970-01-01T00:00:01Z,4\n")
    start = time.monotonic()
    is_written = False

    def stopped() -> bool:
        nonlocal is_written
        if not is_written and time.monotonic() - start > 1:
            is_written = True
            text = "ts,x\n1970-01-01T00:00:02Z,6\n1970-01-01T00:00:03Z,5\n"
            (tmp_path / "in" / "2.csv").write_text(text)
        return time.monotonic() - start > 5

    replay(millstream.compile(tmp_path), {}, None, follow=True, stopped=stopped)
    drawn = capsys.readouterr().out
    # More may come at the last instant, so it waits.
    assert "2 rows, at 1970-01-01T00:00:02" in drawn
    assert "10" in drawn
    assert "17" in drawn, "a constant that no formula needs"
