"""Lookups and criteria made into functions give what they give where each is evaluated anew."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from millstream.values.excel.direct import SeveralValues, direct
from millstream.values.excel.evaluate import Context, value_of
from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.values import Scalar
from tests.languages.sheets.books import Cells, address, workbook

#: A to E are tables: in order, texts in order, anything, gaps, and what is found; K is a row.
NUMBERS = [-2, 0, 1, 1, 1, 2.5, 7]
TEXTS = ["a", "A", "ab", "b*", "ß", "zz", "zz"]
ANYTHING = [3, "3", True, "a*", "=1/0", None, 1]
GAPS = [1, None, 2, None, 5, None, None]
RESULTS = [10, "x", None, "=NA()", True, -0.0, "y"]
COLUMNS: dict[str, list[Any]] = {
    "A": NUMBERS, "B": TEXTS, "C": ANYTHING, "D": GAPS, "E": RESULTS,
}  # fmt: skip
TABLE: Cells = {
    f"{column}{n}": value
    for column, values in COLUMNS.items()
    for n, value in enumerate(values, 1)
    if value is not None
} | {"K1": "a", "L1": "b", "M1": 3, "K2": 1, "L2": "two", "M2": "=1/0"}  # fmt: skip
WANTED: tuple[Scalar, ...] = (
    0.0, 1.0, 1.5, -3.0, 99.0, 3.0, None, "a", "A", "AB", "a*", "b~*", "?", "", "zzz", "SS", "3",
    True, False, ">1", "<=2.5", "<>a", "<>", "=", "=a", ">b", "<>1", "=#N/A", "TRUE",
)  # fmt: skip
FORMULAS = (
    *(f"=MATCH(J1,{c}1:{c}7,0)" for c in "ABCD"),
    *(f"=MATCH(J1,{c}1:{c}7)" for c in "ABCD"),
    "=MATCH(J1,A1:A7,-1)",
    "=MATCH(J1,A1:A7,TRUE)",
    "=MATCH(J1,A1:B7,0)",
    "=MATCH(J1,K1:M1,0)",
    "=MATCH(J1,D1:D9,1)",
    "=XLOOKUP(J1,B1:B7,E1:E7)",
    "=XLOOKUP(J1,C1:C7,E1:E7,-1)",
    '=XLOOKUP(J1,A1:A7,E1:E7,"")',
    "=XLOOKUP(J1,K1:M1,K2:M2,J1)",
    "=XLOOKUP(J1,B1:B7,E2:E4)",
    "=XLOOKUP(J1,K1:M1,E1:E3,1/0)",
    "=XLOOKUP(J1,A1:A7,E1:E7,C6,-1)",
    "=XLOOKUP(J1,A1,E1,C6)",
    "=XLOOKUP(J1,A1:A7,E1:E7,5,0,-1)",
    "=VLOOKUP(J1,A1:E7,5,FALSE)",
    "=VLOOKUP(J1,B1:E7,4,0)",
    "=VLOOKUP(J1,A1:E7,5)",
    "=VLOOKUP(J1,A1:E7,6)",
    '=VLOOKUP(J1,A1:E7,"5")',
    "=VLOOKUP(J1,C1:E7,2.9,FALSE)",
    "=VLOOKUP(J1,A1:A7,1,FALSE)",
    "=INDEX(E1:E7,J1)",
    "=INDEX(K2:M2,J1)",
    "=INDEX(A1:E7,J1,2)",
    "=INDEX(A1:E7,2,J1)",
    "=INDEX(A1:E7,J1)",
    "=INDEX(E1:E7,J1,1)",
    "=IFERROR(INDEX(E1:E7,MATCH(J1,B1:B7,0)),-1)",
    "=INDEX(A1:A7,J1,J1)",
    "=TAKE(A1:A7,J1)",
    "=SORT(A1:B7,J1,-1)",
    "=UNIQUE(E1:E7)&J1",
)
OF_CRITERIA = (
    *(f"=COUNTIF({c}1:{c}7,J1)" for c in "ABCD"), "=COUNTIF(A1:B7,J1)", '=COUNTIF(A1:A7,">"&J1)',
    "=SUMIF(A1:A7,J1)", "=SUMIF(B1:B7,J1,A1:A7)", "=SUMIF(B1:B7,J1,E1:E7)", "=SUMIF(C1:C7,J1,A1)",
    '=SUMIF(A1:A7,"<"&J1,D1:D7)', "=AVERAGEIF(B1:B7,J1,A1:A7)", "=AVERAGEIF(D1:D9,J1)",
    '=COUNTIFS(A1:A7,">0",B1:B7,J1)', "=COUNTIFS(C1:C7,J1)", "=COUNTIFS(A1:A7,J1,B1:B6,J1)",
    '=SUMIFS(A1:A7,B1:B7,J1,A1:A7,"<5")', "=SUMIFS(E1:E7,A1:A7,J1)", "=SUMIFS(A1:B7,B1:C7,J1)",
    "=AVERAGEIFS(A1:A7,B1:B7,J1)", "=MAXIFS(A1:A7,B1:B7,J1)", "=MINIFS(A1:A7,A1:A7,J1)",
    '=MAXIFS(A1:A7,B1:B7,"<>"&J1,D1:D7,">0")',
)  # fmt: skip


def given(wanted: Scalar) -> Cells:
    """What is looked for, in its cell; a text may look like a formula."""
    if wanted is None:
        return {}
    return {"J1": f'="{wanted}"' if isinstance(wanted, str) else wanted}


@pytest.mark.parametrize("formula", [*FORMULAS, *OF_CRITERIA])
def test_a_lookup_is_the_same_as_a_function(formula: str) -> None:
    for wanted in WANTED:
        cells = Recalculation(workbook({**TABLE, **given(wanted), "Z1": formula}))
        node = cells.formula("S", *address("Z1"))
        assert node is not None
        context = Context(cells, cells.workbook, "S", *address("Z1"))
        function = direct(node, {("S", *address("J1")): 0}, context)
        assert function is not None
        with contextlib.suppress(SeveralValues):
            assert repr(function([wanted])) == repr(value_of(node, context)), wanted


@pytest.mark.parametrize("criterion", ["7", "T3", ">40", "<>T5", "t*", True, None, 3.0])
def test_criteria_of_long_areas_are_the_same_as_functions(criterion: Scalar) -> None:
    """They are asked of an index."""
    cells: Cells = {f"A{n}": float(n % 9) if n % 4 else f"T{n % 7}" for n in range(1, 101)}
    cells |= {f"B{n}": float(n) for n in range(1, 101) if n % 10}
    for formula in (
        '=SUMIFS(B1:B100,A1:A100,J1,B1:B100,">20")', "=COUNTIF(A1:A100,J1)",
        "=AVERAGEIF(A1:A100,J1,B1:B100)", "=COUNTIFS(B1:B100,J1,A1:A100,J1)",
    ):  # fmt: skip
        book = Recalculation(workbook({**cells, **given(criterion), "Z1": formula}))
        node = book.formula("S", *address("Z1"))
        assert node is not None
        context = Context(book, book.workbook, "S", *address("Z1"))
        function = direct(node, {("S", *address("J1")): 0}, context)
        assert function is not None
        assert repr(function([criterion])) == repr(value_of(node, context))
