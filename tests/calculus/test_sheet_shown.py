"""Sheets as people are shown them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.sheet_shown import sheet_shown
from millstream.calculus.sheet_text import sheet_of_lines
from millstream.calculus.sheets import Address
from millstream.calculus.types import NUMBER, TEXT, Schema
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from millstream.values.excel.syntax import column_name, column_number
from tests.languages.sheets.books import Cells, workbook


def lines(cells: Cells, shown: str) -> list[str]:
    inputs = (
        InputBinding("in", (Binding("k", "A1"), Binding("x", "B1")), "k",
                     columns=Schema.of(k=TEXT, x=NUMBER)),
    )  # fmt: skip
    outputs = (OutputBinding("out", (Binding("c", shown),)),)
    function = translate_workbook(workbook(cells), Bindings(inputs, outputs)).operators[0].function
    return sheet_shown(function)  # type: ignore[arg-type]


def test_parts_of_formulas_stand_where_they_were_written() -> None:
    cells = {"C1": "=SUM(WINDOW(SELECT(B1,B1>2),5))+PRE(C1,A1,0)"}
    assert [
        "S!A1 <- 1.k",
        "S!B1 <- 1.x",
        "S!C1 = SUM(WINDOW(SELECT(S!B1,(S!B1>2)),5))+PRE(S!C1,S!A1,0)   [kept]",
        "by k",
        "sends c number = S!C1",
    ] == lines(cells, "C1")


def test_a_part_that_stands_in_two_formulas_has_a_line_of_its_own() -> None:
    sheet = sheet_of_lines(
        ["S!B1 <- 1.x", "':'!A1 = S!B1+1", "S!C1 = ':'!A1*2", "S!D1 = ':'!A1*3",
         "output c number = S!C1, d number = S!D1"]
    )  # fmt: skip
    assert [":1 = S!B1+1", "S!C1 = :1*2", "S!D1 = :1*3"] == sheet_shown(sheet)[1:4]


def areas_of(addresses: set[Address]) -> list[str]:
    sheet = sheet_of_lines(
        ["S!A1 <- 1.x", *(f"constant {s}!{column_name(c)}{r} = 1" for s, r, c in addresses),
         "output c number = S!A1"]
    )  # fmt: skip
    return [line.removeprefix("constants ") for line in sheet_shown(sheet) if "constants" in line]


def test_a_table_is_one_area() -> None:
    assert ["T!B2:D4"] == areas_of({("T", r, c) for r in (2, 3, 4) for c in (2, 3, 4)})
    assert ["T!B2", "U!B2"] == areas_of({("T", 2, 2), ("U", 2, 2)})


@given(st.sets(st.tuples(st.sampled_from("TU"), st.integers(2, 7), st.integers(1, 5))))
def test_areas_have_every_constant_once(addresses: set[Address]) -> None:
    cells: list[Address] = []
    for area in areas_of(addresses):
        sheet, _, ends = area.partition("!")
        first, _, last = ends.partition(":")
        rows, columns = zip(
            *((int(e[1:]), column_number(e[0])) for e in (first, last or first)), strict=True
        )
        cells += [(sheet, r, c) for r in range(rows[0], rows[1] + 1)
                  for c in range(columns[0], columns[1] + 1)]  # fmt: skip
    assert sorted(addresses) == sorted(cells)
