"""Functions that formulas make, complex numbers, and cells that a formula fills."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest
from openpyxl.worksheet.formula import ArrayFormula

import millstream
from tests.languages.sheets.books import value

DATA = {"A1": 1, "A2": 2, "A3": 3, "B1": 10, "B2": 20, "B3": 30}

LAMBDAS = [
    ("=LAMBDA(x,y,x+y)(1,2)", 3.0),
    ("=LET(f,LAMBDA(x,x^2),f(3)+f(1))", 10.0),
    ("=LET(k,10,f,LAMBDA(x,x*k),f(3))", 30.0),
    ("=_xlfn.LET(_xlpm.f,_xlfn.LAMBDA(_xlpm.x,_xlpm.x+1),_xlpm.f(1))", 2.0),
    ("=SUM(MAP(A1:A3,B1:B3,LAMBDA(a,b,a*b)))", 140.0),
    ("=REDUCE(0,A1:A3,LAMBDA(a,b,a+b))", 6.0),
    ('=REDUCE("",A1:A3,LAMBDA(a,b,a&b))', "123"),
    ("=SUM(SCAN(0,A1:A3,LAMBDA(a,b,a+b)))", 10.0),
    ("=SUM(BYROW(A1:B3,LAMBDA(r,MAX(r))))", 60.0),
    ("=INDEX(BYCOL(A1:B3,LAMBDA(c,SUM(c))),2)", 60.0),
    ("=SUM(MAKEARRAY(2,3,LAMBDA(r,c,r*c)))", 18.0),
    ("=Twice(4)", 8.0),
    ("=SUM(MAP(A1:A3,Twice))", 12.0),
    ("=LAMBDA(x,x)", "#CALC!"),
    ("=LAMBDA(x,x)(1,2)", "#VALUE!"),
    ("=SUM(MAP(A1:A3,LAMBDA(x,1/(x-2))))", "#DIV/0!"),
    ("=IFERROR(REDUCE(0,A1:A3,LAMBDA(a,b,a/(b-2))),-1)", -1.0),
]


@pytest.mark.parametrize(("formula", "expected"), LAMBDAS)
def test_functions_that_formulas_make(formula: str, expected: object) -> None:
    assert expected == value(formula, DATA, Twice="LAMBDA(n,n*2)")


COMPLEX = [
    ("=COMPLEX(3,4)", "3+4i"),
    ('=COMPLEX(0,-1,"j")', "-j"),
    ("=COMPLEX(1,0)", "1"),
    ('=COMPLEX(1,1,"k")', "#VALUE!"),
    ('=IMABS("5+12i")', 13.0),
    ('=IMREAL("1e3+2i")', 1000.0),
    ('=IMAGINARY("0-j")', -1.0),
    ('=IMAGINARY("2.5i")', 2.5),
    ("=IMAGINARY(4)", 0.0),
    ('=IMSUM("3+4i","5-3i")', "8+i"),
    ('=IMSUB("13+4i","5+3i")', "8+i"),
    ('=IMPRODUCT("3+4i","5-3i")', "27+11i"),
    ('=IMDIV("-238+240i","10+24i")', "5+12i"),
    ('=IMDIV("1+i",0)', "#NUM!"),
    ('=IMCONJUGATE("3+4i")', "3-4i"),
    ('=IMSQRT("1+i")', "1.09868411346781+0.455089860562227i"),
    ('=IMEXP("1+i")', "1.46869393991589+2.28735528717884i"),
    ('=IMCOS("1+i")', "0.833730025131149-0.988897705762865i"),
    ('=IMABS("x")', "#NUM!"),
    ('=IMSUM("i","j")', "#VALUE!"),
]


@pytest.mark.parametrize(("formula", "expected"), COMPLEX)
def test_complex_numbers(formula: str, expected: object) -> None:
    assert expected == value(formula)


def test_the_cells_that_a_formula_fills(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row, number in enumerate((3, 1, 2), 1):
        sheet.cell(row, 1, number)
    sheet["C1"] = ArrayFormula("C1:C3", "=_xlfn._xlws.SORT(A1:A3)")
    sheet["D1"] = "=SUM(_xlfn.ANCHORARRAY(C1))"
    sheet["D2"] = "=ROWS(C1#)"
    sheet["D3"] = "=SUM(A1#)"
    book.save(tmp_path / "spill.xlsx")
    found = millstream.sheets.load(tmp_path / "spill.xlsx")
    assert [6.0, 3.0, "#REF!"] == [found.get(cell)[0] for cell in ("D1", "D2", "D3")]


def test_functions_of_a_workbook_run_on_streams(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet["B1"] = "=_xlfn.LET(_xlpm.f,_xlfn.LAMBDA(_xlpm.x,_xlpm.x*Rate),_xlpm.f(A1)+Twice(A1))"
    names = openpyxl.workbook.defined_name.DefinedName
    book.defined_names["Rate"] = names("Rate", attr_text="3")
    book.defined_names["Twice"] = names("Twice", attr_text="_xlfn.LAMBDA(_xlpm.n,_xlpm.n*2)")
    streams = book.create_sheet("streams")
    streams.append(["stream", "direction", "attribute", "cell", "type", "role"])
    streams.append(["S", "input", "x", "A1", "number"])
    streams.append(["S", "input", "ts", None, None, "time"])
    streams.append(["O", "output", "y", "B1"])
    book.save(tmp_path / "own.xlsx")
    job = millstream.compile(tmp_path / "own.xlsx")
    for engine in ("reference", "local"):
        found = job.run({"S": [{"ts": 1, "x": 2.0}]}, engine=engine).rows("O")
        assert [10.0] == [row["y"] for row in found]
