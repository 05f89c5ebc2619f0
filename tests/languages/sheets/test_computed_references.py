"""INDIRECT and OFFSET: computed where nothing streams, and replaced beforehand where it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import CheckError
from millstream.sheets import load
from millstream.values.excel.values import Scalar
from tests.languages.sheets.books import Cells, save, value

CELLS: Cells = {f"A{n}": n for n in range(1, 11)} | {
    "B1": "A3", "B2": 2, "B3": "=B2+1", "Other!C3": 7,
}  # fmt: skip
NAMES = {"rng": "S!$A$1:$A$3", "dyn": "OFFSET(S!$A$1,0,0,COUNTA(S!$A:$A),1)"}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ('=INDIRECT("A2")', 2.0),
        ("=INDIRECT(B1)", 3.0),
        ('=SUM(INDIRECT("A1:A"&B3))', 6.0),
        ('=INDIRECT("Other!C3")', 7.0),
        ('=INDIRECT("nothing")', "#REF!"),
        ('=INDIRECT("A1+1")', "#REF!"),
        ('=INDIRECT("R2C1",FALSE)', 2.0),
        ('=INDIRECT("R[1]C[-25]",FALSE)', 2.0),
        ('=INDIRECT("R[-1]C",FALSE)', "#REF!"),
        ('=SUM(INDIRECT("Other!R3C3:R4C3",FALSE))', 7.0),
        ('=SUM(INDIRECT("rng"))', 6.0),
        ('=SUMPRODUCT(ROW(INDIRECT("1:"&B2)))', 3.0),
        ("=SUM(OFFSET(A1,1,0,3))", 9.0),
        ("=OFFSET(A1,B2,0)", 3.0),
        ("=OFFSET(A1,2.9,0)", 3.0),
        ("=SUM(OFFSET(A10,0,0,-3,1))", 27.0),
        ("=OFFSET(A1,-1,0)", "#REF!"),
        ("=SUM(OFFSET(A1,0,0,0))", "#REF!"),
        ("=ROWS(OFFSET(A1:A3,0,0,,2))", 3.0),
        ("=COLUMNS(OFFSET(A1:A3,0,0,,2))", 2.0),
        ("=SUM(OFFSET(rng,1,0))", 9.0),
        ("=SUM(dyn)", 55.0),
        ("=LET(n,3,SUM(OFFSET(A1,0,0,n)))", 6.0),
    ],
)
def test_of_constant_arguments(formula: str, expected: Scalar) -> None:
    assert value(formula, CELLS, **NAMES) == expected


@pytest.mark.parametrize("formula", ["=OFFSET(A{n},-1,0)+1", '=INDIRECT("A"&ROW()-1)+1'])
def test_a_long_column_of_them_needs_no_stack(formula: str) -> None:
    chain = {"A1": 1} | {f"A{n}": formula.format(n=n) for n in range(2, 2_001)}
    assert value("=A2000", chain) == 2_000.0


def test_what_they_refer_to_may_be_filled_by_a_stream(tmp_path: Path) -> None:
    cells = {"A1": None, "B1": "A1", "B2": 3, "C1": "=INDIRECT(B1)*2",
             "C2": "=SUM(OFFSET(A1,0,0,B2,1))", "A2": 5, "A3": "=A1+1",
             "C3": "=SUM(WINDOWROWS(INDIRECT(B1),2))"}  # fmt: skip
    sheet = load(save(tmp_path / "filled.xlsx", cells), inputs=["A1"])
    sheet.set("A1", 10)
    sheet.compute(1)
    sheet.set("A1", 20)
    sheet.compute(2)
    assert [sheet.get(c)[0] for c in ("C1", "C2", "C3")] == [40.0, 46.0, 30.0]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("=OFFSET(B1,A1,0)", "what OFFSET refers to must not change, but it depends on S!A1"),
        ('=INDIRECT("B"&A3)', "what INDIRECT refers to must not change, but it depends on S!A3"),
        ("=LET(n,A1,OFFSET(B1,n,0))", "depends on the name n"),
    ],
)
def test_arguments_that_change_are_told(tmp_path: Path, formula: str, message: str) -> None:
    cells = {"A3": "=A1+1", "B1": 1, "B2": 2, "C1": formula}
    sheet = load(save(tmp_path / "changing.xlsx", cells), inputs=["A1"])
    sheet.set("A1", 1)
    sheet.compute(1)
    with pytest.raises(CheckError, match=message):
        sheet.get("C1")
