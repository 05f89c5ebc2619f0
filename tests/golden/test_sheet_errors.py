"""What is said about workbooks that are wrong, word for word. `make golden` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from millstream.cli.main import main
from tests.languages.sheets.books import save

FOLDER = Path(__file__).parent / "sheets" / "errors"

Rows = list[tuple[str, ...]]

_HEAD = ("stream", "direction", "attribute", "cell", "type", "role")
_IN: Rows = [
    ("In", "input", "ts", "", "", "time"),
    ("In", "input", "k", "A1", "text", "partition"),
    ("In", "input", "x", "B1", "number", ""),
]
_OUT: Rows = [("Out", "output", "y", "D1", "", "")]

#: Cells of the worksheet, and bindings.
CASES: dict[str, tuple[dict[str, Any], Rows]] = {
    "circle": ({"C1": "=D1+B1", "D1": "=C1*2"}, _IN + _OUT),
    "window_outside_an_aggregate": ({"C1": "=WINDOW(B1,5)", "D1": "=C1+1"}, _IN + _OUT),
    "length_that_is_computed": ({"D1": "=SUM(WINDOW(B1,B1))"}, _IN + _OUT),
    "volatile": ({"D1": "=B1*RAND()+NOW()"}, _IN + _OUT),
    "unknown_function": ({"D1": "=AVERGE(B1,1)"}, _IN + _OUT),
    "unknown_worksheet": ({"D1": "=Prices!A1*B1"}, _IN + _OUT),
    "undefined_name": ({"D1": "=B1*rate+LET(y,2,y+fee)"}, _IN + _OUT),
    "syntax": ({"D1": "=SUM(B1,,(3)"}, _IN + _OUT),
    "output_of_an_empty_cell": ({"C1": "=B1"}, [*_IN, ("Out", "output", "y", "F9", "", "")]),
    "input_into_a_formula": ({"B1": "=2*3", "D1": "=B1"}, _IN + _OUT),
    "no_outputs": ({"D1": "=B1"}, _IN),
    "words_in_bindings": (
        {"D1": "=B1"},
        [*_IN, ("In", "inward", "z", "C1", "number", ""), ("Out", "output", "y", "D1D", "", "")],
    ),
    "all_at_once": (
        {"C1": "=PRE(C1,B1)", "D1": "=C1+WINDOW(B1,2)", "E1": "=NOPE(1)", "F1": "=D1+E1"},
        [*_IN, *_OUT, ("Out", "output", "z", "F1", "", "")],
    ),
    "no_type": ({"D1": "=B1"}, [("In", "input", "x", "B1", "", ""), *_OUT]),
}


def cells_of(cells: dict[str, Any], rows: Rows) -> dict[str, Any]:
    found = dict(cells)
    for number, row in enumerate([_HEAD, *rows], 1):
        for letter, word in zip("ABCDEF", row, strict=True):
            if word:
                found[f"streams!{letter}{number}"] = word
    return found


@pytest.mark.parametrize("name", CASES)
def test_golden_message(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / f"{name}.xlsx", cells_of(*CASES[name]))
    status = main(["check", f"{name}.xlsx"])
    captured = capsys.readouterr()
    golden = FOLDER / f"{name}.txt"
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True, parents=True)
        golden.write_text(captured.err)
    assert (2, "") == (status, captured.out)
    assert golden.read_text() == captured.err
