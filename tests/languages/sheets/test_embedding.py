"""Sheets inside other programs: `millstream.sheets`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.worksheet.table import Table
from openpyxl.worksheet.worksheet import Worksheet

import millstream
from millstream.errors import CheckError, RunError, UsageError
from millstream.sheets import ErrorValue, Sheet, load
from tests.languages.sheets.books import save
from tests.languages.sheets.test_bad_files import rewritten

VWAP = {
    "A3": "ACME", "B3": 196.73, "C3": 736, "G3": "=B3*C3", "C6": "=WINDOW(C3,300)",
    "G6": "=WINDOW(G3,300)", "C9": "=SUM(C6)", "G9": "=SUM(G6)", "A12": "ACME", "B12": 196.96,
    "C12": "Alice", "E12": "=A12", "F12": "=C12", "G12": "=G9/C9", "H12": "=B12<G12",
}  # fmt: skip


def sheet(path: Path, cells: dict[str, Any], *inputs: str) -> Sheet:
    return load(save(path / "book.xlsx", cells), inputs)


def steps(found: Sheet, *given: tuple[float, dict[str, Any]], read: str) -> list[Any]:
    """The value and the tick of a cell after each step."""
    seen = []
    for time, values in given:
        for cell, value in values.items():
            found.set(cell, value)
        found.compute(time)
        seen.append(found.get(read))
    return seen


def test_the_paper_s_example(tmp_path: Path) -> None:
    found = sheet(tmp_path, VWAP, "A3", "B3", "C3", "A12", "B12", "C12")
    assert (None, False) == found.get("G12")
    assert [(10.0, True), (15.0, True), (15.0, False), (25.0, True)] == steps(
        found,
        (0.0, {"B3": 10, "C3": 100}),
        (100.0, {"B3": 20, "C3": 100}),
        (200.0, {"A12": "ACME", "B12": 12, "C12": "Bob"}),
        (300.0, {"B3": 30, "C3": 100}),
        read="G12",
    )
    assert (True, True) == found.get("H12")
    assert ("Bob", True) == found.get("F12")
    assert [2000.0, 3000.0] == found.get("G6")[0]


def test_a_window_is_half_open(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=COUNT(WINDOW(A1,10))"})
    assert [1, 2, 2, 2] == [
        value for value, _ in steps(
            found, (0, {"A1": 1}), (9_999_999, {"A1": 1}), (10_000_000, {"A1": 1}),
            (19_999_999, {"A1": 1}), read="B1",
        )
    ]  # fmt: skip


def test_a_window_changes_only_when_its_trigger_ticks(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"C1": "=WINDOW(A1,10,B1)", "D1": "=SUM(C1)"}, "A1", "B1")
    assert [(None, False), (3.0, True), (3.0, False), (107.0, True)] == steps(
        found, (1.0, {"A1": 3}), (2.0, {"B1": 1}), (3.0, {"A1": 104}), (4.0, {"B1": 1}), read="D1"
    )


def test_the_last_rows(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=SUM(WINDOWROWS(A1,2))"})
    assert [1, 3, 5, 7] == [
        v for v, _ in steps(found, *((n, {"A1": n}) for n in range(1, 5)), read="B1")
    ]


def test_previous_values_and_their_initial_one(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=PRE(A1,A1,-1)"}, "A1")
    assert [(-1.0, True), (5.0, True), (6.0, True)] == steps(
        found, (1, {"A1": 5}), (2, {"A1": 6}), (3, {"A1": 7}), read="B1"
    )


def test_the_previous_value_of_an_absent_cell_is_the_initial_one(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"C1": "=PRE(A1,B1,-1)"}, "A1", "B1")
    given = [(1, {"B1": 1}), (2, {"B1": 1}), (3, {"A1": 9}), (4, {"B1": 1}), (5, {"B1": 1})]
    assert [-1, -1, -1, -1, 9] == [v for v, _ in steps(found, *given, read="C1")]


def test_the_previous_value_of_an_empty_cell_is_empty(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"C1": "=PRE(A1,B1,-1)", "D1": "=ISBLANK(C1)"}, "A1", "B1")
    assert [False, True] == [
        v for v, _ in steps(found, (1, {"A1": None, "B1": 1}), (2, {"B1": 1}), read="D1")
    ]


def test_a_counter_feeds_on_itself(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=PRE(B1,A1,0)+1"}, "A1")
    assert [1, 2, 3] == [v for v, _ in steps(found, *((n, {"A1": 0}) for n in range(3)), read="B1")]


def test_a_selection_ticks_only_when_the_condition_ticks_and_is_true(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"C1": "=SELECT(A1,B1>0)"}, "A1", "B1")
    assert [(None, False), (None, False), (1.0, True), (1.0, False), (2.0, True), (2.0, False)] == (
        steps(found, (1, {"B1": 5}), (2, {"A1": 1}), (3, {"B1": 5}), (4, {"A1": 2}),
              (5, {"B1": 1}), (6, {"B1": -1}), read="C1")
    )  # fmt: skip


def test_a_tick_is_told_once(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=A1*2"})
    found.set("A1", 1)
    found.compute(1)
    assert (2.0, True) == found.get("B1")
    assert (2.0, False) == found.get("B1")


def test_a_sheet_without_inputs_is_static(tmp_path: Path) -> None:
    cells = {
        "A1": 2, "A2": "=A1*3", "A3": "=NOSUCH(1)", "A4": "=A3+1", "A5": "=IF(TRUE,A2,A3)",
        "Other!B2": "=S!A2+1", "A6": "=1/0", "A7": '="a"&A1',
    }  # fmt: skip
    found = load(save(tmp_path / "static.xlsx", cells))
    assert (6.0, False) == found.get("A2")
    assert (7.0, False) == found.get("Other!B2")
    assert (6.0, False) == found.get("A5")
    assert ("#DIV/0!", False) == found.get("A6")
    assert isinstance(found.get("A6")[0], ErrorValue)
    assert ("a2", False) == found.get("'other'!$B$2".replace("other", "S").replace("B$2", "A$7"))
    assert (None, False) == found.get("Z99")
    for broken in ("A3", "A4"):
        with pytest.raises(CheckError, match=r"S!A3: the function NOSUCH is not supported"):
            found.get(broken)


def test_a_volatile_function_is_refused_with_the_reason(tmp_path: Path) -> None:
    for formula in ("=RAND()", "=NOW()", '=CELL("row",A1)'):
        found = load(save(tmp_path / "volatile.xlsx", {"A1": formula, "A2": 1}))
        with pytest.raises(CheckError, match="volatile and not supported"):
            found.get("A1")


def test_a_chain_of_many_cells_needs_no_stack(tmp_path: Path) -> None:
    cells: dict[str, Any] = {"A1": 1} | {f"A{n}": f"=A{n - 1}+1" for n in range(2, 6_001)}
    found = load(save(tmp_path / "deep.xlsx", cells))
    assert (6_000.0, False) == found.get("A6000")


def test_a_circle_is_told_to_whoever_needs_it(tmp_path: Path) -> None:
    cells = {"A1": "=B1+1", "B1": "=A1+1", "C1": "=IF(TRUE,1,A1)"}
    found = load(save(tmp_path / "circle.xlsx", cells))
    assert (1.0, False) == found.get("C1")
    with pytest.raises(millstream.errors.MillstreamError, match="depends on itself"):
        found.get("A1")


def test_time_cannot_go_back(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=A1"})
    found.set("A1", 1)
    found.compute(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(RunError, match="time has gone back"):
        found.compute(5)


def test_a_formula_cannot_be_given_a_value(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=A1"})
    with pytest.raises(UsageError, match="a cell with a formula cannot be given a value"):
        found.set("B1", 1)


def test_an_unknown_worksheet_is_told_with_those_there_are(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"B1": "=A1"})
    with pytest.raises(UsageError, match="it has: S"):
        found.get("Sheet2!A1")


def test_cells_bound_by_the_workbook_are_absent_at_first(tmp_path: Path) -> None:
    cells = {
        "A1": 5, "B1": "=A1+1",
        "streams!A1": "stream", "streams!B1": "direction", "streams!C1": "attribute",
        "streams!D1": "cell", "streams!E1": "type", "streams!A2": "In", "streams!B2": "input",
        "streams!C2": "x", "streams!D2": "A1", "streams!E2": "number",
    }  # fmt: skip
    found = load(save(tmp_path / "bound.xlsx", cells))
    assert (None, False) == found.get("B1")
    assert found.is_absent("B1")


def test_an_undefined_name_is_a_value_of_a_cell_as_in_excel(tmp_path: Path) -> None:
    cells = {"A1": 1, "B1": "=A1+fee", "C1": "=IFERROR(fee,7)+A1"}
    assert ("#NAME?", False) == sheet(tmp_path, cells).get("B1")
    found = sheet(tmp_path, cells, "A1")
    assert [("#NAME?", True)] == steps(found, (0.0, {"A1": 2}), read="B1")
    assert (9.0, True) == found.get("C1")


def test_characters_that_xml_cannot_hold_are_unescaped_in_formulas(tmp_path: Path) -> None:
    found = sheet(tmp_path, {"A1": '="a_x005F_x000F_b"', "A2": '="tab_x0009_"'})
    assert ("a_x000F_b", False) == found.get("A1")
    assert ("tab\t", False) == found.get("A2")


def test_subtotals_leave_out_rows_that_are_hidden(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    page = book.active
    assert isinstance(page, Worksheet)
    page["A1"] = "n"
    for row in range(2, 7):
        page[f"A{row}"] = 2 ** (row - 2)
    page.auto_filter.ref = "A1:A5"
    page.auto_filter.add_filter_column(0, ["1", "8"])
    for row in (3, 4, 6):  # two by the filter, the last by hand
        page.row_dimensions[row].hidden = True
    formulas = ("SUBTOTAL(9,A2:A6)", "SUBTOTAL(109,A2:A6)", "SUM(A2:A6)", "AGGREGATE(9,5,A2:A6)",
                "AGGREGATE(9,4,A2:A6)", "AGGREGATE(9,0,B1:B2,A2)")  # fmt: skip
    for row, formula in enumerate(formulas, 1):
        page.cell(row, 2, f"={formula}")
    book.save(tmp_path / "hidden.xlsx")
    found = load(tmp_path / "hidden.xlsx")
    assert [25.0, 9.0, 31.0, 9.0, 31.0, 1.0] == [found.get(f"B{r}")[0] for r in range(1, 7)]


def test_a_table_may_hold_an_extension_that_is_called_table_too(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    page = book.active
    assert isinstance(page, Worksheet)
    page["A1"], page["B1"] = "name", "price"
    for row in (2, 3):
        page[f"A{row}"], page[f"B{row}"] = f"n{row}", row + 1
    page.add_table(Table(displayName="Prices", ref="A1:B3"))
    page["D1"] = "=SUM(Prices[price])"
    book.save(tmp_path / "table.xlsx")
    extension = (
        b'<extLst><ext uri="x"><x:table xmlns:x="urn:x" altText="Prices"/></ext></extLst></table>'
    )
    found = load(rewritten(tmp_path / "table.xlsx", "xl/tables/table1.xml", b"</table>", extension))
    assert (7.0, False) == found.get("D1")


def test_a_formula_without_a_text_is_the_value_that_was_kept(tmp_path: Path) -> None:
    path = save(tmp_path / "book.xlsx", {"A1": 5, "B1": "=A1+1"})
    old, new = b'<c r="A1" t="n"><v>5</v>', b'<c r="A1" t="n"><f></f><v>5</v>'
    assert (6.0, False) == load(rewritten(path, "xl/worksheets/sheet1.xml", old, new)).get("B1")
