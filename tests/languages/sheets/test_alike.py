"""Sheets that differ in nothing but TRUE and 1, or an error and its text, are two sheets."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.api import Compiled
from millstream.calculus.types import Value
from tests.languages.sheets.books import Cells, save

ROWS: list[dict[str, Value]] = [{"_time": 1, "a": "x"}]
PAIRS: dict[str, tuple[Cells, Cells, str, str]] = {
    "in a formula": ({"B1": "=ISNUMBER(1)&A1"}, {"B1": "=ISNUMBER(TRUE)&A1"}, "TRUEx", "FALSEx"),
    "in an array": (
        {"B1": "=ISNUMBER(INDEX({1,2},1))&A1"},
        {"B1": "=ISNUMBER(INDEX({TRUE,2},1))&A1"},
        "TRUEx", "FALSEx",
    ),
    "in a cell": (
        {"B1": "=ISNUMBER(C1)&A1", "C1": 1},
        {"B1": "=ISNUMBER(C1)&A1", "C1": True},
        "TRUEx", "FALSEx",
    ),
    "remembered": (
        {"B1": "=ISNUMBER(PRE(A1,A1,1))&A1"},
        {"B1": "=ISNUMBER(PRE(A1,A1,TRUE))&A1"},
        "TRUEx", "FALSEx",
    ),
    "an error and its text": (
        {"B1": "=ISERROR(#N/A)&A1"}, {"B1": '=ISERROR("#N/A")&A1'}, "TRUEx", "FALSEx",
    ),
}  # fmt: skip


def two_sheets(folder: Path, one: Cells, other: Cells) -> Compiled:
    for name, cells in (("one", one), ("other", other)):
        save(folder / f"{name}.xlsx", cells)
    nodes = "".join(
        f"[node.{n}]\nsheet = '{n}.xlsx'\ninputs.X = {{A1 = 'a'}}\noutputs.{n}s = {{b = 'B1'}}\n"
        for n in ("one", "other")
    )
    stream = '[stream.X]\nsource = "x.csv"\ncolumns = { a = "text" }\n'
    (folder / "millstream.toml").write_text(stream + nodes)
    return millstream.compile(folder)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", PAIRS)
def test_sheets_that_python_takes_for_equal_are_not_one(
    tmp_path: Path, name: str, engine: str
) -> None:
    one, other, first, second = PAIRS[name]
    found = two_sheets(tmp_path, one, other).run({"X": ROWS}, engine=engine)
    assert (first, second) == (found.rows("ones")[0]["b"], found.rows("others")[0]["b"])


def test_equal_sheets_are_still_one(tmp_path: Path) -> None:
    cells = PAIRS["in a cell"][0]
    assert "share_common" in two_sheets(tmp_path, cells, cells).explain("optimised")
