"""Functions of arrays, arguments that are left out, choices for each element."""

from __future__ import annotations

import pytest

from tests.languages.sheets.books import value

DATA = {
    "A1": 1, "A2": 2, "A3": 3, "B1": 10, "B3": 30, "C1": "a", "C2": "b", "C3": "A",
}  # fmt: skip

CASES = [
    # An array has no empty elements: what an IF takes from an empty cell is zero.
    ("{=MIN(IF(A1:A3>0,B1:B3))}", 0.0),
    ("{=COUNT(IF(A1:A3>0,B1:B3))}", 3.0),
    ("{=SUM(IFS(A1:A3>2,1,TRUE,2))}", 5.0),
    ("{=SUM(SWITCH(A1:A3,1,10,2,20,0))}", 30.0),
    ("=INDEX(SORT(A1:A3,,-1),1)", 3.0),
    ("=XLOOKUP(9,A1:A3,B1:B3,,-1)", 30.0),
    ("=XLOOKUP(2,A1:A3,C1:C3,,,)", "b"),
    ("=XMATCH(2.5,A1:A3,,)", "#N/A"),
    ("=SUM(SEQUENCE(,3))", 6.0),
    ("=SUM(SEQUENCE(2,,5))", 11.0),
    ('=ADDRESS(2,3,,,"My Data")', "'My Data'!$C$2"),
    ("=COUNTA(UNIQUE(C1:C3))", 2.0),
    ("=UNIQUE(C1:C3,,TRUE)", "b"),
    ("=COUNT(TOCOL(A1:B3))", 6.0),
    ("=COUNT(TOCOL(A1:B3,1))", 5.0),
    ("=INDEX(TOCOL(A1:B3,,TRUE),2)", 2.0),
    ("=INDEX(TOROW({1,2;3,4}),1,3)", 3.0),
    ("=SUM(EXPAND(A1:A3,4,2,5))", 31.0),
    ("=INDEX(EXPAND(A1:A3,4),4)", "#N/A"),
    ("=EXPAND(A1:A3,2)", "#VALUE!"),
    ("=INDEX(WRAPROWS(A1:A3,2,0),2,2)", 0.0),
    ("=INDEX(WRAPCOLS(A1:A3,2),1,2)", 3.0),
    ("=INDEX(WRAPCOLS(A1:A3,2),2,2)", "#N/A"),
    ("=WRAPROWS(A1:B3,2)", "#VALUE!"),
    ('=TEXTBEFORE("a-b-c","-",2)', "a-b"),
    ('=TEXTBEFORE("aXb","x",,1)', "a"),
    ('=TEXTBEFORE("ab","-",,,1)', "ab"),
    ('=TEXTBEFORE("ab","-",,,,"none")', "none"),
    ('=TEXTBEFORE("ab","-")', "#N/A"),
    ('=TEXTAFTER("a-b-c","-",-1)', "c"),
    ('=TEXTAFTER("a-b_c",{"-","_"},2)', "c"),
    ('=TEXTJOIN("|",FALSE,TEXTSPLIT("a,b;c",",",";",,,"?"))', "a|b|c|?"),
    ('=TEXTJOIN("|",FALSE,TEXTSPLIT("a,,b",",",,TRUE))', "a|b"),
    ('=INDEX(TEXTSPLIT("a;b",,";"),2)', "b"),
    ('=TEXT(1/3,"General")', "0.333333333"),
    ('=TEXT(-2/3,"General")', "-0.666666667"),
    ('=TEXT(1234567890123,"General")', "1.23457E+12"),
    ('=TEXT(12345678901,"General")', "12345678901"),
    ('=TEXT(1234.56789012345,"General")', "1234.56789"),
    ('=TEXT(0.0000123456789,"General")', "1.23457E-05"),
]


@pytest.mark.parametrize(("formula", "expected"), CASES)
def test_a_formula_gives_what_excel_gives(formula: str, expected: object) -> None:
    assert expected == value(formula, DATA)
